// Attention: the fused loop against ordinary ops in every option, gradients of both orders, memory, threads, errors.
#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include <volta/volta.h>

#include "samples.h"

namespace volta::test {
namespace {

using Tensors = std::vector<Tensor>;

// softmax(q k^T scale + mask) v by ordinary ops in f64.
Tensor reference(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& o) {
  const int64_t group = o.enable_gqa ? q.size(-3) / k.size(-3) : 1;
  const auto every = [&](const Tensor& x) { return group > 1 ? x.repeat_interleave(group, -3) : x; };
  Tensor s = matmul(q, every(k).mT()) * o.scale.value_or(1 / std::sqrt(double(q.size(-1))));
  const Tensor& mask = o.attn_mask;
  if (mask.defined()) s = mask.dtype() == boolean ? where(mask, s, -INFINITY) : s + mask;
  if (o.is_causal) s = where(tri(s.size(-2), s.size(-1), 0, {boolean, s.device()}), s, -INFINITY);
  const Tensor hidden = s.amax(-1, true) == -INFINITY;
  return matmul(where(hidden, 0, softmax(where(hidden, 0, s), -1)), every(v));
}

struct Problem {
  Tensors qkv;
  AttentionOptions options;
};

int64_t between(int64_t low, int64_t high) { return randint(low, high + 1, {}).item<int64_t>(); }

// Permuted, transposed and stepped operands among contiguous ones; every kind of mask.
Problem draw_problem(int number, Device device) {
  const int64_t batch = between(1, 3), few = between(1, 2), group = between(1, 3), queries = between(1, 130),
                keys = number % 2 ? queries : between(1, 230);
  // Every other time as devices like it: values as wide as keys, by eights.
  const int64_t width = number / 2 % 2 ? 8 * between(1, 16) : between(1, 40);
  const int64_t values = number / 2 % 2 ? width : between(1, 40);
  const Options o{f64, device};
  Problem p;
  Tensor q = randn({batch, group * few, queries, width}, o), k = randn({batch, few, keys, width}, o),
         v = randn({batch, few, keys, values}, o);
  if (number % 3 == 1) q = randn({batch, queries, group * few, width}, o).transpose(1, 2);
  if (number % 3 == 2)
    k = randn({batch, few, width, keys}, o).mT(), v = randn({batch, few, keys, 2 * values}, o).slice(-1, 0, {}, 2);
  p.qkv = {q, k, v};
  p.options.enable_gqa = group > 1;
  p.options.is_causal = between(0, 1) == 1;
  if (number % 5 == 1) p.options.scale = 0.7;
  const Shape masks[] = {{queries, keys}, {1, keys}, {batch, 1, 1, keys}, {group * few, queries, 1}};
  if (number % 4 == 1) p.options.attn_mask = rand(masks[size_t(between(0, 3))], o) > 0.4;
  if (number % 4 == 2) p.options.attn_mask = randn(masks[size_t(between(0, 3))], o);
  return p;
}

double distance(const Tensor& a, const Tensor& b) {
  return a.numel() ? max(abs(a.detach().to(f64) - b.detach().to(f64))).item<double>() : 0;
}

class AttentionValues : public testing::TestWithParam<DType> {};
TEST_P(AttentionValues, AreThoseOfOrdinaryOps) {
  const DType dtype = GetParam();
  const double near = dtype == f64 ? 1e-12 : dtype == f32 ? 2e-5 : dtype == f16 ? 2e-2 : 2e-1;
  manual_seed(11);
  for (const Device& device : devices()) {
    for (int number = 0; number < 24; ++number) {
      Problem p = draw_problem(number, device);
      Tensors exact, rounded;
      for (const Tensor& x : p.qkv) {
        rounded.push_back(x.to(dtype).detach().requires_grad_());
        exact.push_back(rounded.back().detach().to(f64).detach().requires_grad_());
      }
      AttentionOptions o = p.options;
      if (o.attn_mask.defined() && o.attn_mask.dtype() != boolean) o.attn_mask = o.attn_mask.to(dtype);
      AttentionOptions wide = o;
      if (o.attn_mask.defined() && o.attn_mask.dtype() != boolean) wide.attn_mask = o.attn_mask.to(f64);
      const Tensor y = scaled_dot_product_attention(rounded[0], rounded[1], rounded[2], o);
      const Tensor want = reference(exact[0], exact[1], exact[2], wide), g = randn_like(want);
      EXPECT_EQ(y.dtype(), dtype);
      EXPECT_LT(distance(y, want), near) << number;
      const Tensors found = grad(y, rounded, {.grad_outputs = {g.to(dtype)}});
      const Tensors answer = grad(want, exact, {.grad_outputs = {g.to(dtype).to(f64)}});
      for (size_t i = 0; i < 3; ++i) EXPECT_LT(distance(found[i], answer[i]), 20 * near) << number << " input " << i;
    }
  }
}
INSTANTIATE_TEST_SUITE_P(All, AttentionValues, testing::Values(f16, bf16, f32, f64),
                         [](const auto& i) { return std::string(name(i.param)); });

// Many blocks of queries and keys, which devices of their own loops work on beside each other.
TEST(AttentionLong, EqualsOrdinaryOpsOnDevices) {
  manual_seed(12);
  for (const Device& device : devices()) {
    if (device.is_cpu()) continue;
    for (const DType dtype : {f16, bf16})
      for (const int64_t width : {64, 128})
        for (const bool causal : {false, true}) {
          SCOPED_TRACE(std::to_string(width) + " " + std::string(name(dtype)));
          Tensors exact, rounded;
          for (const int64_t rows : {1111, 1500, 1500}) {
            rounded.push_back(randn({2, 3, rows, width}, {f32, device}).to(dtype).detach().requires_grad_());
            exact.push_back(rounded.back().detach().to(f64).detach().requires_grad_());
          }
          const AttentionOptions o{.is_causal = causal};
          const Tensor y = scaled_dot_product_attention(rounded[0], rounded[1], rounded[2], o);
          const Tensor want = reference(exact[0], exact[1], exact[2], o), g = randn_like(want);
          const double near = dtype == f16 ? 4e-3 : 3e-2;
          EXPECT_LT(distance(y, want), near);
          const Tensors found = grad(y, rounded, {.grad_outputs = {g.to(dtype)}});
          const Tensors answer = grad(want, exact, {.grad_outputs = {g.to(dtype).to(f64)}});
          for (size_t i = 0; i < 3; ++i) EXPECT_LT(distance(found[i], answer[i]), 10 * near) << "input " << i;
        }
  }
}

// Operands as models have them, long enough for a device's best way.
enum class Operands { own, of_one_projection, spread, odd_places, without_batch, many_axes };
struct LongProblem {
  int64_t batch, heads, few, queries, keys, width;
  bool causal;
  Operands operands;
};
Tensors draw(const LongProblem& p, DType dtype, Device device) {
  const Options o{f32, device};
  const auto matrices = [&](int64_t heads, int64_t rows) -> Tensor {
    switch (p.operands) {
      case Operands::spread:
        return randn({1, heads, rows, p.width}, o).to(dtype).expand({p.batch, heads, rows, p.width});
      case Operands::odd_places: return randn({p.batch, heads, rows, p.width + 3}, o).to(dtype).slice(-1, 3, {});
      case Operands::without_batch: return randn({heads, rows, p.width}, o).to(dtype);
      case Operands::many_axes: return randn({p.batch, 2, heads, rows, p.width}, o).to(dtype);
      default: return randn({p.batch, heads, rows, p.width}, o).to(dtype);
    }
  };
  if (p.operands != Operands::of_one_projection)
    return {matrices(p.heads, p.queries), matrices(p.few, p.keys), matrices(p.few, p.keys)};
  const Tensor all = randn({p.batch, p.queries, p.heads + 2 * p.few, p.width}, o).to(dtype).transpose(1, 2);
  return {all.slice(1, 0, p.heads), all.slice(1, p.heads, p.heads + p.few), all.slice(1, p.heads + p.few, {})};
}

TEST(AttentionLong, OfSharedHeadsViewsAndOddLengths) {
  using enum Operands;
  manual_seed(13);
  const LongProblem problems[] = {{2, 4, 4, 128, 128, 64, true, own},
                                  {1, 6, 2, 257, 257, 64, true, of_one_projection},
                                  {2, 4, 1, 200, 333, 128, false, own},
                                  {1, 2, 2, 333, 200, 40, true, own},
                                  {2, 3, 3, 384, 384, 72, true, of_one_projection},
                                  {3, 2, 2, 129, 512, 8, false, own},
                                  {2, 2, 2, 256, 256, 64, true, spread},
                                  {2, 2, 2, 160, 160, 64, false, odd_places},
                                  {1, 3, 3, 300, 300, 128, true, without_batch},
                                  {2, 2, 1, 192, 192, 64, true, many_axes}};
  for (const Device& device : devices())
    for (const DType dtype : {f16, bf16})
      for (size_t n = 0; n < std::size(problems); ++n) {
        SCOPED_TRACE(std::string(name(dtype)) + " problem " + std::to_string(n) + " on " + device.str());
        const LongProblem& p = problems[n];
        Tensors rounded = draw(p, dtype, device), exact;
        for (Tensor& x : rounded) {
          x = x.detach().requires_grad_();
          exact.push_back(x.detach().to(f64).detach().requires_grad_());
        }
        const AttentionOptions o{.is_causal = p.causal,
                                 .scale = n % 3 == 1 ? std::optional(0.2) : std::nullopt,
                                 .enable_gqa = p.heads != p.few};
        const Tensor y = scaled_dot_product_attention(rounded[0], rounded[1], rounded[2], o);
        const Tensor want = reference(exact[0], exact[1], exact[2], o);
        const double near = dtype == f16 ? 4e-3 : 3e-2;
        EXPECT_LT(distance(y, want), near);
        // A cotangent of its own, or one number for all elements.
        const Tensor g = n % 2 ? randn_like(want).to(dtype) : randn({}, {f32, device}).to(dtype).expand(want.shape());
        const Tensors found = grad(y, rounded, {.grad_outputs = {g}});
        const Tensors answer = grad(want, exact, {.grad_outputs = {g.to(f64)}});
        for (size_t i = 0; i < 3; ++i) EXPECT_LT(distance(found[i], answer[i]), 10 * near) << "input " << i;
      }
}

TEST(AttentionGradients, PassNumericalChecksOfBothOrders) {
  const auto draw = [](const Shape& s) { return randn(s, {.dtype = f64, .requires_grad = true}); };
  manual_seed(3);
  const Tensor seen = tensor({{1, 0, 1, 1}, {0, 0, 0, 0}, {1, 1, 0, 1}}).to(boolean);  // the second query sees nothing
  for (const AttentionOptions& o : {AttentionOptions{}, AttentionOptions{.is_causal = true},
                                    AttentionOptions{.attn_mask = seen}, AttentionOptions{.enable_gqa = true}}) {
    const auto f = [&](const Tensor& q, const Tensor& k, const Tensor& v) {
      return scaled_dot_product_attention(q, k, v, o);
    };
    const Tensor q = draw({1, 2, 3, 2}), k = draw({1, o.enable_gqa ? 1 : 2, 4, 2}), v = draw(k.shape());
    EXPECT_TRUE(gradcheck(f, q, k, v));
    EXPECT_TRUE(gradgradcheck(f, q, k, v));
  }
  const Tensor x = draw({2, 3, 2});
  EXPECT_TRUE(gradgradcheck([](const Tensor& t) { return scaled_dot_product_attention(t, t, t); }, x));
  const auto learned = [](const Tensor& q, const Tensor& mask) {
    return scaled_dot_product_attention(q, q, q, {.attn_mask = mask});
  };
  EXPECT_TRUE(gradcheck(learned, x, draw({3, 3})));
}

// Few heads: the backward pass shares the keys of one among the threads.
TEST(AttentionGradients, OfOneHeadWithManyKeys) {
  manual_seed(3);
  for (const int64_t heads : {1, 3})
    for (const bool causal : {false, true}) {
      const Options o{f64};
      const Tensors x = {randn({heads, 40, 8}, o).requires_grad_(), randn({heads, 1100, 8}, o).requires_grad_(),
                         randn({heads, 1100, 5}, o).requires_grad_()};
      const AttentionOptions options{.is_causal = causal};
      const Tensor y = scaled_dot_product_attention(x[0], x[1], x[2], options);
      const Tensor want = reference(x[0], x[1], x[2], options), g = randn_like(want);
      const Tensors found = grad(y, x, {.grad_outputs = {g}}), answer = grad(want, x, {.grad_outputs = {g}});
      for (size_t i = 0; i < 3; ++i) EXPECT_LT(distance(found[i], answer[i]), 1e-12) << causal << " input " << i;
    }
}

TEST(AttentionMask, AQueryThatSeesNothingGetsZeros) {
  for (const bool floating : {false, true}) {
    Tensor seen = ones({5, 130}).to(boolean);
    seen[2] = false;
    const Tensor mask = floating ? where(seen, 0.0, -INFINITY).to(f32) : seen;
    const Tensor q = randn({1, 5, 8}, {.requires_grad = true}), k = randn({1, 130, 8}, {.requires_grad = true});
    const Tensor y = scaled_dot_product_attention(q, k, k, {.attn_mask = mask});
    EXPECT_TRUE(equal(y[{0, 2}], zeros({8})));
    y.sum().backward();
    EXPECT_TRUE(equal((*q.grad())[{0, 2}], zeros({8})));
    EXPECT_FALSE(isnan(*k.grad()).any().item<bool>());
  }
}

TEST(AttentionMask, ScoresThatOverflowAreNaNWhereNoMaskHidesThem) {
  for (const Device& device : devices())
    for (const DType t : {f32, bf16, f64})
      for (const int64_t width : {4, 8, 72})
        for (const int64_t queries : {1, 2, 70})
          for (const bool causal : {false, true}) {
            SCOPED_TRACE(std::string(name(t)) + " on " + device.str() + " " + std::to_string(queries) + " x " +
                         std::to_string(width));
            const double big = t == f64 ? 1e200 : 1e20;
            const Options here{.dtype = t, .device = device};
            const Tensor q = full({1, queries, width}, big, here).requires_grad_(), k = full({1, 3, width}, -big, here),
                         v = ones({1, 3, width}, here);
            const Tensor y = scaled_dot_product_attention(q, k, v, {.is_causal = causal});
            EXPECT_TRUE(isnan(y).all().item<bool>());
            EXPECT_TRUE(isnan(grad(y.sum(), q)).all().item<bool>());
            const Tensor none = scaled_dot_product_attention(q, k.narrow(1, 0, 0), v.narrow(1, 0, 0));
            EXPECT_EQ(count_nonzero(none).item<int64_t>(), 0);
            // Behind a mask there is nothing to see, and so no NaN.
            const Tensor hidden = scaled_dot_product_attention(
                q, k, v, {.attn_mask = zeros({1, queries, 3}, {.dtype = boolean, .device = device})});
            EXPECT_EQ(count_nonzero(hidden).item<int64_t>(), 0);
            EXPECT_EQ(count_nonzero(grad(hidden.sum(), q)).item<int64_t>(), 0);
          }
}

TEST(AttentionMask, BatchAxesBroadcast) {
  const Tensor q = randn({3, 1, 4, 8}), k = randn({2, 5, 8}), v = randn({1, 5, 6});
  const Tensor y = scaled_dot_product_attention(q, k, v);
  EXPECT_EQ(y.shape(), (Shape{3, 2, 4, 6}));
  EXPECT_LT(distance(y, reference(q, k, v, {})), 1e-5);
}

TEST(AttentionDropout, DropsTheSameWeightsBackwardAndInTheComposedForm) {
  const auto draw = [](const Shape& s) { return randn(s, {.dtype = f64, .requires_grad = true}); };
  const Tensors in{draw({2, 3, 101, 7}), draw({2, 3, 113, 7}), draw({2, 3, 113, 5})};
  manual_seed(5);
  const Tensor y = scaled_dot_product_attention(in[0], in[1], in[2], {.dropout_p = 0.3}), g = randn_like(y);
  const Tensors found = grad(y, in, {.grad_outputs = {g}, .retain_graph = true});
  const Tensors want = grad(y, in, {.grad_outputs = {g}, .create_graph = true});  // by ordinary ops
  for (size_t i = 0; i < 3; ++i) EXPECT_LT(distance(found[i], want[i]), 1e-11);
  // The output is linear in the values, so that its product with g is theirs with their gradient.
  EXPECT_NEAR((y * g).sum().item<double>(), (in[2] * found[2]).sum().item<double>(), 1e-9);
  const Tensor even =
      scaled_dot_product_attention(zeros({4, 200, 2}), zeros({4, 300, 2}), ones({4, 300, 1}), {.dropout_p = 0.3});
  EXPECT_NEAR(even.mean().item<double>(), 1, 0.01);
  EXPECT_GT(even.std().item<double>(), 0.01);
  EXPECT_TRUE(equal(scaled_dot_product_attention(in[0], in[1], in[2], {.dropout_p = 1}).detach(), zeros_like(y)));
}

TEST(AttentionShapes, MayBeEmpty) {
  EXPECT_EQ(scaled_dot_product_attention(randn({0, 2, 3, 4}), randn({0, 2, 3, 4}), randn({0, 2, 3, 4})).shape(),
            (Shape{0, 2, 3, 4}));
  EXPECT_EQ(scaled_dot_product_attention(randn({2, 0, 4}), randn({2, 3, 4}), randn({2, 3, 5})).shape(),
            (Shape{2, 0, 5}));
  const Tensor q = randn({2, 3, 4}, {.requires_grad = true}), none = randn({2, 0, 4}, {.requires_grad = true});
  const Tensor y = scaled_dot_product_attention(q, none, none);
  EXPECT_TRUE(equal(y.detach(), zeros({2, 3, 4})));
  y.sum().backward();
  EXPECT_TRUE(equal(*q.grad(), zeros({2, 3, 4})));
}

TEST(AttentionMemory, NeverHoldsTheScores) {
  const int64_t time = 4096;
  const auto draw = [&] { return randn({1, 2, time, 16}, {.requires_grad = true}); };
  const Tensor q = draw(), k = draw(), v = draw();
  memory::empty_cache();
  const auto before = memory::stats();
  memory::reset_peak();
  scaled_dot_product_attention(q, k, v, {.is_causal = true}).sum().backward();
  EXPECT_LT(memory::stats().peak - before.in_use, 2 * time * time * 4 / 20);  // a twentieth of one matrix of scores
}

TEST(ThreadsAttention, BitsDoNotDependOnTheNumberOfThreads) {
  const int before = get_num_threads();
  const Tensor q = randn({1, 4, 700, 24}, {.requires_grad = true}), k = randn({1, 2, 700, 24}, {.requires_grad = true});
  const auto run = [&](int threads) {
    set_num_threads(threads);
    const Tensor y = scaled_dot_product_attention(q, k, k, {.is_causal = true, .enable_gqa = true});
    Tensors all = grad(y.square().sum(), Tensors{q, k}, {.retain_graph = true});
    all.push_back(y.detach());
    return all;
  };
  const Tensors one = run(1), two = run(2), five = run(5);
  set_num_threads(before);
  for (size_t i = 0; i < one.size(); ++i) EXPECT_TRUE(equal(one[i], two[i]) && equal(one[i], five[i])) << i;
}

TEST(ThreadsAttention, OneModelServesManyThreads) {
  nn::TransformerEncoderLayer layer(24, 4, {.dim_feedforward = 32, .batch_first = true});
  eval(layer);
  const auto& model = layer;
  const Tensor x = randn({2, 40, 24}), want = model(x, {.is_causal = true}).detach();
  std::vector<int> good(4);
  std::vector<std::thread> pool;
  for (size_t i = 0; i < good.size(); ++i)
    pool.emplace_back([&, i] {
      const NoGrad off;
      good[i] = 1;
      for (int n = 0; n < 10; ++n) good[i] = good[i] && equal(model(x, {.is_causal = true}), want);
    });
  for (std::thread& t : pool) t.join();
  for (const int g : good) EXPECT_TRUE(g);
}

TEST(AttentionErrors, NameTheShapes) {
  const auto fails = [](Error::Kind kind, const std::string& part, auto f) {
    const auto result = attempt([&] { return Tensor(f()); });
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().kind(), kind) << result.error().what();
    EXPECT_NE(std::string(result.error().what()).find(part), std::string::npos) << result.error().what();
  };
  const Tensor q = randn({2, 4, 5, 8}), k = randn({2, 3, 6, 8});
  const auto f = [](const Tensor& a, const Tensor& b, const Tensor& c, const AttentionOptions& o = {}) {
    return [=] { return scaled_dot_product_attention(a, b, c, o); };
  };
  using enum Error::Kind;
  fails(shape, "do not broadcast", f(q, k, k));
  fails(shape, "4 query heads", f(q, k, k, {.enable_gqa = true}));
  fails(shape, "widths 8 and 7", f(q, randn({2, 4, 6, 7}), q));
  fails(shape, "6 keys and 5 values", f(q, randn({2, 4, 6, 8}), q));
  fails(shape, "[5, 7] does not broadcast to the scores [2, 4, 5, 5]", f(q, q, q, {.attn_mask = randn({5, 7})}));
  fails(dtype, "boolean or floating", f(q, q, q, {.attn_mask = ones({5, 5}, {.dtype = i64})}));
  fails(dtype, "one floating dtype", f(q, q.to(f64), q));
  fails(argument, "[0, 1]", f(q, q, q, {.dropout_p = 1.5}));
  fails(argument, "do not divide", [] { return nn::MultiheadAttention(10, 3).in_proj_weight; });
  fails(shape, "for widths 8", [] {
    const nn::MultiheadAttention m(8, 2);
    return m(randn({3, 2, 8}), randn({3, 2, 7}), randn({3, 2, 8})).output;
  });
  fails(shape, "[2, 3] has not 3 axes", [] {
    auto [a, b, c] = sizes<3>(zeros({2, 3}));
    return zeros({a, b, c});
  });
}

TEST(AttentionDecoding, StepByStepGivesWhatAllAtOnceGives) {
  for (const int64_t few : {4, 2}) {
    nn::MultiheadAttention layer(24, 4, {.batch_first = true, .num_kv_heads = few});
    const NoGrad off;
    const Tensor x = randn({2, 9, 24}), want = layer(x, x, x, {.is_causal = true}).output;
    nn::KeyValueCache cache;
    Tensors steps;
    for (const auto& [begin, n] : {std::pair<int64_t, int64_t>{0, 4}, {4, 1}, {5, 3}, {8, 1}}) {
      const Tensor piece = x.narrow(1, begin, n);
      steps.push_back(layer(piece, piece, piece, {.is_causal = true, .cache = &cache}).output);
    }
    EXPECT_EQ(cache.size(), 9);
    EXPECT_LT(distance(cat(steps, 1), want), 1e-5);
  }
}

TEST(AttentionLayers, KeyPaddingHidesKeys) {
  nn::MultiheadAttention layer(8, 2);
  const Tensor x = randn({5, 2, 8});
  Tensor padding = zeros({2, 5}).to(boolean);
  padding[{1, slice(3)}] = true;
  const Tensor y = layer(x, x, x, {.key_padding_mask = padding}).output;
  const Tensor brief = x[{slice(0, 3), slice(1, 2)}], alone = layer(brief, brief, brief).output;
  EXPECT_LT(distance(y[{slice(0, 3), slice(1, 2)}], alone), 1e-5);
}

TEST(AttentionLayers, OneSequenceWithoutABatch) {
  nn::MultiheadAttention layer(8, 2);
  const Tensor q = randn({3, 8}), k = randn({5, 8}), v = randn({5, 8});
  const auto many = [](const Tensor& x) { return x.unsqueeze(1); };
  for (const bool average : {false, true}) {
    const nn::MultiheadInput input{.need_weights = true, .average_attn_weights = average};
    const nn::MultiheadOutput one = layer(q, k, v, input), batch = layer(many(q), many(k), many(v), input);
    EXPECT_TRUE(equal(one.output, batch.output.squeeze(1)));
    EXPECT_EQ(one.weights.shape(), average ? Shape({3, 5}) : Shape({2, 3, 5}));
    EXPECT_TRUE(equal(one.weights, batch.weights.squeeze(0)));
  }
  EXPECT_EQ(layer(q, k, v).output.shape(), Shape({3, 8}));
}

TEST(AttentionLayers, AHiddenQueryGivesZerosWithAndWithoutWeights) {
  nn::MultiheadAttention layer(8, 2, {.bias = false});
  const Tensor x = randn({3, 2, 8});
  Tensor mask = zeros({3, 3}).to(boolean);
  mask[1] = true;
  for (const bool weights : {false, true}) {
    const nn::MultiheadOutput y = layer(x, x, x, {.attn_mask = mask, .need_weights = weights});
    EXPECT_TRUE(equal(y.output[1].detach(), zeros({2, 8})));
    EXPECT_EQ(y.weights.defined(), weights);
  }
}

TEST(AttentionLayers, CausalWeightsAreThoseOfTheOutput) {
  for (const int64_t few :
       {4, 2}) {  // heads of keys; neither these nor those of queries are as many as there are steps
    nn::MultiheadAttention layer(8, 4, {.num_kv_heads = few});
    const Tensor x = randn({5, 3, 8});
    const nn::MultiheadOutput y =
        layer(x, x, x, {.is_causal = true, .need_weights = true, .average_attn_weights = false});
    EXPECT_LT(distance(y.output, layer(x, x, x, {.is_causal = true, .need_weights = false}).output), 1e-5);
    ASSERT_EQ(y.weights.shape(), (Shape{3, 4, 5, 5}));
    EXPECT_TRUE(equal(y.weights.detach(), y.weights.detach().tril()));
    EXPECT_TRUE(allclose(y.weights.detach().sum(-1), ones({3, 4, 5})));
  }
}

TEST(AttentionPositions, AreSinesAndTurns) {
  const Tensor p = sinusoidal_positions(50, 6, 10000, {.dtype = f64});
  EXPECT_NEAR((p[{7, 2}].item<double>()), std::sin(7 / std::pow(10000.0, 2.0 / 6)), 1e-12);
  EXPECT_NEAR((p[{7, 3}].item<double>()), std::cos(7 / std::pow(10000.0, 2.0 / 6)), 1e-12);
  EXPECT_EQ(sinusoidal_positions(3, 5).shape(), (Shape{3, 5}));
  for (const bool interleaved : {false, true}) {
    // Products of turned vectors depend on the distance of their positions alone.
    const Tensor q = randn({1, 8}, {.dtype = f64}), k = randn({1, 8}, {.dtype = f64});
    const auto at = [&](const Tensor& x, int64_t n) {
      return rotary_positions(x, {.offset = n, .interleaved = interleaved});
    };
    EXPECT_NEAR((at(q, 3) * at(k, 1)).sum().item<double>(), (at(q, 102) * at(k, 100)).sum().item<double>(), 1e-10);
    EXPECT_TRUE(gradcheck([&](const Tensor& x) { return at(x, 5); }, q.detach().requires_grad_()));
    EXPECT_LT(distance(rotary_positions(cat({q, q}), {.offset = 4, .interleaved = interleaved})[1], at(q, 5)[0]),
              1e-12);
  }
  const Tensor x = randn({2, 4, 6});
  EXPECT_LT(distance(nn::SinusoidalPositions(6)(x), x + sinusoidal_positions(4, 6)), 1e-6);
  EXPECT_TRUE(equal(nn::RotaryPositions()(x, 2), rotary_positions(x, {.offset = 2})));
}

TEST(AttentionGradients, KeysThatNoQueryHeadMeetsHaveNone) {
  const Tensor q = randn({1, 0, 3, 4}).requires_grad_(), k = randn({1, 2, 5, 4}).requires_grad_();
  const Tensor y = scaled_dot_product_attention(q, k, k, {.enable_gqa = true});
  EXPECT_TRUE(equal(grad(y.sum(), k), zeros({1, 2, 5, 4})));
}

}  // namespace
}  // namespace volta::test
