// The layers of convolution: parameters, initialisation, padding modes, errors.
#include <gtest/gtest.h>

#include <cmath>

#include <volta/volta.h>

namespace volta::test {
namespace {

TEST(NnConv, HaveTheParametersOfPyTorch) {
  manual_seed(9);
  const nn::Conv2d layer(8, 6, {3, 5}, {.stride = 2, .padding = {1, 2}, .groups = 2});
  EXPECT_EQ(layer.weight.shape(), (Shape{6, 4, 3, 5}));
  EXPECT_EQ(layer.bias.shape(), (Shape{6}));
  const double bound = 1 / std::sqrt(4 * 15.0);
  EXPECT_LE(layer.weight.abs().max().item<double>(), bound);
  EXPECT_GT(layer.weight.abs().max().item<double>(), 0.9 * bound);
  EXPECT_LE(layer.bias.abs().max().item<double>(), bound);
  const Tensor x = randn({2, 8, 9, 9});
  EXPECT_TRUE(equal(layer(x), conv2d(x, layer.weight, layer.bias, {.stride = 2, .padding = {1, 2}, .groups = 2})));
  EXPECT_EQ(layer.flops(x, layer(x)), 2.0 * double(layer(x).numel()) * 4 * 15);
  EXPECT_FALSE(nn::Conv1d(2, 3, 3, {.bias = false}).bias.defined());

  const nn::ConvTranspose2d up(6, 4, 3, {.stride = 2, .padding = 1, .output_padding = 1, .groups = 2});
  EXPECT_EQ(up.weight.shape(), (Shape{6, 2, 3, 3}));
  EXPECT_LE(up.weight.abs().max().item<double>(), 1 / std::sqrt(2 * 9.0));
  const Tensor z = randn({2, 6, 5, 5});
  EXPECT_EQ(up(z).shape(), (Shape{2, 4, 10, 10}));
  EXPECT_EQ(up(z, {9, 10}).shape(), (Shape{2, 4, 9, 10}));
  EXPECT_EQ(up.flops(z, up(z)), 2.0 * double(z.numel()) * 2 * 9);
  EXPECT_EQ(nn::ConvTranspose1d(2, 3, 4)(randn({2, 5})).shape(), (Shape{3, 8}));
  EXPECT_EQ(nn::ConvTranspose3d(1, 2, 2, {.stride = 2})(randn({1, 1, 2, 3, 4})).shape(), (Shape{1, 2, 4, 6, 8}));
  EXPECT_EQ(nn::Conv3d(1, 2, {1, 2, 3})(randn({1, 1, 4, 4, 4})).shape(), (Shape{1, 2, 4, 3, 2}));
}

TEST(NnConv, PadInEveryMode) {
  const Tensor x = randn({2, 3, 6, 7});
  for (const std::string mode : {"reflect", "replicate", "circular"}) {
    const nn::Conv2d layer(3, 4, 3, {.padding = {1, 2}, .padding_mode = mode});
    EXPECT_TRUE(equal(layer(x), conv2d(pad(x, {2, 2, 1, 1}, {.mode = mode}), layer.weight, layer.bias))) << mode;
    const nn::Conv2d same(3, 4, {2, 3}, {.padding = "same", .padding_mode = mode});
    EXPECT_TRUE(equal(same(x), conv2d(pad(x, {1, 1, 0, 1}, {.mode = mode}), same.weight, same.bias))) << mode;
  }
}

TEST(NnConv, LeaveNoParameterBehind) {
  const nn::Conv2d layer(2, 4, 3, {.padding = "same"});
  const nn::ConvTranspose2d up(4, 2, 3);
  up(layer(randn({2, 2, 5, 5}))).square().sum().backward();
  for (const Tensor& p : {Tensor(layer.weight), Tensor(layer.bias), Tensor(up.weight), Tensor(up.bias)}) {
    ASSERT_TRUE(p.grad().has_value());
    EXPECT_TRUE(p.grad()->isfinite().all().item<bool>());
    EXPECT_GT(p.grad()->abs().max().item<double>(), 0);
  }
}

TEST(NnConv, RefuseWhatCannotBe) {
  const auto refused = [](auto f, const std::string& part) {
    const auto r = attempt(f);
    ASSERT_FALSE(r) << part;
    EXPECT_NE(std::string(r.error().what()).find(part), std::string::npos) << r.error().what();
  };
  refused([] { return nn::Conv2d(3, 4, 3, {.groups = 2}); }, "2 groups do not divide 3 and 4 channels");
  refused([] { return nn::Conv2d(0, 4, 3); }, "in_channels must be positive");
  refused([] { return nn::Conv2d(1, 4, 0); }, "kernel_size must be positive");
  refused([] { return nn::Conv2d(1, 4, {3, 3, 3}); }, "3 numbers for 2 axes");
  refused([] { return nn::Conv2d(1, 4, 3, {.padding_mode = "mirror"}); }, "'mirror'");
  refused([] { return nn::Conv2d(1, 4, 3, {.padding = "full"}); }, "'full'");
  refused([] { return nn::Conv2d(1, 4, 3, {.stride = 2, .padding = "same"}); }, "stride of 1");
  refused([] { return nn::ConvTranspose2d(3, 4, 3, {.groups = 3}); }, "3 groups do not divide 3 and 4 channels");
  refused([] { return nn::ConvTranspose2d(1, 1, 3, {.stride = 2})(randn({1, 1, 4, 4}), {4, 4}); }, "output_padding");
  refused([] { return nn::ConvTranspose2d(1, 1, 3)(randn({1, 1, 4, 4}), {4}); }, "output_size [4]");
}

// A layer that pads by itself still blames the convolution.
TEST(NnConv, PaddingModesNameTheOp) {
  const auto blamed = [](const auto& layer) {
    const auto r = attempt([&] { return layer(Tensor()); });
    return r ? std::string() : std::string(r.error().what());
  };
  const nn::ConvLayerOptions o{.padding = 1, .padding_mode = "reflect"};
  EXPECT_NE(blamed(nn::Conv1d(2, 3, 3, o)).find("conv1d"), std::string::npos);
  EXPECT_NE(blamed(nn::Conv2d(2, 3, 3, o)).find("conv2d"), std::string::npos);
  EXPECT_NE(blamed(nn::Conv3d(2, 3, 3, o)).find("conv3d"), std::string::npos);
}

}  // namespace
}  // namespace volta::test
