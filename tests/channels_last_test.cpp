// Tensors with their channels closest together: values and gradients are those of contiguous ones on the CPU, and on a GPU
// results lie the same way, without copies.
#include <gtest/gtest.h>

#include <volta/volta.h>

#include "ops/channels_last.h"
#include "samples.h"

namespace volta::test {
namespace {

bool lies_so(const Tensor& x) { return layout(x).is_channels_last(); }
bool lies_only_so(const Tensor& x) { return lies_so(x) && !x.is_contiguous(); }

using Function = std::function<Tensor(const Tensors&)>;

// The result, and the gradients of all inputs from g.
Tensors run(const Function& f, const Tensors& in, const Tensor& g) {
  Tensors leaves;
  for (const Tensor& x : in) leaves.push_back(x.detach().requires_grad_());
  Tensors results{f(leaves)};
  for (const Tensor& d : grad(results, leaves, {.grad_outputs = {g}})) results.push_back(d);
  return results;
}

// Within what rounding makes of the largest values.
void expect_near(const Tensors& got, const Tensors& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i].shape(), expected[i].shape());
    ASSERT_EQ(got[i].dtype(), expected[i].dtype());
    const DType dtype = got[i].dtype();
    const double unit = is_half(dtype) ? 2e-2 : dtype == f32 ? 5e-5 : 1e-11;
    const Tensor a = got[i].detach().to(Device()).to(f64), b = expected[i].detach().to(f64);
    const auto largest = b.abs().max().item<double>(), apart = (a - b).abs().max().item<double>();
    EXPECT_LE(apart, unit * std::max(largest, 1.0)) << "result " << i << " of " << name(dtype);
  }
}

Tensor drawn(const Shape& shape, DType dtype) { return randn(shape).to(dtype); }
Tensors on(const Device& device, const Tensors& list) {
  Tensors moved;
  for (const Tensor& x : list) moved.push_back(x.to(device));
  return moved;
}

struct Conv {
  Shape x, w;
  ConvOptions options = {};
};
const Conv convs[] = {
    {{2, 3, 9, 8}, {5, 3, 3, 3}, {.padding = 1}},
    {{1, 5, 7, 7}, {17, 5, 3, 3}, {.stride = 2, .padding = 1}},
    {{2, 17, 6, 5}, {3, 17, 1, 1}},
    {{2, 64, 8, 8}, {64, 64, 3, 3}, {.padding = 1}},
    {{2, 6, 9, 9}, {12, 2, 3, 3}, {.stride = {2, 1}, .padding = {1, 0}, .dilation = {1, 2}, .groups = 3}},
    {{2, 16, 7, 7}, {16, 1, 3, 3}, {.padding = 1, .groups = 16}},
    {{2, 17, 7, 7}, {17, 1, 3, 3}, {.padding = 1, .groups = 17}},
    {{3, 8, 1, 1}, {4, 8, 1, 1}},
    {{2, 8, 1, 1}, {4, 8, 3, 3}, {.padding = 1}},
    {{2, 1, 6, 6}, {3, 1, 3, 3}, {.padding = 1}},
    {{2, 3, 20}, {4, 3, 5}, {.padding = 2}},
    {{1, 4, 4, 5, 6}, {6, 4, 3, 3, 3}, {.padding = 1}},
    {{4, 64, 28, 28}, {128, 64, 3, 3}, {.stride = 2, .padding = 1}},  // so much that algorithms are timed
};
Tensor convolved(const Conv& c, const Tensors& in) {
  constexpr Tensor (*conv[])(const Tensor&, const Tensor&, const Tensor&, const ConvOptions&) = {conv1d, conv2d,
                                                                                                 conv3d};
  return conv[c.x.size() - 3](in[0], in[1], in[2], c.options);
}

TEST(ConvChannelsLast, EqualsContiguous) {
  manual_seed(1);
  for (const Device& device : devices())
    for (const Conv& c : convs)
      for (const DType dtype : {f16, bf16, f32, f64}) {
        const Tensors in{drawn(c.x, dtype), drawn(c.w, dtype), drawn({c.w[0]}, dtype)};
        const Function f = [&](const Tensors& x) { return convolved(c, x); };
        const Tensor g = drawn(f(in).shape(), dtype);
        const Tensors expected = run(f, in, g);
        for (int which = 1; which < 8; ++which) {  // bits: x, w and g are channels-last
          SCOPED_TRACE("x " + c.x.str() + " w " + c.w.str() + " " + std::to_string(which));
          Tensors here = on(device, {in[0], in[1], in[2], g});
          for (const auto& [bit, i] : {std::pair{1, 0}, {2, 1}, {4, 3}})
            if (which & bit) here[size_t(i)] = channels_last(here[size_t(i)]);
          const Tensors got = run(f, {here[0], here[1], here[2]}, here[3]);
          expect_near(got, expected);
          if (!device.is_cuda() || dtype == f64) continue;
          const bool x = lies_only_so(here[0]), w = lies_only_so(here[1]), y = lies_only_so(here[3]);
          EXPECT_TRUE(lies_so(got[0]) || !(x || w));
          EXPECT_TRUE(lies_so(got[1]) || !(y || w));
          EXPECT_TRUE((w ? lies_so(got[2]) : got[2].is_contiguous()) || !(x || y));
        }
      }
}

TEST(ConvChannelsLast, TransposedEqualsContiguous) {
  manual_seed(2);
  for (const Device& device : devices())
    for (const DType dtype : {bf16, f32}) {
      const Tensors in{drawn({2, 6, 5, 4}, dtype), drawn({6, 5, 3, 3}, dtype), drawn({10}, dtype)};
      const Function f = [](const Tensors& x) {
        return conv_transpose2d(x[0], x[1], x[2], {.stride = 2, .padding = 1, .output_padding = 1, .groups = 2});
      };
      const Tensor g = drawn(f(in).shape(), dtype);
      Tensors here = on(device, {in[0], in[1], in[2], g});
      here[0] = channels_last(here[0]), here[3] = channels_last(here[3]);
      const Tensors got = run(f, {here[0], here[1], here[2]}, here[3]);
      expect_near(got, run(f, in, g));
      EXPECT_TRUE((lies_so(got[0]) && lies_so(got[1])) || !device.is_cuda());
    }
}

// Strided views of channels-last tensors, whose channels do not begin on an aligned address.
TEST(ConvChannelsLast, ViewsEqualContiguous) {
  manual_seed(3);
  for (const Device& device : devices()) {
    const Tensors in{drawn({3, 9, 6, 6}, f32), drawn({4, 5, 3, 3}, f32)};
    const Function f = [](const Tensors& x) { return conv2d(x[0], x[1], {}, {.padding = 1}); };
    const Tensor part = in[0].narrow(0, 1, 2).narrow(1, 3, 5), g = drawn({2, 4, 6, 6}, f32);
    const Tensors here = on(device, {in[0], in[1], g});
    const Tensor x = channels_last(here[0]).narrow(0, 1, 2).narrow(1, 3, 5);
    expect_near(run(f, {x, here[1]}, here[2]), run(f, {part, in[1]}, g));
  }
}

TEST(ConvChannelsLast, GradientsOfBothOrders) {
  manual_seed(4);
  for (const Device& device : devices()) {
    const Options o{.dtype = f64, .device = device};
    const Tensor x = channels_last(randn({2, 3, 4, 3}, o)).requires_grad_(),
                 w = channels_last(randn({2, 3, 2, 2}, o)).requires_grad_();
    const auto f = [](const Tensor& a, const Tensor& k) { return conv2d(a, k, {}, {.padding = 1}); };
    EXPECT_TRUE(gradcheck(f, x, w));
    EXPECT_TRUE(gradgradcheck(f, x, w));
  }
}

const Shape images[] = {{4, 3, 5, 6}, {1, 5, 4, 4},     {3, 17, 2, 3},  {2, 64, 7, 7},   {37, 70, 1, 3},
                        {2, 8, 1, 1}, {5, 1, 3, 3},     {3, 24, 11},    {2, 8, 3, 4, 5}, {64, 33},
                        {5, 8},       {30, 16, 40, 41}, {2, 264, 5, 3}, {9, 1030, 2, 1}};

TEST(NormChannelsLast, EqualsContiguous) {
  manual_seed(5);
  for (const Device& device : devices())
    for (const Shape& shape : images)
      for (const DType dtype : {f16, bf16, f32, f64})
        for (const bool training : {true, false})
          for (const bool weighted : {true, false}) {
            SCOPED_TRACE(shape.str() + (training ? " training" : " eval") + (weighted ? " weighted" : ""));
            const DType wide = dtype == f64 ? f64 : f32;
            const Tensor moments[] = {drawn({shape[1]}, wide), drawn({shape[1]}, wide).square() + 0.5};
            const auto f = [&](const Tensor& mean, const Tensor& var) {
              return [=](const Tensors& in) {
                return batch_norm(in[0], mean, var, weighted ? in[1] : Tensor(), weighted ? in[2] : Tensor(), training);
              };
            };
            Tensors in{(randn(shape) * 2 + 3).to(dtype)};
            if (weighted) in.push_back(drawn({shape[1]}, wide)), in.push_back(drawn({shape[1]}, wide));
            const Tensor g = drawn(shape, dtype);
            const Tensor mean = moments[0].clone(), var = moments[1].clone();
            const Tensors expected = run(f(mean, var), in, g);

            Tensors here = on(device, in);
            const Tensor up = shape.size() > 2 ? channels_last(g.to(device)) : g.to(device);
            if (shape.size() > 2) here[0] = channels_last(here[0]);
            const Tensors running = {moments[0].clone().to(device), moments[1].clone().to(device)};
            const Tensors got = run(f(running[0], running[1]), here, up);
            expect_near(got, expected);
            expect_near(running, {mean, var});
            EXPECT_TRUE((lies_so(got[0]) && lies_so(got[1])) || !device.is_cuda() || shape.size() == 2);
            const Tensors again = {moments[0].clone().to(device), moments[1].clone().to(device)};
            expect_near(run(f(again[0], again[1]), here, g.to(device)), expected);  // of a contiguous gradient
          }
}

TEST(NormChannelsLast, OthersEqualContiguous) {
  manual_seed(6);
  for (const Device& device : devices()) {
    const Tensor x = drawn({3, 8, 5, 4}, f32), g = drawn({3, 8, 5, 4}, f32);
    const Function norms[] = {[](const Tensors& in) { return group_norm(in[0], 2); },
                              [](const Tensors& in) { return instance_norm(in[0]); },
                              [](const Tensors& in) {
                                return layer_norm(in[0], {5, 4});
                              }};
    for (const Function& f : norms)
      expect_near(run(f, {channels_last(x.to(device))}, channels_last(g.to(device))), run(f, {x}, g));
  }
}

TEST(PoolChannelsLast, EqualsContiguous) {
  manual_seed(7);
  const Function pools[] = {
      [](const Tensors& x) { return max_pool2d(x[0], 3, {.stride = 2, .padding = 1}); },
      [](const Tensors& x) { return max_pool2d(x[0], 2, {.stride = 1, .dilation = 2}); },
      [](const Tensors& x) {
        return avg_pool2d(x[0], {3, 2}, {.stride = 2, .padding = 1, .count_include_pad = false});
      },
      [](const Tensors& x) { return avg_pool2d(x[0], 2, {.stride = 2, .ceil_mode = true}); },
      [](const Tensors& x) {
        return adaptive_avg_pool2d(x[0], {3, 2});
      },
      [](const Tensors& x) {
        return adaptive_max_pool2d(x[0], {2, 3});
      },
      [](const Tensors& x) { return adaptive_max_pool2d(x[0], 1); },
      [](const Tensors& x) { return adaptive_avg_pool2d(x[0], 1); },
  };
  for (const Device& device : devices())
    for (const Shape& shape : {Shape{2, 1, 7, 6}, {1, 3, 5, 5}, {2, 5, 6, 7}, {3, 17, 5, 9}, {2, 64, 9, 9}})
      for (const DType dtype : {f16, bf16, f32, f64})
        for (const Function& f : pools) {
          SCOPED_TRACE(shape.str() + " pool " + std::to_string(&f - pools));
          const Tensor x = drawn(shape, dtype), g = drawn(f({x}).shape(), dtype);
          const Tensors expected = run(f, {x}, g);
          const Tensor here = channels_last(x.to(device)), up = g.to(device);
          const Tensors got = run(f, {here}, channels_last(up));
          expect_near(got, expected);
          expect_near(run(f, {here}, up), expected);
          const bool by_mean = &f == pools + std::size(pools) - 1;  // its gradient is an expanded one
          EXPECT_TRUE((lies_so(got[0]) && (by_mean || lies_so(got[1]))) || !device.is_cuda());
        }
}

TEST(PoolChannelsLast, OtherRanksAndIndices) {
  manual_seed(8);
  for (const Device& device : devices()) {
    const Tensor line = drawn({2, 8, 11}, f32), solid = drawn({2, 4, 5, 6, 7}, f32), plane = drawn({8, 5, 6}, f32);
    const auto both = [&](const Function& f, const Tensor& x) {
      const Tensor g = drawn(f({x}).shape(), f32);
      expect_near(run(f, {channels_last(x.to(device))}, channels_last(g.to(device))), run(f, {x}, g));
    };
    both([](const Tensors& x) { return max_pool1d(x[0], 3, {.stride = 2}); }, line);
    both([](const Tensors& x) { return avg_pool3d(x[0], 2); }, solid);
    both([](const Tensors& x) { return max_pool3d(x[0], 2); }, solid);
    both([](const Tensors& x) { return max_pool2d(x[0], 2); },
         plane);  // without a batch: its second axis is no channel
    const Tensor x = drawn({2, 16, 6, 6}, f32);
    const auto [values, indices] = max_pool2d_with_indices(channels_last(x.to(device)), 3, {.stride = 2, .padding = 1});
    const auto expected = max_pool2d_with_indices(x, 3, {.stride = 2, .padding = 1});
    EXPECT_TRUE(equal(values.to(Device()), expected.values));
    EXPECT_TRUE(equal(indices.to(Device()), expected.indices));
  }
}

TEST(ResampleChannelsLast, EqualsContiguous) {
  manual_seed(9);
  const InterpolateOptions ways[] = {{.size = {9, 4}, .mode = "nearest"},
                                     {.size = {3, 11}, .mode = "nearest-exact"},
                                     {.size = {9, 4}, .mode = "bilinear"},
                                     {.scale_factor = 2, .mode = "bilinear", .align_corners = true},
                                     {.size = {4, 13}, .mode = "bicubic"},
                                     {.size = {3, 4}, .mode = "bilinear", .antialias = true},
                                     {.size = {3, 4}, .mode = "bicubic", .antialias = true},
                                     {.size = {2, 3}, .mode = "area"}};
  for (const Device& device : devices()) {
    for (const Shape& shape : {Shape{2, 1, 7, 6}, {1, 3, 5, 5}, {2, 17, 6, 7}, {2, 64, 5, 8}})
      for (const DType dtype : {f16, bf16, f32, f64})
        for (const InterpolateOptions& o : ways) {
          SCOPED_TRACE(shape.str() + " way " + std::to_string(&o - ways));
          const Function f = [&](const Tensors& in) { return interpolate(in[0], o); };
          const Tensor x = drawn(shape, dtype), g = drawn(f({x}).shape(), dtype);
          const Tensors expected = run(f, {x}, g);
          const Tensor here = channels_last(x.to(device)), up = g.to(device);
          expect_near(run(f, {here}, channels_last(up)), expected);
          expect_near(run(f, {here}, up), expected);
        }
    const Tensor line = drawn({2, 5, 9}, f32), solid = drawn({2, 3, 4, 5, 6}, f32);
    const auto both = [&](const Tensor& x, const InterpolateOptions& o) {
      const Function f = [&](const Tensors& in) { return interpolate(in[0], o); };
      const Tensor g = drawn(f({x}).shape(), f32);
      expect_near(run(f, {channels_last(x.to(device))}, channels_last(g.to(device))), run(f, {x}, g));
    };
    both(line, {.size = {14}, .mode = "linear"});
    both(line, {.size = {4}, .mode = "nearest"});
    both(solid, {.size = {3, 7, 4}, .mode = "trilinear"});
    both(solid, {.size = {3, 7, 4}, .mode = "nearest"});
  }
}

TEST(PointwiseChannelsLast, ResultsLieTheSameWay) {
  manual_seed(9);
  for (const Device& device : devices()) {
    const Options o{.device = device};
    const Tensor x = channels_last(randn({2, 5, 4, 3}, o)), y = channels_last(randn({2, 5, 4, 3}, o));
    const Tensor scale = randn({1, 5, 1, 1}, o);
    for (const Tensor& z :
         {relu(x), x + y, x * 2, x * scale, scale + x, x.to(bf16), x.to(bf16).to(f32), where(x > 0, x, y)})
      EXPECT_TRUE(lies_only_so(z));
    EXPECT_TRUE(equal((x * scale).to(Device()), x.to(Device()) * scale.to(Device())));
    // Gradients too, also from expanded and from contiguous ones.
    const Tensor leaf = x.detach().requires_grad_();
    EXPECT_TRUE(lies_only_so(grad(relu(leaf).sum(), leaf)));
    EXPECT_TRUE(lies_only_so(grad(relu(leaf), leaf, {.grad_outputs = {randn({2, 5, 4, 3}, o)}})));
    EXPECT_TRUE(lies_only_so(grad((relu(leaf) * y + leaf * y).sum(), leaf)));
  }
}

struct Block {
  nn::Conv2d conv1{8, 8, 3, {.padding = 1, .bias = false}}, conv2{8, 8, 1, {.bias = false}};
  nn::BatchNorm2d bn1{8}, bn2{8};
  Tensor operator()(const Tensor& x) const { return relu(bn2(conv2(relu(bn1(conv1(x))))) + x); }
};
struct Net {
  nn::Conv2d stem{3, 8, 3, {.stride = 2, .padding = 1, .bias = false}};
  nn::BatchNorm2d bn{8};
  Block block1, block2;
  nn::Linear head{8, 4};
  Tensor operator()(const Tensor& x) const {
    const Tensor y = block2(block1(max_pool2d(relu(bn(stem(x))), 3, {.stride = 2, .padding = 1})));
    return head(adaptive_avg_pool2d(y, 1).flatten(1));
  }
};

TEST(ModelsChannelsLast, TrainTheSame) {
  for (const Device& device : devices())
    for (const bool half : {false, true}) {
      manual_seed(10);
      Net net;
      to(net, device);
      const Tensor x = randn({4, 3, 32, 30}).to(device), target = randint(0, 4, {4}).to(device);
      const auto gradients = [&](const Tensor& in) {
        Tensor loss;
        if (half) {
          const Autocast cast(bf16);
          loss = cross_entropy(net(in), target);
        } else {
          loss = cross_entropy(net(in), target);
        }
        Tensors all = grad(Tensors{loss}, parameters(net));
        all.push_back(loss.detach());
        return all;
      };
      const Tensors plain = gradients(x), last = gradients(channels_last(x));
      ASSERT_EQ(plain.size(), last.size());
      for (size_t i = 0; i < plain.size(); ++i) {
        const auto apart = (plain[i] - last[i]).abs().max().item<float>(), size = plain[i].abs().max().item<float>();
        EXPECT_LE(apart, (half ? 0.15 : 1e-3) * std::max(size, 0.1f)) << i << " on " << device;
      }
    }
}

// A convolution of contiguous 3x3 weights copies them: once forward, once for the gradient of its input.
TEST(ModelsChannelsLast, CopyNothingButWeights) {
  if (!cuda::is_available()) GTEST_SKIP() << "needs a GPU";
  manual_seed(11);
  Net net;
  to(net, "cuda");
  const Tensor x = channels_last(randn({4, 3, 32, 30}, {.device = "cuda"}));
  const auto step = [&] { (void)grad(Tensors{net(x).square().sum()}, parameters(net)); };
  step();  // chooses algorithms
  Profiler profiler;
  step();
  profiler.stop();
  int64_t copies = 0;
  for (const ProfileRow& row : profiler.rows())
    if (row.kind == "op" && row.name == "copy") copies += row.calls;
  EXPECT_LE(copies, 5);  // three forward, two backward: the stem's input needs no gradient
}

}  // namespace
}  // namespace volta::test
