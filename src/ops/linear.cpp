// Matrix products: matmul in all ranks, and linear with its fused bias and activation.
#include <algorithm>

#include <volta/create.h>
#include <volta/ops.h>
#include <volta/plain.h>

#include "graph/record.h"
#include "math/elementwise.h"
#include "ops/check.h"
#include "ops/elementwise.h"

namespace volta {

DType product_dtype(std::span<const Operand> operands, const char* op) {
  const DType dtype = result_type(operands, op);
  require(dtype != boolean, ErrorKind::dtype, op, "is not defined for booleans");
  return dtype;
}

namespace {

Shape batch_of(const Layout& matrix) {
  Shape s = matrix.shape;
  s.resize(matrix.rank() - 2);
  return s;
}

int64_t rows_of(const Layout& matrix) { return matrix.shape[matrix.rank() - 2]; }

// A vector on the left is one row, on the right one column.
Layout left_matrix(const Layout& a) { return a.rank() == 1 ? views::unsqueeze(a, 0) : a; }
Layout right_matrix(const Layout& b) { return b.rank() == 1 ? views::unsqueeze(b, 1) : b; }

void check_product(const Tensor& a, const Tensor& b, const char* op) {
  common_device(a, b, op);
  const Layout &x = layout(a), &y = layout(b);
  require(x.rank() > 0 && y.rank() > 0, ErrorKind::shape, op, a, " x ", b,
          ": both need at least one axis; multiply by a number with *");
  const int64_t n = x.shape.back(), m = y.shape[std::max(0, y.rank() - 2)];
  require(n == m, ErrorKind::shape, op, a, " x ", b, ": inner sizes ", n, " and ", m, " differ");
  if (x.rank() <= 2 || y.rank() <= 2) return;
  const Shape s = batch_of(x), t = batch_of(y);
  try {
    broadcast_shapes(s, t, op);
  } catch (const Error&) {
    throw_error(ErrorKind::shape, op, a, " x ", b, ": batch sizes ", s, " and ", t, " do not broadcast");
  }
}

// What is done to a product before it is stored.
struct Finish {
  const Tensor* bias = nullptr;
  Fused activation = Fused::none;
};

void multiply_into(const Tensor& y, const Layout& out, const Tensor& a, const Layout& left, const Tensor& b,
                   const Layout& right, const Finish& finish) {
  if (layout(y).numel() == 0) return;
  const auto seen = [](const Tensor& x, const Layout& as) {
    reads(x);
    return Arg{address(x), &as, x.impl().dtype, {}};
  };
  const Arg bias = finish.bias && finish.bias->defined() ? arg(*finish.bias) : Arg{};
  backend(y.device()).matmul({seen(y, out), seen(a, left), seen(b, right), bias, finish.activation});
}

// a @ b, of one dtype, checked, and seen through these layouts; no graph.
Tensor multiply(const Tensor& a, const Layout& seen_a, const Tensor& b, const Layout& seen_b, const Finish& finish,
                const char* op) {
  if (seen_a.rank() == 2 && seen_b.rank() == 2) {
    Tensor y = allocate({seen_a.shape[0], seen_b.shape[1]}, a.impl().dtype, a.device(), op);
    multiply_into(y, layout(y), a, seen_a, b, seen_b, finish);
    return y;
  }
  Layout left = left_matrix(seen_a), right = right_matrix(seen_b);
  Shape batch = broadcast_shapes(batch_of(left), batch_of(right), op), shape = batch;
  if (seen_a.rank() > 1) shape.push_back(rows_of(left));
  if (seen_b.rank() > 1) shape.push_back(right.shape.back());
  Tensor y = allocate(shape, a.dtype(), a.device(), op);
  const int64_t k = left.shape.back(), n = right.shape.back();
  // One shared right matrix: the batch on the left is just more rows.
  const bool shared = !batch.empty() && batch_of(right).numel() == 1 && k > 0;
  if (const auto folded = shared ? views::reshape(left, {left.numel() / k, k}) : std::nullopt) {
    const int row = right.rank() - 2;
    right = {{k, n}, {right.strides[row], right.strides[row + 1]}, right.offset};
    left = *folded;
    batch = {};
  }
  const auto expanded = [&](const Layout& matrix) {
    return views::expand(matrix, joined(batch, {rows_of(matrix), matrix.shape.back()}), op);
  };
  const Layout out = Layout::contiguous(joined(batch, {rows_of(left), n}));
  multiply_into(y, out, a, expanded(left), b, expanded(right), finish);
  return y;
}

// x as a matrix of all its rows.
Tensor as_rows(const Tensor& x) {
  if (x.dim() == 2) return x;
  return x.dim() == 1 ? x.unsqueeze(0) : x.flatten(0, -2);
}

// a^T b of all their rows.
Tensor transposed_product(const Tensor& a, const Tensor& b) {
  if (grad_enabled() || a.dim() != 2 || b.dim() != 2) return matmul(as_rows(a).mT(), as_rows(b));
  return multiply(a, views::transpose(layout(a), 0, 1), b, layout(b), {}, "matmul");
}

// Gradients of a @ b are g @ b^T and a^T @ g, all in matrix form.
Tensor product(const char* op, const Tensor& a, const Tensor& b) {
  check_product(a, b, op);
  if (a.impl().dtype != b.impl().dtype || a.impl().dtype == boolean) {
    const Operand operands[] = {a, b};
    const DType dtype = product_dtype(operands, op);
    return product(op, a.to(dtype), b.to(dtype));
  }
  Tensor y = multiply(a, layout(a), b, layout(b), {}, op);
  if (!any_needs_grad(a, b)) return y;
  const bool row = a.dim() == 1, column = b.dim() == 1, shared = b.dim() <= 2;
  return record(
      op, std::move(y), {a, b},
      [=, sa = save(a, needs_grad(b)), sb = save(b, needs_grad(a))](const Tensor& grad_y, Gradients& d) {
        const auto matrix = [](const Tensor& t, bool lacks, int64_t axis) { return lacks ? t.unsqueeze(axis) : t; };
        const auto like = [](const Tensor& t, bool lacks, int64_t axis) { return lacks ? t.squeeze(axis) : t; };
        const Tensor g = matrix(matrix(grad_y, column, -1), row, -2);
        if (d.needs(0)) d[0] = like(matmul(g, matrix(d.take(sb), column, -1).mT()), row, -2);
        if (!d.needs(1)) return;
        const Tensor left = matrix(d.take(sa), row, 0);
        const bool fold = shared && left.dim() == g.dim();
        d[1] = like(fold ? transposed_product(left, g) : matmul(left.mT(), g), column, -1);
      });
}

// The same for operands that must have so many axes.
Tensor product(const char* op, const Tensor& a, int64_t axes_a, const Tensor& b, int64_t axes_b) {
  require(a.checked(op).dim() == axes_a && b.checked(op).dim() == axes_b, ErrorKind::shape, op, a, " x ", b,
          ": needs tensors of ", axes_a, " and ", axes_b, " axes");
  return product(op, a, b);
}

// In the order of Fused and of LinearActivation.
constexpr Tensor (*activations[])(const Tensor&) = {nullptr, relu, gelu, gelu_tanh, silu, tanh, sigmoid};

// g where relu let something through, told from its output; one pass when no graph is wanted.
Tensor through_relu(const Tensor& g, const Tensor& y) {
  if (grad_enabled()) return where(gt(y, 0), g, 0);
  Tensor d = allocate(y.shape(), y.dtype(), y.device(), "linear");
  const ElementwiseOp& relu_op = point_op(index_of<point::Relu>(ElementwiseOps{}));
  ElementwiseCall call{&relu_op, 1, traits(y.dtype()).compute, arg(d), {arg(g), {}, arg(y)}, 3};
  call.in[1].unused = true;
  backend(y.device()).elementwise(call);
  return d;
}

void check_linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  const char* op = "linear";
  const auto check = [&](bool fine, const auto&... why) {
    require(fine, ErrorKind::shape, op, x, " with weight ", weight, ": ", why...);
  };
  common_device(x, weight, op);
  check(weight.dim() == 1 || weight.dim() == 2, "the weight must be [out, in] or [in]");
  check(x.dim() > 0, "the input needs at least one axis");
  const int64_t n = x.shape().back(), m = weight.shape().back();
  check(n == m, "inner sizes ", n, " and ", m, " differ");
  if (!bias.defined()) return;
  common_device(x, bias, op);
  const Shape wanted = weight.dim() == 2 ? Shape{weight.shape()[0]} : Shape{};
  check(bias.shape() == wanted, "the bias has shape ", bias, ", not ", wanted);
}

// y = activation(x w^T + bias), with none or relu as activation where gradients are wanted.
Tensor fused_linear(const Tensor& x, const Tensor& w, const Tensor& bias, Fused activation) {
  Tensor y = multiply(x, layout(x), w, views::transpose(layout(w), 0, 1), {&bias, activation}, "linear");
  if (!any_needs_grad(x, w, bias)) return y;
  const bool through = activation == Fused::relu;
  const Saved out = through ? save_output(y) : Saved();
  return record("linear", std::move(y), {x, w, bias},
                [=, sx = save(x, needs_grad(w)), sw = save(w, needs_grad(x))](const Tensor& grad_y, Gradients& d) {
                  const Tensor g = through ? through_relu(grad_y, d.take(out)) : grad_y;
                  if (d.needs(0)) d[0] = matmul(g, d.take(sw));
                  if (d.needs(1)) d[1] = transposed_product(g, d.take(sx));
                  if (d.needs(2)) d[2] = g;
                });
}

}  // namespace

Tensor Plain::matmul(const Tensor& x, const Tensor& other) { return product("matmul", x, other); }
Tensor Plain::mm(const Tensor& x, const Tensor& other) { return product("mm", x, 2, other, 2); }
Tensor Plain::mv(const Tensor& x, const Tensor& vector) { return product("mv", x, 2, vector, 1); }
Tensor dot(const Tensor& x, const Tensor& other) { return product("dot", x, 1, other, 1); }

Tensor Plain::bmm(const Tensor& x, const Tensor& other) {
  if (x.checked("bmm").dim() == 3 && other.checked("bmm").dim() == 3)
    require(x.size(0) == other.size(0), ErrorKind::shape, "bmm", x, " x ", other, ": batch sizes ", x.size(0), " and ",
            other.size(0), " differ");
  return product("bmm", x, 3, other, 3);
}

Tensor Plain::addmm(const Tensor& x, const Tensor& a, const Tensor& b, double beta, double alpha) {
  const char* op = "addmm";
  require(a.checked(op).dim() == 2 && b.checked(op).dim() == 2, ErrorKind::shape, op, a, " x ", b,
          ": needs two matrices");
  common_device(x, a, op);
  check_product(a, b, op);
  const Shape shape = {a.shape()[0], b.shape()[1]};
  require(broadcast_shapes(x.shape(), shape, op) == shape, ErrorKind::shape, op, x,
          " does not broadcast to the product's shape ", shape);
  const Operand operands[] = {x, a, b};
  const DType dtype = product_dtype(operands, op);
  // What alpha makes small need not fit into a half before.
  if (is_half(dtype) && alpha != 1) return addmm(x.to(f32), a.to(f32), b.to(f32), beta, alpha).to(dtype);
  const Scalar scale_x = factor_for(beta, dtype, op), scale_y = factor_for(alpha, dtype, op);
  if (beta == 1 && alpha == 1 && x.shape() == Shape{shape[1]})
    return fused_linear(a.to(dtype), b.to(dtype).mT(), x.to(dtype), Fused::none);
  Tensor y = product(op, a.to(dtype), b.to(dtype));
  if (alpha != 1) y = mul(y, scale_y);
  // With beta = 0, NaN and infinities in x do not count, and its gradient is 0.
  const Tensor term = beta == 0 ? where(full({}, false, {boolean, x.device()}), x, 0) : beta == 1 ? x : mul(x, scale_x);
  return add(y, term);
}

Tensor Plain::linear(const Tensor& x, const Tensor& weight, const Tensor& bias, const LinearOptions& options) {
  const auto activation = Fused(options.activation.of("linear", "activation"));
  check_linear(x, weight, bias);
  if (weight.dim() == 1)  // one column
    return linear(x, weight.unsqueeze(0), bias.defined() ? bias.unsqueeze(0) : bias, options).squeeze(-1);
  const Operand operands[] = {x, weight, bias.defined() ? bias : weight};
  const DType dtype = product_dtype(operands, "linear");
  const auto fits = [dtype](const Tensor& t) { return !t.defined() || t.dtype() == dtype; };
  if (!fits(x) || !fits(weight) || !fits(bias))
    return linear(x.to(dtype), weight.to(dtype), bias.defined() ? bias.to(dtype) : bias, options);
  // A derivative wants the rounded product, so halves are rounded before the activation whether one is recorded or not.
  const bool fuses = activation == Fused::none || activation == Fused::relu ||
                     (is_floating(dtype) && !is_half(dtype) && !any_needs_grad(x, weight, bias));
  const Tensor y = fused_linear(x, weight, bias, fuses ? activation : Fused::none);
  return fuses ? y : activations[size_t(activation)](y);
}

}  // namespace volta
