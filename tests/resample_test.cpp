// Interpolation, grid sampling and columns: values, transposes, gradients of both orders, errors, layers.
#include <gtest/gtest.h>

#include <cmath>

#include "ops/fused.h"
#include "samples.h"

namespace volta {
namespace {

constexpr auto wide = [](const Shape& shape) { return randn(shape, {.dtype = f64}); };

struct Composed {
  Composed() { use_fused_loops = false; }
  ~Composed() { use_fused_loops = true; }
};
bool close(const Tensor& a, const Tensor& b, double tolerance = 1e-6) {
  return a.shape() == b.shape() && allclose(a.to(f64), b.to(f64), {.rtol = tolerance, .atol = tolerance});
}

struct Mode {
  const char* name;
  int axes;
};
constexpr Mode modes[] = {{"nearest", 1}, {"nearest", 2},  {"nearest-exact", 3}, {"linear", 1},
                          {"area", 2},    {"bilinear", 2}, {"trilinear", 3},     {"bicubic", 2}};
bool can_align(const Mode& mode) { return mode.name[0] != 'n' && std::string(mode.name) != "area"; }

TEST(ResampleInterpolate, KnownValues) {
  const Tensor x = tensor<double>({0, 1, 4}).reshape({1, 1, 3});
  const auto line = [&](const InterpolateOptions& o) { return interpolate(x, o).flatten(); };
  EXPECT_TRUE(equal(line({.size = 6}), tensor<double>({0, 0, 1, 1, 4, 4})));
  EXPECT_TRUE(equal(line({.size = 2}), tensor<double>({0, 1})));
  EXPECT_TRUE(equal(line({.size = 2, .mode = "nearest-exact"}), tensor<double>({0, 4})));
  EXPECT_TRUE(close(line({.size = 5, .mode = "linear", .align_corners = true}), tensor<double>({0, 0.5, 1, 2.5, 4})));
  EXPECT_TRUE(close(line({.size = 6, .mode = "linear"}), tensor<double>({0, 0.25, 0.75, 1.75, 3.25, 4})));
  EXPECT_TRUE(close(line({.size = 2, .mode = "area"}), tensor<double>({0.5, 2.5})));
  // A factor given is the step between outputs, unless it is to be computed from the sizes.
  EXPECT_TRUE(close(line({.scale_factor = {1.5}, .mode = "linear"}), tensor<double>({0, 0.5, 1.5, 3.5})));
  EXPECT_TRUE(close(line({.scale_factor = {1.5}, .mode = "linear", .recompute_scale_factor = true}),
                    line({.size = 4, .mode = "linear"})));
}

// Weights add up to 1, and linear modes keep linear functions, away from the borders.
TEST(ResampleInterpolate, KeepsSimpleFunctions) {
  const Tensor ramp = arange(0, 40, 1, {.dtype = f64}).reshape({1, 1, 1, 40}).expand({1, 1, 12, 40});
  const Tensor y = interpolate(ramp, {.scale_factor = {2, 2}, .mode = "bilinear"});
  const Tensor wanted = (arange(0, 80, 1, {.dtype = f64}) + 0.5) / 2 - 0.5;
  EXPECT_TRUE(close(y[{0, 0, 9}].narrow(0, 1, 78), wanted.narrow(0, 1, 78), 1e-12));
  EXPECT_TRUE(close(interpolate(ones_like(ramp), {.size = {7, 91}, .mode = "bicubic"}), ones({1, 1, 7, 91}), 1e-12));
}

TEST(ResampleInterpolate, FusedEqualsComposed) {
  for (const Device& device : test::devices())
    for (const Mode& mode : modes)
      for (const DType dtype : {f16, bf16, f32, f64})
        for (const bool aligned : {false, true}) {
          if (aligned && !can_align(mode)) continue;
          Shape shape{2, 3}, size;
          for (int i = 0; i < mode.axes; ++i) shape.push_back(4 + i), size.push_back(7 - 2 * i);
          const Tensor x = randn(shape).to(dtype).to(device).transpose(0, 1).contiguous().transpose(0, 1);
          const auto run = [&] {
            const Tensor in = x.detach().requires_grad_();
            const Tensor y = interpolate(in, {.size = size, .mode = mode.name, .align_corners = aligned});
            y.square().sum().backward();
            return std::pair{y.detach(), *in.grad()};
          };
          const auto fused = run();
          const Composed only;
          const auto composed = run();
          const double tolerance = is_half(dtype) ? 3e-2 : dtype == f32 ? 1e-5 : 1e-12;
          EXPECT_TRUE(close(fused.first, composed.first, tolerance)) << mode.name;
          EXPECT_TRUE(close(fused.second, composed.second, tolerance)) << mode.name;
          EXPECT_EQ(fused.first.dtype(), dtype);
        }
}

// Growing, shrinking, kept and single sizes, by size and by factor: what a device computes by itself against tables.
TEST(ResampleInterpolate, EverySizeEqualsTheHosts) {
  struct Sizes {
    Shape in, out;
    std::vector<double> factors = {};
  };
  const Sizes list[] = {{{5, 4}, {13, 11}}, {{23, 17}, {4, 5}},  {{1, 7}, {6, 1}},
                        {{6, 6}, {6, 6}},   {{9, 8}, {}, {1.3}}, {{9, 8}, {}, {0.45, 2.6}}};
  for (const Device& device : test::devices())
    for (const char* mode : {"nearest", "nearest-exact", "bilinear", "bicubic", "area"})
      for (const bool aligned : {false, true})
        for (const bool antialias : {false, true})
          for (const Sizes& sizes : list) {
            const bool smooth = mode[0] == 'b';
            if ((aligned || antialias) && !smooth) continue;
            const Tensor x = randn(joined({2, 3}, sizes.in), {.dtype = f64});
            const auto run = [&](const Device& on) {
              const Tensor in = x.to(on).requires_grad_();
              const Tensor y = interpolate(in, {.size = sizes.out,
                                                .scale_factor = sizes.factors,
                                                .mode = mode,
                                                .align_corners = aligned,
                                                .antialias = antialias});
              y.square().sum().backward();
              return std::pair{y.detach().to("cpu"), in.grad()->to("cpu")};
            };
            const auto got = run(device);
            const Composed only;
            const auto wanted = run("cpu");
            EXPECT_TRUE(close(got.first, wanted.first, 1e-12)) << mode << sizes.in << sizes.out << antialias;
            EXPECT_TRUE(close(got.second, wanted.second, 1e-12)) << mode << sizes.in << sizes.out << antialias;
          }
}

// An input of weight 0 is not read, and a gradient goes to no input that is not.
TEST(ResampleInterpolate, InfinitiesStayWhereTheyAre) {
  for (const Device& device : test::devices())
    for (const char* mode : {"nearest", "bilinear", "bicubic"}) {
      const Tensor x = tensor<float>({{1, INFINITY}, {2, 3}}).reshape({1, 1, 2, 2}).to(device);
      EXPECT_TRUE(equal(interpolate(x, {.size = 2, .mode = mode}), x)) << mode;
    }
}

TEST(ResampleGradients, Interpolate) {
  for (const Mode& mode : modes) {
    Shape shape{1, 2}, size;
    for (int i = 0; i < mode.axes; ++i) shape.push_back(3), size.push_back(4);
    const Tensor x = wide(shape).requires_grad_();
    const auto f = [&](const Tensor& in) {
      return interpolate(in, {.size = size, .mode = mode.name, .align_corners = can_align(mode)}).square();
    };
    EXPECT_TRUE(gradcheck(f, x)) << mode.name;
    EXPECT_TRUE(gradgradcheck(f, x)) << mode.name;
  }
}

TEST(ResampleGrid, IdentityAndKnownPlaces) {
  for (const Device& device : test::devices())
    for (const bool aligned : {false, true})
      for (const Shape& shape : {Shape{2, 3, 5, 4}, Shape{1, 2, 3, 4, 5}}) {
        const Tensor x = randn(shape).to(device);
        const int axes = int(x.dim()) - 2;
        const Tensor theta = eye(axes, axes + 1).unsqueeze(0).expand({x.size(0), axes, axes + 1}).to(device);
        const Tensor grid = affine_grid(theta, x.shape(), aligned);
        for (const char* mode : {"bilinear", "nearest", "bicubic"})
          if (axes == 2 || std::string(mode) != "bicubic") {
            EXPECT_TRUE(close(grid_sample(x, grid, {mode, "border", aligned}), x, 1e-4)) << mode;
          }
      }
  const Tensor x = tensor<float>({{1, 2}, {3, 4}}).reshape({1, 1, 2, 2});
  const auto at = [&](double u, double v, const char* padding, bool aligned) {
    const Tensor grid = tensor<float>({u, v}).reshape({1, 1, 1, 2});
    return grid_sample(x, grid, {.padding_mode = padding, .align_corners = aligned}).item<double>();
  };
  EXPECT_DOUBLE_EQ(at(0, 0, "zeros", true), 2.5);
  EXPECT_DOUBLE_EQ(at(1, 1, "zeros", false), 1);  // a quarter of 4, the rest outside
  EXPECT_DOUBLE_EQ(at(5, 5, "border", false), 4);
  EXPECT_DOUBLE_EQ(at(3, -1, "reflection", true), 1);  // back at the left end
  EXPECT_DOUBLE_EQ(at(9, 9, "zeros", true), 0);
}

TEST(ResampleGrid, Gradients) {
  manual_seed(2);
  for (const char* mode : {"bilinear", "nearest", "bicubic"})
    for (const char* padding : {"zeros", "border", "reflection"})
      for (const bool aligned : {false, true}) {
        const Tensor x = wide({1, 1, 3, 2}).requires_grad_(), grid = (wide({1, 1, 2, 2}) * 0.8).requires_grad_();
        const auto f = [&](const Tensor& in, const Tensor& at) {
          return grid_sample(in, at, {mode, padding, aligned});
        };
        EXPECT_TRUE(gradcheck(f, x, grid)) << mode << padding;
        EXPECT_TRUE(!aligned || gradgradcheck(f, x, grid)) << mode << padding;
      }
  const Tensor volume = wide({1, 1, 2, 2, 3}).requires_grad_(), grid = (wide({1, 1, 1, 2, 3}) * 0.7).requires_grad_();
  const auto f = [](const Tensor& in, const Tensor& at) { return grid_sample(in, at); };
  EXPECT_TRUE(gradcheck(f, volume, grid));
  EXPECT_TRUE(gradcheck(
      [](const Tensor& t) {
        return affine_grid(t, {2, 1, 3, 4});
      },
      wide({2, 2, 3}).requires_grad_()));
  // Between neighbours on the grid exactly, the slope is that to the right.
  const Tensor line = tensor<double>({{1, 5, 7}}).reshape({1, 1, 1, 3});
  const Tensor middle = zeros({1, 1, 1, 2}, {.dtype = f64, .requires_grad = true});
  grid_sample(line, middle, {.align_corners = true}).backward();
  EXPECT_DOUBLE_EQ((middle.grad()->flatten()[0].item<double>()), 2);
  // The nearest value does not change with the place, even where that is infinite: as in PyTorch, a gradient of zero.
  const Tensor places = tensor<double>({{0.2, 0.0}, {INFINITY, 0.0}}).reshape({1, 1, 2, 2}).requires_grad_();
  grid_sample(line, places, {.mode = "nearest"}).sum().backward();
  EXPECT_TRUE(equal(*places.grad(), zeros({1, 1, 2, 2}, {.dtype = f64})));
}

// PyTorch's numbers: places at the outermost elements have no gradient.
TEST(ResampleGrid, GradientAtTheBorder) {
  const Tensor x = arange(9.).to(f64).reshape({1, 1, 3, 3});
  for (const char* padding : {"border", "reflection"})
    for (const bool align : {true, false}) {
      const Tensor places = tensor<double>({-1, 1, 1, 0, 0, -1}).reshape({1, 1, 3, 2}).requires_grad_();
      const Tensor y = grid_sample(x, places, {.padding_mode = padding, .align_corners = align});
      EXPECT_TRUE(equal(y.flatten(), tensor<double>({6, 5, 1}))) << padding;
      const double by_row = align ? 3 : 4.5, by_column = align ? 1 : 1.5;
      EXPECT_TRUE(equal(grad(y.sum(), places).flatten(), tensor<double>({0, 0, 0, by_row, by_column, 0}))) << padding;
    }
}

TEST(ResampleGrid, HalvesAndInfinities) {
  const Tensor x = randn({1, 2, 5, 5}), grid = rand({1, 4, 4, 2}) * 2 - 1;
  for (const DType dtype : {f16, bf16}) {
    const Tensor y = grid_sample(x.to(dtype), grid.to(dtype));
    EXPECT_EQ(y.dtype(), dtype);
    EXPECT_TRUE(close(y, grid_sample(x.to(dtype).to(f32), grid.to(dtype).to(f32)), 2e-2));
  }
  const Tensor infinite = full({1, 1, 2, 2}, INFINITY);
  EXPECT_EQ(grid_sample(infinite, full({1, 1, 1, 2}, 7.0)).item<float>(), 0);
}

TEST(ResampleColumns, AreTransposes) {
  manual_seed(3);
  const ColumnOptions o{.dilation = {1, 2}, .padding = {1, 2}, .stride = {2, 1}};
  for (const Device& device : test::devices())
    for (const DType dtype : {f16, bf16, f32, f64}) {
      const Tensor x = randn({2, 3, 7, 8}).to(dtype).to(device).flip({2});
      const Tensor columns = im2col(x, {3, 2}, o);
      EXPECT_EQ(columns.shape(), (Shape{2, 18, 40}));
      EXPECT_TRUE(equal(im2col(x.select(0, 1), {3, 2}, o), columns.select(0, 1)));
      // Element (c, i, j) of column (u, v) lies at (2 u + i - 1, v + 2 j - 2).
      const Tensor split = columns.reshape({2, 3, 3, 2, 4, 10});
      EXPECT_TRUE(equal(split[{0, 1, 2, 1, 1, 3}], x[{0, 1, 3, 3}]));
      const Tensor counts = col2im(im2col(ones({1, 1, 7, 8}), {3, 2}, o), {7, 8}, {3, 2}, o).to(dtype).to(device);
      EXPECT_TRUE(close(col2im(columns, {7, 8}, {3, 2}, o), x * counts, is_half(dtype) ? 2e-2 : 1e-5));
    }
  const auto unfolded = [&](const Tensor& x) { return im2col(x, {3, 2}, o).square(); };
  const auto folded = [&](const Tensor& x) { return col2im(x, {3, 4}, {3, 2}, o).square(); };
  const Tensor x = wide({1, 2, 3, 4}).requires_grad_(), columns = wide({6, 12}).requires_grad_();
  EXPECT_TRUE(gradcheck(unfolded, x) && gradgradcheck(unfolded, x));
  EXPECT_TRUE(gradcheck(folded, columns) && gradgradcheck(folded, columns));
}

TEST(ResampleErrors, AreStructured) {
  const Tensor x = zeros({1, 2, 6, 6}), grid = zeros({1, 3, 3, 2});
  const auto expect = [](Error::Kind kind, const char* part, const std::function<void()>& f) {
    const auto r = attempt(f);
    ASSERT_FALSE(r);
    EXPECT_EQ(r.error().kind(), kind) << r.error().what();
    EXPECT_NE(std::string(r.error().what()).find(part), std::string::npos) << r.error().what();
  };
  using Kind = Error::Kind;
  expect(Kind::argument, "either size or scale_factor", [&] { interpolate(x, {}); });
  expect(Kind::argument, "either size or scale_factor", [&] { interpolate(x, {.size = 3, .scale_factor = {2}}); });
  expect(Kind::argument, "cubic-ish", [&] { interpolate(x, {.size = 3, .mode = "cubic-ish"}); });
  expect(Kind::shape, "linear needs 3 axes", [&] { interpolate(x, {.size = 3, .mode = "linear"}); });
  expect(Kind::argument, "align_corners", [&] { interpolate(x, {.size = 3, .align_corners = true}); });
  expect(Kind::argument, "3 scale factors", [&] { interpolate(x, {.scale_factor = {1, 2, 3}}); });
  expect(Kind::argument, "scale factor", [&] { interpolate(x, {.scale_factor = {-1}}); });
  expect(Kind::shape, "one of 0", [&] { interpolate(x, {.scale_factor = {0.1}}); });
  expect(Kind::shape, "[72]", [&] { interpolate(x.reshape({72}), {.size = 3}); });
  expect(Kind::dtype, "interpolate", [&] { interpolate(x.to(i32), {.size = 3}); });
  expect(Kind::shape, "grid_sample", [&] { grid_sample(x, zeros({2, 3, 3, 2})); });
  expect(Kind::shape, "grid_sample", [&] { grid_sample(x, zeros({1, 3, 3, 3})); });
  expect(Kind::dtype, "f64", [&] { grid_sample(x, grid.to(f64)); });
  expect(Kind::argument, "padding_mode", [&] { grid_sample(x, grid, {.padding_mode = "mirror"}); });
  expect(Kind::argument, "mode", [&] { grid_sample(x, grid, {.mode = "linear"}); });
  expect(Kind::shape, "bicubic", [&] {
    grid_sample(zeros({1, 1, 2, 2, 2}), zeros({1, 1, 1, 1, 3}), {.mode = "bicubic"});
  });
  expect(Kind::shape, "affine_grid", [&] { affine_grid(zeros({1, 2, 2}), {1, 1, 2, 2}); });
  expect(Kind::argument, "affine_grid", [&] { affine_grid(zeros({1, 2, 3}), {1, 1, 0, 2}); });
  expect(Kind::shape, "larger than an image", [&] { im2col(x, 7); });
  expect(Kind::argument, "stride", [&] { im2col(x, 2, {.stride = 0}); });
  expect(Kind::shape, "im2col", [&] { im2col(zeros({6, 6}), 2); });
  expect(Kind::shape, "windows", [&] { col2im(zeros({1, 8, 10}), {6, 6}, 2); });
}

// An antialiased axis that keeps its size is left alone; the nearest element is found by the factor in every shape.
TEST(ResampleFactors, ThatKeepTheSize) {
  const Tensor x = arange(7.).reshape({1, 1, 1, 7});
  for (const char* mode : {"bilinear", "bicubic"})
    EXPECT_TRUE(allclose(interpolate(x, {.scale_factor = {1, 1.05}, .mode = mode, .antialias = true}), x)) << mode;
  const Tensor near = tensor<float>({0, 0, 1, 2, 3, 4, 5});
  EXPECT_TRUE(equal(interpolate(x, {.scale_factor = {1, 1.05}}).flatten(), near));
  EXPECT_TRUE(equal(interpolate(x.squeeze(2), {.scale_factor = 1.05}).flatten(), near));
}

TEST(ResampleLayers, CallTheirFunctions) {
  const Tensor x = randn({2, 3, 6, 6});
  const InterpolateOptions o{.scale_factor = {2}, .mode = "bilinear"};
  EXPECT_TRUE(equal(nn::Upsample(o)(x), interpolate(x, o)));
  EXPECT_TRUE(equal(nn::Unfold(3, {.padding = 1})(x), im2col(x, 3, {.padding = 1})));
  EXPECT_TRUE(equal(nn::Fold({6, 6}, 2, {.stride = 2})(nn::Unfold(2, {.stride = 2})(x)), x));
  const auto r = attempt([&] { nn::Unfold(9)(x); });
  EXPECT_NE(std::string(r.error().what()).find("Unfold"), std::string::npos);
}

}  // namespace
}  // namespace volta
