// Reductions of rows: one kernel per reduction and dtype, one table per instruction set.
#pragma once
#include <cstdint>

#include "backend/backend.h"

namespace volta::cpu {

// What a reduction carries: up to three numbers per result, each in its own array (a sum; a value and its index; …).
struct FoldState {
  static constexpr int max_parts = 3;
  char* part[max_parts];
};

struct FoldKernel {
  DType input = f32, result = f32;      // of the rows it reads and of what finish writes
  int parts = 0;                        // of the state; 0: there is no such kernel
  int size[FoldState::max_parts] = {};  // bytes of one element of each part
  bool rounds = false;                  // sums of floats, which are worth adding in levels
  bool indexed = false;                 // sees the elements in their order, and their index

  void (*start)(int64_t n, const FoldState& s) = nullptr;
  // Takes a row of n elements into the one state s; the first element has the index `first` along the reduced axes.
  void (*along)(int64_t n, const void* row, const FoldState& s, int64_t first, double parameter) = nullptr;
  // Takes `rows` rows of n elements, `stride` bytes apart, into n states; row r has the index first + r.
  void (*across)(int64_t n, int64_t rows, const void* in, int64_t stride, const FoldState& s, int64_t first,
                 double parameter) = nullptr;
  void (*merge)(int64_t n, const FoldState& into, const FoldState& later) = nullptr;
  // `count` elements went into each state. For max and min with indices, those are part 1 of the state.
  void (*finish)(int64_t n, void* out, const FoldState& s, int64_t count, double parameter) = nullptr;
};

struct FoldTable {
  // The kernel for a reduction of elements of this dtype, given as they are or converted to the kernel's input.
  FoldKernel (*find)(Fold fold, bool indices, DType dtype);
};

namespace baseline {
extern const FoldTable fold_table;
}
#if defined(__x86_64__)
namespace v3 {
extern const FoldTable fold_table;
}
namespace v4 {
extern const FoldTable fold_table;
}
#endif

}  // namespace volta::cpu
