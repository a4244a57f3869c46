// Running reductions along rows, one table per instruction set.
#pragma once
#include <cstdint>

#include "backend/backend.h"

namespace volta::cpu {

// What a scan carries from one element to the next, for each of several rows: up to two numbers of 8 bytes.
struct ScanState {
  void *first, *second;
};

struct ScanKernel {
  DType input, result;  // of the rows it reads and writes
  void (*start)(int64_t n, const ScanState& s);
  // n elements of one row. Element i has the index first + i * step.
  void (*along)(int64_t n, void* out, int64_t* indices, const void* in, const ScanState& s, int64_t first,
                int64_t step);
  // One element of each of n rows.
  void (*across)(int64_t n, void* out, int64_t* indices, const void* in, const ScanState& s, int64_t index);
};

struct ScanTable {
  ScanKernel (*find)(Scan scan, DType dtype);  // for elements of this dtype, converted to the kernel's input
};

namespace baseline {
extern const ScanTable scan_table;
}
#if defined(__x86_64__)
namespace v3 {
extern const ScanTable scan_table;
}
namespace v4 {
extern const ScanTable scan_table;
}
#endif

}  // namespace volta::cpu
