// Multi-head attention, its cache, and layers of positions.
#include <cmath>
#include <limits>

#include <volta/create.h>
#include <volta/nn/attention.h>
#include <volta/nn/dropout.h>
#include <volta/nn/init.h>
#include <volta/nn/reflect.h>
#include <volta/ops.h>

#include "core/arguments.h"
#include "graph/record.h"
#include "nn/cache.h"
#include "ops/attention.h"
#include "ops/check.h"

namespace volta::nn {

SinusoidalPositions::SinusoidalPositions(Int w, bool first, double b)
    : Layer("SinusoidalPositions"),
      width(positive(w, "SinusoidalPositions", "width")),
      batch_first(first),
      base(above_zero(b, "SinusoidalPositions", "base")) {}
Tensor SinusoidalPositions::operator()(const Tensor& x) const {
  return call(x, [&](const Tensor& in) {
    require(in.checked(type()).dim() >= 2 && in.size(-1) == width, ErrorKind::shape, type(), "shape ", in,
            " for width ", width);
    const bool inner = batch_first || in.dim() == 2;
    const Tensor p = sinusoidal_positions(in.size(inner ? -2 : -3), width, base, {in.dtype(), in.device()});
    return in + (inner ? p : p.unsqueeze(1));
  });
}
Tensor RotaryPositions::operator()(const Tensor& x, int64_t offset) const {
  return call(x, [&](const Tensor& in) {
    return rotary_positions(in, {options.offset + offset, options.base, options.interleaved});
  });
}

KeyValueCache::KeyValueCache(const KeyValueCache& other) : size_(other.size_) {
  if (size_ == 0) return;
  const NoGrad off;
  k_ = other.k_.clone(), v_ = other.v_.clone();
}
KeyValueCache& KeyValueCache::operator=(KeyValueCache other) noexcept {
  k_ = std::move(other.k_), v_ = std::move(other.v_), size_ = other.size_;
  return *this;
}

std::pair<Tensor, Tensor> KeyValueCache::append(const Tensor& k, const Tensor& v) {
  const char* op = "KeyValueCache";
  require(k.checked(op).dim() == 4 && v.checked(op).dim() == 4 && k.size(2) == v.size(2), ErrorKind::shape, op, "k ", k,
          ", v ", v, ": needs [batch, heads, time, width]");
  require(!any_needs_grad(k, v), ErrorKind::autograd, op, "is for decoding without gradients; use NoGrad");
  const auto fits = [](const Tensor& held, const Tensor& x) {
    return held.size(0) == x.size(0) && held.size(1) == x.size(1) && held.size(3) == x.size(3) &&
           held.dtype() == x.dtype() && held.device() == x.device();
  };
  require(size_ == 0 || (fits(k_, k) && fits(v_, v)), ErrorKind::shape, op, "k ", k, ", v ", v, " do not continue k ",
          k_, ", v ", v_, "; clear() it first");
  const NoGrad off;
  const int64_t wanted = size_ + k.size(2);
  const auto add = [&](Tensor& held, const Tensor& x) {
    if (size_ == 0 || held.size(2) < wanted) {  // room doubles, so that a step costs its own copy
      Shape shape = x.shape();
      shape[2] = std::max(2 * size_, wanted);
      const Tensor old = held;
      held = empty(shape, {x.dtype(), x.device()});
      if (size_ > 0) held.narrow(2, 0, size_).copy_(old.narrow(2, 0, size_));
    }
    held.narrow(2, size_, x.size(2)).copy_(x);
    return held.narrow(2, 0, wanted);
  };
  const Tensor all_k = add(k_, k), all_v = add(v_, v);
  size_ = wanted;
  return {all_k, all_v};
}

MultiheadAttention::MultiheadAttention(Int width, Int heads, const MultiheadOptions& o)
    : Layer("MultiheadAttention"),
      out_proj(blamed_on("MultiheadAttention",
                         [&] {
                           positive(width, "MultiheadAttention", "embed_dim");
                           return Linear(width, width, {.bias = o.bias});
                         })),
      embed_dim(width),
      num_heads(positive(heads, type(), "num_heads")),
      num_kv_heads(positive(o.num_kv_heads.value_or(heads), type(), "num_kv_heads")),
      head_dim(width / heads),
      options(o) {
  require(width % heads == 0 && heads % num_kv_heads == 0, ErrorKind::argument, type(), heads, " heads do not divide ",
          width, " features, or ", num_kv_heads, " key heads not the heads");
  probability(o.dropout, type(), "dropout");
  positive(o.kdim.value_or(1), type(), "kdim"), positive(o.vdim.value_or(1), type(), "vdim");
  const int64_t kdim = o.kdim.value_or(width), vdim = o.vdim.value_or(width), few = num_kv_heads * head_dim;
  if (kdim == width && vdim == width && few == width) {
    in_proj_weight = blamed_on(type(), [&] { return empty({3 * width, width}); });
    init::xavier_uniform_(in_proj_weight);
  } else {
    blamed_on(type(), [&] {
      q_proj_weight = empty({width, width}), k_proj_weight = empty({few, kdim}), v_proj_weight = empty({few, vdim});
    });
    for (Parameter* w : {&q_proj_weight, &k_proj_weight, &v_proj_weight}) init::xavier_uniform_(*w);
  }
  if (o.bias) in_proj_bias = zeros({width + 2 * few}), init::zeros_(out_proj.bias);
  if (!o.add_bias_kv) return;
  bias_k = empty({1, 1, few}), bias_v = empty({1, 1, few});
  init::xavier_normal_(bias_k), init::xavier_normal_(bias_v);
}

void MultiheadAttention::fields(Fields& f) {
  f("in_proj_weight", in_proj_weight), f("q_proj_weight", q_proj_weight), f("k_proj_weight", k_proj_weight);
  f("v_proj_weight", v_proj_weight), f("in_proj_bias", in_proj_bias), f("bias_k", bias_k), f("bias_v", bias_v);
  f("out_proj", out_proj);
}

double MultiheadAttention::flops(const Tensor& query, const Tensor&) const {
  double matrices = 0;
  for (const Parameter* m : {&in_proj_weight, &q_proj_weight, &k_proj_weight, &v_proj_weight})
    matrices += m->defined() ? double(m->numel()) : 0;
  const double rows = double(query.numel()) / double(embed_dim);
  const double keys = double(query.size(query.dim() == 3 && options.batch_first ? 1 : 0));
  return 2 * rows * (matrices + 2 * keys * double(embed_dim));
}

// [batch, time, width] of queries, keys and values to [batch, heads, time, head_dim].
MultiheadAttention::Heads MultiheadAttention::project(const Tensor& q, const Tensor& k, const Tensor& v) const {
  const auto heads = [&](const Tensor& x, int64_t n) { return x.unflatten(-1, {n, head_dim}).transpose(1, 2); };
  const bool joint = in_proj_weight.defined();
  if (joint && q.impl_pointer() == k.impl_pointer() && k.impl_pointer() == v.impl_pointer()) {
    const Tensor all = linear(q, in_proj_weight, in_proj_bias).unflatten(-1, {3, num_heads, head_dim});
    const auto parts = all.permute({2, 0, 3, 1, 4}).unbind();
    return {parts[0], parts[1], parts[2]};
  }
  const int64_t sizes[] = {embed_dim, num_kv_heads * head_dim, num_kv_heads * head_dim};
  const Tensor inputs[] = {q, k, v}, own[] = {q_proj_weight, k_proj_weight, v_proj_weight};
  Tensor results[3];
  int64_t at = 0;
  for (int i = 0; i < 3; at += sizes[i++]) {
    const Tensor w = joint ? in_proj_weight.narrow(0, at, sizes[i]) : own[i];
    const Tensor b = in_proj_bias.defined() ? in_proj_bias.narrow(0, at, sizes[i]) : Tensor();
    results[i] = heads(linear(inputs[i], w, b), sizes[i] / head_dim);
  }
  return {results[0], results[1], results[2]};
}

// All masks as one that is added or true where a key is seen, broadcasting to [batch, heads, queries, keys].
Tensor MultiheadAttention::mask_of(const MultiheadInput& in, const Heads& h, int64_t past) const {
  const int64_t batch = h.q.size(0), queries = h.q.size(2), keys = h.k.size(2),
                given = keys - options.add_bias_kv - options.add_zero_attn;
  Tensor seen, bias;
  const auto add = [&](Tensor mask) {
    if (given < keys) mask = pad(mask, {0, keys - given});
    if (mask.dtype() == boolean) seen = seen.defined() ? seen & ~mask : ~mask;
    else bias = bias.defined() ? bias + mask : mask;
  };
  const auto check = [&](bool fine, const Tensor& mask, const char* name, const Shape& wanted) {
    require(fine, ErrorKind::shape, type(), name, " has shape ", mask, ", not ", wanted);
    require(mask.dtype() == boolean || is_floating(mask.dtype()), ErrorKind::dtype, type(), name,
            " must be boolean or floating, got ", mask.dtype());
  };
  if (const Tensor& m = in.attn_mask; m.defined()) {
    const bool each = m.dim() == 3;
    check(m.shape() == Shape{queries, given} || m.shape() == Shape{batch * num_heads, queries, given}, m, "attn_mask",
          {queries, given});
    add(each ? m.unflatten(0, {batch, num_heads}) : m);
  }
  if (const Tensor& m = in.key_padding_mask; m.defined()) {
    check(m.shape() == Shape{batch, given}, m, "key_padding_mask", {batch, given});
    add(m.unsqueeze(1).unsqueeze(1));
  }
  if (in.is_causal && past + 1 < given && (past > 0 || given < keys))
    add(~tri(queries, given, past, {boolean, h.q.device()}));
  if (!bias.defined()) return seen;
  return seen.defined() ? where(seen, bias, -std::numeric_limits<double>::infinity()) : bias;
}

MultiheadOutput MultiheadAttention::run(const Tensor& q, const Tensor& k, const Tensor& v,
                                        const MultiheadInput& in) const {
  Heads h = project(q, k, v);
  const int64_t past = in.cache ? in.cache->size() : 0, batch = q.size(0);
  if (in.cache) std::tie(h.k, h.v) = in.cache->append(h.k, h.v);
  if (bias_k.defined()) {
    const auto with = [&](const Tensor& x, const Tensor& b) {
      return cat({x, b.unflatten(-1, {num_kv_heads, head_dim}).transpose(1, 2).expand({batch, -1, -1, -1})}, 2);
    };
    h.k = with(h.k, bias_k), h.v = with(h.v, bias_v);
  }
  if (options.add_zero_attn) h.k = pad(h.k, {0, 0, 0, 1}), h.v = pad(h.v, {0, 0, 0, 1});
  const Tensor mask = mask_of(in, h, past);
  const bool causal = in.is_causal && past == 0 && !bias_k.defined() && !options.add_zero_attn;
  const double drop = training ? options.dropout : 0;
  MultiheadOutput result;
  Tensor y;
  if (!in.need_weights) {
    y = scaled_dot_product_attention(h.q, h.k, h.v, {mask, drop, causal, {}, num_kv_heads < num_heads});
  } else {
    const int64_t group = num_heads / num_kv_heads;
    const auto every = [&](const Tensor& x) { return group > 1 ? x.repeat_interleave(group, 1) : x; };
    const double hidden = -std::numeric_limits<double>::infinity();
    Tensor s = matmul(h.q * (1 / std::sqrt(double(head_dim))), every(h.k).mT());
    if (mask.defined()) s = mask.dtype() == boolean ? where(mask, s, hidden) : s + mask;
    if (causal) s = where(tri(s.size(2), s.size(3), 0, {boolean, s.device()}), s, hidden);
    const Tensor weights = dropout(masked_softmax(s), options.dropout, training);
    result.weights = in.average_attn_weights ? weights.mean(1) : weights;
    y = matmul(weights, every(h.v));
  }
  result.output = out_proj(y.transpose(1, 2).flatten(2));
  return result;
}

MultiheadOutput MultiheadAttention::operator()(const Tensor& query, const Tensor& key, const Tensor& value,
                                               const MultiheadInput& input) const {
  return call(query, [&](const Tensor& q) {
    const int64_t rank = q.checked(type()).dim();
    require((rank == 2 || rank == 3) && key.checked(type()).dim() == rank && value.checked(type()).dim() == rank &&
                q.size(-1) == embed_dim && key.size(-1) == options.kdim.value_or(embed_dim) &&
                value.size(-1) == options.vdim.value_or(embed_dim),
            ErrorKind::shape, type(), "query ", q, ", key ", key, ", value ", value, " for widths ", embed_dim, ", ",
            options.kdim.value_or(embed_dim), ", ", options.vdim.value_or(embed_dim));
    const bool turned = rank == 3 && !options.batch_first;
    const auto inner = [&](const Tensor& x) { return turned ? x.transpose(0, 1) : rank == 2 ? x.unsqueeze(0) : x; };
    // One tensor in all three places stays one.
    const Tensor a = inner(q), b = key.impl_pointer() == q.impl_pointer() ? a : inner(key);
    const Tensor c = value.impl_pointer() == key.impl_pointer() ? b : inner(value);
    require(a.size(0) == b.size(0) && a.size(0) == c.size(0) && b.size(1) == c.size(1), ErrorKind::shape, type(),
            "query ", q, ", key ", key, ", value ", value, ": batches or the times of key and value differ");
    MultiheadInput in = input;
    if (rank == 2 && in.key_padding_mask.defined()) in.key_padding_mask = in.key_padding_mask.unsqueeze(0);
    MultiheadOutput y = all_or_nothing(one(in.cache), [&] { return run(a, b, c, in); });
    if (turned) y.output = y.output.transpose(0, 1);
    if (rank != 2) return y;
    return MultiheadOutput{y.output.squeeze(0), y.weights.defined() ? y.weights.squeeze(0) : y.weights};
  });
}

}  // namespace volta::nn
