// Pooling: values against plain loops, the fused form against the composed one, gradients, layouts, errors, layers.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <random>

#include "ops/fused.h"
#include "samples.h"

namespace volta {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr auto wide = [](const Shape& shape) { return randn(shape, {.dtype = f64}); };

struct Composed {
  Composed() { use_fused_loops = false; }
  ~Composed() { use_fused_loops = true; }
};

// Parameters that PyTorch would take, drawn at random.
class Draw {
 public:
  explicit Draw(unsigned seed) : random_(seed) {}
  int64_t operator()(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random_); }
  bool flip() { return (*this)(0, 1) == 1; }
  Shape sizes(int n, int64_t low, int64_t high) {
    Shape s;
    for (int i = 0; i < n; ++i) s.push_back((*this)(low, high));
    return s;
  }
  Shape input(int axes) {
    Shape s = sizes(flip() ? 2 : 1, 1, 3);
    for (int i = 0; i < axes; ++i) s.push_back((*this)(6, axes == 3 ? 8 : 20));
    return s;
  }
  Shape padding(const Shape& kernel) {
    Shape s;
    for (int64_t k : kernel) s.push_back((*this)(0, k / 2));
    return s;
  }

 private:
  std::mt19937 random_;
};

struct Best {
  double value = -infinity, sum = 0;
  int64_t place = -1, inside = 0, counted = 0;
};
// One window of an input [h, w], the plain way.
Best window(const std::vector<double>& x, int64_t h, int64_t w, const int64_t (&start)[2], const Shape& kernel,
            const Shape& dilation, const Shape& padding) {
  Best best;
  for (int64_t i = 0; i < kernel[0]; ++i)
    for (int64_t j = 0; j < kernel[1]; ++j) {
      const int64_t y = start[0] + i * dilation[0], z = start[1] + j * dilation[1];
      best.counted += y < h + padding[0] && z < w + padding[1];
      if (y < 0 || z < 0 || y >= h || z >= w) continue;
      const double v = x[size_t(y * w + z)];
      ++best.inside;
      best.sum += v;
      if (v > best.value) best.value = v, best.place = y * w + z;
    }
  return best;
}

TEST(PoolValues, EqualPlainLoops) {
  Draw draw(1);
  for (int round = 0; round < 60; ++round) {
    const int64_t h = draw(7, 20), w = draw(7, 40);
    const Shape k = draw.sizes(2, 1, 4), s = draw.sizes(2, 1, 3), p = draw.padding(k), one{1, 1};
    const Shape d = draw.flip() ? draw.sizes(2, 1, 2) : one;
    const bool ceil = draw.flip(), include = draw.flip();
    const Tensor x = (draw.flip() ? wide({1, h, w}) : wide({1, h, w}).round()).to(f32).to(f64);  // with ties
    const auto [y, places] = max_pool2d_with_indices(x, k, {s, p, d, ceil});
    const Tensor plain = max_pool2d(x, k, {s, p, d, ceil});
    const auto values = x.to_vector<double>();
    for (int64_t i = 0; i < y.size(1); ++i)
      for (int64_t j = 0; j < y.size(2); ++j) {
        const Best best = window(values, h, w, {i * s[0] - p[0], j * s[1] - p[1]}, k, d, p);
        EXPECT_EQ((y[{0, i, j}].item<double>()), best.value);
        EXPECT_EQ((places[{0, i, j}].item<int64_t>()), best.place);
      }
    EXPECT_TRUE(equal(y, plain));
    const auto [narrow, narrow_places] = max_pool2d_with_indices(x.to(f32), k, {s, p, d, ceil});
    EXPECT_TRUE(equal(narrow.to(f64), y) && equal(narrow_places, places));
    const Tensor mean = avg_pool2d(x, k, {s, p, ceil, include});
    const Tensor sum = avg_pool2d(x, k, {.stride = s, .padding = p, .ceil_mode = ceil, .divisor_override = 3});
    for (int64_t i = 0; i < mean.size(1); ++i)
      for (int64_t j = 0; j < mean.size(2); ++j) {
        const Best best = window(values, h, w, {i * s[0] - p[0], j * s[1] - p[1]}, k, one, p);
        EXPECT_NEAR((mean[{0, i, j}].item<double>()), best.sum / double(include ? best.counted : best.inside), 1e-12);
        EXPECT_NEAR((sum[{0, i, j}].item<double>()), best.sum / 3, 1e-12);
      }
  }
}

// f(x) and its gradient, in both forms.
template <class F> void expect_same(const F& f, const Tensor& x, double tolerance) {
  const auto run = [&] {
    const Tensor in = x.detach().requires_grad_();
    const Tensor y = f(in);
    y.backward(ones_like(y) * 0.5 + arange(0, y.numel(), 1).reshape(y.shape()).to(y.dtype()).to(y.device()) * 0.01);
    return std::vector<Tensor>{y.detach(), *in.grad()};
  };
  const auto fused = run();
  std::vector<Tensor> composed;
  {
    const Composed only;
    composed = run();
  }
  for (size_t i = 0; i < 2; ++i) {
    ASSERT_EQ(fused[i].shape(), composed[i].shape());
    ASSERT_EQ(fused[i].dtype(), x.dtype());
    EXPECT_TRUE(allclose(fused[i].to(f64), composed[i].to(f64), {.rtol = tolerance, .atol = tolerance}));
  }
}

TEST(PoolForms, FusedEqualsComposed) {
  Draw draw(2);
  for (const Device& device : test::devices())
    for (int round = 0; round < 40; ++round) {
      const int axes = int(draw(1, 3));
      const Shape k = draw.sizes(axes, 1, 3), s = draw.sizes(axes, 1, 3), p = draw.padding(k),
                  o = draw.sizes(axes, 1, 5);
      const bool ceil = draw.flip(), include = draw.flip();
      const DType dtype = std::array{f16, bf16, f32, f64}[size_t(round % 4)];
      const double tolerance = is_half(dtype) ? 2e-2 : dtype == f32 ? 1e-5 : 1e-12;
      Tensor x = randn(draw.input(axes)).to(dtype).to(device);
      if (round % 3 == 1) x = x.transpose(0, -1).contiguous().transpose(0, -1);
      if (round % 3 == 2) x = x.flip({-1}).contiguous().flip({-1});
      expect_same(
          [&](const Tensor& in) {
            return pooling::max(axes, in, k, {s, p, 1, ceil}, false).values;
          },
          x, tolerance);
      expect_same([&](const Tensor& in) { return pooling::average(axes, in, k, {s, p, ceil, include}); }, x, tolerance);
      expect_same([&](const Tensor& in) { return pooling::adaptive_average(axes, in, o); }, x, tolerance);
      expect_same([&](const Tensor& in) { return pooling::adaptive_max(axes, in, o, false).values; }, x, tolerance);
    }
}

// Each direction is a call of its own, under its own name; where fused loops are off, there is neither.
TEST(PoolForms, ForwardAndBackwardAreCallsOfTheirOwn) {
  const Tensor x = randn({2, 3, 6, 8}).requires_grad_();
  const auto counted = [&] {
    std::map<std::string, int64_t> calls;
    const Profiler p;
    (void)grad((max_pool2d(x, 2).sum() + avg_pool2d(x, 3).sum()), x);
    for (const ProfileRow& r : p.rows())
      if (r.name.find("_pool") != std::string::npos && r.kind == "op") calls[r.name] += r.calls;
    return calls;
  };
  using Calls = std::map<std::string, int64_t>;
  EXPECT_EQ(counted(), (Calls{{"max_pool", 1}, {"max_pool_backward", 1}, {"sum_pool", 1}, {"sum_pool_backward", 1}}));
  const Composed only;
  EXPECT_EQ(counted(), Calls());
}

TEST(PoolForms, IndicesOfBothForms) {
  Draw draw(3);
  for (int round = 0; round < 20; ++round) {
    const int axes = int(draw(1, 3));
    const Shape k = draw.sizes(axes, 1, 3), s = draw.sizes(axes, 1, 3), p = draw.padding(k);
    const Tensor x = randn(draw.input(axes)).round();
    const ValuesIndices fused = pooling::max(axes, x, k, {s, p, 2}, true);
    const Composed only;
    const ValuesIndices composed = pooling::max(axes, x, k, {s, p, 2}, true);
    EXPECT_TRUE(equal(fused.values, composed.values));
    EXPECT_TRUE(equal(fused.indices, composed.indices));
  }
}

TEST(PoolGradients, BothOrders) {
  manual_seed(4);
  const auto check = [](const auto& f, Tensor x) {
    x.requires_grad_();
    EXPECT_TRUE(gradcheck(f, x));
    EXPECT_TRUE(gradgradcheck(f, x));
  };
  // A permutation has no ties and no near ones.
  const auto distinct = [](const Shape& s) { return randperm(s.numel()).to(f64).reshape(s) * 0.1; };
  for (const bool composed : {false, true}) {
    use_fused_loops = !composed;
    check([](const Tensor& x) { return max_pool2d(x, 3, {.stride = 2, .padding = 1}).square(); },
          distinct({1, 2, 4, 5}));
    check([](const Tensor& x) { return max_pool1d(x, 2, {.dilation = 2, .ceil_mode = true}).square(); },
          distinct({2, 9}));
    check([](const Tensor& x) { return max_pool3d(x, 2).square(); }, distinct({1, 2, 4, 3}));
    check(
        [](const Tensor& x) {
          return avg_pool2d(x, {3, 2}, {.stride = 2, .padding = 1}).square();
        },
        wide({1, 2, 4, 5}));
    check([](const Tensor& x) { return avg_pool3d(x, 2, {.ceil_mode = true}).square(); }, wide({1, 3, 2, 3}));
    check([](const Tensor& x) { return adaptive_avg_pool2d(x, {3, 2}).square(); }, wide({1, 4, 5}));
    check([](const Tensor& x) { return adaptive_max_pool2d(x, {3, 2}).square(); }, distinct({1, 4, 5}));
    check([](const Tensor& x) { return lp_pool2d(x, 3, 2).square(); }, wide({1, 4, 4}).abs() + 0.5);
  }
  use_fused_loops = true;
  const Tensor places = max_pool2d_with_indices(distinct({2, 4, 6}), 2).indices;
  check([&](const Tensor& x) { return max_unpool2d(x, places, 2).square(); }, wide({2, 2, 3}));
}

TEST(PoolValues, InfinitiesAndNaN) {
  const Tensor x =
      tensor<float>({{1, NAN, 3, 4}, {5, 6, -INFINITY, -INFINITY}, {0, 1, -INFINITY, -INFINITY}}).unsqueeze(0);
  const auto [y, places] = max_pool2d_with_indices(x, 2, {.stride = 1});
  EXPECT_TRUE(std::isnan((y[{0, 0, 0}].item<float>())));
  EXPECT_EQ((places[{0, 0, 0}].item<int64_t>()), 1);
  EXPECT_EQ((y[{0, 0, 2}].item<float>()), 4);
  EXPECT_EQ((y[{0, 1, 2}].item<float>()), -INFINITY);
  EXPECT_EQ((places[{0, 1, 2}].item<int64_t>()), 6);
  EXPECT_TRUE(allclose(max_pool2d(x, 2, {.stride = 1}), y, {.equal_nan = true}));
  // An infinity stays in the windows that hold it.
  Tensor corner = zeros({1, 5, 5});
  corner[{0, 0, 0}] = INFINITY;
  const Tensor mean = avg_pool2d(corner, 3, {.stride = 1, .padding = 1});
  EXPECT_EQ(isinf(mean).sum().item<int64_t>(), 4);
  EXPECT_EQ(isnan(mean).sum().item<int64_t>(), 0);
  const Composed only;
  EXPECT_TRUE(equal(avg_pool2d(corner, 3, {.stride = 1, .padding = 1}), mean));
}

TEST(PoolValues, AveragesOfOnesAreOne) {
  const Tensor x = ones({1, 7, 9, 11});
  EXPECT_TRUE(equal(avg_pool2d(x, 3), ones({1, 7, 3, 3})));
  EXPECT_TRUE(equal(adaptive_avg_pool3d(x, {3, 2, 5}), ones({1, 3, 2, 5})));
}

TEST(PoolShapes, BatchesAndEmptiness) {
  EXPECT_EQ(max_pool2d(zeros({0, 3, 8, 8}), 2).shape(), (Shape{0, 3, 4, 4}));
  EXPECT_EQ(avg_pool1d(zeros({3, 8}), 2).shape(), (Shape{3, 4}));
  EXPECT_EQ(adaptive_avg_pool2d(zeros({2, 3, 8, 6}), {-1, 1}).shape(), (Shape{2, 3, 8, 1}));
  EXPECT_EQ(adaptive_avg_pool3d(zeros({2, 3, 8, 6, 4}), 1).shape(), (Shape{2, 3, 1, 1, 1}));
  EXPECT_EQ(adaptive_max_pool2d(zeros({2, 3, 8, 6}), 0).shape(), (Shape{2, 3, 0, 0}));
  const Tensor x = ones({1, 2, 4, 4}, {.requires_grad = true});
  adaptive_max_pool2d(x, 0).sum().backward();
  EXPECT_TRUE(equal(*x.grad(), zeros_like(x)));
  EXPECT_EQ(max_pool2d(zeros({1, 3, 8, 8}), 3, {.stride = 2, .ceil_mode = true}).shape(), (Shape{1, 3, 4, 4}));
}

TEST(PoolErrors, AreStructured) {
  const Tensor x = zeros({1, 2, 6, 6});
  const auto expect = [](Error::Kind kind, const char* part, const std::function<void()>& f) {
    const auto r = attempt(f);
    ASSERT_FALSE(r);
    EXPECT_EQ(r.error().kind(), kind) << r.error().what();
    EXPECT_NE(std::string(r.error().what()).find(part), std::string::npos) << r.error().what();
  };
  using Kind = Error::Kind;
  expect(Kind::shape, "larger than an axis of 6", [&] { max_pool2d(x, 7); });
  expect(Kind::argument, "half", [&] { max_pool2d(x, 3, {.padding = 2}); });
  expect(Kind::argument, "half", [&] { avg_pool2d(x, 2, {.padding = {1, 2}}); });
  expect(Kind::argument, "kernel_size", [&] { avg_pool2d(x, 0); });
  expect(Kind::argument, "stride", [&] { max_pool2d(x, 2, {.stride = 0}); });
  expect(Kind::argument, "dilation", [&] { max_pool2d(x, 2, {.dilation = 0}); });
  expect(Kind::argument, "3 numbers for 2 axes", [&] { max_pool2d(x, {2, 2, 2}); });
  expect(Kind::argument, "divisor_override", [&] { avg_pool2d(x, 2, {.divisor_override = 0}); });
  expect(Kind::argument, "nothing but padding", [&] {
    max_pool1d(zeros({1, 2}), 2, {.stride = 1, .padding = 1, .dilation = 3});
  });
  expect(Kind::shape, "max_pool2d", [&] { max_pool2d(zeros({6, 6}), 2); });
  expect(Kind::shape, "adaptive_avg_pool2d", [&] { adaptive_avg_pool2d(zeros({1, 1, 0, 6}), 2); });
  expect(Kind::argument, "output_size", [&] { adaptive_avg_pool2d(x, -3); });
  expect(Kind::dtype, "avg_pool2d", [&] { avg_pool2d(x.to(i32), 2); });
  for (const double p : {0.0, double(NAN)}) expect(Kind::argument, "norm_type", [&] { lp_pool2d(x, p, 2); });
  const ValuesIndices found = max_pool2d_with_indices(x, 2);
  const Tensor y = found.values, i = found.indices;
  expect(Kind::shape, "indices", [&] { max_unpool2d(y, i.narrow(2, 0, 1), 2); });
  expect(Kind::index, "leave a plane", [&] { max_unpool2d(y, i + 100, 2); });
  expect(Kind::shape, "came from", [&] { max_unpool2d(y, i, 2, {.output_size = {9, 6}}); });
  expect(Kind::shape, "MaxPool2d", [] { nn::MaxPool2d(9)(zeros({1, 2, 6, 6})); });
}

TEST(PoolThreads, BitEqual) {
  const Tensor x = randn({3, 7, 41, 37}), g = randn({3, 7, 21, 19});
  const auto run = [&](int threads) {
    set_num_threads(threads);
    std::vector<Tensor> all;
    for (const bool max : {true, false}) {
      const Tensor in = x.detach().requires_grad_();
      const Tensor y =
          max ? max_pool2d(in, 3, {.stride = 2, .padding = 1}) : avg_pool2d(in, 3, {.stride = 2, .padding = 1});
      y.backward(g);
      all.push_back(y.detach()), all.push_back(*in.grad());
    }
    return all;
  };
  const int before = get_num_threads();
  const auto one = run(1), three = run(3);
  set_num_threads(before);
  for (size_t i = 0; i < one.size(); ++i) EXPECT_TRUE(equal(one[i], three[i]));
}

TEST(PoolLayers, CallTheirFunctions) {
  const Tensor line = randn({2, 3, 12}), image = randn({2, 3, 12, 10}), volume = randn({2, 3, 6, 8, 4});
  const MaxPoolOptions o{.stride = 2, .padding = 1};
  EXPECT_TRUE(equal(nn::MaxPool1d(3, o)(line), max_pool1d(line, 3, o)));
  EXPECT_TRUE(equal(nn::MaxPool2d(3, o)(image), max_pool2d(image, 3, o)));
  EXPECT_TRUE(equal(nn::MaxPool3d(2)(volume), max_pool3d(volume, 2)));
  EXPECT_TRUE(equal(nn::AvgPool1d(3)(line), avg_pool1d(line, 3)));
  EXPECT_TRUE(equal(nn::AvgPool2d({3, 2}, {.padding = 1})(image), avg_pool2d(image, {3, 2}, {.padding = 1})));
  EXPECT_TRUE(equal(nn::AvgPool3d(2)(volume), avg_pool3d(volume, 2)));
  EXPECT_TRUE(equal(nn::LPPool1d(1, 2)(line), lp_pool1d(line, 1, 2)));
  EXPECT_TRUE(equal(nn::LPPool2d(2, 2)(image), lp_pool2d(image, 2, 2)));
  EXPECT_TRUE(equal(nn::LPPool3d(2, 2)(volume), lp_pool3d(volume, 2, 2)));
  EXPECT_TRUE(equal(nn::AdaptiveAvgPool1d(5)(line), adaptive_avg_pool1d(line, 5)));
  EXPECT_TRUE(equal(nn::AdaptiveAvgPool3d(1)(volume), volume.mean({2, 3, 4}, true)));
  EXPECT_TRUE(equal(nn::AdaptiveMaxPool1d(5)(line), adaptive_max_pool1d(line, 5)));
  EXPECT_TRUE(equal(nn::AdaptiveMaxPool2d({5, 1})(image), adaptive_max_pool2d(image, {5, 1})));
  EXPECT_TRUE(equal(nn::AdaptiveMaxPool3d(1)(volume), volume.amax({2, 3, 4}, true)));
  const auto [y, i] = nn::MaxPool2d(2).with_indices(image);
  const Tensor back = nn::MaxUnpool2d(2)(y, i);
  EXPECT_TRUE(equal(max_pool2d(back, 2), clamp_min(y, 0)));
  EXPECT_EQ(
      nn::MaxUnpool1d(2, {.output_size = {13}})(max_pool1d(randn({2, 13}), 2), zeros({2, 6}, {.dtype = i64})).shape(),
      (Shape{2, 13}));
  EXPECT_STREQ(nn::AdaptiveMaxPool3d(1).type(), "AdaptiveMaxPool3d");
  nn::Sequential net(nn::MaxPool2d(2), nn::AdaptiveAvgPool2d(1), nn::Flatten());
  EXPECT_EQ(net(image).shape(), (Shape{2, 3}));
}

}  // namespace
}  // namespace volta
