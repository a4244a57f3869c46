// Transforms: values of torchvision, random ones, dtypes, layouts and bad arguments.
#include <gtest/gtest.h>
#include <volta/volta.h>

#include <cmath>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>

#include "data_common.h"
#include "taken.h"

using namespace volta;
using namespace volta::test;
namespace F = volta::data::functional;

namespace {

std::map<std::string, Tensor> stored() {
  std::ifstream in(VOLTA_TEST_DATA "/data/transforms.bin", std::ios::binary);
  std::map<std::string, Tensor> entries;
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string name, kind, sizes, size;
    words >> name >> kind >> sizes;
    Shape shape;
    for (std::istringstream list(sizes); std::getline(list, size, ',');) shape.push_back(std::stoll(size));
    const Tensor x = empty(shape, {.dtype = kind == "u8" ? u8 : f32});
    in.read(static_cast<char*>(x.raw_data()), x.nbytes());
    entries[name] = x;
  }
  return entries;
}

const std::map<std::string, std::function<Tensor(const Tensor&)>>& cases() {
  using T = const Tensor&;
  static const std::map<std::string, std::function<Tensor(T)>> list = {
      {"resize_small",
       [](T x) {
         return F::resize(x, {5, 7});
       }},
      {"resize_one",
       [](T x) {
         return F::resize(x, {1, 1});
       }},
      {"resize_large",
       [](T x) {
         return F::resize(x, {21, 30});
       }},
      {"resize_mixed",
       [](T x) {
         return F::resize(x, {20, 6});
       }},
      {"resize_short", [](T x) { return F::resize(x, 8); }},
      {"resize_short_max", [](T x) { return F::resize(x, 8, {.max_size = 9}); }},
      {"resize_plain",
       [](T x) {
         return F::resize(x, {6, 9}, {.antialias = false});
       }},
      {"resize_plain_large",
       [](T x) {
         return F::resize(x, {19, 22}, {.antialias = false});
       }},
      {"resize_nearest",
       [](T x) {
         return F::resize(x, {6, 25}, {.interpolation = "nearest"});
       }},
      {"resize_bicubic",
       [](T x) {
         return F::resize(x, {6, 9}, {.interpolation = "bicubic"});
       }},
      {"resized_crop", [](T x) { return F::resized_crop(x, 2, 3, 8, 11, 6); }},
      {"crop_outside", [](T x) { return F::crop(x, -2, 9, 8, 12); }},
      {"center_crop",
       [](T x) {
         return F::center_crop(x, {6, 8});
       }},
      {"center_crop_odd", [](T x) { return F::center_crop(x, 10); }},
      {"center_crop_larger",
       [](T x) {
         return F::center_crop(x, {16, 12});
       }},
      {"pad",
       [](T x) {
         return F::pad(x, {1, 2, 3, 4});
       }},
      {"pad_reflect",
       [](T x) {
         return F::pad(x, {2, 3}, {.padding_mode = "reflect"});
       }},
      {"rotate_30", [](T x) { return F::rotate(x, 30.5); }},
      {"rotate_bilinear", [](T x) { return F::rotate(x, -17, {.interpolation = "bilinear"}); }},
      {"rotate_expand", [](T x) { return F::rotate(x, 40, {.interpolation = "bilinear", .expand = true}); }},
      {"rotate_center",
       [](T x) {
         return F::rotate(x, 200, {.interpolation = "bilinear", .center = {{3, 4}}});
       }},
      {"rotate_90", [](T x) { return F::rotate(x, 90, {.expand = true}); }},
      {"rotate_180", [](T x) { return F::rotate(x, 180); }},
      {"rotate_fill",
       [](T x) { return F::rotate(x, 25, {.interpolation = "bilinear", .fill = x.dtype() == u8 ? 100 : 0.5}); }},
      {"affine",
       [](T x) {
         return F::affine(
             x, {.angle = 20, .translate = {2, -1}, .scale = 1.2, .shear = {10, 5}, .interpolation = "bilinear"});
       }},
      {"affine_nearest",
       [](T x) {
         return F::affine(x, {.angle = -33, .translate = {1, 2}, .scale = 0.8});
       }},
      {"brightness", [](T x) { return F::adjust_brightness(x, 1.4); }},
      {"contrast", [](T x) { return F::adjust_contrast(x, 0.6); }},
      {"contrast_more", [](T x) { return F::adjust_contrast(x, 1.7); }},
      {"saturation", [](T x) { return F::adjust_saturation(x, 0.3); }},
      {"saturation_more", [](T x) { return F::adjust_saturation(x, 1.8); }},
      {"hue", [](T x) { return F::adjust_hue(x, 0.2); }},
      {"hue_back", [](T x) { return F::adjust_hue(x, -0.45); }},
      {"gray", [](T x) { return F::rgb_to_grayscale(x); }},
      {"gray_3", [](T x) { return F::rgb_to_grayscale(x, 3); }},
      {"blur",
       [](T x) {
         return F::gaussian_blur(x, {3, 5}, {0.8, 1.5});
       }},
      {"blur_default", [](T x) { return F::gaussian_blur(x, 5); }},
      {"to_float", [](T x) { return F::convert_image_dtype(x, f32); }},
      {"to_bytes", [](T x) { return F::convert_image_dtype(x, u8); }},
      {"normalize",
       [](T x) {
         return F::normalize(F::convert_image_dtype(x, f32), {0.485, 0.456, 0.406}, {0.229, 0.224, 0.225});
       }},
  };
  return list;
}

double distance(const Tensor& a, const Tensor& b) { return (a.to(f64) - b.to(f64)).abs().max().item<double>(); }
// The same values, stored with channels last, inside a larger image, or backwards.
std::vector<Tensor> layouts(const Tensor& x) {
  const Tensor wide = pad(x, {2, 3, 1, 2});
  return {x, x.permute({1, 2, 0}).contiguous().permute({2, 0, 1}),
          wide.slice(-1, 2, 2 + x.size(-1)).slice(-2, 1, 1 + x.size(-2)), F::hflip(F::hflip(x).contiguous())};
}

}  // namespace

TEST(DataTransforms, EqualTorchvision) {
  const auto entries = stored();
  ASSERT_EQ(entries.size(), 1 + 2 * cases().size());
  for (const auto& [name, f] : cases())
    for (const std::string kind : {".u8", ".f32"}) {
      const Tensor x = kind == ".u8" ? entries.at("image") : entries.at("image").to(f32) / 255;
      const Tensor expected = entries.at(name + kind);
      // A step of a byte where values are rounded; rounding of f32 otherwise, of numbers up to about 3.
      const double tolerance = expected.dtype() == u8 ? 1 : 2e-6;
      for (const Tensor& layout : layouts(x)) {
        const Tensor y = f(layout);
        ASSERT_EQ(y.shape(), expected.shape()) << name << kind;
        ASSERT_EQ(y.dtype(), expected.dtype()) << name << kind;
        EXPECT_LE(distance(y, expected), tolerance) << name << kind;
        // Bytes that differ at all: torchvision rounds between the two passes of a resize, which we do not.
        const double differing = (y.to(f64) - expected.to(f64)).abs().gt(2e-6).to(f64).mean().item<double>();
        EXPECT_LE(differing, name.starts_with("resize") && kind == ".u8" ? 0.2 : 0.02) << name << kind;
      }
    }
}

TEST(DataTransforms, BatchesAreImagesOneByOne) {
  const Tensor image = stored().at("image"), other = F::vflip(image), batch = stack({image, other});
  for (const auto& [name, f] : cases())
    for (const DType dtype : {u8, f32, f64}) {
      const auto as = [&](const Tensor& x) { return dtype == u8 ? x : x.to(dtype) / 255; };
      const Tensor y = f(as(batch));
      EXPECT_LE(distance(y, stack({f(as(image)), f(as(other))})), dtype == u8 ? 1 : 1e-5) << name;
    }
}

TEST(DataTransforms, HalvesWork) {
  const Tensor x = stored().at("image").to(f32) / 255;
  for (const auto& [name, f] : cases())
    for (const DType dtype : {f16, bf16}) {
      if (name == "to_bytes" || name == "to_float" || name == "normalize") continue;
      const Tensor y = f(x.to(dtype));
      EXPECT_EQ(y.dtype(), dtype) << name;
      EXPECT_LE(distance(y, f(x)), name.starts_with("hue") ? 0.2 : dtype == f16 ? 4e-3 : 3e-2) << name;
    }
}

TEST(DataTransforms, ToTensor) {
  const Tensor hwc = arange(24).to(u8).reshape({2, 4, 3});
  const Tensor y = F::to_tensor(hwc);
  EXPECT_EQ(y.shape(), (Shape{3, 2, 4}));
  EXPECT_TRUE(equal(y, hwc.permute({2, 0, 1}).to(f32) / 255));
  EXPECT_EQ(F::to_tensor(arange(6).to(u8).reshape({2, 3})).shape(), (Shape{1, 2, 3}));
  EXPECT_EQ(F::to_tensor(hwc.to(f64)).dtype(), f64);
  refused(Error::Kind::shape, [] { F::to_tensor(zeros({3}, {.dtype = u8})); });
}

TEST(DataTransforms, ByteValuesSurviveTheRoundTrip) {
  const Tensor x = arange(256).to(u8).reshape({1, 16, 16});
  EXPECT_TRUE(equal(F::convert_image_dtype(F::convert_image_dtype(x, f32), u8), x));
  EXPECT_TRUE(equal(F::convert_image_dtype(full({1, 1, 2}, 1.5), u8), full({1, 1, 2}, 255, {.dtype = u8})));
}

TEST(DataTransforms, RandomOnesDrawFromTheGenerator) {
  const Tensor bytes = stored().at("image");
  const std::map<std::string, data::Transform> list = {
      {"crop", data::random_crop(8, {.padding = 2})},
      {"resized", data::random_resized_crop(6)},
      {"hflip", data::random_horizontal_flip()},
      {"vflip", data::random_vertical_flip()},
      {"rotation", data::random_rotation(40)},
      {"affine", data::random_affine(10, {.translate = {{0.2, 0.1}}, .scale = {{0.8, 1.2}}, .shear = {{-5, 5}}})},
      {"jitter", data::color_jitter({.brightness = 0.4, .contrast = 0.4, .saturation = 0.4, .hue = 0.1})},
      {"gray", data::random_grayscale(0.5)},
      {"blur", data::gaussian_blur(3)},
      {"erasing", data::random_erasing({.value = 7})},
      {"noise", data::random_erasing({.p = 1, .random = true})},
      {"cutout", data::cutout(5, {.holes = 2})},
      {"apply", data::random_apply(data::random_vertical_flip(1), 0.5)},
  };
  for (const auto& [name, f] : list)
    for (const Tensor& x : {bytes, bytes.to(f32) / 255}) {
      bool differs = false;
      for (uint64_t seed = 0; seed < 20; ++seed) {
        Generator a(seed), b(seed), c(seed + 1000);
        const Tensor first = f(x, a);
        EXPECT_TRUE(equal(first, f(x, b))) << name;
        EXPECT_EQ(first.dtype(), x.dtype()) << name;
        differs = differs || !equal(first, f(x, c));
        manual_seed(seed);
        const Tensor drawn = f(x);
        manual_seed(seed);
        EXPECT_TRUE(equal(f(x), drawn)) << name;
      }
      EXPECT_TRUE(differs) << name;
    }
}

TEST(DataTransforms, RandomSharesAreThoseAskedFor) {
  const Tensor x = arange(4).to(f32).reshape({1, 1, 4});
  Generator g(5);
  int flips = 0;
  const data::Transform f = data::random_horizontal_flip(0.3);
  for (int i = 0; i < 4000; ++i) flips += f(x, g)[{0, 0, 0}].item<float>() == 3;
  EXPECT_NEAR(flips, 1200, 5 * std::sqrt(4000 * 0.3 * 0.7));  // five standard deviations
  std::map<float, int> corners;
  const data::Transform crop = data::random_crop({1, 2});
  for (int i = 0; i < 3000; ++i) ++corners[crop(x, g)[{0, 0, 0}].item<float>()];
  ASSERT_EQ(corners.size(), 3u);
  for (const auto& [place, count] : corners) EXPECT_NEAR(count, 1000, 5 * std::sqrt(3000 * 2. / 9)) << place;
  EXPECT_TRUE(equal(data::random_horizontal_flip(0)(x, g), x));
  EXPECT_TRUE(equal(data::random_vertical_flip(1)(x, g), F::vflip(x)));
}

TEST(DataTransforms, InputsStayAsTheyAre) {
  const Tensor x = stored().at("image"), copy = x.clone();
  Generator g(1);
  (void)data::compose(data::random_erasing({.p = 1}), data::cutout(4), data::random_crop(8))(x, g);
  EXPECT_TRUE(equal(x, copy));
}

TEST(DataTransforms, ComposeAndLambda) {
  const auto f = data::compose(
      data::lambda([](const Tensor& x) { return x + 1; }), [](const Tensor& x) { return x * 2; },
      [](const Tensor& x, Generator& g) { return x + rand({}, {.generator = &g}) * 0; });
  EXPECT_EQ(f(tensor(3.)).item<float>(), 8);
  EXPECT_EQ(data::compose(std::vector<data::Transform>{})(tensor(3.)).item<float>(), 3);
  EXPECT_TRUE(equal(data::one_hot(4)(tensor(2)), tensor({0, 0, 1, 0})));
  EXPECT_EQ(data::one_hot(4)(tensor({2, 1})).shape(), (Shape{2, 4}));
}

// Values of torchvision: its transforms blend the fill, 0 unless given, into bilinear edges; its functions do so with one.
TEST(DataTransforms, EmptyFunctionsAreRefused) {
  using Kind = Error::Kind;
  const std::function<Tensor(const Tensor&)> plain;
  const std::function<Tensor(const Tensor&, Generator&)> random;
  Tensor (*const pointer)(const Tensor&) = nullptr;
  refused(Kind::argument, [&] { (void)data::Transform(plain); });
  refused(Kind::argument, [&] { (void)data::Transform(random); });
  refused(Kind::argument, [&] { (void)data::lambda(pointer); });
  refused(Kind::argument, [&] { (void)data::compose(data::resize(4), plain); });
  refused(Kind::argument, [&] { (void)data::Transform(data::Transform::Cut{"cut", {}, random}); });
  refused(Kind::argument, [] { (void)data::BatchTransform({}); });
  const Tensor x = ones({1, 4, 4});
  auto flip = data::random_horizontal_flip();
  const auto taken = volta::test::taken(flip);
  EXPECT_TRUE(equal(taken(x), x));
  refused(Kind::argument, [&] { (void)flip(x); });
  auto mix = data::mixup({.num_classes = 2});
  const auto other = volta::test::taken(mix);
  refused(Kind::argument, [&] { (void)mix(x, x); });
}

// As in torchvision: what would cover a whole side is not erased.
TEST(DataTransforms, ErasesLessThanTheImage) {
  const Tensor x = ones({1, 8, 8});
  Generator g(1);
  EXPECT_TRUE(equal(data::random_erasing({.p = 1, .scale = {1, 1}, .ratio = {1, 1}})(x, g), x));
  EXPECT_EQ(data::random_erasing({.p = 1, .scale = {0.7, 0.7}, .ratio = {1, 1}})(x, g).sum().item<float>(), 64 - 49);
}

TEST(DataTransforms, FillsOfTurnsAreBlended) {
  const Tensor x = arange(1, 13).to(f32).reshape({1, 3, 4});
  const Tensor filled = tensor(
      {0.25078, 2.00587, 4.96891, 3.70275, 2.20096, 5.06699, 7.93301, 10.79904, 2.68477, 8.03109, 8.15247, 1.66589});
  const Tensor bare = tensor(
      {0.65313, 2.26915, 4.96891, 5.28238, 2.20096, 5.06699, 7.93301, 10.79904, 3.83013, 8.03109, 9.22252, 4.33855});
  const Tensor affine = tensor(
      {1.84482, 2.6134, 2.07822, 1.06852, 7.14258, 6.71419, 6.28581, 5.85742, 2.82514, 8.20283, 10.3866, 5.43731});
  const auto near = [](const Tensor& y, const Tensor& expected) { EXPECT_LE(distance(y.flatten(), expected), 2e-5); };
  near(data::random_rotation({30, 30}, {.interpolation = "bilinear"})(x), filled);
  near(F::rotate(x, 30, {.interpolation = "bilinear", .fill = 0}), filled);
  near(F::rotate(x, 30, {.interpolation = "bilinear"}), bare);
  near(data::random_affine({20, 20}, {.interpolation = "bilinear"})(x), affine);
}

// A corner that rounding puts beside a whole pixel asks for no further one.
TEST(DataTransforms, TurnsAboutAPointHoldTheImageAndNoMore) {
  for (const double angle : {180., -180.})
    EXPECT_EQ(F::rotate(rand({1, 32, 9}), angle, {.expand = true, .center = {{5.5, 3}}}).shape(), (Shape{1, 32, 9}));
  EXPECT_EQ(F::rotate(rand({1, 5, 31}), -180, {.expand = true, .center = {{5.5, 3}}}).shape(), (Shape{1, 5, 31}));
  EXPECT_EQ(F::rotate(rand({1, 8, 8}), 45, {.expand = true}).shape(), (Shape{1, 12, 12}));
}

// Bytes are cut to their range and rounded after the rows, too; a checkerboard overshoots both ways.
TEST(DataTransforms, BicubicOfBytesRoundsBetweenTheAxes) {
  const Tensor x = ((arange(12).unsqueeze(1) + arange(9)) % 2 * 255).to(u8).unsqueeze(0);
  for (const bool antialias : {false, true}) {
    const data::ResizeOptions how{.interpolation = data::Interpolation::bicubic, .antialias = antialias};
    const Tensor whole = F::resize(x, {17, 14}, how);
    EXPECT_TRUE(equal(whole, F::resize(F::resize(x, {12, 14}, how), {17, 14}, how)));
    EXPECT_FALSE(equal(whole, (F::resize(x.to(f64), {17, 14}, how)).clamp(0, 255).round().to(u8)));
  }
}

TEST(DataTransforms, PaddingByTorchvisionsNames) {
  const Tensor x = arange(6).reshape({1, 2, 3});
  const auto padded = [&](const PerAxis& by, const char* mode) {
    return F::pad(x.to(u8), by, {.padding_mode = mode}).to(i64)[0];
  };
  EXPECT_TRUE(equal(padded({2, 1, 3, 2}, "symmetric"), tensor({{1, 0, 0, 1, 2, 2, 1, 0},
                                                               {1, 0, 0, 1, 2, 2, 1, 0},
                                                               {4, 3, 3, 4, 5, 5, 4, 3},
                                                               {4, 3, 3, 4, 5, 5, 4, 3},
                                                               {1, 0, 0, 1, 2, 2, 1, 0}})));
  EXPECT_TRUE(equal(padded({-1, 1, 2, 0}, "symmetric"), tensor({{1, 2, 2, 1}, {1, 2, 2, 1}, {4, 5, 5, 4}})));
  EXPECT_TRUE(equal(padded(1, "edge"), tensor({{0, 0, 1, 2, 2}, {0, 0, 1, 2, 2}, {3, 3, 4, 5, 5}, {3, 3, 4, 5, 5}})));
  EXPECT_TRUE(equal(padded(1, "edge"), padded(1, "replicate")));
  EXPECT_EQ(data::random_crop(2, {.padding = 1, .padding_mode = "symmetric"})(x.to(u8)).shape(), (Shape{1, 2, 2}));
  refused(Error::Kind::shape, [&] { (void)padded({0, 3}, "symmetric"); });
  refused(Error::Kind::shape, [&] { (void)padded({-3, 0, 1, 0}, "symmetric"); });
  refused(Error::Kind::argument, [&] { (void)padded(1, "mirror"); });
}

TEST(DataTransforms, GradientsGoThrough) {
  const Tensor x = rand({2, 3, 4, 4}).requires_grad_(), value = zeros({3, 1, 1}).requires_grad_();
  const Tensor y = F::erase(x, 1, 0, 2, 3, value);
  y.sum().backward();
  EXPECT_TRUE(equal(*x.grad(), F::erase(ones({2, 3, 4, 4}), 1, 0, 2, 3, zeros({}))));
  EXPECT_TRUE(equal(*value.grad(), full({3, 1, 1}, 12)));
  Tensor batch = rand({2, 3, 4, 4}).requires_grad_();
  Generator g(1);
  std::get<0>(data::cutmix({.num_classes = 2})(batch, tensor({0, 1}), g)).sum().backward();
  EXPECT_TRUE(equal(*batch.grad(), ones({2, 3, 4, 4})));  // each pixel is in the result once
}

TEST(DataTransforms, Mix) {
  const Tensor x = rand({6, 3, 8, 8}), y = arange(6) % 4;
  Generator g(1);
  for (const auto& mix : {data::mixup({.alpha = 0.4, .num_classes = 4}), data::cutmix({.num_classes = 4})}) {
    const auto [a, b] = mix(x, y, g);
    EXPECT_EQ(a.shape(), x.shape());
    EXPECT_EQ(b.shape(), (Shape{6, 4}));
    EXPECT_LE(distance(b.sum(1), ones({6})), 1e-6);
    const auto [c, d] = mix(x, b, g);  // shares already
    EXPECT_EQ(d.shape(), (Shape{6, 4}));
  }
  const auto [a, b] = data::mixup({.num_classes = 6})(x, arange(6), g);
  const float share = b[{2, 2}].item<float>();
  EXPECT_LE(distance(a[2], x[2] * share + x[1] * (1 - share)), 1e-6);
  const auto [c, d] = data::cutmix({.num_classes = 6})(x, arange(6), g);
  const float kept = d[{2, 2}].item<float>();
  EXPECT_NEAR((c[2] == x[2]).to(f32).mean().item<float>(), kept, 1e-6);
  refused(Error::Kind::argument, [&] { data::mixup({})(x, y, g); });
  refused(Error::Kind::shape, [&] { data::mixup({.num_classes = 4})(x, arange(5), g); });
  refused(Error::Kind::dtype, [&] { data::mixup({.num_classes = 4})(x.to(u8), y, g); });
  refused(Error::Kind::argument, [] { data::mixup({.alpha = 0}); });
  data::DataLoader loader(data::TensorDataset(x, y), {.batch_size = 3, .num_workers = 2},
                          data::on_batch(data::mixup({.num_classes = 4})));
  for (auto [images, labels] : loader) EXPECT_EQ(labels.shape(), (Shape{3, 4}));
}

TEST(DataTransforms, BadArguments) {
  using Kind = Error::Kind;
  const Tensor x = rand({3, 6, 6});
  Generator g;
  refused(Kind::argument, [] { data::random_horizontal_flip(1.5); });
  refused(Kind::argument, [] { data::random_horizontal_flip(std::nan("")); });
  refused(Kind::argument, [] { data::random_resized_crop(0); });
  refused(Kind::argument, [] { data::random_resized_crop(4, {.scale = {0.5, 0.1}}); });
  refused(Kind::argument, [] { data::random_resized_crop(4, {.ratio = {0, 1}}); });
  refused(Kind::argument, [] { data::color_jitter({.hue = 0.7}); });
  refused(Kind::argument, [] { data::color_jitter({.brightness = -1}); });
  refused(Kind::argument, [] { data::normalize({0.5}, {0}); });
  refused(Kind::argument, [] { data::normalize({}, {}); });
  refused(Kind::shape, [&] { data::normalize({1, 2}, {1})(x); });
  refused(Kind::dtype, [&] { data::normalize({1}, {1})(x.to(u8)); });
  refused(Kind::dtype, [&] { data::resize(4)(x.to(i64)); });
  refused(Kind::shape, [&] { data::resize(4)(x[0]); });
  refused(Kind::shape, [&] { data::resize(4)(zeros({3, 0, 4})); });
  refused(Kind::argument, [&] { data::resize({0, 4})(x); });
  refused(Kind::argument, [&] { data::resize({1, 2, 3})(x); });
  refused(Kind::argument, [&] { data::resize(4, {.max_size = 4})(x); });
  EXPECT_NE(refused(Kind::argument, [&] { data::resize(4, {.interpolation = "cubic"})(x); }).find("bicubic"),
            std::string::npos);
  refused(Kind::shape, [&] { data::random_crop(7)(x, g); });
  EXPECT_EQ(data::random_crop(9, {.pad_if_needed = true})(x, g).shape(), (Shape{3, 9, 9}));
  refused(Kind::argument, [&] { data::gaussian_blur(2)(x); });
  refused(Kind::shape, [&] { data::gaussian_blur(31)(x); });
  refused(Kind::argument, [] { data::gaussian_blur(3, {-1, 1}); });
  refused(Kind::argument, [&] { F::rotate(x, std::nan("")); });
  refused(Kind::argument, [&] { F::affine(x, {.scale = 0}); });
  refused(Kind::argument, [&] { F::rotate(x, 10, {.fill = {1, 2}}); });
  refused(Kind::shape, [&] { F::adjust_hue(rand({4, 5, 5}), 0.1); });
  refused(Kind::argument, [&] { F::adjust_contrast(x, -1); });
  refused(Kind::index, [&] { F::erase(x, 4, 4, 3, 1, tensor(0.)); });
  refused(Kind::argument, [&] { (void)data::random_erasing({.p = 1, .value = {1, 2}})(x, g); });
  refused(Kind::argument, [] { data::one_hot(0); });
  refused(Kind::argument, [&] { F::pad(x, {1, 2, 3}); });
}

TEST(DataTransforms, HugeSizesAreRefused) {
  const Tensor x = rand({3, 6, 6});
  for (const int64_t huge : {int64_t(1) << 45, int64_t(1) << 62, std::numeric_limits<int64_t>::max()}) {
    EXPECT_THROW((void)F::resize(x, {huge, huge}), Error);
    EXPECT_THROW((void)F::resize(x.to(u8), huge), Error);
    EXPECT_THROW((void)F::center_crop(x, huge), Error);
    EXPECT_THROW((void)F::pad(x, huge), Error);
    EXPECT_THROW((void)F::crop(x, huge, huge, huge, huge), Error);
    EXPECT_THROW((void)F::crop(x, -huge, 0, 2, huge), Error);
  }
  for (const int64_t far : {int64_t(-3), -(int64_t(1) << 62), std::numeric_limits<int64_t>::min()})
    EXPECT_TRUE(equal(F::crop(x, far, far, 2, 2), zeros({3, 2, 2}))) << far;
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // which need all addresses
// The image would fit, the table of weights for it does not.
TEST(DataTransforms, WeightsBeyondMemoryAreRefused) {
  EXPECT_TRUE(lacks_memory(rlim_t(3) << 30, [] {
    (void)F::resize(zeros({1, 1, 1}, {.dtype = u8}), {1, int64_t(1) << 30});
  }));
}
#endif
