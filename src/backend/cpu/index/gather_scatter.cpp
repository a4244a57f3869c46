// Gather and scatter, the range of an index, and the positions of true elements.
#include <cstring>
#include <limits>
#include <mutex>
#include <numeric>
#include <vector>

#include "backend/cpu/prefetch.h"

#include "backend/cpu/cpu.h"
#include "backend/cpu/parallel_rows.h"
#include "math/binary.h"
#include "math/inner.h"

namespace volta::cpu {
namespace {

constexpr int64_t grain = 1 << 15;
constexpr int64_t block = 1 << 12;  // elements of a mask that are looked at together

// A lane is everything that shares a position on the axes that are not indexed: values never move from one lane to
// another. Gather reads its source, scatter writes its output, at the places the index tells.
struct GatherLoop : AxisLoop<3> {
  enum Operand { out, source, index };
  char* data[3];
  int64_t count, places;  // of indices along the axis, and what they count
  bool lanes_inside;      // neighbouring indices belong to neighbouring lanes
  bool whole_rows;        // one index holds for all lanes that lie next to each other

  GatherLoop(const Arg& to, const Arg& from, const Arg& by, int axis, int64_t place_count)
      : AxisLoop(axis_loop<3>(by.layout->shape, {&to, &from, &by}, axis)),
        data{static_cast<char*>(to.data), static_cast<char*>(from.data), static_cast<char*>(by.data)},
        count(by.layout->shape[axis]),
        places(place_count) {
    const int64_t *lane = loop.stride[0], size = size_of(to.dtype);
    whole_rows = loop.size[0] > 1 && lane[index] == 0 && lane[out] == size && lane[source] == size;
    const Operand told = lane[index] != 0 ? index : out;
    lanes_inside = loop.size[0] > 1 && std::abs(lane[told]) < std::abs(step[told]);
  }
};

struct Range {
  int64_t begin, end;
  bool holds(int64_t i) const { return uint64_t(i - begin) < uint64_t(end - begin); }
};

template <class T> using Computed =
    std::conditional_t<std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>, float, T>;
template <class Op, class T> void combine(char* out, const char* source) {
  using C = Computed<T>;
  T& target = *reinterpret_cast<T*>(out);
  const T value = *reinterpret_cast<const T*>(source);
  if constexpr (std::is_void_v<Op>) target = value;
  else target = T(Op::template f<C>(C(target), C(value)));
}

template <class Op, class T> void combine_row(int64_t n, char* out, const char* source) {
  constexpr int64_t size = sizeof(T);
  if constexpr (std::is_void_v<Op>) std::memcpy(out, source, size_t(n * size));
  else
    for (int64_t k = 0; k < n; ++k) combine<Op, T>(out + k * size, source + k * size);
}

// Copies a row while `next`, a row to be copied later, is fetched.
void copy_and_fetch(int64_t n, char* out, const char* source, const char* next) {
  constexpr int64_t line = 64, most = 1024;
  const bool by_pieces = prefetch_helps && n > most;
  for (int64_t i = 0, m; i < n; i += m) {
    m = by_pieces ? std::min(most, n - i) : n;
    const int64_t fetched = std::min(m, most);
    if (by_pieces)
      for (int64_t b = 0; b < fetched; b += line) __builtin_prefetch(next + i + b, 0, 1);
    else
      for (int64_t b = 0; b < fetched; b += line) __builtin_prefetch(next + b);
    std::memcpy(out + i, source + i, size_t(m));
  }
}

// What happens in n lanes from the given offsets on. Gather serves a range of indices, scatter of places.
template <bool Gather, class Op, class T>
void run_lanes(const GatherLoop& p, const int64_t* offset, int64_t begin, int64_t n, Range range) {
  const int64_t out_step = p.step[0], source_step = p.step[1], index_step = p.step[2];
  const int64_t out_lane = p.loop.stride[0][0], source_lane = p.loop.stride[0][1], index_lane = p.loop.stride[0][2];
  char* const out = p.data[0] + offset[0] + begin * out_lane;
  const char* const source = p.data[1] + offset[1] + begin * source_lane;
  const char* const index = p.data[2] + offset[2] + begin * index_lane;
  const Range all = Gather ? range : Range{0, p.count};
  const auto place = [=](int64_t i, int64_t k) {
    return *reinterpret_cast<const int64_t*>(index + i * index_step + k * index_lane);
  };
  const auto out_row = [=](int64_t i, int64_t at) { return out + (Gather ? i : at) * out_step; };
  const auto source_row = [=](int64_t i, int64_t at) { return source + (Gather ? at : i) * source_step; };
  const auto one = [=](int64_t i, int64_t k) {
    const int64_t at = place(i, k);
    if (Gather || range.holds(at)) combine<Op, T>(out_row(i, at) + k * out_lane, source_row(i, at) + k * source_lane);
  };
  if (p.whole_rows) {
    // Picked rows (an embedding's, say) lie anywhere: the next ones are prefetched while one is copied.
    const int64_t bytes = n * int64_t(sizeof(T)), ahead = prefetch_helps && bytes >= 8 << 10 ? 1 : 2;
    for (int64_t i = all.begin; i < all.end; ++i) {
      const int64_t at = place(i, 0), next = i + ahead < all.end ? place(i + ahead, 0) : at;
      if (Gather) copy_and_fetch(bytes, out_row(i, at), source_row(i, at), source_row(0, next));
      else if (range.holds(at)) combine_row<Op, T>(n, out_row(i, at), source_row(i, at));
    }
  } else if (p.lanes_inside) {
    for (int64_t i = all.begin; i < all.end; ++i)
      for (int64_t k = 0; k < n; ++k) one(i, k);
  } else {
    for (int64_t k = 0; k < n; ++k)
      for (int64_t i = all.begin; i < all.end; ++i) one(i, k);
  }
}

// AxisLoop are independent. Where there are few, parts share the indices of gather, or each part of scatter reads the whole
// index and serves pieces of all rows, or its own places: values that meet at one place then arrive in the order of the index.
template <bool Gather, class Op, class T> void run(const GatherLoop& p) {
  const int64_t rows = p.loop.rows(), inner = p.loop.size[0], lanes = rows * inner, work = lanes * p.count;
  const bool many = p.whole_rows ? rows >= 16 : Gather ? lanes >= 16 : rows >= 16 || lanes >= 256;
  if (work > grain && many && !(Gather && p.lanes_inside && p.count >= 16))
    return parallel_rows(p.loop, std::max<int64_t>(64, grain / p.count),
                         [&](const int64_t* offset, int64_t begin, int64_t n) {
                           run_lanes<Gather, Op, T>(p, offset, begin, n, {0, Gather ? p.count : p.places});
                         });
  const auto serve = [&](int64_t begin, int64_t end) {
    p.loop.for_rows(0, rows, [&](const int64_t* offset) {
      run_lanes<Gather, Op, T>(p, offset, 0, inner, {begin, end});
    });
  };
  if (Gather) return parallel_ranges(p.count, std::max<int64_t>(1, part_size(work, grain) / lanes), serve);
  const int64_t threads = work > grain ? get_num_threads() : 1;
  constexpr int64_t piece = 128 / int64_t(sizeof(T));  // of a row: two cache lines
  if (threads > 1 && p.whole_rows && inner >= threads * piece)
    return parallel_ranges(inner, (inner / threads + piece - 1) / piece * piece, [&](int64_t begin, int64_t end) {
      p.loop.for_rows(0, rows, [&](const int64_t* offset) {
        run_lanes<Gather, Op, T>(p, offset, begin, end - begin, {0, p.places});
      });
    });
  const int64_t parts = std::min(p.places, threads > 1 && p.whole_rows ? 4 * threads : threads);
  parallel(parts, [&](int64_t part) { serve(p.places * part / parts, p.places * (part + 1) / parts); });
}

template <bool Gather> void run_moves(const GatherLoop& p, int64_t size) {
  switch (size) {
    case 1: return run<Gather, void, uint8_t>(p);
    case 2: return run<Gather, void, uint16_t>(p);
    case 4: return run<Gather, void, uint32_t>(p);
    default: return run<Gather, void, uint64_t>(p);
  }
}

template <class Op> void run_typed(const GatherLoop& p, DType dtype) {
  visit(dtype, [&]<class T>(TypeTag<T>) { run<false, Op, T>(p); });
}

}  // namespace

void gather(const GatherCall& call) {
  if (call.out.layout->numel() == 0) return;
  const GatherLoop p(call.out, call.in, call.index, call.axis, call.in.layout->shape[call.axis]);
  run_moves<true>(p, size_of(call.out.dtype));
}

void scatter(const ScatterCall& call) {
  if (call.index.layout->numel() == 0) return;
  const GatherLoop p(call.out, call.src, call.index, call.axis, call.out.layout->shape[call.axis]);
  switch (call.combine) {
    case Combine::set: return run_moves<false>(p, size_of(call.out.dtype));
    case Combine::add: return run_typed<point::Add>(p, call.out.dtype);
    case Combine::multiply: return run_typed<point::Mul>(p, call.out.dtype);
    case Combine::max: return run_typed<point::Maximum>(p, call.out.dtype);
    case Combine::min: return run_typed<point::Minimum>(p, call.out.dtype);
  }
}

IndexRange index_range(const Arg& index) {
  StridedLoop<1> loop;
  for (int i = 0; i < index.layout->rank(); ++i) {
    const int64_t stride = index.layout->strides[i] * int64_t(sizeof(int64_t));
    if (stride != 0) loop.add_axis(index.layout->shape[i], &stride);  // repeated elements are looked at once
  }
  loop.finish();
  constexpr IndexRange none{std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min()};
  IndexRange all = none;
  std::mutex mutex;
  parallel_rows(loop, 2 * grain, [&](const int64_t* offset, int64_t begin, int64_t n) {
    const int64_t step = loop.stride[0][0];
    const char* row = static_cast<const char*>(index.data) + offset[0] + begin * step;
    IndexRange found = none;
    for (int64_t k = 0; k < n; ++k) {
      const int64_t i = *reinterpret_cast<const int64_t*>(row + k * step);
      found = {std::min(found.low, i), std::max(found.high, i)};
    }
    const std::lock_guard lock(mutex);
    all = {std::min(all.low, found.low), std::max(all.high, found.high)};
  });
  return all;
}

// Blocks are counted, then each writes its own positions.
void positions(const PositionsCall& call) {
  const auto* mask = static_cast<const uint8_t*>(call.mask.data);
  const int64_t n = call.mask.layout->numel();
  std::vector<int64_t> starts(size_t(divide_up(n, block)) + 1);  // of each block's positions, and their number
  parallel_ranges(n, 16 * block, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i += block)
      starts[size_t(i / block) + 1] =
          std::count_if(mask + i, mask + std::min(end, i + block), [](uint8_t m) { return m != 0; });
  });
  std::partial_sum(starts.begin(), starts.end(), starts.begin());
  int64_t* out = call.place(starts.back());
  parallel_ranges(n, block, [&](int64_t begin, int64_t end) {
    int64_t found[block];  // every position is written and only the true ones are stepped over: no branch to mispredict
    int64_t count = 0;
    for (int64_t i = begin; i < end; ++i) {
      found[count] = i;
      count += mask[i] != 0;
    }
    std::memcpy(out + starts[size_t(begin / block)], found, size_t(count) * sizeof(int64_t));
  });
}

}  // namespace volta::cpu
