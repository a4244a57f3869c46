// Scaled dot-product attention: checks, the composed form, and the fused loop with its gradient.
#include <cmath>
#include <limits>

#include <volta/create.h>
#include <volta/ops.h>
#include <volta/plain.h>
#include <volta/random.h>

#include "backend/attention.h"
#include "core/arguments.h"
#include "core/room.h"
#include "graph/composed.h"
#include "ops/attention.h"
#include "ops/check.h"
#include "ops/elementwise.h"
#include "ops/fused.h"

namespace volta {
namespace {

constexpr const char* op = "scaled_dot_product_attention";

Tensor expanded(const Tensor& x, const Shape& shape) { return x.shape() == shape ? x : x.expand(shape); }

// A call with its operands brought to one rank, and its scores' shape.
struct Attention {
  Tensor q, k, v, mask;
  Shape scores;  // [..., heads, queries, keys]
  bool causal;
  int64_t group;  // query heads to a key head
  double scale, dropout;
  Generator::State random;
};

void check_operands(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& o) {
  const auto fits = [&](bool fine, const auto&... why) {
    require(fine, ErrorKind::shape, op, "q ", q, ", k ", k, ", v ", v, ": ", why...);
  };
  common_device(q.checked(op), k.checked(op), op), common_device(q, v.checked(op), op);
  fits(q.dim() >= 2 && k.dim() >= 2 && v.dim() >= 2, "each needs [..., time, width]");
  fits(q.size(-1) == k.size(-1), "the widths ", q.size(-1), " and ", k.size(-1), " of q and k differ");
  fits(k.size(-2) == v.size(-2), k.size(-2), " keys and ", v.size(-2), " values");
  require(is_floating(q.dtype()) && q.dtype() == k.dtype() && q.dtype() == v.dtype(), ErrorKind::dtype, op,
          "q, k and v need one floating dtype, got ", q.dtype(), ", ", k.dtype(), ", ", v.dtype());
  probability(o.dropout_p, op, "dropout_p");
  if (o.scale) finite(*o.scale, op, "scale");
  if (!o.enable_gqa) return;
  fits(q.dim() >= 3 && q.dim() == k.dim() && q.dim() == v.dim(), "enable_gqa needs [..., heads, time, width]");
  fits(k.size(-3) == v.size(-3) && k.size(-3) > 0 && q.size(-3) % k.size(-3) == 0, q.size(-3),
       " query heads do not divide among ", k.size(-3), " key and ", v.size(-3), " value heads");
}

Shape leading(const Tensor& x, int64_t last) {
  Shape s = x.shape();
  s.resize(int(x.dim() - last));
  return s;
}

Attention plan(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& o) {
  check_operands(q, k, v, o);
  const int64_t own = o.enable_gqa ? 3 : 2;  // axes that do not broadcast
  Shape batch;
  try {
    batch = broadcast_shapes(broadcast_shapes(leading(q, own), leading(k, own), op), leading(v, own), op);
  } catch (const Error&) {
    throw_error(ErrorKind::shape, op, "q ", q, ", k ", k, ", v ", v, ": the batch axes do not broadcast");
  }
  const auto whole = [&](const Tensor& x) {
    Shape s = batch;
    for (int64_t i = -own; i < 0; ++i) s.push_back(x.size(i));
    return expanded(x, s);
  };
  Attention a{whole(q), whole(k), whole(v), o.attn_mask, {}, o.is_causal, 1, 0, o.dropout_p, {}};
  a.scores = joined(leading(a.q, 2), {q.size(-2), k.size(-2)});
  if (o.enable_gqa) a.group = q.size(-3) / k.size(-3);
  a.scale = o.scale.value_or(1 / std::sqrt(double(std::max<int64_t>(1, q.size(-1)))));
  if (!a.mask.defined()) return a;
  common_device(q, a.mask, op);
  require(a.mask.dtype() == boolean || is_floating(a.mask.dtype()), ErrorKind::dtype, op,
          "the mask must be boolean or floating, got ", a.mask.dtype());
  bool fits = a.mask.dim() <= a.scores.size();
  for (int i = 1; fits && i <= a.mask.dim(); ++i)
    fits = a.mask.size(-i) == 1 || a.mask.size(-i) == a.scores[a.scores.size() - i];
  require(fits, ErrorKind::shape, op, "a mask of shape ", a.mask, " does not broadcast to the scores ", a.scores);
  return a;
}

DType compute_type(const Attention& a) { return a.q.dtype() == f64 ? f64 : f32; }

// Key heads as an axis of their own, so that groups of query heads broadcast over it.
Tensor by_group(const Tensor& x, int64_t group) {
  return group == 1 ? x : x.unflatten(-3, {x.size(-3) / group, group});
}

// What each weight is multiplied with by dropout, drawn as the fused loop draws it.
Tensor dropout_factors(const Attention& a, DType dtype) {
  const Tensor u = allocate(a.scores, f32, a.q.device(), op);
  RandomCall call{.kind = Distribution::uniform, .dtype = f32, .seed = a.random.seed, .offset = a.random.offset};
  call.n = u.numel(), call.out = address(u);
  if (call.n > 0) backend(u.device()).random(call);
  return ge(u, a.dropout).to(dtype) * (a.dropout < 1 ? 1 / (1 - a.dropout) : 0);
}

Tensor products(const Attention& a) {
  const DType wide = compute_type(a);
  const bool grouped = a.group > 1;
  const Tensor k = grouped ? a.k.unsqueeze(-3) : a.k, v = grouped ? a.v.unsqueeze(-3) : a.v;
  const double hidden = -std::numeric_limits<double>::infinity();
  Tensor s = matmul(by_group(a.q, a.group).to(wide) * a.scale, k.to(wide).mT());
  if (a.mask.defined()) {
    const Tensor mask = by_group(expanded(a.mask, a.scores), a.group);
    s = mask.dtype() == boolean ? where(mask, s, hidden) : s + mask.to(wide);
  }
  if (a.causal) s = where(tri(s.size(-2), s.size(-1), 0, {boolean, s.device()}), s, hidden);
  Tensor w = a.mask.defined() ? masked_softmax(s) : softmax(s, -1);
  if (a.dropout > 0) w = w * by_group(dropout_factors(a, wide), a.group);
  const Tensor y = matmul(w, v.to(wide)).to(a.q.dtype());
  return grouped ? y.flatten(-4, -3) : y;
}
Tensor composed(const Attention& a) {
  return blamed_on(op, [&] { return products(a); });
}

AttentionCall call_of(const Attention& a, const Layout& mask) {
  AttentionCall call{};
  call.q = arg(a.q), call.k = arg(a.k), call.v = arg(a.v);
  call.scale = a.scale, call.causal = a.causal, call.dropout = a.dropout;
  call.seed = a.random.seed, call.offset = a.random.offset;
  if (a.mask.defined()) reads(a.mask), call.mask = {address(a.mask), &mask, a.mask.dtype(), {}};
  return call;
}
Layout mask_layout(const Attention& a) {
  return a.mask.defined() ? views::expand(layout(a.mask), a.scores, op) : Layout{};
}

// Heads lie inside time in memory if they do so in q: joining them again is then a view.
Tensor allocate_out(const Attention& a) {
  Shape shape = leading(a.q, 1);
  shape.push_back(a.v.size(-1));
  const int head = shape.size() - 3, time = shape.size() - 2;
  if (head < 0 || a.q.stride(head) >= a.q.stride(time)) return allocate(shape, a.q.dtype(), a.q.device(), op);
  std::swap(shape[head], shape[time]);
  return alias(allocate(shape, a.q.dtype(), a.q.device(), op), views::transpose(Layout::contiguous(shape), head, time));
}

// Gradients of q, k and v by the fused loop.
void fused_gradients(const Attention& a, const Tensor& out, const Tensor& logsumexp, const Tensor& g, Gradients& d) {
  const Layout mask = mask_layout(a);
  const DType dtype = a.q.dtype();
  AttentionBackwardCall call{call_of(a, mask), {}, {}, {}, {}};
  call.out = arg(out), call.logsumexp = arg(logsumexp);
  const Tensor dq = allocate(a.q.shape(), compute_type(a), a.q.device(), op);
  const Tensor dk = allocate(a.k.shape(), dtype, a.q.device(), op), dv = allocate(a.v.shape(), dtype, a.q.device(), op);
  call.grad_out = arg(g), call.grad_q = arg(dq), call.grad_k = arg(dk), call.grad_v = arg(dv);
  within_memory(op, [&] { backend(a.q.device()).attention_backward(call); });
  d[0] = dq, d[1] = dk, d[2] = dv;
}

}  // namespace

Tensor masked_softmax(const Tensor& scores) {
  if (scores.size(-1) == 0) return softmax(scores, -1);
  const Tensor hidden = amax(scores.detach(), -1, true) == -std::numeric_limits<double>::infinity();
  return where(hidden, 0, softmax(where(hidden, 0, scores), -1));
}

Tensor Plain::scaled_dot_product_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                                           const AttentionOptions& o) {
  Attention a = plan(q, k, v, o);
  if (a.dropout > 0) a.random = default_generator().take((uint64_t(a.scores.numel()) + 3) / 4);
  if (a.mask.defined() && a.mask.dtype() != boolean) a.mask = a.mask.to(compute_type(a));
  // For one query the products are matrix times vector, which run at the speed of memory.
  if (q.size(-2) == 1 && q.dtype() == compute_type(a)) return composed(a);
  const Layout mask = mask_layout(a);
  AttentionCall call = call_of(a, mask);
  if (!offered(q.device(), call)) return composed(a);
  const Tensor out = allocate_out(a);
  const Tensor logsumexp = allocate(leading(a.q, 1), compute_type(a), q.device(), op);
  call.out = arg(out), call.logsumexp = arg(logsumexp);
  within_memory(op, [&] { backend(q.device()).attention(call); });
  if (!any_needs_grad(a.q, a.k, a.v, a.mask)) return out;
  Attention kept = a;
  kept.q = kept.k = kept.v = kept.mask = {};
  return record(op, out, {a.q, a.k, a.v, a.mask},
                [kept, q = save(a.q), k = save(a.k), v = save(a.v), mask = save(a.mask), y = save_output(out),
                 logsumexp](const Tensor& g, Gradients& d) {
                  Attention again = kept;
                  again.q = d.take(q), again.k = d.take(k), again.v = d.take(v);
                  if (mask) again.mask = d.take(mask);
                  if (!grad_enabled() && !d.needs(3)) return fused_gradients(again, d.take(y), logsumexp, g, d);
                  through_composed({again.q, again.k, again.v, again.mask}, std::span(&g, 1), d,
                                   [&](const std::vector<Tensor>& in) {
                                     again.q = in[0], again.k = in[1], again.v = in[2], again.mask = in[3];
                                     return std::vector{composed(again)};
                                   });
                });
}

}  // namespace volta
