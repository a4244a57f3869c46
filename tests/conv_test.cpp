// Convolution: every algorithm against a naive reference, gradients of every order, transposes, layouts, threads, errors.
#include <gtest/gtest.h>

#include <random>

#include <volta/volta.h>

#include "dense.h"
#include "ops/conv.h"
#include "samples.h"

namespace volta::test {
namespace {

constexpr ConvAlgorithm algorithms[] = {ConvAlgorithm::automatic, ConvAlgorithm::direct, ConvAlgorithm::im2col,
                                        ConvAlgorithm::implicit_gemm, ConvAlgorithm::winograd};

Tensor conv(int rank, const Tensor& x, const Tensor& w, const Tensor& b, const ConvOptions& o) {
  return rank == 1 ? conv1d(x, w, b, o) : rank == 2 ? conv2d(x, w, b, o) : conv3d(x, w, b, o);
}
Tensor conv_transpose(int rank, const Tensor& x, const Tensor& w, const Tensor& b, const ConvTransposeOptions& o) {
  return rank == 1   ? conv_transpose1d(x, w, b, o)
         : rank == 2 ? conv_transpose2d(x, w, b, o)
                     : conv_transpose3d(x, w, b, o);
}

struct Problem {
  Shape x, w, stride, padding, dilation;
  int64_t groups = 1;
  int rank() const { return x.size() - 2; }
  ConvOptions options(ConvAlgorithm a = ConvAlgorithm::automatic, int64_t chunk = 0) const {
    return {.stride = stride,
            .padding = PerAxis(padding),
            .dilation = dilation,
            .groups = groups,
            .algorithm = a,
            .chunk = chunk};
  }
  Shape y() const {
    Shape s = {x[0], w[0]};
    for (int i = 0; i < rank(); ++i)
      s.push_back((x[2 + i] + 2 * padding[i] - dilation[i] * (w[2 + i] - 1) - 1) / stride[i] + 1);
    return s;
  }
  std::string text() const {
    return "x " + x.str() + " w " + w.str() + " stride " + stride.str() + " padding " + padding.str() + " dilation " +
           dilation.str() + " groups " + std::to_string(groups);
  }
};

// f(place in x, place in w, place in y) for every product that a convolution sums; places in row-major order.
template <class F> void each_product(const Problem& p, F f) {
  const int64_t out = p.w[0] / p.groups, in = p.w[1];
  Shape taps;
  for (int i = 2; i < p.w.size(); ++i) taps.push_back(p.w[i]);
  int64_t place_y = 0, plane = 1;
  for (int i = 2; i < p.x.size(); ++i) plane *= p.x[i];
  each_index(p.y(), [&](const Shape& y) {
    int64_t tap = 0;
    each_index(taps, [&](const Shape& k) {
      int64_t x = 0;
      bool inside = true;
      for (int i = 0; i < p.rank(); ++i) {
        const int64_t at = y[2 + i] * p.stride[i] + k[i] * p.dilation[i] - p.padding[i];
        inside = inside && at >= 0 && at < p.x[2 + i];
        x = x * p.x[2 + i] + at;
      }
      for (int64_t c = 0; inside && c < in; ++c)
        f((y[0] * p.x[1] + y[1] / out * in + c) * plane + x, (y[1] * in + c) * taps.numel() + tap, place_y);
      ++tap;
    });
    ++place_y;
  });
}

// The result and both gradients, and the sums of the absolute products, by which errors are measured.
struct Naive {
  Dense y, gx, gw, y_size, gx_size, gw_size;
  Naive(const Problem& p, const Tensor& tx, const Tensor& tw, const Tensor& tg)
      : y(p.y()), gx(p.x), gw(p.w), y_size(p.y()), gx_size(p.x), gw_size(p.w) {
    const Dense x(tx), w(tw), g(tg);
    const auto add = [](Dense& to, Dense& size, size_t at, double v) {
      to.values[at] += v, size.values[at] += std::abs(v);
    };
    each_product(p, [&](int64_t at_x, int64_t at_w, int64_t at_y) {
      const auto i = size_t(at_x), k = size_t(at_w), o = size_t(at_y);
      add(y, y_size, o, x.values[i] * w.values[k]);
      add(gx, gx_size, i, g.values[o] * w.values[k]);
      add(gw, gw_size, k, g.values[o] * x.values[i]);
    });
  }
};

// Errors are measured by the sum of absolute products; of Winograd, whose values meet those of their whole tile, by the
// largest such sum: along an axis |A^T| (|G w| . |B^T x|) is at most 48 where |w| and |x| are 1 and their products add up to
// 3, so that a unit of rounding, 2^-24, grows by up to (48 / 3)^2 = 256.
struct Tolerance {
  double own, largest, rounding;
  Tolerance(DType dtype, ConvAlgorithm used) {
    const bool winograd = used == ConvAlgorithm::winograd;
    own = dtype == f64 ? 1e-15 : 5e-7;
    largest = dtype != f64 && winograd ? 256 * 0x1p-24 : 0;
    rounding = dtype == f16 ? 0x1p-11 : dtype == bf16 ? 0x1p-8 : 0;
  }
};

void expect_near(const Tensor& got, const Dense& expected, const Dense& size, const Tolerance& t,
                 const std::string& what) {
  const Dense values(got);
  ASSERT_EQ(values.shape, expected.shape) << what;
  const double largest = *std::max_element(size.values.begin(), size.values.end());
  for (size_t i = 0; i < values.values.size(); ++i) {
    const double near = t.own * size.values[i] + t.largest * largest;
    const double bound = near + t.rounding * (std::abs(expected.values[i]) + near) + 1e-30;
    ASSERT_LE(std::abs(values.values[i] - expected.values[i]), bound) << what << " at " << i << " of " << values.shape;
  }
}

Problem random_problem(std::mt19937& draw, int rank) {
  const auto pick = [&](int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(draw); };
  Problem p;
  p.groups = pick(0, 2) == 0 ? pick(2, 3) : 1;
  const bool plain = pick(0, 3) == 0;  // what Winograd serves
  const int64_t in = pick(1, 5), out = pick(1, 9);
  p.x = {pick(1, 3), in * p.groups};
  p.w = {out * p.groups, in};
  for (int i = 0; i < rank; ++i) {
    const int64_t k = plain ? 3 : pick(1, rank == 3 ? 3 : 5), dilation = plain ? 1 : pick(1, 3), padding = pick(0, 3);
    const int64_t least = std::max<int64_t>(1, dilation * (k - 1) + 1 - 2 * padding);
    p.x.push_back(least + pick(0, rank == 1 ? 60 : rank == 2 ? 14 : 4));
    p.w.push_back(k);
    p.stride.push_back(plain ? 1 : pick(1, 3));
    p.padding.push_back(padding);
    p.dilation.push_back(dilation);
  }
  return p;
}

void check_problem(const Problem& p, DType dtype, Device device) {
  const Tensor x = randn(p.x, {.dtype = f32}).to(dtype).to(device).requires_grad_();
  const Tensor w = randn(p.w, {.dtype = f32}).to(dtype).to(device).requires_grad_();
  const Tensor g = randn(p.y(), {.dtype = f32}).to(dtype).to(device);
  const Naive naive(p, x, w, g);
  for (const ConvAlgorithm a : algorithms) {
    const std::string what = std::string(name(a)) + " " + std::string(name(dtype)) + " " + p.text();
    const ConvOptions options = p.options(a, a == ConvAlgorithm::im2col ? 7 : 0);
    const auto near = [&](ConvPiece piece) { return Tolerance(dtype, conv_algorithm(x, w, options, piece)); };
    const Tensor y = conv(p.rank(), x, w, {}, options);
    expect_near(y, naive.y, naive.y_size, near(ConvPiece::forward), what);
    const std::vector<Tensor> grads = grad(y, {x, w}, {.grad_outputs = {g}});
    expect_near(grads[0], naive.gx, naive.gx_size, near(ConvPiece::input), what + ", input");
    expect_near(grads[1], naive.gw, naive.gw_size, near(ConvPiece::weight), what + ", weight");
  }
}

class ConvEvery : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, ConvEvery, ::testing::Values(1, 2, 3));

TEST_P(ConvEvery, AlgorithmEqualsTheReference) {
  std::mt19937 draw{unsigned(GetParam())};
  manual_seed(1);
  for (const Device device : devices()) {
    for (int i = 0; i < 120; ++i) {
      const Problem p = random_problem(draw, GetParam());
      const DType dtype = i % 8 == 0 ? f16 : i % 8 == 4 ? bf16 : i % 3 == 2 ? f64 : f32;
      ASSERT_NO_FATAL_FAILURE(check_problem(p, dtype, device));
    }
  }
}

TEST(ConvEvery, AlgorithmAtSizesWithSeveralBoxesAndBlocks) {
  manual_seed(2);
  const Problem problems[] = {
      {{1, 40, 60, 61}, {5, 40, 3, 3}, {1, 1}, {1, 1}, {1, 1}, 1},
      {{1, 36, 22, 23}, {33, 36, 3, 3}, {1, 1}, {1, 1}, {1, 1}, 1},
      {{1, 3, 61, 67}, {17, 3, 7, 7}, {2, 2}, {3, 3}, {1, 1}, 1},
      {{2, 16, 20, 41}, {16, 1, 3, 3}, {1, 1}, {1, 1}, {1, 1}, 16},
      {{1, 64, 30, 30}, {24, 64, 1, 1}, {1, 1}, {0, 0}, {1, 1}, 1},
      {{1, 70, 13, 11}, {130, 70, 3, 3}, {1, 1}, {1, 1}, {1, 1}, 1},
      {{1, 4, 40000}, {3, 4, 3}, {1}, {1}, {1}, 1},
      {{1, 4, 10, 60, 60}, {2, 4, 3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, 1},
  };
  for (const Problem& p : problems) ASSERT_NO_FATAL_FAILURE(check_problem(p, f32, Device()));
}

// Kernels that are large beside the output: the input's gradient is then made of patches.
TEST(ConvEvery, AlgorithmWithLargeKernels) {
  manual_seed(3);
  const Problem problems[] = {
      {{5, 6, 7, 7}, {40, 6, 7, 7}, {1, 1}, {0, 0}, {1, 1}, 1},        // as large as the image
      {{3, 3, 32, 48}, {33, 3, 16, 16}, {16, 16}, {0, 0}, {1, 1}, 1},  // patches side by side
      {{3, 3, 20, 35}, {12, 3, 5, 16}, {9, 17}, {2, 1}, {1, 1}, 1},    // and apart
      {{2, 4, 21, 25}, {36, 2, 9, 9}, {2, 1}, {3, 2}, {2, 3}, 2},      // dilated, groups
      {{2, 3, 90}, {20, 3, 64}, {3}, {30}, {1}, 1},                    // mostly over the edges
      {{2, 2, 6, 7, 9}, {24, 2, 6, 5, 8}, {1, 1, 2}, {0, 1, 2}, {1, 1, 1}, 1},
  };
  for (const Problem& p : problems) {
    for (const DType dtype : {f32, f64, f16, bf16}) {
      for (const Device device : devices()) ASSERT_NO_FATAL_FAILURE(check_problem(p, dtype, device));
    }
  }
}

TEST(ConvEvery, PatchesOfMegabytes) {
  manual_seed(5);
  const Tensor w = randn({2, 4, 400, 400}), y = randn({20, 2, 1, 1});  // more of them than are made together
  const Tensor x = conv_transpose2d(y, w, {}, {.algorithm = "im2col"});
  EXPECT_TRUE(allclose(x, matmul(y.reshape({20, 2}), w.reshape({2, -1})).reshape(x.shape()), {.atol = 1e-5}));
}

TEST(ConvEvery, PatchesOfAnyLayoutAndChunkOnAnyNumberOfThreads) {
  manual_seed(4);
  const Tensor w = randn({20, 3, 6, 7}), bias = randn({3}), whole = randn({4, 3, 2, 40});
  const Tensor all = whole.expand({4, 3, 2, 40}).transpose(1, 3).slice(1, 0, 40, 2).flip(0), zero = randn({20, 1, 1});
  for (const Tensor& y : {all, zero.expand({4, 20, 2, 3}), all.to(f64), all.to(bf16)}) {
    const Tensor weight = w.to(y.dtype()), b = bias.to(y.dtype());
    const ConvTransposeOptions o{.padding = 1, .algorithm = "im2col"};
    const auto by = [&](ConvAlgorithm a) { return conv_transpose2d(y, weight, b, {.padding = 1, .algorithm = a}); };
    const Tensor patches = by(ConvAlgorithm::im2col), passes = by(ConvAlgorithm::direct);
    EXPECT_TRUE(allclose(patches, passes,
                         {.rtol = is_half(y.dtype()) ? 2e-2 : 1e-4, .atol = is_half(y.dtype()) ? 5e-2 : 1e-4}));
    EXPECT_TRUE(equal(by(ConvAlgorithm::automatic), patches));
    const int before = get_num_threads();
    for (const int threads : {1, 3, 4}) {
      set_num_threads(threads);
      EXPECT_TRUE(equal(by(ConvAlgorithm::im2col), patches)) << threads;
    }
    set_num_threads(before);
    EXPECT_TRUE(equal(conv_transpose2d(y.slice(0, 0, 0), weight, b, o), patches.slice(0, 0, 0)));
  }
}

// What devices without a loop of their own compute.
TEST(ConvComposed, EqualsTheReference) {
  manual_seed(10);
  std::mt19937 draw(13);
  for (int i = 0; i < 60; ++i) {
    const Problem p = random_problem(draw, 1 + i % 3);
    const Tensor x = randn(p.x, {.dtype = f64}), w = randn(p.w, {.dtype = f64}), g = randn(p.y(), {.dtype = f64});
    Convolution c{"conv", p.rank(), {p.x[0], p.x[1], p.w[0], p.groups, {}}, ConvAlgorithm::automatic, 0};
    for (int k = 0; k < p.rank(); ++k)
      c.g.axes[3 - p.rank() + k] = {p.x[2 + k], p.w[2 + k], p.y()[2 + k], p.stride[k], p.padding[k], p.dilation[k]};
    const Naive naive(p, x, w, g);
    const Tolerance near(f64, ConvAlgorithm::direct);
    expect_near(convolve_by_taps(c, ConvPiece::forward, x, w), naive.y, naive.y_size, near, p.text());
    expect_near(convolve_by_taps(c, ConvPiece::input, w, g), naive.gx, naive.gx_size, near, p.text());
    expect_near(convolve_by_taps(c, ConvPiece::weight, x, g), naive.gw, naive.gw_size, near, p.text());
  }
}

TEST(ConvGradient, FirstAndSecondOrder) {
  manual_seed(3);
  const Problem problems[] = {{{2, 4, 5}, {2, 2, 3}, {2}, {2}, {1}, 2},
                              {{2, 2, 4, 3}, {2, 2, 2, 2}, {1, 2}, {1, 0}, {2, 1}, 1},
                              {{1, 2, 3, 2, 3}, {2, 1, 2, 1, 2}, {1, 1, 2}, {0, 1, 1}, {1, 1, 1}, 2}};
  for (const Device device : devices()) {
    for (const Problem& p : problems) {
      const Options o{.dtype = f64, .device = device, .requires_grad = true};
      const Tensor x = randn(p.x, o), w = randn(p.w, o), b = randn({p.w[0]}, o);
      const auto f = [&](const Tensor& a, const Tensor& k, const Tensor& c) {
        return conv(p.rank(), a, k, c, p.options());
      };
      EXPECT_TRUE(gradcheck(f, x, w, b)) << p.text();
      EXPECT_TRUE(gradgradcheck(f, x, w, b)) << p.text();
      const Tensor y = randn(p.y(), o), c = randn({p.x[1]}, o);
      const auto back = [&](const Tensor& a, const Tensor& k, const Tensor& bias) {
        return conv_transpose(p.rank(), a, k, bias,
                              {.stride = p.stride, .padding = 0, .groups = p.groups, .dilation = p.dilation});
      };
      EXPECT_TRUE(gradcheck(back, y, w, c)) << p.text();
      EXPECT_TRUE(gradgradcheck(back, y, w, c)) << p.text();
    }
  }
}

// conv_transpose is the gradient of conv by its input; output_padding tells apart the inputs that give one output.
TEST(ConvTransposed, IsTheGradientOfTheForwardConvolution) {
  manual_seed(4);
  std::mt19937 draw(11);
  for (int i = 0; i < 60; ++i) {
    const int rank = 1 + i % 3;
    const Problem p = random_problem(draw, rank);
    const Tensor x = randn(p.x, {.dtype = f64, .requires_grad = true}), w = randn(p.w, {.dtype = f64});
    const Tensor y = randn(p.y(), {.dtype = f64}), b = randn({p.x[1]}, {.dtype = f64});
    Shape more;
    for (int k = 0; k < rank; ++k)
      more.push_back(p.x[2 + k] -
                     ((p.y()[2 + k] - 1) * p.stride[k] - 2 * p.padding[k] + p.dilation[k] * (p.w[2 + k] - 1) + 1));
    const Tensor expected = grad(conv(rank, x, w, {}, p.options()), x, {.grad_outputs = {y}});
    const Tensor got = conv_transpose(
        rank, y, w, b,
        {.stride = p.stride, .padding = p.padding, .output_padding = more, .groups = p.groups, .dilation = p.dilation});
    Shape per_channel = Shape::filled(rank + 1, 1);
    per_channel[0] = -1;
    EXPECT_TRUE(allclose(got, expected + b.reshape(per_channel), {.rtol = 1e-12, .atol = 1e-12})) << p.text();
  }
}

TEST(ConvResult, HasTheSameBitsForEveryNumberOfThreads) {
  manual_seed(5);
  const int before = get_num_threads();
  const Problem problems[] = {{{1, 32, 20, 20}, {96, 32, 3, 3}, {1, 1}, {1, 1}, {1, 1}, 1},
                              {{1, 65, 14, 14}, {140, 65, 3, 3}, {1, 1}, {1, 1}, {1, 1}, 1},
                              {{5, 12, 31, 29}, {12, 1, 3, 3}, {2, 2}, {1, 1}, {1, 1}, 12},
                              {{3, 4, 40, 40}, {9, 4, 5, 5}, {1, 1}, {2, 2}, {1, 1}, 1},
                              {{4, 40, 18, 18}, {96, 40, 3, 3}, {1, 1}, {1, 1}, {1, 1}, 1},
                              {{2, 300, 7, 7}, {70, 300, 3, 3}, {1, 1}, {1, 1}, {1, 1}, 1},
                              {{3, 40, 12, 12}, {100, 20, 3, 3}, {2, 2}, {1, 1}, {1, 1}, 2},
                              {{8, 260, 4, 4}, {250, 260, 3, 3}, {1, 1}, {1, 1}, {1, 1}, 1},
                              {{3, 144, 10, 10}, {150, 72, 3, 3}, {1, 1}, {1, 1}, {1, 1}, 2}};
  for (const Problem& p : problems) {
    const Tensor x = randn(p.x, {.requires_grad = true}), w = randn(p.w, {.requires_grad = true}), g = randn(p.y());
    for (const ConvAlgorithm a : algorithms) {
      std::vector<Tensor> first;
      for (const int threads : {1, 2, 3, 8, 16, 40}) {
        set_num_threads(threads);
        const Tensor y = conv2d(x, w, {}, p.options(a));
        std::vector<Tensor> all = grad(y, {x, w}, {.grad_outputs = {g}});
        all.push_back(y.detach());
        if (first.empty()) first = all;
        for (size_t i = 0; i < all.size(); ++i) EXPECT_TRUE(equal(all[i], first[i])) << name(a) << " " << p.text();
      }
    }
  }
  set_num_threads(before);
}

TEST(ConvInput, MayLieAnyhowInMemory) {
  manual_seed(6);
  const Tensor x = randn({2, 6, 9, 11}), w = randn({4, 6, 3, 3}), g = randn({2, 4, 9, 11});
  for (const ConvAlgorithm a : algorithms) {
    const ConvOptions o{.padding = 1, .algorithm = a};
    const auto all = [&](Tensor in, Tensor weight, const Tensor& back) {
      in = in.detach().requires_grad_(), weight = weight.detach().requires_grad_();
      const Tensor y = conv2d(in, weight, {}, o);
      std::vector<Tensor> r = grad(y, {in, weight}, {.grad_outputs = {back}});
      r.push_back(y.detach());
      return r;
    };
    const std::vector<Tensor> expected = all(x, w, g);
    const std::vector<Tensor> xs = layouts(x), ws = layouts(w), gs = layouts(g);
    for (size_t i = 0; i < xs.size(); ++i) {
      const std::vector<Tensor> got = all(xs[i], ws[i], gs[i]);
      for (size_t k = 0; k < got.size(); ++k) EXPECT_TRUE(equal(got[k], expected[k])) << name(a) << i << k;
    }
    const Tensor flat = ones({1}).expand({2, 4, 9, 11});
    EXPECT_TRUE(equal(all(x, w, flat)[1], all(x, w, ones({2, 4, 9, 11}))[1]));
  }
  const Tensor pointwise = randn({5, 6, 1, 1});
  for (const Tensor& t : layouts(x)) EXPECT_TRUE(equal(conv2d(t, pointwise), conv2d(x, pointwise)));
}

TEST(ConvInput, MayLackABatchOrHaveNone) {
  const Tensor x = randn({3, 8, 8}), w = randn({4, 3, 3, 3}), b = randn({4});
  EXPECT_TRUE(equal(conv2d(x, w, b), conv2d(x.unsqueeze(0), w, b).squeeze(0)));
  EXPECT_EQ(conv_transpose2d(x, randn({3, 4, 3, 3})).shape(), (Shape{4, 10, 10}));
  EXPECT_EQ(conv1d(randn({2, 9}), randn({5, 2, 3})).shape(), (Shape{5, 7}));
  const Tensor none = randn({0, 3, 8, 8}, {.requires_grad = true}),
               weight = randn({4, 3, 3, 3}, {.requires_grad = true});
  const Tensor y = conv2d(none, weight, b);
  EXPECT_EQ(y.shape(), (Shape{0, 4, 6, 6}));
  const std::vector<Tensor> grads = grad(y.sum(), {none, weight});
  EXPECT_EQ(grads[0].shape(), none.shape());
  EXPECT_TRUE(equal(grads[1], zeros({4, 3, 3, 3})));
  EXPECT_EQ(conv_transpose2d(randn({0, 3, 4, 4}), randn({3, 2, 2, 2})).shape(), (Shape{0, 2, 5, 5}));
}

TEST(ConvBias, IsAddedOnceInEveryAlgorithmAndDtype) {
  for (const DType dtype : {f16, bf16, f32, f64}) {
    for (const ConvAlgorithm a : algorithms) {
      const Tensor x = zeros({2, 3, 9, 9}, {.dtype = dtype}), w = ones({6, 3, 3, 3}, {.dtype = dtype});
      const Tensor b = arange(0, 6).to(dtype), back = ones({3, 6, 2, 2}, {.dtype = dtype});
      const Tensor y = conv2d(x, w, b, {.padding = 1, .algorithm = a});
      EXPECT_TRUE(equal(y, b.reshape({6, 1, 1}).expand({2, 6, 9, 9}))) << name(a);
      const Tensor z = conv_transpose2d(x, back, b, {.stride = 3, .algorithm = a});
      EXPECT_TRUE(equal(z, b.reshape({6, 1, 1}).expand({2, 6, 26, 26}))) << name(a);
    }
  }
}

TEST(ConvPadding, SameAndValid) {
  const Tensor x = randn({1, 2, 7, 10}), w = randn({3, 2, 4, 3});
  EXPECT_EQ(conv2d(x, w, {}, {.padding = "same", .dilation = {1, 2}}).shape(), (Shape{1, 3, 7, 10}));
  EXPECT_TRUE(equal(conv2d(x, w, {}, {.padding = "valid"}), conv2d(x, w)));
  // An odd total puts the larger part behind.
  EXPECT_TRUE(allclose(conv2d(x, w, {}, {.padding = "same"}), conv2d(pad(x, {1, 1, 1, 2}), w), {.atol = 1e-5}));
}

TEST(ConvChoice, IsReportedAndCanBeForced) {
  const Tensor x = randn({8, 64, 56, 56}), w = randn({64, 64, 3, 3}), each = randn({64, 1, 3, 3});
  const ConvOptions padded{.padding = 1}, depthwise{.padding = 1, .groups = 64};
  EXPECT_EQ(conv_algorithm(x, w, padded), ConvAlgorithm::winograd);
  EXPECT_EQ(conv_algorithm(x, w, padded, ConvPiece::weight), ConvAlgorithm::winograd);
  EXPECT_EQ(conv_algorithm(x.to(f64), w.to(f64), padded), ConvAlgorithm::implicit_gemm);
  EXPECT_EQ(conv_algorithm(x, each, depthwise), ConvAlgorithm::direct);
  EXPECT_EQ(conv_algorithm(x, randn({64, 64, 56, 56}), {}, ConvPiece::input), ConvAlgorithm::im2col);
  EXPECT_EQ(conv_algorithm(x, randn({64, 64, 8, 8}), {.stride = 8}, ConvPiece::input), ConvAlgorithm::im2col);
  for (const ConvAlgorithm a : {ConvAlgorithm::direct, ConvAlgorithm::im2col, ConvAlgorithm::implicit_gemm}) {
    const UseConvAlgorithm use(a);
    EXPECT_EQ(conv_algorithm(x, w, padded), a);
    EXPECT_EQ(conv_algorithm(x, w, {.algorithm = ConvAlgorithm::direct}), ConvAlgorithm::direct);
  }
  for (const ConvPiece piece : {ConvPiece::forward, ConvPiece::input, ConvPiece::weight}) {
    EXPECT_EQ(conv_algorithm(x, randn({8, 64, 5, 5}), {.algorithm = ConvAlgorithm::winograd}, piece),
              ConvAlgorithm::implicit_gemm);
  }
}

TEST(ConvWinograd, ErrorIsAsStatedAtManyChannels) {
  manual_seed(8);
  const std::pair<Shape, Shape> shapes[] = {{{2, 256, 20, 20}, {64, 256, 3, 3}}, {{2, 300, 7, 6}, {70, 300, 3, 3}}};
  for (const auto& [x_shape, w_shape] : shapes) {
    const Tensor x = randn(x_shape), w = randn(w_shape), b = randn({w_shape[0]});
    const Tensor g = randn({x_shape[0], w_shape[0], x_shape[2], x_shape[3]});
    const auto by = [&](ConvAlgorithm a, DType t) {
      const Tensor source = x.to(t).requires_grad_(), weight = w.to(t).requires_grad_();
      const Tensor y = conv2d(source, weight, b.to(t), {.padding = 1, .algorithm = a});
      const std::vector<Tensor> grads = grad(y, {source, weight}, {.grad_outputs = {g.to(t)}});
      return std::vector{y.to(f64), grads[0].to(f64), grads[1].to(f64)};
    };
    const auto exact = by(ConvAlgorithm::direct, f64), got = by(ConvAlgorithm::winograd, f32);
    for (size_t i = 0; i < exact.size(); ++i) {
      const double rms = ((got[i] - exact[i]).square().mean() / exact[i].square().mean()).sqrt().item<double>();
      EXPECT_LT(rms, 5e-6) << x_shape << ", piece " << i;
      EXPECT_GT(rms, 1e-7) << x_shape << ", piece " << i;  // it is another algorithm
    }
  }
}

// Beyond inputs, outputs and gradients.
int64_t working_memory(const Shape& x_shape, const Shape& w_shape) {
  Tensor x = randn(x_shape, {.requires_grad = true}), w = randn(w_shape, {.requires_grad = true});
  const int64_t before = memory::stats().in_use;
  memory::reset_peak();
  const Tensor y = conv2d(x, w, {}, {.padding = 1});
  const std::vector<Tensor> grads = grad(y.sum(), {x, w});
  return memory::stats().peak - before - y.nbytes() - grads[0].nbytes() - grads[1].nbytes();
}
TEST(ConvMemory, StaysNearInputsOutputsAndGradients) {
  EXPECT_LT(working_memory({8, 64, 128, 128}, {64, 64, 3, 3}), 64 << 20);
  EXPECT_LT(working_memory({32, 3, 224, 224}, {8, 3, 3, 3}), 64 << 20);
}

TEST(ConvErrors, NameTheOpAndTheSizes) {
  const Tensor x = randn({1, 4, 8, 8}), w = randn({6, 4, 3, 3});
  const auto expect = [](auto f, Error::Kind kind, const std::string& part) {
    const auto r = attempt(f);
    ASSERT_FALSE(r) << part;
    EXPECT_EQ(r.error().kind(), kind) << r.error().what();
    EXPECT_NE(std::string(r.error().what()).find(part), std::string::npos) << r.error().what();
  };
  using Kind = Error::Kind;
  expect([&] { return conv2d(x, randn({6, 3, 3, 3})); }, Kind::shape, "4 channels where weight [6, 3, 3, 3]");
  expect([&] { return conv2d(x, randn({5, 2, 3, 3}), {}, {.groups = 2}); }, Kind::shape, "2 groups do not divide");
  expect([&] { return conv2d(x, w, {}, {.groups = 0}); }, Kind::argument, "groups must be positive");
  expect([&] { return conv2d(x, randn({6, 4, 9, 3})); }, Kind::shape, "spans 9 elements");
  expect([&] { return conv2d(x, w, {}, {.dilation = 4}); }, Kind::shape, "spans 9 elements");
  expect([&] { return conv2d(x, randn({6, 4, 0, 3})); }, Kind::shape, "empty weight");
  expect([&] { return conv2d(randn({1, 4, 0, 8}), w); }, Kind::shape, "with its padding");
  expect([&] { return conv2d(x, w, {}, {.stride = 0}); }, Kind::argument, "stride");
  expect([&] { return conv2d(x, w, {}, {.stride = {1, -1}}); }, Kind::argument, "stride");
  expect([&] { return conv2d(x, w, {}, {.stride = {1, 1, 1}}); }, Kind::argument, "3 numbers for 2 axes");
  expect([&] { return conv2d(x, w, {}, {.padding = -1}); }, Kind::argument, "padding");
  expect([&] { return conv2d(x, w, {}, {.dilation = 0}); }, Kind::argument, "dilation");
  expect([&] { return conv2d(x, w, {}, {.padding = "full"}); }, Kind::argument, "'full'");
  expect([&] { return conv2d(x, w, {}, {.stride = 2, .padding = "same"}); }, Kind::argument, "stride of 1");
  expect([&] { return conv2d(x, w, {}, {.chunk = -1}); }, Kind::argument, "chunk");
  expect([&] { return conv2d(x, w.to(f64)); }, Kind::dtype, "f64");
  expect([&] { return conv2d(x, w, zeros({6}, {.dtype = f16})); }, Kind::dtype, "bias of f16");
  expect([&] { return conv2d(x.to(i32), w.to(i32)); }, Kind::dtype, "floating");
  expect([&] { return conv2d(x, w, zeros({5})); }, Kind::shape, "bias must have shape [6]");
  expect([&] { return conv2d(x, randn({6, 4, 3})); }, Kind::shape, "weight of 4 axes");
  expect([&] { return conv1d(x, randn({6, 4, 3})); }, Kind::shape, "input of 2 axes");
  expect([&] { return conv2d(Tensor(), w); }, Kind::argument, "conv2d");
  expect(
      [&] {
        return conv_transpose2d(x, randn({4, 2, 3, 3}), {}, {.output_padding = 1});
      },
      Kind::argument, "output_padding");
  expect(
      [&] {
        return conv_transpose2d(x, randn({4, 2, 3, 3}), {}, {.stride = 2, .output_padding = -1});
      },
      Kind::argument, "output_padding");
  expect([&] { return conv_transpose2d(x, randn({5, 2, 3, 3})); }, Kind::shape, "needs 5");
  expect([&] { return conv_transpose2d(x, randn({4, 2, 3, 3}), {}, {.padding = 6}); }, Kind::shape, "leaves an output");
  expect([&] { return conv_transpose2d(x, randn({4, 2, 3, 3}), zeros({4})); }, Kind::shape, "bias must have shape [2]");
}

}  // namespace
}  // namespace volta::test
