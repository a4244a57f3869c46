// The names, operands and domains of the pointwise ops as plain data, for the generator, the docs and the tests.
#pragma once
#include <string>

#include <volta/elementwise_rows.h>

#include "math/elementwise.h"
#include "math/inner.h"

namespace volta {

struct PointName {
  std::string name, doc, args;
  int arity, masks;
  Domain domain;
  bool truth, differentiable;
};

template <class Op> PointName point_name() {
  static const char* const operand_names[] = {"", "x", "a, b", "a, b, c"};
  constexpr Domain domain = domain_of<Op>();
  const char* const args = *Op::args ? Op::args : operand_names[arity<Op>];
  const bool differentiable = volta::differentiable<Op>() && domain != Domain::integral;
  return {Op::name, Op::doc, args, arity<Op>, masks_of<Op>(), domain, gives_truth<Op>(), differentiable};
}

template <class F> void for_each_point_name(F f) {
  for_each(NamedPointOps{}, [&]<class Op>(int) { f(point_name<Op>()); });
}

}  // namespace volta
