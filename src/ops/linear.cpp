// Matrix products: matmul in all ranks, and linear with its fused bias and activation.
#include <array>

#include <volta/create.h>
#include <volta/ops.h>

#include "autograd/record.h"
#include "backend/backend.h"
#include "ops/point.h"
#include "ops/pointwise.h"

namespace volta {
namespace {

// A vector on the left is one row, on the right one column.
Layout left_matrix(const Layout& x) { return x.rank() == 1 ? views::unsqueeze(x, 0) : x; }
Layout right_matrix(const Layout& x) { return x.rank() == 1 ? views::unsqueeze(x, 1) : x; }

Shape batch_of(const Layout& matrix) {
  Shape s = matrix.shape;
  s.resize(matrix.rank() - 2);
  return s;
}

Layout with_batch(const Layout& matrix, const Shape& batch, const char* op) {
  if (matrix.rank() == 2 && batch.empty()) return matrix;
  Shape s = batch;
  s.push_back(matrix.shape[matrix.rank() - 2]);
  s.push_back(matrix.shape[matrix.rank() - 1]);
  return views::expand(matrix, s, op);
}

std::string pair_text(const Tensor& a, const Tensor& b) { return a.shape().str() + " x " + b.shape().str() + ": "; }

DType product_dtype(std::span<const Operand> operands, const char* op) {
  const DType dtype = result_type(operands, op);
  if (dtype == boolean) throw Error(Error::Kind::dtype, op, "is not defined for booleans");
  return dtype;
}

// The geometry of a @ b, checked.
struct Product {
  Layout a, b;  // of rank >= 2, not yet expanded
  Shape batch;
  Shape shape;          // of the result, without the axes that vectors lack
  Layout out() const {  // of the result, with them
    Shape s = batch;
    s.push_back(a.shape[a.rank() - 2]);
    s.push_back(b.shape[b.rank() - 1]);
    return Layout::contiguous(s);
  }
};

Product plan(const Tensor& a, const Tensor& b, const char* op) {
  common_device(a, b, op);
  if (a.dim() == 0 || b.dim() == 0)
    throw Error(Error::Kind::shape, op, pair_text(a, b) + "both need at least one axis; multiply by a number with *");
  Product p{left_matrix(layout(a)), right_matrix(layout(b)), {}, {}};
  const int64_t inner_a = p.a.shape.back(), inner_b = p.b.shape[p.b.rank() - 2];
  if (inner_a != inner_b)
    throw Error(
        Error::Kind::shape, op,
        pair_text(a, b) + "inner sizes " + std::to_string(inner_a) + " and " + std::to_string(inner_b) + " differ");
  try {
    p.batch = broadcast_shapes(batch_of(p.a), batch_of(p.b), op);
  } catch (const Error&) {
    throw Error(
        Error::Kind::shape, op,
        pair_text(a, b) + "batch sizes " + batch_of(p.a).str() + " and " + batch_of(p.b).str() + " do not broadcast");
  }
  p.shape = p.batch;
  if (a.dim() > 1) p.shape.push_back(p.a.shape[p.a.rank() - 2]);
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
  const Layout left = with_batch(p.a, p.batch, op), right = with_batch(p.b, p.batch, op), out = p.out();
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
Tensor as_rows(const Tensor& x) {
  int64_t rows = 1;
  for (int i = 0; i + 1 < x.shape().size(); ++i) rows *= x.shape()[i];
  return x.reshape({rows, x.shape().back()});
}

// Gradients of a @ b: g @ b^T and a^T @ g, in matrix form.
Tensor by_left(const Tensor& g, const Tensor& b, bool vector) {
  const Tensor d = matmul(g, b.mT());
  return vector ? d.squeeze(-2) : d;
}
Tensor by_right(const Tensor& a, const Tensor& g, bool shared, bool vector) {
  const bool fold = shared && a.dim() > 2 && a.dim() == g.dim();
  const Tensor d = fold ? matmul(as_rows(a).mT(), as_rows(g)) : matmul(a.mT(), g);
  return vector ? d.squeeze(-1) : d;
}

Tensor record_product(const char* op, const Tensor& y, const Tensor& a, const Tensor& b) {
  if (!any_needs_grad(a, b)) return y;
  const bool left_vector = a.dim() == 1, right_vector = b.dim() == 1, shared = b.dim() <= 2;
  return record(op, y, {a, b},
                [=, sa = save(a, needs_grad(b)), sb = save(b, needs_grad(a))](const Tensor& grad_y, Gradients& d) {
                  Tensor g = right_vector ? grad_y.unsqueeze(-1) : grad_y;
                  if (left_vector) g = g.unsqueeze(-2);
                  if (d.needs(0)) {
                    const Tensor right = d.take(sb);
                    d[0] = by_left(g, right_vector ? right.unsqueeze(1) : right, left_vector);
                  }
                  if (d.needs(1)) {
                    const Tensor left = d.take(sa);
                    d[1] = by_right(left_vector ? left.unsqueeze(0) : left, g, shared, right_vector);
                  }
                });
}

Tensor product(const char* op, const Tensor& x, const Tensor& other) {
  const Product p = plan(x, other, op);
  const Operand operands[] = {x, other};
  const DType dtype = product_dtype(operands, op);
  if (x.dtype() == dtype && other.dtype() == dtype)
    return record_product(op, multiply(p, x, other, {}, Fused::none, op), x, other);
  return product(op, x.to(dtype), other.to(dtype));
}

void require_axes(const Tensor& a, int64_t axes_a, const Tensor& b, int64_t axes_b, const char* op) {
  if (a.checked(op).dim() == axes_a && b.checked(op).dim() == axes_b) return;
  throw Error(
      Error::Kind::shape, op,
      pair_text(a, b) + "needs tensors of " + std::to_string(axes_a) + " and " + std::to_string(axes_b) + " axes");
}

constexpr std::array<std::string_view, 7> activations = {"none", "relu", "gelu",   "gelu_tanh",
                                                         "silu", "tanh", "sigmoid"};

Fused fused_named(const std::string& name) {
  std::string known;
  for (size_t i = 0; i < activations.size(); ++i) {
    if (activations[i] == name) return Fused(i);
    known += (i ? ", " : "") + std::string(activations[i]);
  }
  throw Error(Error::Kind::argument, "linear", "activation '" + name + "' is not one of " + known);
}

Tensor activated(const Tensor& x, Fused activation) {
  switch (activation) {
    case Fused::relu: return relu(x);
    case Fused::gelu: return gelu(x);
    case Fused::gelu_tanh: return gelu_tanh(x);
    case Fused::silu: return silu(x);
    case Fused::tanh: return tanh(x);
    case Fused::sigmoid: return sigmoid(x);
    case Fused::none: break;
  }
  return x;
}

// g where relu let something through, told from its output; one pass when no graph is wanted.
Tensor through_relu(const Tensor& g, const Tensor& y) {
  if (grad_enabled()) return where(gt(y, 0), g, 0);
  const Tensor d = allocate(y.shape(), y.dtype(), y.device(), "linear");
  MapCall call{
      &point_op(index_of<point::Relu>(PointOps{})), 1, traits(y.dtype()).compute, arg(d), {arg(g), {}, arg(y)}, 3};
  call.in[1].unused = true;
  backend(y.device()).map(call);
  return d;
}

void check_linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  const auto refuse = [&](const std::string& why) {
    throw Error(Error::Kind::shape, "linear", x.shape().str() + " with weight " + weight.shape().str() + ": " + why);
  };
  common_device(x.checked("linear"), weight.checked("linear"), "linear");
  if (weight.dim() < 1 || weight.dim() > 2) refuse("the weight must be [out, in] or [in]");
  if (x.dim() < 1) refuse("the input needs at least one axis");
  if (x.shape().back() != weight.shape().back())
    refuse("inner sizes " + std::to_string(x.shape().back()) + " and " + std::to_string(weight.shape().back()) +
           " differ");
  if (!bias.defined()) return;
  common_device(x, bias, "linear");
  const Shape wanted = weight.dim() == 2 ? Shape{weight.shape()[0]} : Shape{};
  if (bias.shape() != wanted) refuse("the bias has shape " + bias.shape().str() + ", not " + wanted.str());
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

Scalar number_for(double x, DType dtype) {
  if (is_floating(dtype)) return x;
  if (x != double(int64_t(x)))
    throw Error(Error::Kind::dtype, "addmm", "integers need whole beta and alpha, got " + std::to_string(x));
  return int64_t(x);
}

}  // namespace

Tensor matmul(const Tensor& x, const Tensor& other) {
  return product("matmul", x.checked("matmul"), other.checked("matmul"));
}

Tensor mm(const Tensor& x, const Tensor& other) {
  require_axes(x, 2, other, 2, "mm");
  return product("mm", x, other);
}

Tensor bmm(const Tensor& x, const Tensor& other) {
  require_axes(x, 3, other, 3, "bmm");
  if (x.size(0) != other.size(0))
    throw Error(Error::Kind::shape, "bmm",
                pair_text(x, other) + "batch sizes " + std::to_string(x.size(0)) + " and " +
                    std::to_string(other.size(0)) + " differ");
  return product("bmm", x, other);
}

Tensor mv(const Tensor& x, const Tensor& vector) {
  require_axes(x, 2, vector, 1, "mv");
  return product("mv", x, vector);
}

Tensor dot(const Tensor& x, const Tensor& other) {
  require_axes(x, 1, other, 1, "dot");
  return product("dot", x, other);
}

Tensor addmm(const Tensor& x, const Tensor& a, const Tensor& b, double beta, double alpha) {
  require_axes(a, 2, b, 2, "addmm");
  common_device(x.checked("addmm"), a, "addmm");
  const Shape shape = plan(a, b, "addmm").shape;
  if (broadcast_shapes(x.shape(), shape, "addmm") != shape)
    throw Error(Error::Kind::shape, "addmm",
                x.shape().str() + " does not broadcast to the product's shape " + shape.str());
  const Operand operands[] = {x, a, b};
  const DType dtype = product_dtype(operands, "addmm");
  const Scalar scale_x = number_for(beta, dtype), scale_y = number_for(alpha, dtype);
  if (beta == 1 && alpha == 1 && x.shape() == Shape{shape[1]})
    return fused_linear(a.to(dtype), b.to(dtype).mT(), x.to(dtype), Fused::none);
  Tensor y = product("addmm", a.to(dtype), b.to(dtype));
  if (alpha != 1) y = mul(y, scale_y);
  // With beta = 0, NaN and infinities in x do not count, and its gradient is 0.
  const Tensor term = beta == 0 ? where(full({}, false, {boolean, x.device()}), x, 0) : beta == 1 ? x : mul(x, scale_x);
  return add(y, term);
}

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias, const LinearOptions& options) {
  const Fused activation = fused_named(options.activation);
  check_linear(x, weight, bias);
  const Operand operands[] = {x, weight, bias.defined() ? bias : weight};
  const DType dtype = product_dtype(operands, "linear");
  const Tensor input = x.to(dtype), w = weight.to(dtype), b = bias.defined() ? bias.to(dtype) : bias;
  if (w.dim() == 1) {
    const Tensor y = product("linear", input, w);
    return activated(b.defined() ? add(y, b) : y, activation);
  }
  const bool fuses =
      activation == Fused::none || activation == Fused::relu || (is_floating(dtype) && !any_needs_grad(input, w, b));
  const Tensor y = fused_linear(input, w, b, fuses ? activation : Fused::none);
  return fuses ? y : activated(y, activation);
}

}  // namespace volta
