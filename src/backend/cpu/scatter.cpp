// Scatter: values put, added or otherwise combined into places given by an index along one axis. Values that go to one
// place arrive in the order of the index, however the work is split.
#include "backend/cpu/cpu.h"
#include "backend/cpu/split.h"
#include "ops/point_binary.h"

namespace volta::cpu {
namespace {

constexpr int64_t grain = 1 << 15;

// A lane is everything that shares a position on the other axes: values never move from one lane to another.
struct Plan {
  Walk<3> lanes;  // out, src, index
  char* out;
  const char *src, *index;
  int64_t count, src_step, index_step;  // along the indexed axis, in bytes
  int64_t out_size, out_step;
};

Plan make_plan(const ScatterCall& call) {
  const Layout &out = *call.out.layout, &src = *call.src.layout, &index = *call.index.layout;
  const int64_t size = size_of(call.out.dtype), index_size = sizeof(int64_t);
  const int a = call.axis;
  Plan p{{},
         static_cast<char*>(call.out.data),
         static_cast<const char*>(call.src.data),
         static_cast<const char*>(call.index.data),
         index.shape[a],
         src.strides[a] * size,
         index.strides[a] * index_size,
         out.shape[a],
         out.strides[a] * size};
  for (int i = 0; i < index.rank(); ++i) {
    const int64_t strides[] = {out.strides[i] * size, src.strides[i] * size, index.strides[i] * index_size};
    if (i != a) p.lanes.add_axis(index.shape[i], strides);
  }
  p.lanes.finish();
  return p;
}

template <class T> using Computed =
    std::conditional_t<std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>, float, T>;
template <class Op, class T> void combine(char* out, const char* src) {
  using C = Computed<T>;
  T& target = *reinterpret_cast<T*>(out);
  const T value = *reinterpret_cast<const T*>(src);
  if constexpr (std::is_void_v<Op>) target = value;
  else target = T(Op::template f<C>(C(target), C(value)));
}

struct Range {  // of places along the indexed axis
  int64_t begin, end;
  bool holds(int64_t i) const { return uint64_t(i - begin) < uint64_t(end - begin); }
};

// n lanes from the given offsets on, and of their places those in the range.
template <class Op, class T>
void run_lanes(const Plan& p, const int64_t* offset, int64_t begin, int64_t n, Range range) {
  const int64_t* step = p.lanes.stride[0];
  char* out = p.out + offset[0] + begin * step[0];
  const char *src = p.src + offset[1] + begin * step[1], *index = p.index + offset[2] + begin * step[2];
  const auto place = [&](int64_t i, int64_t k) {
    const int64_t at = *reinterpret_cast<const int64_t*>(index + i * p.index_step + k * step[2]);
    return at < 0 ? at + p.out_size : at;
  };
  const auto one = [&](int64_t at, int64_t i, int64_t k) {
    combine<Op, T>(out + at * p.out_step + k * step[0], src + i * p.src_step + k * step[1]);
  };
  if (step[2] == 0 && n > 1) {  // one index for all lanes: whole rows
    const bool packed = step[0] == int64_t(sizeof(T)) && step[1] == int64_t(sizeof(T));
    for (int64_t i = 0; i < p.count; ++i) {
      const int64_t at = place(i, 0);
      if (!range.holds(at)) continue;
      char* to = out + at * p.out_step;
      const char* from = src + i * p.src_step;
      if (packed)
        for (int64_t k = 0; k < n; ++k) combine<Op, T>(to + k * int64_t(sizeof(T)), from + k * int64_t(sizeof(T)));
      else
        for (int64_t k = 0; k < n; ++k) one(at, i, k);
    }
  } else if (std::abs(step[2]) < std::abs(p.index_step)) {
    for (int64_t i = 0; i < p.count; ++i)
      for (int64_t k = 0; k < n; ++k)
        if (const int64_t at = place(i, k); range.holds(at)) one(at, i, k);
  } else {
    for (int64_t k = 0; k < n; ++k)
      for (int64_t i = 0; i < p.count; ++i)
        if (const int64_t at = place(i, k); range.holds(at)) one(at, i, k);
  }
}

template <class Op, class T> void run(const Plan& p) {
  const int64_t rows = p.lanes.rows(), inner = p.lanes.size[0];
  const bool whole_rows = p.lanes.stride[0][2] == 0 && inner > 1;
  const int64_t work = rows * inner * p.count;
  if (work > grain && (rows >= 16 || (!whole_rows && rows * inner >= 256)))
    return parallel_rows(p.lanes, std::max<int64_t>(64, grain / p.count),
                         [&](const int64_t* offset, int64_t begin, int64_t n) {
                           run_lanes<Op, T>(p, offset, begin, n, {0, p.out_size});
                         });
  // Few lanes: every part reads the whole index and serves its own places. The number of parts changes no result.
  const int64_t threads = work > grain ? get_num_threads() : 1;
  const int64_t parts = std::min(p.out_size, threads > 1 && whole_rows ? 4 * threads : threads);
  parallel(parts, [&](int64_t part) {
    const Range range{p.out_size * part / parts, p.out_size * (part + 1) / parts};
    p.lanes.for_rows(0, rows, [&](const int64_t* offset) { run_lanes<Op, T>(p, offset, 0, inner, range); });
  });
}

void run_set(const Plan& p, int64_t size) {
  switch (size) {
    case 1: return run<void, uint8_t>(p);
    case 2: return run<void, uint16_t>(p);
    case 4: return run<void, uint32_t>(p);
    default: return run<void, uint64_t>(p);
  }
}

template <class Op> void run_typed(const Plan& p, DType dtype) {
  visit(dtype, [&]<class T>(TypeTag<T>) { run<Op, T>(p); });
}

}  // namespace

void scatter(const ScatterCall& call) {
  if (call.index.layout->numel() == 0) return;
  const Plan p = make_plan(call);
  switch (call.combine) {
    case Combine::set: return run_set(p, size_of(call.out.dtype));
    case Combine::add: return run_typed<point::Add>(p, call.out.dtype);
    case Combine::multiply: return run_typed<point::Mul>(p, call.out.dtype);
    case Combine::max: return run_typed<point::Maximum>(p, call.out.dtype);
    case Combine::min: return run_typed<point::Minimum>(p, call.out.dtype);
  }
}

}  // namespace volta::cpu
