// The driver of convolutions on the CPU: stages boxes of the image, hands them to an algorithm, and puts away the results.
#include <algorithm>
#include <cstring>

#include "backend/cpu/conv/plan.h"
#include "backend/cpu/copy/move.h"
#include "backend/cpu/cpu.h"
#include "backend/cpu/gemm/plan.h"
#include "backend/cpu/parallel_rows.h"
#include "backend/cpu/scratch.h"
#include "core/storage.h"

namespace volta::cpu {
namespace {

constexpr double serial_work = 1 << 17;      // multiply-adds below which a second thread does not pay
constexpr int64_t partial_bytes = 16 << 20;  // of all partial gradients of a weight
constexpr int64_t most_segments = 16;
constexpr int64_t beyond = 64;  // values an algorithm may read past the end of what was staged
constexpr int64_t patch_bytes = 2 << 20, most_patch_bytes = 32 << 20;  // of patches that are made together

template <class F> void run_parts(int64_t parts, bool serial, const F& f) {
  if (!serial) return parallel(parts, f);
  for (int64_t i = 0; i < parts; ++i) f(i);
}

// An image tensor [batch, channels, axes…] as it lies in memory; strides in bytes.
struct Image {
  char* data;
  DType dtype;
  int64_t batch, channel, axis[conv_space];
  Image(const Arg& a, bool planes) : data(static_cast<char*>(a.data)), dtype(a.dtype), axis{0, 0, 0} {
    const int64_t size = size_of(dtype);
    const Shape& strides = a.layout->strides;
    batch = strides[0] * size;
    channel = strides[1] * size;
    for (int i = conv_space - 1, k = strides.size() - 1; k > 1; --i, --k) axis[i] = strides[k] * size;
    if (planes) axis[0] = batch;
  }
  char* at(int64_t b, int64_t c) const { return data + b * batch + c * channel; }
  // Whether pixels of an image with these sizes follow each other.
  bool dense(const int64_t* sizes) const {
    int64_t expected = size_of(dtype);
    for (int i = conv_space - 1; i >= 0; expected *= sizes[i--])
      if (sizes[i] > 1 && axis[i] != expected) return false;
    return true;
  }
};

template <class T> constexpr int64_t lanes = 16 / int64_t(sizeof(T));

// Copies one vector of values that lie `step` (0, 1 or 2) elements apart.
template <int step, class T> void move_vector(T* to, const T* from) {
  using Vector [[gnu::vector_size(16)]] = T;
  if constexpr (step == 1) return void(std::memcpy(to, from, 16));
  if constexpr (step == 0) {
    const Vector same = Vector{} + *from;
    return void(std::memcpy(to, &same, 16));
  }
  Vector a, b;
  std::memcpy(&a, from, 16);
  std::memcpy(&b, from + lanes<T> - 1, 16);
  if constexpr (lanes<T> == 4) a = __builtin_shufflevector(a, b, 0, 2, 5, 7);
  else a = __builtin_shufflevector(a, b, 0, 3);
  std::memcpy(to, &a, 16);
}

// As copy_row, where T is one of the dtypes. Most rows are too short for calls; the last of their vectors overlaps.
template <class T> inline void move_row(int64_t n, char* out, int64_t out_stride, DType to, const char* in,
                                        int64_t in_stride, DType from) {
  constexpr int64_t size = sizeof(T), long_row = 64;
  if (to != from || (n >= long_row && in_stride != 0)) return copy_row(n, out, out_stride, to, in, in_stride, from);
  const T* values = reinterpret_cast<const T*>(in);
  T* row = reinterpret_cast<T*>(out);
  const int64_t last = n - lanes<T>;
  const auto by_vectors = [&]<int step>(std::integral_constant<int, step>) {
    for (int64_t i = 0; i < last; i += lanes<T>) move_vector<step>(row + i, values + step * i);
    move_vector<step>(row + last, values + step * last);
  };
  if (last < 0 || out_stride != size || in_stride < 0 || in_stride > 2 * size)
    for (; n > 0; --n, out += out_stride, in += in_stride) std::memcpy(out, in, size);
  else if (in_stride == 0) by_vectors(std::integral_constant<int, 0>());
  else if (in_stride == size) by_vectors(std::integral_constant<int, 1>());
  else by_vectors(std::integral_constant<int, 2>());
}

// Elements [0, n) of staged rows read the source at first + i * step, of which [begin, end) are inside it; others are zero.
struct StagedRow {
  int64_t n, begin = 0, end;
  int64_t from, stride;  // in bytes, of the first inside and from one to the next
  DType dtype;

  StagedRow(int64_t count, const Image& source, int64_t size, int64_t first, int64_t step)
      : n(count), end(count), from(0), stride(0), dtype(source.dtype) {
    while (begin < n && first + begin * step < 0) ++begin;
    while (end > begin && first + (end - 1) * step >= size) --end;
    if (begin < end) from = (first + begin * step) * source.axis[2];
    if (begin + 1 < end) stride = step * source.axis[2];
  }

  // Zeros before `head` and from `tail` on; values in between are written later.
  template <class T> void clear(T* to, int64_t head, int64_t tail) const {
    const int64_t last = n - lanes<T>;
    if (last < 0) {
      for (int64_t i = 0; i < lanes<T>; ++i)
        if (i < n) to[i] = T(0);
      return;
    }
    for (int64_t i = 0; i < head; i += lanes<T>) std::memset(to + std::min(i, last), 0, 16);
    for (int64_t i = last; i > tail - lanes<T>; i -= lanes<T>) std::memset(to + std::max<int64_t>(i, 0), 0, 16);
  }
  template <class T> void copy(T* to, const char* row) const {
    clear(to, begin, end);
    move_row<T>(end - begin, reinterpret_cast<char*>(to + begin), sizeof(T), dtype_of<T>(), row + from, stride, dtype);
  }
};

// One channel of a box, all its phases, with zeros where the source ends.
template <class T> void stage_channel(T* to, const Image& source, const char* channel, const Pass& pass, const Box& box,
                                      const Staged& staged) {
  const PassAxis &d = pass.axes[0], &h = pass.axes[1], &w = pass.axes[2];
  // Read once: for all the compiler knows, rows are written over what references lead to.
  const int64_t planes = staged.extent[0], rows = staged.extent[1], step = h.step, size = h.size;
  const int64_t stride = source.axis[1];
  const auto first = [&](int i, int64_t phase) {
    return pass.axes[i].start + box.begin[i] * pass.axes[i].step + phase;
  };
  for (const int64_t phase_d : d.phases) {
    for (const int64_t phase_h : h.phases) {
      for (const int64_t phase_w : w.phases) {
        const StagedRow row(staged.extent[2], source, w.size, first(2, phase_w), w.step);
        for (int64_t i = 0; i < planes; ++i) {
          const int64_t z = first(0, phase_d) + i * d.step, top = first(1, phase_h);
          const bool inside = z >= 0 && z < d.size;
          const char* plane = channel + (inside ? z * source.axis[0] : 0);
          for (int64_t j = 0, y = top; j < rows; ++j, y += step, to += row.n) {
            if (inside && y >= 0 && y < size) row.copy(to, plane + y * stride);
            else row.clear(to, row.n, row.n);
          }
        }
      }
    }
  }
}

template <class T> T* stage(const Image& source, int64_t b, int64_t c, int64_t channels, const Pass& pass,
                            const Box& box, const Staged& staged) {
  const int64_t each = pass.phases() * staged.plane();
  T* image = static_cast<T*>(scratch(Scratch::image, size_t(channels * each + beyond) * sizeof(T)));
  for (int64_t i = 0; i < channels; ++i)
    stage_channel(image + i * each, source, source.at(b, c + i), pass, box, staged);
  return image;
}

// c * step + place(taps of the axes), channel by channel, tap by tap.
template <class F> std::vector<int64_t> along_depth(const Pass& pass, int64_t channels, int64_t step, F place) {
  std::vector<int64_t> places;
  places.reserve(size_t(channels * pass.taps()));
  for (int64_t c = 0; c < channels; ++c)
    for (const auto& d : pass.axes[0].taps)
      for (const auto& h : pass.axes[1].taps)
        for (const auto& w : pass.axes[2].taps) places.push_back(c * step + place(d, h, w));
  return places;
}

using Tap = PassAxis::Tap;

// Where the patches' rows begin.
std::vector<int64_t> offsets_of(const Pass& pass, const Staged& staged, int64_t channels) {
  const int64_t phases_h = int64_t(pass.axes[1].phases.size()), phases_w = int64_t(pass.axes[2].phases.size());
  const auto place = [&](const Tap& d, const Tap& h, const Tap& w) {
    const int64_t phase = (d.phase * phases_h + h.phase) * phases_w + w.phase;
    return phase * staged.plane() + (d.shift * staged.extent[1] + h.shift) * staged.extent[2] + w.shift;
  };
  return along_depth(pass, channels, pass.phases() * staged.plane(), place);
}

// The step of places that are its multiples in order, if they are.
std::optional<int64_t> regular_step(const std::vector<int64_t>& places) {
  const int64_t step = places.size() > 1 ? places[1] : 1;
  for (size_t i = 0; i < places.size(); ++i)
    if (places[i] != int64_t(i) * step) return {};
  return step;
}

// Working memory that several threads share.
template <class T> class Values {
 public:
  explicit Values(int64_t n) : memory_(host_storage(n * int64_t(sizeof(T)), "convolve")) {}
  T* data() const { return static_cast<T*>(memory_->data); }

 private:
  IntrusivePtr<Storage> memory_;
};

// Small images of a batch are taken together, as planes of one, where large weights are packed for many pixels at a time. Of
// a single tap, which would do without staging, only for the input, whose weights cost more to pack.
constexpr int64_t small_image = 256, tiny_image = 49, large_depth = 512;
bool folds(const ConvGeometry& g, ConvPiece piece) {
  const ConvAxis& d = g.axes[0];
  const int64_t most = g.taps() > 1 ? small_image : piece == ConvPiece::input ? tiny_image : 0;
  return g.batch > 1 && d.input == 1 && d.kernel == 1 && d.output == 1 && g.outputs() <= most &&
         std::min(g.in_channels, g.out_channels) / g.groups * g.taps() >= large_depth;
}
ConvGeometry folded(ConvGeometry g, ConvPiece piece) {
  if (!folds(g, piece)) return g;
  g.axes[0].input = g.axes[0].output = g.batch;
  g.batch = 1;
  return g;
}

template <class T> ConvKernels<T> kernels_of(ConvAlgorithm algorithm) {
  if (algorithm == ConvAlgorithm::im2col) return conv_im2col<T>();
  if (algorithm == ConvAlgorithm::direct) return for_isa([]<Isa level>() { return conv_direct<level, T>(); });
  if constexpr (std::is_same_v<T, float>)
    if (algorithm == ConvAlgorithm::winograd) return for_isa([]<Isa level>() { return conv_winograd<level>(); });
  return for_isa([]<Isa level>() { return conv_implicit_gemm<level, T>(); });
}

template <class T> struct Convolver {
  const ConvCall& call;
  const ConvGeometry g;
  ConvAlgorithm algorithm;
  ConvKernels<T> kernels;
  bool serial;
  DType dtype;      // of the tensors; they are computed as T
  int64_t in, out;  // channels of a group

  Convolver(const ConvCall& c, ConvAlgorithm a)
      : call(c),
        g(folded(c.geometry, c.piece)),
        algorithm(a),
        kernels(kernels_of<T>(a)),
        serial(g.work() < serial_work),
        dtype(c.w.dtype),
        in(g.in_channels / g.groups),
        out(g.out_channels / g.groups) {}

  bool forward() const { return call.piece == ConvPiece::forward; }
  bool native() const { return dtype == dtype_of<T>(); }
  Image image(const Arg& a) const { return Image(a, folds(call.geometry, call.piece)); }
  int64_t threads() const { return serial ? 1 : get_num_threads(); }

  // The weights, if they are halves.
  Values<T> widened() const {
    const int64_t n = native() ? 0 : g.out_channels * in * g.taps();
    Values<T> w(n);
    if (n > 0) cast_row(dtype_of<T>(), dtype)(n, w.data(), call.w.data);
    return w;
  }
  // Where the weights of a row lie along the depth: those of a group are [out, in, taps], and the input's rows are along `in`.
  std::vector<int64_t> places_of(const Pass& pass, int64_t channels) const {
    const auto place = [&](const Tap& d, const Tap& h, const Tap& w) {
      return (d.kernel * g.axes[1].kernel + h.kernel) * g.axes[2].kernel + w.kernel;
    };
    return along_depth(pass, channels, forward() ? g.taps() : in * g.taps(), place);
  }

  int64_t room_for(const Pass& pass) const { return kernels.staged_bytes * (pass.axes[0].count > 1 ? 2 : 1); }
  void set_pixels(ConvPart<T>& part, const Box& box, const Staged& staged) const {
    part.pixels = box.outputs();
    part.row = box.count[2];
    part.rows = box.count[1];
    part.row_step = staged.extent[2];
    part.plane_step = staged.extent[1] * staged.extent[2];
    part.regular.reset();
    part.chunk = call.chunk;
  }
  // The image of a box, staged unless it can be read where it is.
  void set_image(ConvPart<T>& part, const Image& source, const Pass& pass, const Box& box, const Staged& staged,
                 int64_t b, int64_t c, int64_t channels) const {
    const int64_t sizes[] = {pass.axes[0].size, pass.axes[1].size, pass.axes[2].size};
    if (kernels.in_place && native() && pass.in_place() && source.dense(sizes)) {
      part.image = reinterpret_cast<const T*>(source.at(b, c)) + first_pixel(pass, box);
      part.regular = source.channel / int64_t(sizeof(T));
    } else {
      part.image = stage<T>(source, b, c, channels, pass, box, staged);
    }
  }
  static int64_t first_pixel(const Pass& pass, const Box& box) {
    return (box.begin[0] * pass.axes[1].count + box.begin[1]) * pass.axes[2].count + box.begin[2];
  }

  // Results of a box to where the pass puts them.
  void put(const ConvPart<T>& part, const Image& to, const Pass& pass, const Box& box, int64_t b, int64_t c) const {
    const T* from = part.c;
    const PassAxis &d = pass.axes[0], &h = pass.axes[1], &w = pass.axes[2];
    for (int64_t i = 0; i < part.m; ++i) {
      char* channel = to.at(b, c + i) + (w.to + box.begin[2] * w.to_step) * to.axis[2];
      for (int64_t z = box.begin[0]; z < box.begin[0] + box.count[0]; ++z) {
        for (int64_t y = box.begin[1]; y < box.begin[1] + box.count[1]; ++y, from += box.count[2])
          move_row<T>(box.count[2], channel + (d.to + z * d.to_step) * to.axis[0] + (h.to + y * h.to_step) * to.axis[1],
                      w.to_step * to.axis[2], dtype, reinterpret_cast<const char*>(from), sizeof(T), dtype_of<T>());
      }
    }
  }

  // In how many slices of rows the threads share so many items the soonest: each of them makes its patches again.
  int64_t slices_of(int64_t rows, int64_t items) const {
    const int64_t again = kernels.tile > 1 ? 40 : 8, most = divide_up(rows, least_rows);  // in rows
    const auto cost = [&](int64_t n) {
      return divide_up(items * n, threads()) * (divide_up(most, n) * least_rows + again);
    };
    int64_t best = 1;
    for (int64_t n = 2; n <= std::min(most, 2 * threads()); ++n)
      if (cost(n) < cost(best)) best = n;
    return best;
  }
  // Some rows of the left operand, from a multiple of least_rows on.
  static Range slice_of(int64_t rows, int64_t slices, int64_t index) {
    const int64_t units = divide_up(rows, least_rows), begin = units * index / slices * least_rows;
    return {begin, std::min(rows, units * (index + 1) / slices * least_rows) - begin};
  }

  // forward and input: rows channels of the target from `channels` of the source.
  void correlate(const Pass& pass, const Image& source, const Image& target, const T* w, const T* bias,
                 int64_t channels, int64_t rows) const {
    const int64_t depth = channels * pass.taps(), images = g.batch * g.groups;
    const std::vector<int64_t> places = places_of(pass, channels);
    const int64_t row = forward() ? in * g.taps() : g.taps();
    const std::optional<int64_t> regular = regular_step(places);
    // Parts for all threads: slices of many weights, which each part packs, or boxes of many pixels.
    const int64_t wanted = threads() > 1 ? divide_up(2 * threads(), images) : 1, most = divide_up(rows, least_rows);
    const bool by_rows = rows * kernels.tile * kernels.tile >= pass.outputs();
    const Boxes boxes = plan_boxes(pass, channels, sizeof(T), room_for(pass),
                                   by_rows ? divide_up(threads(), images * most) : wanted, kernels.tile);
    const int64_t items = images * boxes.count();
    const int64_t slices = slices_of(rows, items);
    const Staged staged = staged_of(pass, boxes.largest(pass), kernels.tile);
    const std::vector<int64_t> offsets = offsets_of(pass, staged, channels);
    const auto weights = [&](int64_t group, int64_t first) {
      return ConvRows<T>{w + group * out * in * g.taps() + first * row, row, places.data(), regular};
    };
    const int64_t prepared = kernels.prepared && depth > 0 ? kernels.prepared(rows, depth, weights(0, 0), items) : 0;
    const Values<T> room(prepared * g.groups);
    if (prepared > 0)
      run_parts(g.groups * divide_up(rows, least_rows), serial, [&](int64_t part) {
        const int64_t group = part % g.groups, first = part / g.groups * least_rows;
        kernels.prepare(rows, depth, weights(group, 0), room.data() + group * prepared, first,
                        std::min(least_rows, rows - first));
      });
    const int64_t sizes[] = {pass.axes[0].count, pass.axes[1].count, pass.axes[2].count};
    const bool straight = native() && target.dense(sizes) && pass.straight();
    run_parts(items * slices, serial, [&](int64_t index) {
      const int64_t slice = index % slices, item = index / slices, image = item / boxes.count();
      const int64_t group = image % g.groups, b = image / g.groups;
      const Range some = slice_of(rows, slices, slice);
      const Box box = boxes.box(pass, item % boxes.count());
      ConvPart<T> part;
      set_pixels(part, box, staged);
      part.offsets = offsets.data();
      part.depth = depth;
      part.m = some.size;
      part.a = weights(group, some.begin);
      part.prepared = prepared > 0 ? room.data() + group * prepared : nullptr;
      part.all_rows = rows;
      part.first_row = some.begin;
      part.bias = bias ? bias + group * rows + some.begin : nullptr;
      part.c_step = straight ? target.channel / int64_t(sizeof(T)) : part.pixels;
      part.c = straight ? reinterpret_cast<T*>(target.at(b, group * rows + some.begin)) + first_pixel(pass, box)
                        : static_cast<T*>(scratch(Scratch::result, size_t(part.m * part.pixels) * sizeof(T)));
      if (depth > 0) {
        set_image(part, source, pass, box, staged, b, group * channels, channels);
        kernels.correlate(part);
      } else {
        for (int64_t i = 0; i < part.m; ++i)
          std::fill_n(part.c + i * part.c_step, part.pixels, part.bias ? part.bias[i] : T(0));
      }
      if (!straight) put(part, target, pass, box, b, group * rows + some.begin);
    });
  }

  // Gradients of a box's outputs as rows that are contiguous along the pixels; in whole tiles, with zeros.
  void set_gradients(ConvPart<T>& part, const Image& y, const Pass& outputs, const Box& box, int64_t b,
                     int64_t c) const {
    const int64_t sizes[] = {outputs.axes[0].size, outputs.axes[1].size, outputs.axes[2].size};
    if (native() && y.dense(sizes) && kernels.tile == 1) {
      part.a = {reinterpret_cast<const T*>(y.at(b, c)) + first_pixel(outputs, box), y.channel / int64_t(sizeof(T)),
                nullptr, 1};
      return;
    }
    const Staged staged = staged_of(outputs, box, kernels.tile);
    T* rows = static_cast<T*>(scratch(Scratch::other, size_t(part.m * staged.plane() + beyond) * sizeof(T)));
    for (int64_t i = 0; i < part.m; ++i)
      stage_channel(rows + i * staged.plane(), y, y.at(b, c + i), outputs, box, staged);
    part.a = {rows, staged.plane(), nullptr, 1};
  }

  // The weight: images and boxes in a fixed number of segments, each summed apart, then added up in order.
  void weight_gradient(const Pass& pass, const Pass& outputs) const {
    const Image x = image(call.x), y = image(call.y);
    const int64_t depth = in * pass.taps(), size = g.out_channels * depth;
    const Boxes boxes = plan_boxes(pass, in, sizeof(T), room_for(pass), 1, kernels.tile);
    const int64_t items = g.batch * boxes.count();
    const int64_t affordable = std::max<int64_t>(1, partial_bytes / (size * int64_t(sizeof(T))));
    const int64_t segments = std::min({items, most_segments, affordable});
    const int64_t slices = slices_of(out, segments * g.groups);
    const Staged staged = staged_of(pass, boxes.largest(pass), kernels.tile);
    const std::vector<int64_t> offsets = offsets_of(pass, staged, in);
    const bool whole = segments == 1 && native();
    const Values<T> room(whole ? 0 : segments * size);
    T* partials = whole ? static_cast<T*>(call.w.data) : room.data();
    run_parts(segments * g.groups * slices, serial, [&](int64_t index) {
      const int64_t slice = index % slices, group = index / slices % g.groups, segment = index / slices / g.groups;
      const Range some = slice_of(out, slices, slice);
      ConvPart<T> part;
      part.offsets = offsets.data();
      part.depth = depth;
      part.m = some.size;
      part.all_rows = out;
      part.bias = part.prepared = nullptr;
      part.c = partials + segment * size + (group * out + some.begin) * depth;
      part.c_step = depth;
      part.add = false;
      for (int64_t item = items * segment / segments; item < items * (segment + 1) / segments; ++item) {
        const int64_t b = item / boxes.count();
        const Box box = boxes.box(pass, item % boxes.count());
        set_pixels(part, box, staged);
        set_image(part, x, pass, box, staged, b, group * in, in);
        set_gradients(part, y, outputs, box, b, group * out + some.begin);
        kernels.weight_gradient(part);
        part.add = true;
      }
    });
    if (whole) return;
    constexpr int64_t grain = 1 << 14;
    run_parts(divide_up(size, grain), serial, [&](int64_t part) {
      const int64_t begin = part * grain, n = std::min(grain, size - begin);
      T* sums = partials + begin;
      for (int64_t s = 1; s < segments; ++s)
        for (int64_t i = 0; i < n; ++i) sums[i] += sums[s * size + i];
      cast_row(dtype, dtype_of<T>())(n, static_cast<char*>(call.w.data) + begin * size_of(dtype), sums);
    });
  }

  // The input before any tap reaches it: the bias, or zeros.
  void fill_input(void* x, const void* bias, int64_t size) const {
    const int64_t channels = g.in_channels, n = call.x.layout->numel();
    if (n == 0) return;
    const int64_t planes = call.geometry.batch * channels, pixels = n / planes;
    const int64_t grain = divide_up(int64_t(1) << 16, pixels);
    run_parts(divide_up(planes, grain), false, [&](int64_t part) {
      for (int64_t i = part * grain; i < std::min(planes, (part + 1) * grain); ++i) {
        char* plane = static_cast<char*>(x) + i * pixels * size;
        if (!bias) std::memset(plane, 0, size_t(pixels * size));
        else fill_row(size, pixels, plane, static_cast<const char*>(bias) + i % channels * size);
      }
    });
  }

  // Positions [first, first + n) of y, of one group, as a matrix [channels, positions].
  void gather(const Image& y, int64_t group, int64_t first, int64_t n, T* to) const {
    const ConvAxis *axes = call.geometry.axes, &w = axes[2];
    for (int64_t i = 0, run; i < n; i += run) {
      const int64_t at = first + i, column = at % w.output, line = at / w.output, plane = line / axes[1].output;
      run = std::min(n - i, w.output - column);
      const int64_t from = plane % axes[0].output * y.axis[0] + line % axes[1].output * y.axis[1] + column * y.axis[2];
      for (int64_t c = 0; c < out; ++c)
        move_row<T>(run, reinterpret_cast<char*>(to + c * n + i), sizeof(T), dtype_of<T>(),
                    y.at(plane / axes[0].output, group * out + c) + from, y.axis[2], dtype);
    }
  }
  // Adds the patch that belongs to one position of y to a channel of the input.
  void add_patch(T* channel, const T* patch, int64_t position) const {
    const ConvAxis &d = call.geometry.axes[0], &h = call.geometry.axes[1], &w = call.geometry.axes[2];
    const int64_t right = position % w.output * w.stride - w.padding, line = position / w.output;
    const int64_t down = line % h.output * h.stride - h.padding, deep = line / h.output * d.stride - d.padding;
    const int64_t begin = right < 0 ? divide_up(-right, w.dilation) : 0;
    const int64_t end = right >= w.input ? 0 : std::min(w.kernel, (w.input - 1 - right) / w.dilation + 1);
    for (int64_t i = 0; i < d.kernel; ++i) {
      for (int64_t j = 0; j < h.kernel; ++j, patch += w.kernel) {
        const int64_t z = deep + i * d.dilation, y = down + j * h.dilation;
        if (z < 0 || z >= d.input || y < 0 || y >= h.input) continue;
        T* row = channel + (z * h.input + y) * w.input;
        if (w.dilation == 1)
          for (int64_t k = begin; k < end; ++k) row[right + k] += patch[k];
        else
          for (int64_t k = begin; k < end; ++k) row[right + k * w.dilation] += patch[k];
      }
    }
  }
  // The input by patches, products of y and the weights, each added where it belongs: no tap is taken of zeros around y.
  void add_patches(const T* w, const T* bias) const {
    const Image y(call.y, false);
    const int64_t outputs = call.geometry.outputs(), taps = g.taps(), patch = in * taps;
    const int64_t positions = call.geometry.batch * outputs, bytes = patch * int64_t(sizeof(T));
    const int64_t pixels = positions > 0 ? call.x.layout->numel() / (call.geometry.batch * g.in_channels) : 0;
    const int64_t wanted = std::max({int64_t(1), patch_bytes / bytes, std::min<int64_t>(16, most_patch_bytes / bytes)});
    const int64_t chunk = std::min(positions, call.chunk > 0 ? call.chunk : wanted);
    const Values<T> patches(chunk * patch), rows(chunk * out), sums(native() ? 0 : call.x.layout->numel());
    T* x = native() ? static_cast<T*>(call.x.data) : sums.data();
    fill_input(x, bias, sizeof(T));
    for (int64_t group = 0; group < g.groups; ++group) {
      for (int64_t first = 0; first < positions; first += chunk) {
        const int64_t n = std::min(chunk, positions - first), image = first / outputs;
        gather(y, group, first, n, rows.data());
        gemm({dtype_of<T>(),
              n,
              patch,
              out,
              {rows.data(), 1, n},
              {w + group * out * patch, patch, 1},
              patches.data(),
              patch,
              1});
        run_parts((divide_up(first + n, outputs) - image) * in, serial, [&](int64_t part) {
          const int64_t b = image + part / in, c = part % in;
          T* channel = x + (b * g.in_channels + group * in + c) * pixels;
          for (int64_t i = std::max(first, b * outputs); i < std::min(first + n, (b + 1) * outputs); ++i)
            add_patch(channel, patches.data() + (i - first) * patch + c * taps, i - b * outputs);
        });
      }
    }
    if (!native()) cast_row(dtype, dtype_of<T>())(call.x.layout->numel(), call.x.data, x);
  }

  void run() const {
    if (call.piece == ConvPiece::weight) {
      ConvGeometry same = g;  // y as an image of its own, for staging its boxes
      for (ConvAxis& a : same.axes) a = {a.output, 1, a.output, 1, 0, 1};
      return weight_gradient(passes_of(g, call.piece)[0], passes_of(same, call.piece)[0]);
    }
    const int64_t rows = forward() ? g.out_channels : g.in_channels;
    const Values<T> wide = widened(), bias(call.bias.data && !native() ? rows : 0);
    const T* w = native() ? static_cast<const T*>(call.w.data) : wide.data();
    const T* b = static_cast<const T*>(call.bias.data);
    if (b && !native()) {
      cast_row(dtype_of<T>(), dtype)(rows, bias.data(), call.bias.data);
      b = bias.data();
    }
    if (!forward() && algorithm == ConvAlgorithm::im2col) return add_patches(w, b);
    bool complete = true;
    const std::vector<Pass> passes = passes_of(g, call.piece, &complete);
    if (!complete) fill_input(call.x.data, call.bias.data, size_of(dtype));
    for (const Pass& pass : passes) {
      if (forward()) correlate(pass, image(call.x), image(call.y), w, b, in, out);
      else correlate(pass, image(call.y), image(call.x), w, b, out, in);
    }
  }
};

}  // namespace

void conv(const ConvCall& call) {
  const ConvAlgorithm algorithm = chosen_algorithm(call);
  if (call.w.dtype == f64) Convolver<double>(call, algorithm).run();
  else Convolver<float>(call, algorithm).run();
}

}  // namespace volta::cpu
