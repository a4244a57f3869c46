// The names, operands and dtypes of the pointwise ops as plain data, for the generator, the docs and the tests.
#pragma once
#include <string>

#include <volta/kernel.h>

#include "ops/point.h"

namespace volta {

struct PointName {
  std::string name, doc, args, dtypes;
  int arity, masks;
  Domain domain;
  bool truth, differentiable;
};

template <class Op> PointName point_name() {
  static const char* const operand_names[] = {"", "x", "a, b", "a, b, c"};
  static const char* const domains[] = {"floating", "all but bool", "all", "integers and bool"};
  PointName n{Op::name,
              "",
              operand_names[arity<Op>],
              domains[int(domain_of<Op>())],
              arity<Op>,
              masks_of<Op>(),
              domain_of<Op>(),
              gives_truth<Op>(),
              volta::differentiable<Op>() && domain_of<Op>() != Domain::integral};
  if constexpr (requires { Op::doc; }) n.doc = Op::doc;
  if constexpr (requires { Op::args; }) n.args = Op::args;
  return n;
}

template <class F> void for_each_point_name(F f) {
  for_each(PointOps{}, [&]<class Op>(int) { f(point_name<Op>()); });
}

}  // namespace volta
