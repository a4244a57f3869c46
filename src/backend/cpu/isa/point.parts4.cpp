// Row functions of a quarter of the pointwise ops, for one instruction set.
#include "backend/cpu/point.h"

namespace volta::cpu::VOLTA_ISA {
namespace {

struct Tag {};

template <class Op> const Rows* rows_of_op(int kernel) {
  static constexpr Rows table[] = {rows_of<Tag, Op, 0>(), rows_of<Tag, Op, 1>(), rows_of<Tag, Op, 2>(),
                                   rows_of<Tag, Op, 3>()};
  return &table[kernel];
}

template <class... Ops> const Rows* find(List<Ops...>, int op, int kernel) {
  const Rows* found = nullptr;
  const auto look = [&]<class Op, int Index>() {
    if constexpr (Index % VOLTA_PARTS == VOLTA_PART)
      if (Index == op) found = rows_of_op<Op>(kernel);
  };
  (look.template operator()<Ops, index_of<Ops>(PointOps{})>(), ...);
  return found;
}

}  // namespace

template <int Part> const Rows* point_part(int op, int kernel);
template <> const Rows* point_part<VOLTA_PART>(int op, int kernel) { return find(PointOps{}, op, kernel); }

}  // namespace volta::cpu::VOLTA_ISA
