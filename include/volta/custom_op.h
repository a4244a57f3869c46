// Users' own pointwise ops: a struct with a name and a formula becomes an op for every dtype, layout and derivative.
#pragma once
#include <span>

#include <volta/elementwise_rows.h>
#include <volta/ops.h>
#include <volta/tensor_expr.h>

namespace volta {
namespace detail {

// Marks the kernels of users' ops. Compilers show its name where a formula does not compile.
struct UseSelectForIfAndVoltaScalarFunctionsForStd : PlainBlocks {};

template <int N> struct OperandsGiven { static constexpr int count = N; };
template <int N> struct OperandsOfTheFormula { static constexpr int count = N; };
// The numbers stand in the compiler's message.
template <class Op, class Given, class Taken> constexpr void check_count() {
  static_assert(Given::count == Taken::count, "pointwise<Op>(…) takes as many operands as the formula Op::f");
}

template <class Op, int Kernel> TensorExpr lifted(const TensorExpr* x) {
  return [&]<size_t... I>(std::index_sequence<I...>)->TensorExpr {
    if constexpr (has_kernel<Op, Kernel>()) return evaluate<Op, Kernel, TensorExpr>(x[I]...);
    else return TensorExpr(0);
  }
  (std::make_index_sequence<size_t(operands<Op, Kernel>)>());
}

// Evaluates the derivative on probes, once.
template <TensorExpr (*derivative)(const TensorExpr*)> uint32_t uses() {
  static const uint32_t bits = [] {
    TensorExpr x[ElementwiseOp::max_arity + 2] = {TensorExpr::probe(1), TensorExpr::probe(2), TensorExpr::probe(4),
                                                  TensorExpr::probe(8), TensorExpr::probe(16)};
    const TensorExpr d = derivative(x);
    return d.mask() | (d.untouched() && d.mask() == uses_g ? passes_through : 0);
  }();
  return bits;
}

template <class Op> const Rows* user_rows(int kernel) {
  static constexpr Rows table[] = {rows_of<UseSelectForIfAndVoltaScalarFunctionsForStd, Op, 0>(),
                                   rows_of<UseSelectForIfAndVoltaScalarFunctionsForStd, Op, 1>(),
                                   rows_of<UseSelectForIfAndVoltaScalarFunctionsForStd, Op, 2>(),
                                   rows_of<UseSelectForIfAndVoltaScalarFunctionsForStd, Op, 3>()};
  return &table[kernel];
}

template <class Op> constexpr ElementwiseOp describe(int index, const Rows* (*rows)(int) = nullptr,
                                                     TensorExpr (*lift)(const TensorExpr*) = nullptr) {
  static_assert(arity<Op> > 0,
                "a pointwise op needs: template <class T> static constexpr T f(T x, …) of 1 to 3 operands");
  return {Op::name,
          arity<Op>,
          domain_of<Op>(),
          gives_truth<Op>(),
          masks_of<Op>(),
          differentiable<Op>() && domain_of<Op>() != Domain::integral,
          index,
          rows,
          lift,
          {&lifted<Op, 1>, &lifted<Op, 2>, &lifted<Op, 3>},
          {&uses<&lifted<Op, 1>>, &uses<&lifted<Op, 2>>, &uses<&lifted<Op, 3>>}};
}

Tensor map(const ElementwiseOp& op, std::span<const Operand> operands);

}  // namespace detail

// pointwise<Bump>(x, width): see examples/custom_op.cpp.
template <class Op, class... Args> [[nodiscard]] Tensor pointwise(const Args&... args) {
  detail::check_count<Op, detail::OperandsGiven<int(sizeof...(Args))>,
                      detail::OperandsOfTheFormula<detail::arity<Op>>>();
  static constexpr detail::ElementwiseOp op = detail::describe<Op>(-1, &detail::user_rows<Op>, &detail::lifted<Op, 0>);
  const Operand operands[] = {Operand(args)...};
  return detail::map(op, operands);
}

}  // namespace volta
