// Matrix products: matmul in all ranks, and linear with its fused bias and activation.
#include <algorithm>

#include <volta/create.h>
#include <volta/ops.h>

#include "autograd/record.h"
#include "ops/check.h"
#include "ops/point.h"
#include "ops/pointwise.h"

namespace volta {

DType product_dtype(std::span<const Operand> operands, const char* op) {
  const DType dtype = result_type(operands, op);
  require(dtype != boolean, Wrong::dtype, op, "is not defined for booleans");
  return dtype;
}

namespace {

// The geometry of a @ b, checked. A vector on the left is one row, on the right one column.
struct Product {
  Layout a, b;  // of rank >= 2, not yet expanded
  Shape batch;
  Shape shape;  // of the result, without the axes that vectors lack
};

Shape batch_of(const Layout& matrix) {
  Shape s = matrix.shape;
  s.resize(matrix.rank() - 2);
  return s;
}

int64_t rows_of(const Layout& matrix) { return matrix.shape[matrix.rank() - 2]; }

Layout with_batch(const Layout& matrix, const Shape& batch, const char* op) {
  if (matrix.rank() == 2 && batch.empty()) return matrix;
  return views::expand(matrix, joined(batch, {rows_of(matrix), matrix.shape.back()}), op);
}

Product plan(const Tensor& a, const Tensor& b, const char* op) {
  common_device(a, b, op);
  require(a.dim() > 0 && b.dim() > 0, Wrong::shape, op, a, " x ", b,
          ": both need at least one axis; multiply by a number with *");
  Product p;
  p.a = a.dim() == 1 ? views::unsqueeze(layout(a), 0) : layout(a);
  p.b = b.dim() == 1 ? views::unsqueeze(layout(b), 1) : layout(b);
  require(p.a.shape.back() == rows_of(p.b), Wrong::shape, op, a, " x ", b, ": inner sizes ", p.a.shape.back(), " and ",
          rows_of(p.b), " differ");
  try {
    p.batch = p.shape = broadcast_shapes(batch_of(p.a), batch_of(p.b), op);
  } catch (const Error&) {
    refuse(Wrong::shape, op, a, " x ", b, ": batch sizes ", batch_of(p.a), " and ", batch_of(p.b), " do not broadcast");
  }
  if (a.dim() > 1) p.shape.push_back(rows_of(p.a));
  if (b.dim() > 1) p.shape.push_back(p.b.shape.back());
  return p;
}

// One shared right matrix: the batch on the left is just more rows.
void fold_batch(Product& p) {
  const int64_t k = p.a.shape.back();
  if (p.batch.empty() || batch_of(p.b).numel() != 1 || k == 0) return;
  const std::optional<Layout> folded = views::reshape(p.a, {p.a.numel() / k, k});
  if (!folded) return;
  const int row = p.b.rank() - 2;
  p.b = {{k, p.b.shape.back()}, {p.b.strides[row], p.b.strides[row + 1]}, p.b.offset};
  p.a = *folded;
  p.batch = {};
}

// a @ b (+ bias, activation) of one dtype; no graph.
Tensor multiply(Product p, const Tensor& a, const Tensor& b, const Tensor& bias, Fused activation, const char* op) {
  const Tensor y = allocate(p.shape, a.dtype(), a.device(), op);
  if (y.numel() == 0) return y;
  fold_batch(p);
  const Layout left = with_batch(p.a, p.batch, op), right = with_batch(p.b, p.batch, op);
  const Layout out = Layout::contiguous(joined(p.batch, {rows_of(p.a), p.b.shape.back()}));
  MatmulCall call;
  call.out = {address(y), &out, y.dtype(), {}};
  call.a = {address(a), &left, a.dtype(), {}};
  call.b = {address(b), &right, b.dtype(), {}};
  if (bias.defined()) call.bias = arg(bias);
  call.activation = activation;
  backend(y.device()).matmul(call);
  return y;
}

// x as a matrix of all its rows.
Tensor as_rows(const Tensor& x) { return x.dim() == 1 ? x.unsqueeze(0) : x.flatten(0, -2); }

// Gradients of a @ b are g @ b^T and a^T @ g, all in matrix form.
Tensor product(const char* op, const Tensor& a, const Tensor& b) {
  const Product p = plan(a, b, op);
  const Operand operands[] = {a, b};
  const DType dtype = product_dtype(operands, op);
  if (a.dtype() != dtype || b.dtype() != dtype) return product(op, a.to(dtype), b.to(dtype));
  const Tensor y = multiply(p, a, b, {}, Fused::none, op);
  if (!any_needs_grad(a, b)) return y;
  const bool row = a.dim() == 1, column = b.dim() == 1, shared = b.dim() <= 2;
  return record(
      op, y, {a, b}, [=, sa = save(a, needs_grad(b)), sb = save(b, needs_grad(a))](const Tensor& grad_y, Gradients& d) {
        const auto matrix = [](const Tensor& t, bool lacks, int64_t axis) { return lacks ? t.unsqueeze(axis) : t; };
        const auto like = [](const Tensor& t, bool lacks, int64_t axis) { return lacks ? t.squeeze(axis) : t; };
        const Tensor g = matrix(matrix(grad_y, column, -1), row, -2);
        if (d.needs(0)) d[0] = like(matmul(g, matrix(d.take(sb), column, -1).mT()), row, -2);
        if (!d.needs(1)) return;
        const Tensor left = matrix(d.take(sa), row, 0);
        const bool fold = shared && left.dim() > 2 && left.dim() == g.dim();
        d[1] = like(fold ? matmul(as_rows(left).mT(), as_rows(g)) : matmul(left.mT(), g), column, -1);
      });
}

// The same for operands that must have so many axes.
Tensor product(const char* op, const Tensor& a, int64_t axes_a, const Tensor& b, int64_t axes_b) {
  require(a.checked(op).dim() == axes_a && b.checked(op).dim() == axes_b, Wrong::shape, op, a, " x ", b,
          ": needs tensors of ", axes_a, " and ", axes_b, " axes");
  return product(op, a, b);
}

// In the order of Fused.
constexpr std::string_view activation_names[] = {"none", "relu", "gelu", "gelu_tanh", "silu", "tanh", "sigmoid"};
constexpr Tensor (*activations[])(const Tensor&) = {nullptr, relu, gelu, gelu_tanh, silu, tanh, sigmoid};

// g where relu let something through, told from its output; one pass when no graph is wanted.
Tensor through_relu(const Tensor& g, const Tensor& y) {
  if (grad_enabled()) return where(gt(y, 0), g, 0);
  const Tensor d = allocate(y.shape(), y.dtype(), y.device(), "linear");
  const PointOp& relu_op = point_op(index_of<point::Relu>(PointOps{}));
  MapCall call{&relu_op, 1, traits(y.dtype()).compute, arg(d), {arg(g), {}, arg(y)}, 3};
  call.in[1].unused = true;
  backend(y.device()).map(call);
  return d;
}

void check_linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  const char* op = "linear";
  const auto check = [&](bool fine, const auto&... why) {
    require(fine, Wrong::shape, op, x, " with weight ", weight, ": ", why...);
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
  const Tensor columns = alias(w, views::transpose(layout(w), 0, 1));
  const Tensor y = multiply(plan(x, columns, "linear"), x, columns, bias, activation, "linear");
  if (!any_needs_grad(x, w, bias)) return y;
  const bool through = activation == Fused::relu;
  const Saved out = through ? save_output(y) : Saved();
  return record("linear", y, {x, w, bias},
                [=, sx = save(x, needs_grad(w)), sw = save(w, needs_grad(x))](const Tensor& grad_y, Gradients& d) {
                  const Tensor g = through ? through_relu(grad_y, d.take(out)) : grad_y;
                  if (d.needs(0)) d[0] = matmul(g, d.take(sw));
                  if (d.needs(1)) d[1] = matmul(as_rows(g).mT(), as_rows(d.take(sx)));
                  if (d.needs(2)) d[2] = g;
                });
}

}  // namespace

Tensor matmul(const Tensor& x, const Tensor& other) { return product("matmul", x, other); }
Tensor mm(const Tensor& x, const Tensor& other) { return product("mm", x, 2, other, 2); }
Tensor mv(const Tensor& x, const Tensor& vector) { return product("mv", x, 2, vector, 1); }
Tensor dot(const Tensor& x, const Tensor& other) { return product("dot", x, 1, other, 1); }

Tensor bmm(const Tensor& x, const Tensor& other) {
  if (x.checked("bmm").dim() == 3 && other.checked("bmm").dim() == 3)
    require(x.size(0) == other.size(0), Wrong::shape, "bmm", x, " x ", other, ": batch sizes ", x.size(0), " and ",
            other.size(0), " differ");
  return product("bmm", x, 3, other, 3);
}

Tensor addmm(const Tensor& x, const Tensor& a, const Tensor& b, double beta, double alpha) {
  const char* op = "addmm";
  require(a.checked(op).dim() == 2 && b.checked(op).dim() == 2, Wrong::shape, op, a, " x ", b, ": needs two matrices");
  common_device(x, a, op);
  const Shape shape = plan(a, b, op).shape;
  require(broadcast_shapes(x.shape(), shape, op) == shape, Wrong::shape, op, x,
          " does not broadcast to the product's shape ", shape);
  const Operand operands[] = {x, a, b};
  const DType dtype = product_dtype(operands, op);
  const Scalar scale_x = factor_for(beta, dtype, op), scale_y = factor_for(alpha, dtype, op);
  if (beta == 1 && alpha == 1 && x.shape() == Shape{shape[1]})
    return fused_linear(a.to(dtype), b.to(dtype).mT(), x.to(dtype), Fused::none);
  Tensor y = product(op, a.to(dtype), b.to(dtype));
  if (alpha != 1) y = mul(y, scale_y);
  // With beta = 0, NaN and infinities in x do not count, and its gradient is 0.
  const Tensor term = beta == 0 ? where(full({}, false, {boolean, x.device()}), x, 0) : beta == 1 ? x : mul(x, scale_x);
  return add(y, term);
}

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias, const LinearOptions& options) {
  const auto activation = Fused(choice(options.activation, activation_names, "activation", "linear"));
  check_linear(x, weight, bias);
  if (weight.dim() == 1)  // one column
    return linear(x, weight.unsqueeze(0), bias.defined() ? bias.unsqueeze(0) : bias, options).squeeze(-1);
  const Operand operands[] = {x, weight, bias.defined() ? bias : weight};
  const DType dtype = product_dtype(operands, "linear");
  const Tensor input = x.to(dtype), w = weight.to(dtype), b = bias.defined() ? bias.to(dtype) : bias;
  const bool fuses =
      activation == Fused::none || activation == Fused::relu || (is_floating(dtype) && !any_needs_grad(input, w, b));
  const Tensor y = fused_linear(input, w, b, fuses ? activation : Fused::none);
  return fuses ? y : activations[size_t(activation)](y);
}

}  // namespace volta
