// Picks the row functions for the instruction set of this machine, once.
#include "backend/cpu/elementwise/tables.h"

#include <array>

namespace volta::cpu {

namespace {

using Shards = std::array<FindRows, 4>;
constexpr int kernels = 4;
using Table = std::array<std::array<const Rows*, kernels>, size_t(ElementwiseOps::size)>;

Shards shards() {
  return for_isa([]<Isa level>() -> Shards {
    return {elementwise_shard<level, 0>, elementwise_shard<level, 1>, elementwise_shard<level, 2>,
            elementwise_shard<level, 3>};
  });
}

Table make_table() {
  const Shards find = shards();
  Table t;
  for (int op = 0; op < ElementwiseOps::size; ++op)
    for (int k = 0; k < kernels; ++k) t[size_t(op)][size_t(k)] = find[size_t(op) % find.size()](op, k);
  return t;
}

}  // namespace

const Rows* elementwise_rows(int op, int kernel) {
  static const Table table = make_table();
  return table[size_t(op)][size_t(kernel)];
}

}  // namespace volta::cpu
