// The multi-head layer with its cache for decoding, and layers of positions.
#pragma once
#include <algorithm>
#include <utility>

#include <volta/nn/linear.h>
#include <volta/ops.h>

namespace volta::nn {

// Keys and values of the steps so far, for decoding without gradients: attn(x, x, x, {.is_causal = true, .cache = &c}).
class KeyValueCache {
 public:
  KeyValueCache() = default;
  KeyValueCache(const KeyValueCache& other);  // the copy goes on alone, as the beams of a search do
  KeyValueCache(KeyValueCache&& other) noexcept
      : k_(std::move(other.k_)), v_(std::move(other.v_)), size_(std::exchange(other.size_, 0)) {}
  KeyValueCache& operator=(KeyValueCache other) noexcept;
  ~KeyValueCache() = default;

  int64_t size() const { return size_; }  // steps held
  void clear() { size_ = 0; }
  // KeyValueCache().truncate(5): keeps the first 5 steps.
  void truncate(int64_t steps) { size_ = std::clamp<int64_t>(steps, 0, size_); }
  // Takes further steps [batch, heads, time, width] and gives all of them.
  std::pair<Tensor, Tensor> append(const Tensor& k, const Tensor& v);

 private:
  Tensor k_, v_;
  int64_t size_ = 0;
};

struct MultiheadOptions {
  double dropout = 0;
  bool bias = true, add_bias_kv = false, add_zero_attn = false;
  std::optional<Int> kdim = {}, vdim = {};
  bool batch_first = false;
  std::optional<Int> num_kv_heads = {};  // fewer heads of keys and values than of queries
};
// Masks as PyTorch's layer takes them: boolean ones are true where a key is NOT seen, floating ones are added.
struct MultiheadInput {
  Tensor key_padding_mask = {};  // [batch, keys]
  Tensor attn_mask = {};         // [queries, keys] or [batch * heads, queries, keys]
  bool is_causal = false, need_weights = false, average_attn_weights = true;
  KeyValueCache* cache = nullptr;
};
struct MultiheadOutput {
  Tensor output, weights;  // weights when asked for: [batch, queries, keys], or of each head
};
// nn::MultiheadAttention attn(512, 8); attn(x, x, x).output. Inputs [time, batch, width], batch first if so made, or
// [time, width].
class MultiheadAttention : public Layer {
 public:
  MultiheadAttention(Int embed_dim, Int num_heads, const MultiheadOptions& options = {});
  MultiheadOutput operator()(const Tensor& query, const Tensor& key, const Tensor& value,
                             const MultiheadInput& input = {}) const;
  void fields(Fields& f) override;
  double flops(const Tensor& query, const Tensor& y) const override;  // with as many keys, without out_proj's own

  Parameter in_proj_weight, q_proj_weight, k_proj_weight, v_proj_weight, in_proj_bias, bias_k, bias_v;
  Linear out_proj;
  int64_t embed_dim, num_heads, num_kv_heads, head_dim;
  MultiheadOptions options;

 private:
  struct Heads {
    Tensor q, k, v;
  };
  Heads project(const Tensor& q, const Tensor& k, const Tensor& v) const;
  MultiheadOutput run(const Tensor& q, const Tensor& k, const Tensor& v, const MultiheadInput& input) const;
  Tensor mask_of(const MultiheadInput& input, const Heads& h, int64_t past) const;
};

// Adds sinusoidal positions to [batch, time, width], or [time, batch, width]: nn::SinusoidalPositions(512)(x).
class SinusoidalPositions : public Layer {
 public:
  explicit SinusoidalPositions(Int width, bool batch_first = true, double base = 10000);
  Tensor operator()(const Tensor& x) const;
  void fields(Fields&) override {}
  int64_t width;
  bool batch_first;
  double base;
};
// nn::RotaryPositions rope; q = rope(q), k = rope(k).
class RotaryPositions : public Layer {
 public:
  explicit RotaryPositions(const RotaryOptions& o = {}) : Layer("RotaryPositions"), options(o) {}
  Tensor operator()(const Tensor& x, int64_t offset = 0) const;
  void fields(Fields&) override {}
  RotaryOptions options;
};

}  // namespace volta::nn
