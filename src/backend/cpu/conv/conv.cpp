// The driver of convolutions on the CPU: stages boxes of the image, hands them to an algorithm, and puts away the results.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "backend/cpu/conv/plan.h"
#include "backend/cpu/conv/stage.h"
#include "backend/cpu/copy/move.h"
#include "backend/cpu/cpu.h"
#include "backend/cpu/elementwise/tables.h"
#include "backend/cpu/gemm/plan.h"
#include "backend/cpu/parallel_rows.h"
#include "backend/cpu/scratch.h"
#include "backend/fused_ops.h"
#include "core/storage.h"

namespace volta::cpu {
namespace {

constexpr double serial_work = 1 << 17;      // multiply-adds below which a second thread does not pay
constexpr int64_t partial_bytes = 16 << 20;  // of all partial gradients of a weight
constexpr int64_t most_segments = 16;
constexpr int64_t least_channels = 16;                                 // of a part of a weight's gradient
constexpr int64_t gathered_bytes = 32 << 20;                           // of inputs that slices of rows share
constexpr int64_t most_parts = 1 << 20;                                // for which weights are prepared, if ever
constexpr int64_t patch_bytes = 2 << 20, most_patch_bytes = 32 << 20;  // of patches that are made together

template <class F> void run_parts(int64_t parts, bool serial, const F& f) {
  if (!serial) return parallel(parts, f);
  for (int64_t i = 0; i < parts; ++i) f(i);
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
  explicit Values(int64_t n) {
    if (n > 0) memory_ = host_storage(n * int64_t(sizeof(T)), "convolve");
  }
  T* data() const { return memory_ ? static_cast<T*>(memory_->data) : nullptr; }

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
  bool in_place(const Pass& pass, const Image& source) const {
    const int64_t sizes[] = {pass.axes[0].size, pass.axes[1].size, pass.axes[2].size};
    return kernels.in_place && native() && pass.in_place() && source.dense(sizes);
  }
  // The image of a box, staged unless it can be read where it is.
  void set_image(ConvPart<T>& part, const Image& source, const Pass& pass, const Box& box, const Staged& staged,
                 int64_t b, int64_t c, int64_t channels) const {
    if (in_place(pass, source)) {
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

  // How long so many equal parts take, in parts. Many threads are never equally fast, and the last one is waited for.
  double rounds(int64_t parts) const {
    const auto n = double(threads()), whole = std::ceil(double(parts) / n);
    return threads() < 4 ? whole : std::max(whole, double(parts) / n + 0.3);
  }
  // In how many slices of rows, of so many units, the threads share so many items the soonest. What each of them does again takes
  // as long as so many rows.
  int64_t slices_of(int64_t rows, int64_t items, int64_t unit, int64_t again) const {
    const int64_t most = divide_up(rows, unit);
    const auto cost = [&](int64_t n) { return rounds(items * n) * double(divide_up(most, n) * unit + again); };
    int64_t best = 1;
    for (int64_t n = 2; n <= std::min(most, 2 * threads()); ++n)
      if (cost(n) < cost(best)) best = n;
    return best;
  }
  // A slice covers some units, from a multiple of `unit` on.
  static Range slice_of(int64_t rows, int64_t unit, int64_t slices, int64_t index) {
    const int64_t units = divide_up(rows, unit), begin = units * index / slices * unit;
    return {begin, std::min(rows, units * (index + 1) / slices * unit) - begin};
  }

  // How threads share a pass: items are boxes of the images of a batch and of groups; of each there are slices of rows. Where these
  // would all transform the same inputs, the inputs are gathered first.
  struct Cut {
    Boxes boxes;
    int64_t items, unit, slices;
  };
  Cut cut_of(const Pass& pass, int64_t channels, int64_t rows, int64_t unit, int64_t again) const {
    // Parts for all threads: slices of many weights, which each part packs, or boxes of many pixels.
    const int64_t images = g.batch * g.groups, most = divide_up(rows, unit);
    const int64_t wanted = threads() > 1 ? divide_up(2 * threads(), images) : 1;
    const bool by_rows = rows * kernels.tile * kernels.tile >= pass.outputs();
    const Boxes boxes = plan_boxes(pass, channels, sizeof(T), room_for(pass),
                                   by_rows ? divide_up(threads(), images * most) : wanted, kernels.tile);
    const int64_t items = images * boxes.count();
    return {boxes, items, unit, slices_of(rows, items, unit, again)};
  }

  // Calls f(group, first row, rows) on all threads for the weights of all groups.
  template <class F> void each_prepared(int64_t rows, const F& f) const {
    run_parts(g.groups * divide_up(rows, least_rows), serial, [&](int64_t part) {
      const int64_t first = part / g.groups * least_rows;
      f(part % g.groups, first, std::min(least_rows, rows - first));
    });
  }
  // The weights as the kernels keep them.
  IntrusivePtr<Storage> keep() const {
    const Pass pass = passes_of(g, call.piece)[0];
    const int64_t depth = in * pass.taps(),
                  each = kernels.kept && depth > 0 ? kernels.kept(out, depth, pass.outputs()) : 0;
    if (each == 0) return {};
    const IntrusivePtr<Storage> kept = host_storage(each * g.groups * int64_t(sizeof(T)), "convolve");
    const std::vector<int64_t> places = places_of(pass, in);
    const int64_t row = in * g.taps();
    each_prepared(out, [&](int64_t group, int64_t first, int64_t count) {
      const ConvRows<T> weights = {static_cast<const T*>(call.w.data) + group * out * row, row, places.data(),
                                   regular_step(places)};
      kernels.keep(out, depth, weights, static_cast<T*>(kept->data) + group * each, first, count);
    });
    return kept;
  }

  // forward and input: rows channels of the target from `channels` of the source.
  void correlate(const Pass& pass, const Image& source, const Image& target, const T* w, const T* bias,
                 int64_t channels, int64_t rows) const {
    const int64_t depth = channels * pass.taps();
    const std::vector<int64_t> places = places_of(pass, channels);
    const int64_t row = forward() ? in * g.taps() : g.taps();
    const std::optional<int64_t> regular = regular_step(places);
    const bool kept = call.kept.data != nullptr;
    const auto weights = [&](int64_t group, int64_t first) {
      const T* const from = kept ? nullptr : w + group * out * in * g.taps() + first * row;
      return ConvRows<T>{from, row, places.data(), regular};
    };
    const auto prepared_for = [&](int64_t parts) {
      if (kept) return kernels.kept(rows, depth, pass.outputs());
      return kernels.prepared && depth > 0 ? kernels.prepared(rows, depth, weights(0, 0), parts) : 0;
    };
    Cut cut = cut_of(pass, channels, rows, least_rows, kernels.tile > 1 ? 40 : 8);
    int64_t gathered = 0;
    if (kernels.gathered && cut.slices > (kernels.tile > 1 ? 1 : 2) && depth > 0 && !in_place(pass, source)) {
      const Cut other = cut_of(pass, channels, rows, prepared_for(most_parts) > 0 ? least_rows : gathered_rows,
                               kernels.tile > 1 ? 4 : 8);
      ConvPart<T> part;
      const Box box = other.boxes.largest(pass);
      set_pixels(part, box, staged_of(pass, box, kernels.tile));
      part.depth = depth, part.taps = pass.taps(), part.all_channels = channels;
      gathered = kernels.gathered(part);
      if (other.slices > 1 && other.items * gathered * int64_t(sizeof(T)) <= gathered_bytes) cut = other;
      else gathered = 0;
    }
    const Boxes& boxes = cut.boxes;
    const int64_t items = cut.items, unit = cut.unit, slices = cut.slices;
    const Staged staged = staged_of(pass, boxes.largest(pass), kernels.tile);
    const std::vector<int64_t> offsets = offsets_of(pass, staged, channels);
    const int64_t prepared = prepared_for(items);
    const Values<T> room(kept ? 0 : prepared * g.groups), inputs(gathered * items);
    const T* const all_prepared = kept ? static_cast<const T*>(call.kept.data) : room.data();
    if (prepared > 0 && !kept)
      each_prepared(rows, [&](int64_t group, int64_t first, int64_t count) {
        kernels.prepare(rows, depth, weights(group, 0), room.data() + group * prepared, first, count);
      });
    if (gathered > 0) {
      const int64_t pieces = std::min(divide_up(channels, gathered_rows), divide_up(2 * threads(), items));
      run_parts(items * pieces, serial, [&](int64_t index) {
        const int64_t item = index / pieces, image = item / boxes.count();
        const Range some = slice_of(channels, gathered_rows, pieces, index % pieces);
        const Box box = boxes.box(pass, item % boxes.count());
        ConvPart<T> part;
        set_pixels(part, box, staged);
        part.offsets = offsets.data();
        part.depth = depth, part.taps = pass.taps(), part.all_channels = channels;
        part.image =
            stage<T>(source, image / g.groups, image % g.groups * channels + some.begin, some.size, pass, box, staged);
        kernels.gather(part, some.begin, some.size, inputs.data() + item * gathered);
      });
    }
    const int64_t sizes[] = {pass.axes[0].count, pass.axes[1].count, pass.axes[2].count};
    const bool straight = native() && target.dense(sizes) && pass.straight();
    run_parts(items * slices, serial, [&](int64_t index) {
      const int64_t slice = index % slices, item = index / slices, image = item / boxes.count();
      const int64_t group = image % g.groups, b = image / g.groups;
      const Range some = slice_of(rows, unit, slices, slice);
      const Box box = boxes.box(pass, item % boxes.count());
      ConvPart<T> part;
      set_pixels(part, box, staged);
      part.offsets = offsets.data();
      part.depth = depth, part.taps = pass.taps(), part.all_channels = channels, part.first_channel = 0;
      part.m = some.size;
      part.a = weights(group, some.begin);
      part.prepared = prepared > 0 ? all_prepared + group * prepared : nullptr;
      part.kept = kept;
      part.gathered = gathered > 0 ? inputs.data() + item * gathered : nullptr;
      part.all_rows = rows;
      part.first_row = some.begin;
      part.bias = bias ? bias + group * rows + some.begin : nullptr;
      part.c_step = straight ? target.channel / int64_t(sizeof(T)) : part.pixels;
      part.c = straight ? reinterpret_cast<T*>(target.at(b, group * rows + some.begin)) + first_pixel(pass, box)
                        : static_cast<T*>(scratch(Scratch::result, size_t(part.m * part.pixels) * sizeof(T)));
      if (depth > 0) {
        if (!part.gathered) set_image(part, source, pass, box, staged, b, group * channels, channels);
        kernels.correlate(part);
      } else {
        for (int64_t i = 0; i < part.m; ++i)
          std::fill_n(part.c + i * part.c_step, part.pixels, part.bias ? part.bias[i] : T(0));
      }
      if (straight || !call.added.data)
        for (int64_t i = 0; i < part.m; ++i) finish(part.c + i * part.c_step, part.pixels);
      if (!straight) put(part, target, pass, box, b, group * rows + some.begin);
    });
    if (straight || !call.added.data) return;
    const int64_t n = call.y.layout->numel(), grain = int64_t(1) << 14;
    run_parts(divide_up(n, grain), serial, [&](int64_t part) {
      finish(static_cast<T*>(call.y.data) + part * grain, std::min(grain, n - part * grain));
    });
  }

  // What is done to results: to a stretch of y, or of one that becomes one.
  void finish(T* values, int64_t n) const {
    const auto apply = [&](int op, const void* other) {
      const void* operands[] = {values, other};
      elementwise_rows(op, 0)->by_dtype[size_t(dtype_of<T>())](n, values, operands, 0);
    };
    if (call.added.data)
      apply(index_of<point::Add>(ElementwiseOps{}),
            static_cast<const T*>(call.added.data) + (values - static_cast<T*>(call.y.data)));
    if (call.activation != Fused::none) apply(op_of(call.activation), nullptr);
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

  // How threads share the weight beyond so many items: by rows and, where many channels make up the depth, by these. Each slice of
  // channels packs or transforms the gradients again, each of rows the patches: as much work as of so many columns and rows.
  struct Again {
    int64_t gradients, patches;
  };
  Grid grid_of(int64_t items, int64_t taps, const Again& again) const {
    const bool both = algorithm == ConvAlgorithm::winograd || algorithm == ConvAlgorithm::implicit_gemm;
    const int64_t rows = divide_up(out, least_rows), most = both ? divide_up(in, least_channels) : 1;
    const int64_t across = kernels.tile > 1 ? 1 : taps;
    const auto cost = [&](const Grid& grid) {
      const int64_t r = divide_up(rows, grid.rows) * least_rows, c = divide_up(most, grid.columns) * least_channels;
      return rounds(items * grid.parts()) * double(r * c * across + again.gradients * r + again.patches * c * across);
    };
    Grid best;
    for (int64_t i = 1; i <= std::min(rows, 2 * threads()); ++i)
      for (int64_t k = 1; k <= std::min(most, 2 * threads() / i); ++k)
        if (cost({i, k}) < cost(best)) best = {i, k};
    return best;
  }

  // Numbers of an item.
  struct Gathered {
    int64_t inputs = 0, gradients = 0;
  };
  // The weight: images and boxes in a fixed number of segments, each summed apart, then added up in order.
  void weight_gradient(const Pass& pass, const Pass& outputs) const {
    const Image x = image(call.x), y = image(call.y);
    const int64_t depth = in * pass.taps(), size = g.out_channels * depth;
    const Boxes boxes = plan_boxes(pass, in, sizeof(T), room_for(pass), 1, kernels.tile);
    const int64_t items = g.batch * boxes.count();
    const int64_t affordable = std::max<int64_t>(1, partial_bytes / (size * int64_t(sizeof(T))));
    const int64_t segments = std::min({items, most_segments, affordable});
    Grid grid = grid_of(segments * g.groups, pass.taps(), kernels.tile > 1 ? Again{27, 27} : Again{16, 50});
    const Staged staged = staged_of(pass, boxes.largest(pass), kernels.tile);
    const std::vector<int64_t> offsets = offsets_of(pass, staged, in);
    // Where several parts would transform or stage the same, that is done first, for all.
    ConvPart<T> largest;
    set_pixels(largest, boxes.largest(pass), staged);
    largest.taps = pass.taps(), largest.all_rows = out, largest.all_channels = in;
    Gathered all;
    if (kernels.gathered && grid.parts() > 2 && !in_place(pass, x)) {
      all = {kernels.gathered(largest), kernels.gathered_gradients ? kernels.gathered_gradients(largest) : 0};
      if ((all.inputs + all.gradients) * items * g.groups * int64_t(sizeof(T)) > gathered_bytes) all = {};
    }
    const Values<T> inputs(all.inputs * items * g.groups), gradients(all.gradients * items * g.groups);
    if (all.inputs > 0) {
      grid = grid_of(segments * g.groups, pass.taps(), kernels.tile > 1 ? Again{6, 2} : Again{16, 40});
      const int64_t pieces = divide_up(2 * threads(), items * g.groups);
      const int64_t of_x = std::min(divide_up(in, gathered_rows), pieces),
                    of_y = all.gradients > 0 ? std::min(divide_up(out, gathered_rows), pieces) : 0;
      run_parts(items * g.groups * (of_x + of_y), serial, [&](int64_t index) {
        const int64_t piece = index % (of_x + of_y), image = index / (of_x + of_y);
        const int64_t group = image % g.groups, item = image / g.groups, b = item / boxes.count();
        const Box box = boxes.box(pass, item % boxes.count());
        ConvPart<T> part = largest;
        set_pixels(part, box, staged);
        part.offsets = offsets.data();
        if (piece < of_x) {
          const Range some = slice_of(in, gathered_rows, of_x, piece);
          part.image = stage<T>(x, b, group * in + some.begin, some.size, pass, box, staged);
          return kernels.gather(part, some.begin, some.size, inputs.data() + image * all.inputs);
        }
        const Range some = slice_of(out, gathered_rows, of_y, piece - of_x);
        part.m = some.size;
        set_gradients(part, y, outputs, box, b, group * out + some.begin);
        kernels.gather_gradients(part, some.begin, some.size, gradients.data() + image * all.gradients);
      });
    }
    const bool whole = segments == 1 && native();
    const Values<T> room(whole ? 0 : segments * size);
    T* partials = whole ? static_cast<T*>(call.w.data) : room.data();
    run_parts(segments * g.groups * grid.parts(), serial, [&](int64_t index) {
      const int64_t cell = index % grid.parts(), image = index / grid.parts();
      const int64_t group = image % g.groups, segment = image / g.groups;
      const Range some = slice_of(out, least_rows, grid.rows, cell / grid.columns);
      const Range channels = slice_of(in, least_channels, grid.columns, cell % grid.columns);
      ConvPart<T> part = largest;
      part.offsets = offsets.data();
      part.depth = channels.size * pass.taps();
      part.m = some.size;
      part.first_row = some.begin, part.first_channel = channels.begin;
      part.bias = part.prepared = part.gathered = part.gradients = nullptr;
      part.c = partials + segment * size + (group * out + some.begin) * depth + channels.begin * pass.taps();
      part.c_step = depth;
      part.add = false;
      for (int64_t item = items * segment / segments; item < items * (segment + 1) / segments; ++item) {
        const int64_t b = item / boxes.count();
        const Box box = boxes.box(pass, item % boxes.count());
        set_pixels(part, box, staged);
        const int64_t gathered = item * g.groups + group;
        if (all.inputs > 0) part.gathered = inputs.data() + gathered * all.inputs;
        else set_image(part, x, pass, box, staged, b, group * in + channels.begin, channels.size);
        if (all.gradients > 0) part.gradients = gradients.data() + gathered * all.gradients;
        else set_gradients(part, y, outputs, box, b, group * out + some.begin);
        kernels.weight_gradient(part);
        part.add = true;
      }
    });
    if (whole) return;
    const int64_t grain = finer(size, 1 << 14);
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
    const T* w = native() ? static_cast<const T*>(call.w.data) : wide.data();  // none, if they are kept
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

IntrusivePtr<Storage> keep_weights(ConvCall& call) {
  if (call.w.dtype != f32 && call.w.dtype != f64) return {};
  call.algorithm = chosen_algorithm(call);
  return call.w.dtype == f64 ? Convolver<double>(call, call.algorithm).keep()
                             : Convolver<float>(call, call.algorithm).keep();
}

void conv(const ConvCall& call) {
  const ConvAlgorithm algorithm = chosen_algorithm(call);
  if (call.w.dtype == f64) Convolver<double>(call, algorithm).run();
  else Convolver<float>(call, algorithm).run();
}

}  // namespace volta::cpu
