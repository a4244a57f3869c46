// Binary search of many values in sorted rows.
#include "backend/cpu/cpu.h"
#include "backend/cpu/split.h"

namespace volta::cpu {
namespace {

constexpr int64_t grain = 1 << 13;

template <class T> auto comparable(T x) {
  if constexpr (std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>) return float(x);
  else return x;
}

// The order of sort: NaN is the largest.
template <class T> bool less(T a, T b) {
  const auto x = comparable(a), y = comparable(b);
  return (x < y) | ((y != y) & (x == x));
}

// Arithmetic instead of branches: which way to go is a coin toss.
template <bool Right, class T> int64_t position(const char* sorted, int64_t step, int64_t n, T value) {
  if (n == 0) return 0;
  const auto before = [&](int64_t i) {
    const T x = *reinterpret_cast<const T*>(sorted + i * step);
    return int64_t(Right ? !less(value, x) : less(x, value));
  };
  int64_t begin = 0;
  for (; n > 1; n -= n / 2) begin += before(begin + n / 2 - 1) * (n / 2);
  return begin + before(begin);
}

template <bool Right, class T> void run(const SearchCall& call) {
  const Layout &out = *call.out.layout, &values = *call.values.layout, &sorted = *call.sorted.layout;
  const int last = out.rank() - 1;
  const int64_t n = sorted.shape[last], step = sorted.strides[last] * int64_t(sizeof(T));
  Walk<3> walk;
  for (int i = 0; i <= last; ++i) {
    const int64_t strides[] = {out.strides[i] * int64_t(sizeof(int64_t)), values.strides[i] * int64_t(sizeof(T)),
                               i == last ? 0 : sorted.strides[i] * int64_t(sizeof(T))};
    walk.add_axis(out.shape[i], strides);
  }
  walk.finish();
  parallel_rows(walk, grain, [&](const int64_t* offset, int64_t begin, int64_t count) {
    const int64_t* by = walk.stride[0];
    for (int64_t k = begin; k < begin + count; ++k) {
      const T value = *reinterpret_cast<const T*>(static_cast<const char*>(call.values.data) + offset[1] + k * by[1]);
      const char* row = static_cast<const char*>(call.sorted.data) + offset[2] + k * by[2];
      *reinterpret_cast<int64_t*>(static_cast<char*>(call.out.data) + offset[0] + k * by[0]) =
          position<Right>(row, step, n, value);
    }
  });
}

}  // namespace

void search(const SearchCall& call) {
  if (call.out.layout->numel() == 0) return;
  visit(call.values.dtype, [&]<class T>(TypeTag<T>) { call.right ? run<true, T>(call) : run<false, T>(call); });
}

}  // namespace volta::cpu
