// Bad input: every op is driven with invalid arguments; it gives a defined result or one structured error, and changes nothing.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "samples.h"
#include "toy_device.h"
#include "why.h"

namespace volta::test {
namespace {

std::string sample_name(const testing::TestParamInfo<const Sample*>& info) {
  std::string text = info.param->label;
  for (char& c : text)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return text + "_" + std::to_string(info.index);
}

std::vector<const Sample*> all_samples() {
  std::vector<const Sample*> list;
  for (const Sample& s : samples()) list.push_back(&s);
  return list;
}

class ErrorsOps : public testing::TestWithParam<const Sample*> {
 protected:
  // Runs the op; anything but a result or an Error that names its op fails. Returns whether it threw.
  bool survives(const std::vector<Tensor>& x) {
    const int64_t before = memory::stats().in_use;
    std::vector<Tensor> copies;
    for (const Tensor& t : x) copies.push_back(t.defined() ? t.clone() : t);
    const int64_t with_copies = memory::stats().in_use;
    try {
      GetParam()->f(x);
      return false;
    } catch (const Error& e) {
      if (GetParam()->op != "index") {
        EXPECT_EQ(e.op(), GetParam()->op) << e.what();
      }
      EXPECT_GT(std::string(e.what()).size(), e.op().size() + 5) << e.what();
      EXPECT_NE(e.kind(), Error::Kind::internal) << e.what();
    } catch (const std::exception& e) {
      ADD_FAILURE() << GetParam()->label << " threw something else: " << e.what();
    }
    EXPECT_EQ(memory::stats().in_use, with_copies) << "memory stayed behind (" << before << ")";
    for (size_t i = 0; i < x.size(); ++i)
      if (x[i].defined()) {
        EXPECT_TRUE(allclose(x[i].to(f64), copies[i].to(f64), {.rtol = 0, .atol = 0, .equal_nan = true}));
      }
    return true;
  }
};

TEST_P(ErrorsOps, UndefinedTensors) {
  for (size_t i = 0; i < GetParam()->inputs.size(); ++i) {
    auto x = draw(*GetParam(), f32);
    x[i] = Tensor();
    EXPECT_EQ(survives(x), !GetParam()->inputs[i].optional) << "input " << i;
  }
}

TEST_P(ErrorsOps, UnexpectedShapes) {
  for (const Shape& shape :
       {Shape{}, Shape{0}, Shape{7}, Shape{1, 1}, Shape{2, 0, 3}, Shape{2, 3, 5, 7}, Shape{1, 1, 1, 1, 1, 1, 2}})
    for (size_t i = 0; i < GetParam()->inputs.size(); ++i) {
      auto x = draw(*GetParam(), f32);
      x[i] = full(shape, 0.5);
      survives(x);
    }
}

TEST_P(ErrorsOps, EveryDtype) {
  for (int dt = 0; dt < dtype_count; ++dt)
    for (size_t i = 0; i < GetParam()->inputs.size(); ++i) {
      auto x = draw(*GetParam(), f32);
      x[i] = (x[i].to(f32).abs() + 1).to(DType(dt));
      survives(x);
    }
}

TEST_P(ErrorsOps, FloatsAreNoIndices) {
  const std::vector<Input>& inputs = GetParam()->inputs;
  if (std::all_of(inputs.begin(), inputs.end(), [](auto& in) { return in.draw != Draw::values; })) return;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].draw != Draw::integers) continue;
    auto x = draw(*GetParam(), f32);
    x[i] = x[i].to(f32);
    EXPECT_TRUE(survives(x)) << "input " << i;
  }
}

// Tensors of two devices do not meet, unless the op moves one itself.
TEST_P(ErrorsOps, MixedDevices) {
  for (size_t i = 0; i < GetParam()->inputs.size(); ++i) {
    auto x = draw(*GetParam(), f32);
    x[i] = x[i].to(toy_device());
    const auto y = attempt([&] { return GetParam()->f(x); });
    if (y || GetParam()->op == "index") continue;
    EXPECT_EQ(y.error().op(), GetParam()->op) << y.error().what();
    EXPECT_EQ(y.error().kind(), Error::Kind::device) << y.error().what();
  }
}

TEST_P(ErrorsOps, NotFiniteValues) {
  for (double bad : {double(NAN), double(INFINITY), -double(INFINITY), -0.0, 5e-324, 1e300}) {
    auto x = draw(*GetParam(), f64);
    for (Tensor& t : x)
      if (is_floating(t.dtype())) t.reshape({-1}).slice(0, 0, 1).fill_(bad);
    survives(x);
  }
}

INSTANTIATE_TEST_SUITE_P(All, ErrorsOps, testing::ValuesIn(all_samples()), sample_name);

std::string text(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "nothing was thrown";
}

void expect_says(const std::string& what, std::initializer_list<const char*> words) {
  for (const char* w : words) EXPECT_NE(what.find(w), std::string::npos) << "'" << what << "' lacks '" << w << "'";
}

TEST(ErrorsText, NameOpShapesAndRule) {
  const Tensor a = zeros({2, 3});
  expect_says(text([&] { matmul(a, zeros({4, 5})); }), {"matmul", "[2, 3]", "[4, 5]", "3", "4"});
  expect_says(text([&] { a + zeros({2, 4}); }), {"add", "[2, 3]", "[2, 4]"});
  expect_says(text([&] { a.sum(2); }), {"sum", "2", "[2, 3]"});
  expect_says(text([&] { a.sum({0, 0}); }), {"sum", "twice"});
  expect_says(text([&] { a.permute({0, 0}); }), {"permute", "[0, 0]", "[2, 3]"});
  expect_says(text([&] { a.view({7}); }), {"view", "[2, 3]", "[7]"});
  expect_says(text([&] { a.t().view({6}); }), {"view", "reshape"});
  expect_says(text([&] { a.expand({5, 3}); }), {"expand", "[2, 3]", "[5, 3]"});
  expect_says(text([&] { a.index_select(0, tensor({0, 2})); }), {"index_select", "2"});
  expect_says(text([&] { a.gather(1, tensor({{0, 5}})); }), {"gather", "5"});
  expect_says(text([&] { cat({a, zeros({2})}, 0); }), {"cat", "[2, 3]", "[2]"});
  expect_says(text([&] { cat({}, 0); }), {"cat"});
  expect_says(text([&] { stack({}); }), {"stack"});
  expect_says(text([&] { ones({2}, {.dtype = boolean}) - ones({2}, {.dtype = boolean}); }), {"sub", "bool"});
  expect_says(text([&] { a& a; }), {"bitwise_and", "f32"});
  expect_says(text([&] { arange(0, 5, 0); }), {"arange"});
  expect_says(text([&] { arange(0, double(INFINITY)); }), {"arange"});
  expect_says(text([&] { zeros({-1}); }), {"zeros", "-1"});
  expect_says(text([&] { zeros(Shape{int64_t(1) << 40, int64_t(1) << 40}); }), {"zeros", "too many"});
  expect_says(text([&] {
                Shape s = Shape::filled(12, 1);
                s.push_back(1);
              }),
              {"12"});
  expect_says(text([&] { Device("gpu"); }), {"gpu"});
  expect_says(text([&] { Device("cuda:x"); }), {"cuda:x"});
  expect_says(text([&] { a.data<double>(); }), {"data", "f64", "f32"});
  expect_says(text([&] { a.topk(9); }), {"topk", "9"});
  expect_says(text([&] { a.pad({1, 1}, {.mode = "mirror"}); }), {"pad", "mirror", "reflect"});
  expect_says(text([&] { linear(a, zeros({4, 3}), {}, {.activation = "swish"}); }), {"linear", "swish", "relu"});
  expect_says(text([&] { bilinear(a, a, zeros({4, 3, 3}), zeros({1, 4})); }), {"bilinear", "[4]", "[1, 4]"});
  expect_says(text([&] { cosine_embedding_loss(a, a, ones({1})); }), {"cosine_embedding_loss", "[2, 3]", "[1]"});
  expect_says(text([&] { mse_loss(ones({2}, {.dtype = i64}), ones({2}, {.dtype = i64})); }), {"mse_loss", "i64"});
  expect_says(text([&] { einsum("ij,jk->ik", a, a); }), {"einsum", "ij,jk->ik"});
  expect_says(text([&] { einsum("i?", a); }), {"einsum"});
  expect_says(text([&] { zeros({0}).max(); }), {"max"});
  expect_says(text([&] { set_num_threads(0); }), {"set_num_threads"});
  expect_says(text([&] { memory::set_limit(-1); }), {"set_limit"});
  expect_says(text([&] { randint(5, 5, {2}); }), {"randint"});
  expect_says(text([&] { multinomial(tensor({-1.0, 2.0}), 1); }), {"multinomial"});
  expect_says(text([&] { tensor({{1, 2}, {3}}); }), {"tensor"});
}

// Ops that would give or pass through a thirteenth axis say so in their own name.
TEST(ErrorsText, NameTheOpThatRunsOutOfAxes) {
  const Tensor x = ones(Shape::filled(12, 1)), i = zeros({2, 2, 2}, {i64});
  const std::vector<Tensor> many(13, arange(2));
  Shape pairs = x.shape();
  pairs[11] = 2;
  EXPECT_TRUE(says(
      [&] {
        (void)einsum("abcdefghijkl,mn->abcdefghijklmn", {x, ones({1, 1})});
      },
      "einsum: more than 12"));
  EXPECT_TRUE(says([&] { (void)meshgrid(many); }, "meshgrid: more than 12"));
  EXPECT_TRUE(says([&] { (void)tensor({{{{{{{{{{{{{{1}}}}}}}}}}}}}}); }, "tensor: more than 12"));
  EXPECT_TRUE(says([&] { (void)x[{newaxis}]; }, "index: more than 12"));
  EXPECT_TRUE(says([&] { (void)x[{i, i}]; }, "index: more than 12"));
  EXPECT_TRUE(says([&] { (void)index_put(x, {i, i}, 1.0); }, "index_put: more than 12"));
  EXPECT_TRUE(says([&] { (void)index_put(x, {i, i}, 1.0, true); }, "index_put: more than 12"));
  EXPECT_TRUE(says([&] { (void)index_put(x, {tensor({5})}, 1.0, true); }, "index_put: index 5 is out of range"));
  EXPECT_TRUE(says([&] { (void)channel_shuffle(x, 1); }, "channel_shuffle: more than 12"));
  EXPECT_TRUE(says([&] { (void)inner(x, x); }, "inner: more than 12"));
  EXPECT_TRUE(says([&] { (void)bilinear(x, x, ones({2, 1, 1})); }, "bilinear: more than 12"));
  EXPECT_TRUE(
      says([&] { (void)rotary_positions(ones(pairs), {.interleaved = true}); }, "rotary_positions: more than 12"));
  EXPECT_TRUE(says([&] { (void)scaled_dot_product_attention(ones(pairs).movedim(-1, -3), x, x, {.enable_gqa = true}); },
                   "scaled_dot_product_attention: more than 12"));
}

TEST(ErrorsText, InPlaceFailuresLeaveTheTargetAlone) {
  Tensor keep = ones({3});
  const uint32_t version = keep.version();
  EXPECT_FALSE(attempt([&] { return keep.add_(ones({4})); }));
  EXPECT_FALSE(attempt([&] { return keep.add_(ones({2, 3})); }));
  EXPECT_FALSE(attempt([&] { return keep.copy_(ones({4})); }));
  EXPECT_FALSE(attempt([&] { keep[5] = 1; }));
  EXPECT_FALSE(attempt([&] { keep[tensor({0, 9})] = 1; }));
  EXPECT_TRUE(equal(keep, ones({3})));
  EXPECT_EQ(keep.version(), version);
  Tensor whole = arange(0, 3);
  EXPECT_FALSE(attempt([&] { return whole.add_(0.5); }));
  EXPECT_FALSE(attempt([&] { return whole.sqrt_(); }));
  EXPECT_FALSE(attempt([&] { return whole.fill_(0.5); }));
  EXPECT_TRUE(equal(whole, tensor({0, 1, 2})));
}

TEST(ErrorsResult, AttemptCarriesValuesAndErrors) {
  const auto good = attempt([] { return 5; });
  EXPECT_TRUE(good && *good == 5);
  const auto bad = attempt([]() -> int { throw Error(Error::Kind::io, "read", "no file"); });
  EXPECT_FALSE(bad);
  EXPECT_EQ(bad.error().kind(), Error::Kind::io);
  EXPECT_EQ(bad.error().op(), "read");
  EXPECT_THROW(bad.value(), Error);
  EXPECT_THROW((void)good.error(), Error);
  EXPECT_TRUE(attempt([] {}));
}

}  // namespace
}  // namespace volta::test
