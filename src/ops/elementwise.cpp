// Runs pointwise ops: checks, promotes, allocates, calls the backend, records the graph; and those made of others.
#include "ops/elementwise.h"

#include <cmath>

#include <volta/plain.h>

#include "graph/record.h"
#include "math/elementwise.h"
#include "ops/autocast.h"
#include "ops/check.h"
#include "ops/fused.h"
#include "ops/reduce.h"

namespace volta {
namespace {

template <class... Ops> constexpr std::array<Cast, sizeof...(Ops)> casts_of(List<Ops...>) {
  return {cast_of(Ops::name)...};
}
constexpr auto point_casts = casts_of(ElementwiseOps{});

struct Inferred {
  Shape shape;
  DType common, result;
  Device device;
};

DType domain_dtype(const ElementwiseOp& op, DType common) {
  if (op.domain == Domain::floating && !is_floating(common)) return default_dtype();
  require(op.domain != Domain::numeric || common != boolean, ErrorKind::dtype, op.name, "is not defined for booleans");
  require(op.domain != Domain::integral || !is_floating(common), ErrorKind::dtype, op.name,
          "needs integers or booleans, got ", common);
  return common;
}

// Ops of x and bounds: the numbers beside a bool x would make it a number that nobody asked for.
bool is_of_numbers(const ElementwiseOp& op) {
  return op.index == index_of<point::Hardtanh>(ElementwiseOps{}) ||
         op.index == index_of<point::Threshold>(ElementwiseOps{});
}

Inferred infer(const ElementwiseOp& op, std::span<const Operand> x) {
  Inferred r{{}, f32, f32, {}};
  const Tensor* first = nullptr;
  for (const Operand& o : x) {
    if (!o.tensor) continue;
    const TensorImpl& t = o.tensor->checked(op.name).impl();
    if (!first) {
      first = o.tensor;
      r.shape = t.layout.shape;
      r.device = t.storage->device;
    } else {
      if (t.storage->device != r.device) common_device(*first, *o.tensor, op.name);
      if (t.layout.shape != r.shape) r.shape = broadcast_shapes(r.shape, t.layout.shape, op.name);
    }
  }
  require(op.index != index_of<point::Celu>(ElementwiseOps{}) || x[1].tensor || x[1].scalar.as<double>() != 0,
          ErrorKind::argument, op.name, "alpha must not be 0");
  const auto values = x.subspan(size_t(op.masks));
  r.common = domain_dtype(op, result_type(values, op.name));
  if (is_of_numbers(op) && x[0].tensor) domain_dtype(op, x[0].tensor->impl().dtype);
  if (is_integral(r.common))
    for (const Operand& o : values)
      if (!o.tensor) require_held(o.scalar, r.common, op.name);
  r.result = op.truth ? boolean : r.common;
  return r;
}

TensorExpr term_of(const Scalar& s) {
  return s.is_floating() ? TensorExpr(s.as<double>()) : TensorExpr(s.as<int64_t>());
}

bool has_order(const Layout& l) { return !l.is_contiguous() && l.is_dense(); }

// The node of every pointwise op: the op's description says what to save and how to go back.
struct PointNode final : Node {
  PointNode(const ElementwiseOp& description, size_t count) : Node(description.name, count), op(&description) {}

  void backward(std::span<const Tensor> g, std::span<Tensor> out) override {
    for (int i = 0; i < op->arity; ++i)
      if (needs(size_t(i))) out[size_t(i)] = by_operand(g[0], i);
  }
  void release_saved() override {
    for (Saved& s : inputs) s = {};
    output = {};
  }

  // Where a device has no kernel of a user's op, its rules run as expressions of tensors.
  Tensor by_operand(const Tensor& g, int i) {
    const uint32_t used = op->uses[i]();
    if (used & passes_through) return g;
    const bool lifted = used == 0 || grad_enabled() || (op->index < 0 && !offered(first.device, *op));
    return lifted ? as_expression(g, i, used) : as_kernel(g, i, used);
  }

  // In the dtype the kernel computes in, so that both give the same: operands may be of several dtypes, and halves
  // round once.
  Tensor as_expression(const Tensor& g, int i, uint32_t used) {
    const DType wide = traits(compute).compute;
    std::vector<TensorExpr> x(size_t(op->arity) + 2, TensorExpr(0));
    if (used & uses_g) x[0] = TensorExpr(g.to(wide));
    for (int k = 0; k < op->arity; ++k) {
      if (!(used & (2u << k))) continue;
      const Saved& kept = inputs[size_t(k)];
      if (!kept) x[size_t(k) + 1] = term_of(scalars[size_t(k)]);
      else x[size_t(k) + 1] = TensorExpr(k < op->masks ? kept.get(*this) : kept.get(*this).to(wide));
    }
    if (used & (2u << op->arity)) x.back() = TensorExpr(output.get(*this).to(wide));
    const TensorExpr d = op->derivative_expr[i](x.data());
    if (d.constant()) return full(first.shape, d.value(), {first.dtype, first.device});
    return d.tensor().dtype() == first.dtype ? d.tensor() : d.tensor().to(first.dtype);
  }

  Tensor as_kernel(const Tensor& g, int i, uint32_t used) {
    ElementwiseCall call{op, 1 + i, traits(compute).compute, {}, {}, op->arity + 2};
    for (Arg& a : call.in) a.unused = true;
    Tensor kept[ElementwiseOp::max_arity + 1];
    if (used & uses_g) call.in[0] = arg(g);
    for (int k = 0; k < op->arity; ++k) {
      if (!(used & (2u << k))) continue;
      if (inputs[size_t(k)]) call.in[k + 1] = arg(kept[k] = inputs[size_t(k)].get(*this));
      else call.in[k + 1] = Arg{nullptr, nullptr, compute, scalars[size_t(k)]};
    }
    if (used & (2u << op->arity)) call.in[op->arity + 1] = arg(kept[op->arity] = output.get(*this));
    // In the order of what was saved, where that has one of its own: g may be expanded, or come out of a view.
    const Tensor* like = &g;
    for (const Tensor& x : kept)
      if (x.defined() && x.shape() == g.shape() && has_order(layout(x))) like = &x;
    const Tensor y = allocate_as(*like, first.dtype, first.device, name);
    call.out = arg(y);
    backend(first.device).elementwise(call);
    return y;
  }

  const ElementwiseOp* op;
  DType compute = f32;
  uint32_t uses = 0;  // what the derivatives that are wanted depend on
  std::array<Saved, ElementwiseOp::max_arity> inputs;
  std::array<Scalar, ElementwiseOp::max_arity> scalars;
  Saved output;
};

bool needs_node(const ElementwiseOp& op, std::span<const Operand> x, const Inferred& r) {
  if (!grad_enabled() || op.truth || !is_floating(r.result)) return false;
  for (const Operand& o : x.subspan(size_t(op.masks)))
    if (o.tensor && needs_grad(*o.tensor)) return true;
  return false;
}

// The node for y = op(x…). Saves the operands, not yet the output; of an operand
// that is about to be overwritten, a copy.
IntrusivePtr<Node> make_node(const ElementwiseOp& op, std::span<const Operand> x, const Inferred& r,
                             const Tensor* overwritten = nullptr) {
  require(op.differentiable, ErrorKind::autograd, op.name, "has no derivative; detach() its inputs or use NoGrad");
  if (overwritten) require_recorded_view(*overwritten, op.name);
  auto* node = new PointNode(op, x.size());
  auto owner = IntrusivePtr<Node>::adopt(node);
  node->compute = r.common;
  for (size_t i = size_t(op.masks); i < x.size(); ++i)
    if (x[i].tensor && needs_grad(*x[i].tensor)) {
      connect(*node, i, *x[i].tensor);
      node->uses |= op.uses[i]();
    }
  for (size_t i = 0; i < x.size(); ++i) {
    if (!x[i].tensor) node->scalars[i] = x[i].scalar;
    else if (node->uses & (2u << i))
      node->inputs[i] =
          save(overwritten && same_memory(*overwritten, *x[i].tensor) ? x[i].tensor->clone() : *x[i].tensor);
  }
  return owner;
}

void finish_node(const IntrusivePtr<Node>& node, const Tensor& y) {
  auto& n = static_cast<PointNode&>(*node);
  if (n.uses & (2u << n.op->arity)) n.output = save_output(y);
}

// The dense layout that all operands of the result's shape share: the result keeps it, so that rows stay contiguous.
const Layout* common_layout(std::span<const Operand> x, const Shape& shape) {
  const Layout* found = nullptr;
  for (const Operand& o : x) {
    if (!o.tensor) continue;
    const Layout& l = layout(*o.tensor);
    if (l.shape != shape) continue;
    if (found ? l.strides != found->strides : !has_order(l)) return nullptr;
    found = &l;
  }
  return found;
}

const Tensor* reusable(std::span<const Operand> x, const Inferred& r) {
  for (const Operand& o : x) {
    if (!o.temporary || !o.tensor) continue;
    const TensorImpl& t = o.tensor->impl();
    if (t.refs.load(std::memory_order_acquire) == 1 && t.storage->exclusive() && !t.node && !t.view &&
        t.dtype == r.result && t.layout.shape == r.shape && t.layout.is_contiguous())
      return o.tensor;
  }
  return nullptr;
}

// The number next to a half is a half, but kernels compute in f32: those for halves are ops of their own.
const ElementwiseOp& kernel_op(const ElementwiseOp& op, DType common) {
  if (!is_half(common) || op.index != index_of<point::Nextafter>(ElementwiseOps{})) return op;
  return point_op(common == f16 ? index_of<point::NextF16>(ElementwiseOps{})
                                : index_of<point::NextBf16>(ElementwiseOps{}));
}

void run(const ElementwiseOp& op, std::span<const Operand> x, DType common, const Tensor& out) {
  ElementwiseCall call{&kernel_op(op, common), 0, traits(common).compute, arg(out), {}, int(x.size())};
  MemoryWatch* const watch = memory_watch;  // looked up once: what is a thread's own may cost a call
  for (size_t i = 0; i < x.size(); ++i) {
    // Field by field: copying a whole Arg just written stalls on its half-written words.
    Arg& a = call.in[i];
    const Tensor* t = x[i].tensor;
    if (!t) {
      a.dtype = f64;
      a.scalar = x[i].scalar;
      continue;
    }
    if (watch) [[unlikely]]
      watch->read(*t);
    a.dtype = t->impl().dtype;
    a.layout = &layout(*t);
    a.data = address(*t);
  }
  backend(out.impl().storage->device).elementwise(call);
}

// A user's op on a device that has no kernel of it: its formula as an expression of tensors.
Tensor composed_elementwise(const ElementwiseOp& op, std::span<const Operand> x, const Inferred& r) {
  std::vector<TensorExpr> terms;
  for (const Operand& o : x) terms.push_back(o.tensor ? TensorExpr(*o.tensor) : term_of(o.scalar));
  const TensorExpr y = op.lift(terms.data());
  return y.constant() ? full(r.shape, y.value(), {r.result, r.device}) : y.tensor();
}

// u64 and signed integers meet in no integer dtype; where the signed one is not negative, u64 holds both.
Tensor equal_elements(const Tensor& a, const Tensor& b) {
  if (a.dtype() == u64 && traits(b.dtype()).kind == Kind::signed_int) return logical_and(b >= 0, a == b.to(u64));
  if (b.dtype() == u64 && traits(a.dtype()).kind == Kind::signed_int) return equal_elements(b, a);
  return a == b;
}

// |a - b| of integers as f64: 64 bits without a sign hold it.
Tensor distance(const Tensor& a, const Tensor& b) {
  const auto is_signed = [](const Tensor& t) { return traits(t.dtype()).kind == Kind::signed_int; };
  if (a.dtype() == u64 && is_signed(b)) return where(b < 0, a.to(f64) - b.to(f64), distance(a, b.to(u64)));
  if (b.dtype() == u64 && is_signed(a)) return distance(b, a);
  const DType wide = a.dtype() == u64 || b.dtype() == u64 ? u64 : i64;
  const Tensor x = a.to(wide), y = b.to(wide);
  return where(x > y, x - y, y - x).to(u64).to(f64);
}

Tensor scaled(const Tensor& x, double value, const char* op) {
  return value == 1 ? x : x * factor_for(value, x.dtype(), op);
}

// The number that b is multiplied by in a + alpha * b, of the kind that a and b make together.
Scalar alpha_for(const Scalar& alpha, const Operand& a, const Operand& b, const char* op) {
  const Operand both[] = {a, b};
  const DType dtype = result_type(both, op);
  require_storable(alpha, dtype, op);
  if (dtype == boolean) return alpha.as<bool>();
  return is_floating(dtype) ? Scalar(alpha.as<double>()) : Scalar(alpha.as<int64_t>());
}
// factor * b; of two numbers a number, which is weak in promotion.
Operand product(const Operand& b, const Scalar& factor, Tensor& made) {
  if (b.tensor) return made = mul(b, factor);
  return Scalar(int64_t(b.scalar.as<uint64_t>() * factor.as<uint64_t>()));
}

const ElementwiseOp& muladd_op() { return point_op(index_of<point::MulAdd>(ElementwiseOps{})); }

const Operand& only(const std::optional<Operand>& a, const std::optional<Operand>& b, const char* op) {
  require(a || b, ErrorKind::argument, op, "needs a bound, min or max");
  return a ? *a : *b;
}

void check_three(const Tensor& x, const Tensor& a, const Tensor& b, const char* op) {
  common_device(x, a, op), common_device(x, b, op);
  broadcast_shapes(x.shape(), broadcast_shapes(a.shape(), b.shape(), op), op);
}

// The op with its operands cast as Autocast wants.
Tensor map_cast(const ElementwiseOp& op, std::span<const Operand> x) {
  const CastScope cast(point_casts[size_t(op.index)], x);
  std::vector<Operand> operands;
  for (const Operand& o : x) operands.push_back(cast(o));
  return detail::map(op, operands);
}
}  // namespace

DType result_type(std::span<const Operand> operands, const char* op) {
  std::optional<DType> tensors;
  Kind scalars = Kind::boolean;
  for (const Operand& o : operands) {
    if (!o.tensor) {
      scalars = std::max(scalars, o.scalar.kind());
      continue;
    }
    const DType dtype = o.tensor->checked(op).impl().dtype;
    tensors = tensors ? promote(*tensors, dtype) : dtype;
  }
  const bool whole = scalars == Kind::signed_int || scalars == Kind::unsigned_int;
  if (!tensors) return scalars == Kind::floating ? default_dtype() : whole ? i64 : boolean;
  if (scalars == Kind::floating && !is_floating(*tensors)) return default_dtype();
  if (whole && *tensors == boolean) return i64;
  return *tensors;
}

Tensor detail::map(const ElementwiseOp& op, std::span<const Operand> x) {
  if (autocasting() && op.index >= 0 && point_casts[size_t(op.index)] != Cast::as_given) return map_cast(op, x);
  const Inferred r = infer(op, x);
  if (op.index < 0 && !offered(r.device, op)) return composed_elementwise(op, x, r);
  const IntrusivePtr<Node> node = needs_node(op, x, r) ? make_node(op, x, r) : IntrusivePtr<Node>();
  const Tensor* recycled = node ? nullptr : reusable(x, r);
  const Layout* like = recycled ? nullptr : common_layout(x, r.shape);
  Tensor y = recycled ? *recycled
             : like   ? allocate_like(*like, r.result, r.device, op.name)
                      : allocate(r.shape, r.result, r.device, op.name);
  run(op, x, r.common, y);
  if (recycled) *const_cast<Tensor*>(recycled) = Tensor();  // it is a temporary: the result is now the only owner
  if (node) {
    attach(node, std::span(&y, 1));
    finish_node(node, y);
  }
  return y;
}

bool overlaps(const Tensor& self, const Tensor& x) {
  if (!same_memory(self, x) || layout(self) == layout(x)) return false;
  const Extent a = extent(layout(self)), b = extent(layout(x));
  return a.begin < b.end && b.begin < a.end;
}

Tensor& map_in_place(const ElementwiseOp& op, Tensor& self, std::initializer_list<Operand> rest) {
  Operand operands[ElementwiseOp::max_arity] = {self, self, self};
  std::copy(rest.begin(), rest.end(), operands + 1);
  return map_into(self, op, std::span(operands, rest.size() + 1));
}

Tensor& map_into(Tensor& self, const ElementwiseOp& op, std::span<Operand> operands) {
  self.checked(op.name);
  Tensor copies[ElementwiseOp::max_arity];
  const Inferred r = infer(op, operands);
  require(r.shape == self.shape(), ErrorKind::shape, op.name, "in place: the result has shape ", r.shape,
          ", the tensor ", self);
  require_fitting(r.result, self.dtype(), op.name);
  require_writable(self, op.name);
  for (size_t i = 0; i < operands.size(); ++i)
    if (const Tensor* x = operands[i].tensor; x && x != &self && overlaps(self, *x))
      operands[i] = copies[i] = x->clone();
  const Inferred stored{r.shape, r.common, self.dtype(), r.device};
  const bool recorded = needs_node(op, operands, stored);
  if (recorded && r.common != self.dtype()) {  // gradients of wider operands need the result as it was computed
    const AutocastScope exact({});
    for (size_t i = 0; i < operands.size(); ++i)
      if (const Tensor* x = operands[i].tensor; x && same_memory(self, *x)) operands[i] = copies[i] = x->clone();
    return self.copy_(detail::map(op, operands));
  }
  const IntrusivePtr<Node> node = recorded ? make_node(op, operands, stored, &self) : IntrusivePtr<Node>();
  run(op, operands, r.common, self);
  bump_version(self);
  if (node) {
    rewrite_history(self, node);
    finish_node(node, self);
  }
  return self;
}

Tensor operator+(const Operand& a, const Operand& b) { return add(a, b); }
Tensor operator-(const Operand& a, const Operand& b) { return sub(a, b); }
Tensor operator*(const Operand& a, const Operand& b) { return mul(a, b); }
Tensor operator/(const Operand& a, const Operand& b) { return div(a, b); }
Tensor operator%(const Operand& a, const Operand& b) { return remainder(a, b); }
Tensor operator-(const Tensor& x) { return neg(x); }
Tensor operator==(const Operand& a, const Operand& b) { return eq(a, b); }
Tensor operator!=(const Operand& a, const Operand& b) { return ne(a, b); }
Tensor operator<(const Operand& a, const Operand& b) { return lt(a, b); }
Tensor operator<=(const Operand& a, const Operand& b) { return le(a, b); }
Tensor operator>(const Operand& a, const Operand& b) { return gt(a, b); }
Tensor operator>=(const Operand& a, const Operand& b) { return ge(a, b); }
Tensor operator&(const Operand& a, const Operand& b) { return bitwise_and(a, b); }
Tensor operator|(const Operand& a, const Operand& b) { return bitwise_or(a, b); }
Tensor operator^(const Operand& a, const Operand& b) { return bitwise_xor(a, b); }
Tensor operator<<(const Operand& a, const Operand& b) { return bitwise_left_shift(a, b); }
Tensor operator>>(const Operand& a, const Operand& b) { return bitwise_right_shift(a, b); }
Tensor operator~(const Tensor& x) { return bitwise_not(x); }
Tensor operator!(const Tensor& x) { return logical_not(x); }

Tensor& Tensor::operator+=(const Operand& other) & { return add_(other); }
Tensor& Tensor::operator-=(const Operand& other) & { return sub_(other); }
Tensor& Tensor::operator*=(const Operand& other) & { return mul_(other); }
Tensor& Tensor::operator/=(const Operand& other) & { return div_(other); }
Tensor& Tensor::operator%=(const Operand& other) & { return remainder_(other); }
Tensor& Tensor::operator&=(const Operand& other) & { return bitwise_and_(other); }
Tensor& Tensor::operator|=(const Operand& other) & { return bitwise_or_(other); }
Tensor& Tensor::operator^=(const Operand& other) & { return bitwise_xor_(other); }
Tensor& Tensor::operator<<=(const Operand& other) & { return bitwise_left_shift_(other); }
Tensor& Tensor::operator>>=(const Operand& other) & { return bitwise_right_shift_(other); }

Tensor add(const Operand& a, const Operand& b, Scalar alpha) {
  const Scalar k = alpha_for(alpha, a, b, "add");
  return blamed_on("add", [&] { return k.kind() == Kind::boolean ? add(a, mul(b, k)) : muladd(b, k, a); });
}
Tensor sub(const Operand& a, const Operand& b, Scalar alpha) {
  const Scalar k = alpha_for(alpha, a, b, "sub");
  Tensor made;  // integers without a sign have no negative alpha: there a product is subtracted
  return blamed_on("sub",
                   [&] { return k.is_floating() ? muladd(b, -k.as<double>(), a) : sub(a, product(b, k, made)); });
}
Tensor& Tensor::add_(const Operand& other, Scalar alpha) & {
  const Scalar k = alpha_for(alpha, *this, other, "add_");
  Operand operands[] = {other, k, *this};
  return blamed_on("add_", [&]() -> Tensor& {
    return k.kind() == Kind::boolean ? add_(volta::mul(other, k)) : map_into(*this, muladd_op(), operands);
  });
}
Tensor& Tensor::sub_(const Operand& other, Scalar alpha) & {
  const Scalar k = alpha_for(alpha, *this, other, "sub_");
  Tensor made;
  return blamed_on("sub_", [&]() -> Tensor& {
    return k.is_floating() ? add_(other, -k.as<double>()) : sub_(product(other, k, made));
  });
}

Tensor clamp(const Operand& x, const Operand& min) {
  return blamed_on("clamp", [&] { return clamp_min(x, min); });
}
Tensor clamp(const Operand& x, const Bounds& bounds) {
  if (bounds.min && bounds.max) return clamp(x, *bounds.min, *bounds.max);
  const Operand& bound = only(bounds.min, bounds.max, "clamp");
  return blamed_on("clamp", [&] { return bounds.min ? clamp_min(x, bound) : clamp_max(x, bound); });
}
Tensor& Tensor::clamp_(const Operand& min) & {
  return blamed_on("clamp_", [&]() -> Tensor& { return clamp_min_(min); });
}
Tensor& Tensor::clamp_(const Bounds& bounds) & {
  if (bounds.min && bounds.max) return clamp_(*bounds.min, *bounds.max);
  const Operand& bound = only(bounds.min, bounds.max, "clamp_");
  return blamed_on("clamp_", [&]() -> Tensor& { return bounds.min ? clamp_min_(bound) : clamp_max_(bound); });
}

Tensor clip(const Tensor& x, const Operand& min, const Operand& max) {
  return blamed_on("clip", [&] { return clamp(x, min, max); });
}
Tensor clip(const Tensor& x, const Operand& min) {
  return blamed_on("clip", [&] { return clamp(x, min); });
}
Tensor clip(const Tensor& x, const Bounds& bounds) {
  return blamed_on("clip", [&] { return clamp(x, bounds); });
}

Tensor max(const Tensor& x, const Tensor& other) {
  return blamed_on("max", [&] { return maximum(x, other); });
}
Tensor min(const Tensor& x, const Tensor& other) {
  return blamed_on("min", [&] { return minimum(x, other); });
}

Tensor Plain::polygamma(int64_t n, const Tensor& x) {
  // Beyond 170, factorials overflow.
  require(n >= 0 && n <= 170, ErrorKind::argument, "polygamma", "the order ", n, " is not between 0 and 170");
  if (n <= 2) return blamed_on("polygamma", [&] { return n == 0 ? digamma(x) : n == 1 ? trigamma(x) : polygamma2(x); });
  const Operand operands[] = {x, n};
  return detail::map(point_op(index_of<point::Polygamma>(ElementwiseOps{})), operands);
}

namespace {

// value * a in what all three make together, halves in f32: what the factor makes small need not fit before.
Tensor scaled_of_three(const Tensor& x, const Tensor& a, const Tensor& b, double value, const char* op) {
  check_three(x, a, b, op);
  const Operand all[] = {a, b, x};
  const DType dtype = result_type(all, op);
  require(dtype != boolean, ErrorKind::dtype, op, "is not defined for booleans");
  return value == 1 ? a : scaled(a.to(traits(dtype).compute), value, op);
}

}  // namespace

Tensor addcmul(const Tensor& x, const Tensor& a, const Tensor& b, double value) {
  const Tensor factor = scaled_of_three(x, a, b, value, "addcmul");
  const Operand all[] = {a, b, x};
  return blamed_on("addcmul", [&] { return muladd(factor, b, x).to(result_type(all, "addcmul")); });
}
Tensor& Tensor::addcmul_(const Tensor& a, const Tensor& b, double value) & {
  const Tensor factor = scaled_of_three(*this, a, b, value, "addcmul_");
  Operand operands[] = {factor, b, *this};
  return blamed_on("addcmul_", [&]() -> Tensor& { return map_into(*this, muladd_op(), operands); });
}

namespace {
// Halves, whose quotients need not fit a half before the factor.
bool divides_halves(const Tensor& x, const Tensor& a, const Tensor& b, const char* op) {
  check_three(x, a, b, op);
  return is_half(promote(a.dtype(), b.dtype())) && is_half(promote(x.dtype(), promote(a.dtype(), b.dtype())));
}

// value * a / b
Tensor scaled_quotient(const Tensor& a, const Tensor& b, double value, bool halves, const char* op) {
  return blamed_on(op, [&] { return halves ? a.to(f32) / b.to(f32) * value : scaled(a / b, value, op); });
}
}  // namespace

Tensor addcdiv(const Tensor& x, const Tensor& a, const Tensor& b, double value) {
  const bool halves = divides_halves(x, a, b, "addcdiv");
  const Tensor y = blamed_on("addcdiv", [&] { return x + scaled_quotient(a, b, value, halves, "addcdiv"); });
  return halves ? y.to(promote(x.dtype(), promote(a.dtype(), b.dtype()))) : y;
}
Tensor& Tensor::addcdiv_(const Tensor& a, const Tensor& b, double value) & {
  const Tensor quotient = scaled_quotient(a, b, value, divides_halves(*this, a, b, "addcdiv_"), "addcdiv_");
  return blamed_on("addcdiv_", [&]() -> Tensor& { return add_(quotient); });
}

Tensor nan_to_num(const Tensor& x, double nan, std::optional<double> posinf, std::optional<double> neginf) {
  if (!is_floating(x.checked("nan_to_num").dtype())) return x.clone();
  const double most = largest_finite(x.dtype());
  const Tensor finite = where(x == INFINITY, posinf.value_or(most), where(x == -INFINITY, neginf.value_or(-most), x));
  return where(isnan(x), nan, finite);
}

Tensor float_power(const Operand& x, const Operand& exponent) {
  const char* op = "float_power";
  require(x.tensor || exponent.tensor, ErrorKind::argument, op, "needs a tensor");
  return blamed_on(op, [&] {
    const auto wide = [&](const Operand& o) { return o.tensor ? o.tensor->checked(op).to(f64) : Tensor(); };
    const Tensor a = wide(x), b = wide(exponent);
    return pow(x.tensor ? Operand(a) : x, exponent.tensor ? Operand(b) : exponent);
  });
}

namespace {
Tensor is_infinite(const Tensor& x, double infinity, const char* op) {
  const bool holds_it = is_floating(x.checked(op).dtype());
  return blamed_on(op, [&] { return holds_it ? x == infinity : zeros(x.shape(), {boolean, x.device()}); });
}
}  // namespace
Tensor isposinf(const Tensor& x) { return is_infinite(x, INFINITY, "isposinf"); }
Tensor isneginf(const Tensor& x) { return is_infinite(x, -INFINITY, "isneginf"); }

bool is_nonzero(const Tensor& x) { return read_for<bool>("is_nonzero", x); }

Tensor isclose(const Tensor& x, const Tensor& other, const CloseOptions& options) {
  const char* op = "isclose";
  require(options.rtol >= 0 && options.atol >= 0, ErrorKind::argument, op, "rtol and atol must not be negative");
  common_device(x, other, op);
  broadcast_shapes(x.shape(), other.shape(), op);
  const NoGrad off;
  const DType common = promote(x.dtype(), other.dtype());
  const DType compute = common == f64 || !is_floating(common) ? f64 : f32;
  const Tensor a = x.to(compute), b = other.to(compute);
  const bool whole = !is_floating(x.dtype()) && !is_floating(other.dtype());
  const Tensor apart = whole ? distance(x, other) : (a - b).abs();
  const Tensor near = logical_and(isfinite(b), apart <= b.abs() * options.rtol + options.atol);
  const Tensor close = logical_or(equal_elements(x, other), near);
  return options.equal_nan ? logical_or(close, logical_and(isnan(a), isnan(b))) : close;
}

bool allclose(const Tensor& x, const Tensor& other, const CloseOptions& options) {
  common_device(x, other, "allclose");
  require(x.shape() == other.shape(), ErrorKind::shape, "allclose", "shapes ", x, " and ", other, " differ");
  return read_for<bool>("allclose", isclose(x, other, options).all());
}

bool equal(const Tensor& x, const Tensor& other) {
  common_device(x, other, "equal");
  if (x.shape() != other.shape()) return false;
  const NoGrad off;
  return read_for<bool>("equal", equal_elements(x, other).all());
}

}  // namespace volta
