// Row functions of a quarter of the pointwise ops, for one instruction set.
#include "backend/cpu/elementwise/blocks.h"
#include "backend/cpu/elementwise/tables.h"

namespace volta::cpu::VOLTA_ISA {
namespace {

using Blocks = TunedBlocks<struct Tag>;

template <class Op> const Rows* rows_of_op(int kernel) {
  static constexpr Rows table[] = {rows_of<Blocks, Op, 0>(), rows_of<Blocks, Op, 1>(), rows_of<Blocks, Op, 2>(),
                                   rows_of<Blocks, Op, 3>()};
  return &table[kernel];
}

template <class... Ops> const Rows* find(List<Ops...>, int op, int kernel) {
  const Rows* found = nullptr;
  const auto look = [&]<class Op, int Index>() {
    if constexpr (Index % VOLTA_SHARDS == VOLTA_SHARD)
      if (Index == op) found = rows_of_op<Op>(kernel);
  };
  (look.template operator()<Ops, index_of<Ops>(ElementwiseOps{})>(), ...);
  return found;
}

}  // namespace

}  // namespace volta::cpu::VOLTA_ISA

template <>
const volta::detail::Rows* volta::cpu::elementwise_shard<volta::cpu::Isa::VOLTA_ISA, VOLTA_SHARD>(int op, int kernel) {
  return VOLTA_ISA::find(ElementwiseOps{}, op, kernel);
}
