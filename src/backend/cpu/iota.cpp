// Evenly spaced numbers on the CPU.
#include <algorithm>

#include "backend/cpu/cast.h"
#include "backend/cpu/cpu.h"
#include "backend/cpu/move.h"
#include "core/parallel.h"

namespace volta::cpu {
namespace {

constexpr int64_t chunk = 1024;       // elements computed at a time
constexpr int64_t grain = 32 * 1024;  // elements worth a thread

// Computes in T (double, or uint64_t for the wrapping arithmetic of integers) and converts from its dtype.
template <class T> void run(const Arg& out, T start, T step, DType computed, int64_t begin, int64_t end) {
  alignas(64) T values[chunk];
  alignas(64) char converted[chunk * 8];
  const int64_t size = size_of(out.dtype), stride = out.layout->strides[0] * size;
  const CastRow cast = out.dtype == computed ? nullptr : cast_row(out.dtype, computed);
  for (int64_t i = begin; i < end; i += chunk) {
    const int64_t n = std::min(chunk, end - i);
    for (int64_t k = 0; k < n; ++k) values[k] = start + T(i + k) * step;
    if (cast) cast(n, converted, values);
    const void* row = cast ? static_cast<const void*>(converted) : values;
    scatter_row(size, n, static_cast<char*>(out.data) + i * stride, stride, row);
  }
}

}  // namespace

void iota(const Arg& out, Scalar start, Scalar step) {
  const int64_t n = out.layout->numel(), parts = (n + grain - 1) / grain;
  parallel(parts, [&](int64_t p) {
    const int64_t begin = p * grain, end = std::min(n, begin + grain);
    if (is_floating(out.dtype)) run<double>(out, start.as<double>(), step.as<double>(), f64, begin, end);
    else run<uint64_t>(out, start.as<uint64_t>(), step.as<uint64_t>(), i64, begin, end);
  });
}

}  // namespace volta::cpu
