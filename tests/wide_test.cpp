// Sizes at which devices choose their wide forms: packs, tiles, rows that stay in a block, parts of a batch, fused steps.
// Every device is compared with the CPU in f64.
#include <gtest/gtest.h>

#include <volta/cuda.h>

#include "samples.h"

namespace volta {
namespace {

double tolerance_of(DType t) { return t == f64 ? 1e-10 : t == f32 ? 2e-5 : t == f16 ? 4e-3 : 3e-2; }

void expect_near(const Tensor& got, const Tensor& wanted, double tolerance, const std::string& what) {
  ASSERT_EQ(got.shape(), wanted.shape()) << what;
  const Tensor x = got.detach().to("cpu").to(f64), y = wanted.detach().to(f64);
  const double scale = std::max(1.0, y.numel() == 0 ? 0.0 : y.abs().max().item<double>());
  EXPECT_TRUE(allclose(x, y, {.rtol = tolerance, .atol = tolerance * scale})) << what;
}

// Pairs of shapes that broadcast along rows, along columns, in the middle, and both ways.
TEST(WideBroadcast, EqualsTheCpu) {
  const std::pair<Shape, Shape> pairs[] = {{{37, 64}, {64}},         {{37, 64}, {37, 1}},  {{5, 1, 32}, {1, 7, 32}},
                                           {{5, 7, 32}, {5, 1, 32}}, {{5, 7, 32}, {7, 1}}, {{1, 48}, {19, 1}},
                                           {{3, 4, 8}, {4, 8}},      {{37, 20}, {20}},     {{2, 3, 4, 16}, {3, 1, 16}},
                                           {{1030, 8}, {8}}};
  for (const Device& device : test::devices())
    for (const DType dtype : {f16, bf16, f32, f64})
      for (const auto& [left, right] : pairs) {
        const Tensor a = randn(left).to(dtype), b = (randn(right).abs() + 0.5).to(dtype);
        const Tensor x = a.to(device), y = b.to(device);
        const std::string what = std::string(name(dtype)) + " on " + device.str() + " " + left.str() + right.str();
        expect_near(x + y, a.to(f64) + b.to(f64), tolerance_of(dtype), "add " + what);
        expect_near(y - x, b.to(f64) - a.to(f64), tolerance_of(dtype), "sub " + what);
        expect_near(x / y, a.to(f64) / b.to(f64), tolerance_of(dtype), "div " + what);
        EXPECT_TRUE(equal((x < y).to("cpu"), a < b)) << what;
        EXPECT_TRUE(equal(maximum(y, x).to("cpu"), maximum(b, a))) << what;
      }
}

// Rows that begin off 16 bytes, that run backwards, or that have gaps; and results written in place.
TEST(WideBroadcast, OfViewsAndInPlace) {
  for (const Device& device : test::devices())
    for (const DType dtype : {bf16, f32}) {
      const Tensor host = randn({12, 72}).to(dtype), row = randn({73}).to(dtype);
      const Tensor x = host.to(device), y = row.to(device);
      const auto views = [](const Tensor& t) {
        return std::vector<Tensor>{t.narrow(1, 0, 64),
                                   t.narrow(1, 1, 64),
                                   t.flip({0}).narrow(1, 8, 64),
                                   t[{slice(0, 12, 2)}].narrow(1, 0, 64),
                                   t.narrow(1, 3, 8),
                                   t.flip({1}).narrow(1, 0, 64)};
      };
      const auto here = views(x), there = views(host);
      for (size_t i = 0; i < here.size(); ++i)
        for (const int64_t begin : {0, 1, 8}) {
          const int64_t n = here[i].size(1);
          expect_near(here[i] * y.narrow(0, begin, n), there[i].to(f64) * row.narrow(0, begin, n).to(f64),
                      tolerance_of(dtype), "view " + std::to_string(i) + " from " + std::to_string(begin));
        }
      Tensor changed = x.clone();
      changed.narrow(1, 4, 64) += y.narrow(0, 0, 64);
      Tensor wanted = host.to(f64);
      wanted.narrow(1, 4, 64) += row.narrow(0, 0, 64).to(f64);
      expect_near(changed, wanted, tolerance_of(dtype), "in place");
    }
}

TEST(WideTranspose, EqualsTheCpu) {
  for (const Device& device : test::devices())
    for (const DType dtype : {u8, f16, f32, i64})
      for (const auto& [rows, columns] : std::vector<std::pair<int64_t, int64_t>>{
               {8, 8}, {32, 32}, {33, 64}, {64, 130}, {128, 256}, {129, 131}, {300, 12}, {8, 1000}, {132, 260}}) {
        const Tensor x = randint(0, 100, {3, rows, columns}).to(dtype), y = x.to(device);
        const std::string what = std::string(name(dtype)) + " " + x.shape().str();
        EXPECT_TRUE(equal(y.transpose(1, 2).contiguous().to("cpu"), x.transpose(1, 2).contiguous())) << what;
        EXPECT_TRUE(equal(y.permute({2, 0, 1}).contiguous().to("cpu"), x.permute({2, 0, 1}).contiguous())) << what;
        const auto part = [](const Tensor& t) { return t.narrow(2, 1, t.size(2) - 1).transpose(1, 2).contiguous(); };
        EXPECT_TRUE(equal(part(y).to("cpu"), part(x))) << "from the second column " << what;
      }
}

TEST(WideSum, OfManyPieces) {
  for (const Device& device : test::devices())
    for (const Shape& shape : {Shape{3'000'001}, Shape{1 << 15, 96}, Shape{7, 300'000}, Shape{5000, 33, 5}}) {
      const Tensor x = randn(shape), y = x.to(device);
      for (int axis = 0; axis < shape.size(); ++axis)
        expect_near(y.sum(axis), x.to(f64).sum(axis), 1e-4, shape.str() + " along " + std::to_string(axis));
      expect_near(y.sum(), x.to(f64).sum(), 1e-4, shape.str());
      EXPECT_TRUE(equal(y.argmax().to("cpu"), x.argmax())) << shape.str();
    }
}

TEST(WideNorm, OfRowsOfManySizes) {
  for (const Device& device : test::devices())
    for (const int64_t n : {248, 256, 264, 384, 768, 1000, 1024, 1536, 3072, 5000, 8192})
      for (const DType dtype : {f16, bf16, f32}) {
        const Tensor x = (randn({9, n}) * 3 + 20).to(dtype), w = randn({n}).to(dtype), b = randn({n}).to(dtype);
        const std::string what = std::to_string(n) + " " + std::string(name(dtype)) + " on " + device.str();
        const Tensor wx = x.to(f64), ww = w.to(f64), wb = b.to(f64);
        const Tensor gx = x.to(device), gw = w.to(device), gb = b.to(device);
        const double tolerance = dtype == f32 ? 1e-4 : tolerance_of(dtype);
        expect_near(layer_norm(gx, {n}, gw, gb), layer_norm(wx, {n}, ww, wb), tolerance, "layer norm " + what);
        expect_near(layer_norm(gx, {n}), layer_norm(wx, {n}), tolerance, "plain " + what);
        expect_near(layer_norm(gx, {n}, gw), layer_norm(wx, {n}, ww), tolerance, "without bias " + what);
        expect_near(rms_norm(gx, {n}, gw), rms_norm(wx, {n}, ww), tolerance, "rms " + what);
        EXPECT_EQ(layer_norm(full({5, n}, 7.25, {.dtype = dtype, .device = device}), {n}).abs().max().item<float>(), 0)
            << "equal values " << what;
      }
}

// One row, fewer rows than a block takes, and so many that blocks come round again.
TEST(WideNorm, OfFewAndManyRows) {
  for (const Device& device : test::devices())
    for (const int64_t rows : {1, 3, 4099}) {
      const Tensor x = randn({rows, 512}), w = randn({512});
      const auto run = [&](const Tensor& in, const Tensor& weight) {
        const Tensor a = in.detach().requires_grad_(), b = weight.detach().requires_grad_();
        const Tensor y = layer_norm(a, {512}, b);
        const auto g = grad(std::vector<Tensor>{(y * y * y).sum()}, {a, b});
        return std::vector<Tensor>{y, g[0], g[1]};
      };
      const auto wanted = run(x.to(f64), w.to(f64)), got = run(x.to(device), w.to(device));
      for (size_t i = 0; i < 3; ++i)
        expect_near(got[i], wanted[i], 1e-4, std::to_string(rows) + " rows, result " + std::to_string(i));
    }
}

struct Limit {
  explicit Limit(int64_t bytes) { cuda::set_conv_workspace(bytes); }
  ~Limit() { cuda::set_conv_workspace(int64_t(256) << 20); }
};

// The same numbers in other places: a cotangent of one number, with the axes in another order, backwards, with gaps.
std::vector<Tensor> cotangents(const Shape& shape) {
  Shape turned = shape, wide = shape;
  std::swap(turned[0], turned[1]);
  wide[shape.size() - 1] *= 2;
  return {tensor(0.5).expand(shape), randn(turned).transpose(0, 1), randn(shape).flip({0}), randn(shape).flip({-1}),
          randn(wide).narrow(-1, 1, shape[shape.size() - 1])};
}
std::string strides_of(const Tensor& g) {
  std::string text = "a cotangent of strides";
  for (int64_t i = 0; i < g.dim(); ++i) text += " " + std::to_string(g.stride(i));
  return text;
}
// With its strides: to() moves contiguous memory.
Tensor there(const Tensor& g, const Device& device, DType dtype) {
  if (g.stride(0) == 0) return g.flatten()[0].to(dtype).to(device).expand(g.shape());
  if (g.stride(0) < 0) return g.flip({0}).to(dtype).to(device).flip({0});
  if (g.stride(-1) < 0) return g.flip({-1}).to(dtype).to(device).flip({-1});
  if (g.stride(0) < g.stride(1)) return g.transpose(0, 1).to(dtype).to(device).transpose(0, 1);
  const int64_t n = g.size(-1);
  return cat({g, g, g}, -1).to(dtype).to(device).narrow(-1, n, n);
}

// With little workspace the batch of a weight's gradient may be taken in parts.
TEST(WideConv, GradientsDoNotDependOnTheWorkspace) {
  for (const Device& device : test::devices())
    for (const int64_t batch : {16, 20}) {
      const Tensor x = randn({batch, 32, 28, 28}), w = randn({48, 32, 3, 3}) / 16, g = randn({batch, 48, 28, 28});
      const auto run = [&](const Device& on, DType dtype) {
        const Tensor a = x.to(on).to(dtype).requires_grad_(), b = w.to(on).to(dtype).requires_grad_();
        const Tensor y = conv2d(a, b, {}, {.padding = 1});
        return grad(std::vector<Tensor>{y}, {a, b}, {.grad_outputs = {g.to(on).to(dtype)}});
      };
      const auto wanted = run("cpu", f64);
      for (const int64_t limit : {int64_t(0), int64_t(4) << 20, int64_t(40) << 20, int64_t(256) << 20}) {
        const Limit set(limit);
        const auto got = run(device, f32);
        for (size_t i = 0; i < 2; ++i)
          expect_near(got[i], wanted[i], 1e-4, std::to_string(limit) + " bytes, gradient " + std::to_string(i));
      }
    }
}

// Large enough that parts of the batch are faster than what the limit leaves for the whole of it.
TEST(WideConv, GradientsInPartsOfTheBatch) {
  for (const Device& device : test::devices()) {
    if (device.is_cpu()) continue;
    const Limit set(int64_t(128) << 20);
    const Tensor w = randn({64, 64, 3, 3}) / 24;
    const std::vector<Tensor> some = cotangents({16, 64, 128, 128});
    for (const auto& [left, right] : std::vector<std::pair<size_t, size_t>>{{3, 0}, {0, 1}, {1, 3}}) {
      const Tensor &x = some[left], &g = some[right];
      const auto run = [&](const Device& on, DType dtype) {
        const Tensor b = w.to(on).to(dtype).requires_grad_();
        const Tensor y = conv2d(there(x, on, dtype), b, {}, {.padding = 1});
        return grad(std::vector<Tensor>{y}, {b}, {.grad_outputs = {there(g, on, dtype)}})[0];
      };
      expect_near(run(device, f32), run("cpu", f64), 1e-4,
                  "an input of form " + std::to_string(left) + ", " + strides_of(g));
    }
  }
}

TEST(WideConv, CotangentsOfAllLayouts) {
  const Tensor x = randn({16, 32, 28, 28}), w = randn({48, 32, 3, 3}) / 16;
  for (const Device& device : test::devices())
    for (const Tensor& g : cotangents({16, 48, 28, 28})) {
      const auto run = [&](const Device& on, DType dtype) {
        const Tensor a = x.to(on).to(dtype).requires_grad_(), b = w.to(on).to(dtype).requires_grad_();
        return grad(std::vector<Tensor>{conv2d(a, b, {}, {.padding = 1})}, {a, b},
                    {.grad_outputs = {there(g, on, dtype)}});
      };
      const auto wanted = run("cpu", f64);
      for (const int64_t limit : {int64_t(4) << 20, int64_t(256) << 20}) {
        const Limit set(limit);
        const auto got = run(device, f32);
        for (size_t i = 0; i < 2; ++i)
          expect_near(got[i], wanted[i], 1e-4, strides_of(g) + ", gradient " + std::to_string(i));
      }
    }
}

// Images and weights that are expanded, turned, backwards or have gaps.
TEST(WideConv, OperandsOfAllLayouts) {
  const std::vector<Tensor> images = cotangents({16, 32, 28, 28}), weights = cotangents({48, 32, 3, 3}),
                            above = cotangents({16, 48, 28, 28});
  for (const Device& device : test::devices())
    for (const DType dtype : {bf16, f32})
      for (size_t i = 0; i < images.size(); ++i) {
        const auto run = [&](const Device& on, DType t) {
          const auto rounded = [&](const Tensor& x) { return there(there(x, "cpu", dtype), on, t); };
          const auto leaf = [&](const Tensor& x) { return rounded(x).detach().requires_grad_(); };
          const Tensor a = leaf(images[i]), b = leaf(weights[(i + 1) % 5]);
          const Tensor y = conv2d(a, b, {}, {.padding = 1});
          auto all = grad(std::vector<Tensor>{y}, {a, b}, {.grad_outputs = {rounded(above[(i + 2) % 5])}});
          all.push_back(y);
          return all;
        };
        const auto wanted = run("cpu", f64);
        for (const int64_t limit : {int64_t(4) << 20, int64_t(256) << 20}) {
          const Limit set(limit);
          const auto got = run(device, dtype);
          for (size_t k = 0; k < got.size(); ++k)
            expect_near(got[k], wanted[k], dtype == f32 ? 1e-4 : tolerance_of(dtype),
                        std::string(name(dtype)) + " on " + device.str() + ", form " + std::to_string(i) + ", result " +
                            std::to_string(k));
        }
      }
}

// Little work is not timed: not even where the favourite way wants more workspace than it may have.
TEST(WideConv, SmallOnesAreMetFirstInACapturedStep) {
  const Limit none(0);
  for (const Device& device : test::devices())
    for (const int64_t channels : {3, 5, 8}) {
      const Tensor x = randn({4, channels, 9, 9}), w = randn({6, channels, 3, 3});
      const auto run = [&](const Device& on, DType dtype, bool captured) {
        const Tensor a = x.to(on).to(dtype).requires_grad_(), b = w.to(on).to(dtype).requires_grad_();
        bool first = captured;  // the first call is no recording
        const auto step = [&] {
          if (std::exchange(first, false)) return std::vector<Tensor>{a + 1, b + 1};
          return grad(std::vector<Tensor>{conv2d(a, b).square().sum()}, {a, b});
        };
        if (!captured) return step();
        auto replayed = capture(step);
        replayed();
        return replayed();
      };
      const auto wanted = run("cpu", f64, false), got = run(device, f32, true);
      for (size_t i = 0; i < 2; ++i) expect_near(got[i], wanted[i], 1e-4, std::to_string(channels) + " channels");
    }
}

// As many rows as the second axis of a grid has blocks for, and more.
TEST(WideRecurrent, OfManyRows) {
  for (const Device& device : test::devices()) {
    if (device.is_cpu()) continue;
    for (const int64_t rows : {1'048'560, 1'048'561, 1'100'000}) {
      const Tensor x = randn({2, rows, 1});
      const auto run = [&](const Device& on) {
        manual_seed(3);
        nn::RNN layer(1, 4);
        to(layer, on);
        const Tensor in = x.to(on).requires_grad_(), y = layer.run(in).output;
        return std::vector<Tensor>{y, grad(std::vector<Tensor>{y.square().sum()}, {in})[0]};
      };
      const auto wanted = run("cpu"), got = run(device);
      for (size_t i = 0; i < 2; ++i)
        expect_near(got[i], wanted[i], 1e-4, std::to_string(rows) + " rows, result " + std::to_string(i));
    }
  }
}

TEST(WideRecurrent, CotangentsOfAllLayouts) {
  const Tensor x = randn({5, 12, 8});
  for (const Device& device : test::devices())
    for (const Tensor& g : cotangents({5, 12, 36})) {
      const auto run = [&](auto layer, const Device& on, DType dtype) {
        to(layer, dtype);
        to(layer, on);
        const Tensor in = x.to(on).to(dtype).requires_grad_(), y = layer.run(in).output;
        std::vector<Tensor> inputs{in};
        for (const auto& p : parameters(layer)) inputs.push_back(p);
        return grad(std::vector<Tensor>{y}, inputs, {.grad_outputs = {there(g, on, dtype)}});
      };
      const auto compare = [&](const auto& make) {
        manual_seed(3);
        const auto wanted = run(make(), "cpu", f64);
        manual_seed(3);
        const auto got = run(make(), device, f32);
        for (size_t i = 0; i < wanted.size(); ++i)
          expect_near(got[i], wanted[i], 1e-4, strides_of(g) + ", result " + std::to_string(i));
      };
      compare([] { return nn::LSTM(8, 36); });
      compare([] { return nn::GRU(8, 36); });
      compare([] { return nn::RNN(8, 36); });
    }
}

// Inputs and first states that are expanded, turned, backwards or have gaps, of fused steps (36 units) and others (30).
TEST(WideRecurrent, OperandsOfAllLayouts) {
  for (const Device& device : test::devices())
    for (const int64_t size : {36, 30}) {
      const std::vector<Tensor> inputs = cotangents({5, 12, 8}), states = cotangents({1, 12, size});
      for (size_t i = 0; i < inputs.size(); ++i) {
        const Tensor &x = inputs[i], &h = states[(i + 1) % 5];
        const auto compare = [&](const auto& make, const char* kind) {
          const auto run = [&](const Device& on, DType dtype) {
            manual_seed(3);
            auto layer = make();
            to(layer, dtype);
            to(layer, on);
            const auto leaf = [&](const Tensor& t) { return there(t, on, dtype).detach().requires_grad_(); };
            const Tensor in = leaf(x), hidden = leaf(h);
            std::vector<Tensor> operands{in, hidden};
            for (const auto& p : parameters(layer)) operands.push_back(p);
            const Tensor cell = std::string(kind) == "lstm" ? hidden : Tensor();
            const Tensor y = layer.run(in, {hidden, cell}).output;
            std::vector<Tensor> all = grad(std::vector<Tensor>{(y * y).sum()}, operands);
            all.push_back(y);
            return all;
          };
          const auto wanted = run("cpu", f64), got = run(device, f32);
          for (size_t k = 0; k < wanted.size(); ++k)
            expect_near(got[k], wanted[k], 1e-4,
                        std::string(kind) + " on " + device.str() + ", form " + std::to_string(i) + ", result " +
                            std::to_string(k));
        };
        compare([&] { return nn::LSTM(8, size); }, "lstm");
        compare([&] { return nn::GRU(8, size); }, "gru");
        compare([&] { return nn::RNN(8, size); }, "rnn");
      }
    }
}

TEST(WideRecurrent, StepsEqualTheCpu) {
  const auto compare = [](auto make, const Tensor& x, const std::string& what) {
    for (const Device& device : test::devices()) {
      const auto run = [&](const Device& on, DType dtype) {
        manual_seed(3);
        auto layer = make();
        to(layer, dtype);
        to(layer, on);
        const Tensor in = x.to(on).to(dtype).requires_grad_();
        std::vector<int64_t> lengths;  // of every second batch, rows end at different steps
        for (int64_t i = 0; x.size(1) % 2 == 1 && i < x.size(1); ++i) lengths.push_back(1 + i % x.size(0));
        const Tensor y = layer.run(in, {.lengths = lengths}).output;
        std::vector<Tensor> inputs{in};
        for (const auto& p : parameters(layer)) inputs.push_back(p);
        std::vector<Tensor> all = grad(std::vector<Tensor>{(y * y).sum()}, inputs);
        all.push_back(y);
        return all;
      };
      const auto wanted = run("cpu", f64), got = run(device, f32);
      for (size_t i = 0; i < wanted.size(); ++i)
        expect_near(got[i], wanted[i], 1e-4, what + " on " + device.str() + ", result " + std::to_string(i));
    }
  };
  for (const int64_t size : {4, 12, 36, 100, 256, 30})
    for (const int64_t batch : {1, 5, 16, 33}) {
      const Tensor x = randn({7, batch, 8});
      const std::string what = std::to_string(size) + " units, batch " + std::to_string(batch);
      compare([&] { return nn::LSTM(8, size, {.num_layers = 2, .bidirectional = batch == 5}); }, x, "lstm " + what);
      compare([&] { return nn::GRU(8, size, {.bidirectional = batch == 5}); }, x, "gru " + what);
      compare([&] { return nn::RNN(8, size); }, x, "rnn " + what);
    }
}

// Dropout draws the same numbers on every device and in every dtype, however the rows lie in the blocks of four.
TEST(WideAttention, DropoutEqualsTheCpu) {
  struct Case {
    int64_t queries, keys, width;
    bool causal, mask;
    int64_t few_heads;
  };
  const Case cases[] = {
      {64, 64, 64, false, false, 4},   {70, 132, 64, false, false, 4}, {33, 67, 40, false, false, 4},
      {130, 258, 128, false, true, 4}, {200, 200, 64, true, false, 2}, {129, 129, 128, true, false, 1},
      {1, 300, 64, false, false, 4},   {300, 5, 64, false, false, 4},  {260, 516, 72, false, true, 2}};
  for (const Device& device : test::devices())
    for (const DType dtype : {f16, bf16})
      for (const Case& c : cases)
        for (const double p : {0.3, 1.0}) {
          const Tensor q = randn({2, 4, c.queries, c.width}).to(dtype),
                       k = randn({2, c.few_heads, c.keys, c.width}).to(dtype),
                       v = randn({2, c.few_heads, c.keys, c.width}).to(dtype), g = randn(q.shape()).to(dtype);
          const Tensor mask = c.mask ? rand({2, 1, c.queries, c.keys}) < 0.8 : Tensor();
          const auto run = [&](const Device& on, DType t) {
            const auto leaf = [&](const Tensor& x) { return x.to(on).to(t).requires_grad_(); };
            const Tensor a = leaf(q), b = leaf(k), d = leaf(v);
            manual_seed(11);
            const Tensor y = scaled_dot_product_attention(a, b, d,
                                                          {.attn_mask = c.mask ? mask.to(on) : mask,
                                                           .dropout_p = p,
                                                           .is_causal = c.causal,
                                                           .enable_gqa = c.few_heads < 4});
            auto all = grad(std::vector<Tensor>{y}, {a, b, d}, {.grad_outputs = {g.to(on).to(t)}});
            all.push_back(y);
            all.push_back(rand({3}));
            return all;
          };
          const auto wanted = run("cpu", f64), got = run(device, dtype);
          for (size_t i = 0; i < wanted.size(); ++i)
            expect_near(got[i], wanted[i], tolerance_of(dtype),
                        std::string(name(dtype)) + " on " + device.str() + ", " + std::to_string(c.queries) + " x " +
                            std::to_string(c.keys) + ", result " + std::to_string(i));
        }
}

TEST(WideAttention, DropoutOfACapturedStep) {
  for (const Device& device : test::devices())
    for (const DType dtype : {bf16, f32}) {
      const auto run = [&](bool captured) {
        const Tensor x = (arange(4 * 64 * 32).to(f32).reshape({4, 64, 32}) * 0.01).sin().to(dtype).to(device);
        const Tensor a = x.clone().requires_grad_();
        const auto step = [&] {
          const Tensor y = scaled_dot_product_attention(a, x, x, {.dropout_p = 0.5});
          return std::vector<Tensor>{y.detach(), grad(std::vector<Tensor>{y.square().sum()}, {a})[0]};
        };
        manual_seed(5);
        auto replayed = capture(step);
        std::vector<Tensor> all;
        for (int i = 0; i < 4; ++i)
          for (const Tensor& t : captured ? replayed() : step()) all.push_back(t.to("cpu").clone());
        return all;
      };
      const auto wanted = run(false), got = run(true);
      for (size_t i = 0; i < wanted.size(); ++i) EXPECT_TRUE(equal(got[i], wanted[i])) << device.str() << " " << i;
      EXPECT_FALSE(equal(wanted[0], wanted[2]));
    }
}

}  // namespace
}  // namespace volta
