// Reductions: values against naive references in every layout and dtype, threads, errors.
#include "ops/reduce.h"
#include "reduce_reference.h"

namespace volta {
namespace {

std::vector<std::vector<int64_t>> axis_choices(int64_t rank) {
  std::vector<std::vector<int64_t>> choices;
  for (int mask = 1; mask < 1 << rank; ++mask) {
    std::vector<int64_t> axes;
    for (int64_t i = 0; i < rank; ++i)
      if (mask >> i & 1) axes.push_back(i);
    choices.push_back(axes);
  }
  return choices;
}

struct Case {
  const char* name;
  std::function<Tensor(const Tensor&, const Axes&)> op;
  RowResult expected;
};

// A sum may cancel: its error is held to two roundings of the sum of magnitudes.
void check_everywhere(const Case& c, const Tensor& x, double tolerance) {
  const bool cancels = c.name == std::string("sum");
  for (const auto& axes : axis_choices(x.dim())) {
    const auto expected = reference(x, axes, c.expected), magnitude = reference(x, axes, norm_of(1));
    double allowed = tolerance;
    for (size_t i = 0; cancels && i < expected.size(); ++i)
      allowed = std::max(allowed, tolerance / 64 * magnitude[i] / (1 + std::abs(expected[i])));
    int which = 0;
    for (const Tensor& v : layouts(x))
      expect_near(c.op(v, axes), expected, allowed,
                  std::string(c.name) + " of " + x.shape().str() + " over " + Shape(axes).str() + " layout " +
                      std::to_string(which++));
  }
}

const Shape shapes[] = {{7},      {5000},    {3, 4},      {200, 3},     {3, 200},
                        {70, 65}, {4, 5, 6}, {33, 2, 40}, {2, 3, 4, 5}, {2, 1, 3, 1, 2, 2}};

TEST(ValuesReduce, FloatsInEveryLayout) {
  const Case cases[] = {
      {"sum", [](const Tensor& x, const Axes& a) { return sum(x, a); }, sum_of},
      {"mean", [](const Tensor& x, const Axes& a) { return mean(x, a); }, mean_of},
      {"var", [](const Tensor& x, const Axes& a) { return var(x, a); }, var_of},
      {"std", [](const Tensor& x, const Axes& a) { return std_dev(x, a); },
       [](const Row& r) { return std::sqrt(var_of(r)); }},
      {"max", [](const Tensor& x, const Axes& a) { return amax(x, a); }, max_of},
      {"min", [](const Tensor& x, const Axes& a) { return amin(x, a); }, min_of},
      {"logsumexp", [](const Tensor& x, const Axes& a) { return logsumexp(x, a); }, logsumexp_of},
      {"norm0", [](const Tensor& x, const Axes& a) { return norm(x, 0, a); }, norm_of(0)},
      {"norm1", [](const Tensor& x, const Axes& a) { return norm(x, 1, a); }, norm_of(1)},
      {"norm2", [](const Tensor& x, const Axes& a) { return norm(x, 2, a); }, norm_of(2)},
      {"norm2.5", [](const Tensor& x, const Axes& a) { return norm(x, 2.5, a); }, norm_of(2.5)},
      {"norm inf", [](const Tensor& x, const Axes& a) { return norm(x, inf, a); },
       [](const Row& r) { return std::max(max_of(r), -min_of(r)); }},
      {"any", [](const Tensor& x, const Axes& a) { return any(x > 1, a); },
       [](const Row& r) { return double(max_of(r) > 1); }},
      {"all", [](const Tensor& x, const Axes& a) { return all(x > -1, a); },
       [](const Row& r) { return double(min_of(r) > -1); }},
      {"count", [](const Tensor& x, const Axes& a) { return count_nonzero(x, a); }, norm_of(0)},
  };
  for (DType t : {f32, f64})
    for (const Shape& shape : shapes) {
      const Tensor x = randn(shape, {.dtype = t});
      for (const Case& c : cases)
        if (c.name != std::string("var") && c.name != std::string("std")) check_everywhere(c, x, rounding(t) * 4);
        else if (shape != Shape{2, 1, 3, 1, 2, 2}) check_everywhere(c, x, rounding(t) * 4);
    }
}

TEST(ValuesReduce, EveryDtype) {
  for (DType t : all_dtypes)
    for (const Shape& shape : {Shape{40}, Shape{3, 4}, Shape{9, 70}, Shape{70, 9}, Shape{3, 5, 2}}) {
      const Tensor x = randint(0, 3, shape).to(t);
      const double loose = is_half(t) ? rounding(t) : 0;
      check_everywhere({"sum", [](const Tensor& v, const Axes& a) { return sum(v, a); }, sum_of}, x, loose);
      check_everywhere({"nansum", [](const Tensor& v, const Axes& a) { return nansum(v, a); }, sum_of}, x, loose);
      check_everywhere({"amax", [](const Tensor& v, const Axes& a) { return amax(v, a); }, max_of}, x, 0);
      check_everywhere({"amin", [](const Tensor& v, const Axes& a) { return amin(v, a); }, min_of}, x, 0);
      check_everywhere({"any", [](const Tensor& v, const Axes& a) { return any(v, a); },
                        [](const Row& r) { return double(max_of(r) != 0); }},
                       x, 0);
      check_everywhere({"all", [](const Tensor& v, const Axes& a) { return all(v, a); },
                        [](const Row& r) { return double(min_of(r) != 0); }},
                       x, 0);
      check_everywhere({"count", [](const Tensor& v, const Axes& a) { return count_nonzero(v, a); }, norm_of(0)}, x, 0);
      const Tensor few = (x < 2).to(t) + (x < 1).to(t);
      if (shape.numel() <= 12)
        check_everywhere({"prod", [](const Tensor& v, const Axes& a) { return prod(v, a); }, prod_of}, few, 0);
    }
}

TEST(ValuesReduce, ResultTypes) {
  for (DType t : all_dtypes) {
    const Tensor x = ones({3}, {.dtype = t});
    const DType wide = is_floating(t) || t == u64 ? t : i64;
    EXPECT_EQ(sum(x).dtype(), wide);
    EXPECT_EQ(prod(x).dtype(), wide);
    EXPECT_EQ(cumsum(x, 0).dtype(), wide);
    EXPECT_EQ(cumprod(x, 0).dtype(), wide);
    EXPECT_EQ(amax(x).dtype(), t);
    EXPECT_EQ(argmax(x).dtype(), i64);
    EXPECT_EQ(any(x).dtype(), boolean);
    EXPECT_EQ(count_nonzero(x).dtype(), i64);
  }
  const int64_t big = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(sum(tensor(std::vector<int64_t>{big - 1, 1})).item<int64_t>(), big);
  EXPECT_EQ(amax(tensor(std::vector<int64_t>{big - 1, big})).item<int64_t>(), big);
  const uint64_t top = std::numeric_limits<uint64_t>::max();
  EXPECT_EQ(amax(tensor(std::vector<uint64_t>{1, top})).item<uint64_t>(), top);
  EXPECT_EQ(amin(tensor(std::vector<int64_t>{-big - 1, 0})).item<int64_t>(), -big - 1);
}

TEST(ValuesReduce, IndicesOfTheFirst) {
  for (DType t : all_dtypes)
    for (const Shape& shape : {Shape{50}, Shape{6, 700}, Shape{70, 40}, Shape{3, 4, 5}, Shape{5000}, Shape{40, 3}}) {
      const Tensor x = randint(0, 2 + (t != boolean) * 50, shape).to(t);
      for (int64_t axis = 0; axis < x.dim(); ++axis)
        for (const Tensor& v : layouts(x)) {
          const auto best = max(v, axis);
          const auto least = min(v, axis, true);
          expect_near(best.values, reference(x, {axis}, max_of), 0, "max");
          expect_near(best.indices, reference(x, {axis}, [](const Row& r) { return index_of(r, max_of(r)); }), 0,
                      "max index");
          expect_near(least.values, reference(x, {axis}, min_of), 0, "min");
          expect_near(least.indices, reference(x, {axis}, [](const Row& r) { return index_of(r, min_of(r)); }), 0,
                      "min index");
          EXPECT_EQ(least.indices.shape(), least.values.shape());
          expect_near(argmax(v, axis), reference(x, {axis}, [](const Row& r) { return index_of(r, max_of(r)); }), 0,
                      "argmax");
        }
      const auto flat = reshape(x, {-1}).to(f64).to_vector<double>();
      for (const Tensor& v : layouts(x)) {
        EXPECT_EQ(double(argmax(v).item<int64_t>()), index_of(flat, max_of(flat))) << shape;
        EXPECT_EQ(double(argmin(v).item<int64_t>()), index_of(flat, min_of(flat))) << shape;
      }
    }
}

TEST(ValuesReduce, SpecialNumbers) {
  for (DType t : floats) {
    const Tensor x = tensor({1.0, nan, 3.0, nan}).to(t);
    EXPECT_TRUE(std::isnan(sum(x).item<double>()));
    EXPECT_EQ(nansum(x).item<double>(), 4);
    EXPECT_TRUE(std::isnan(max(x).item<double>()));
    EXPECT_TRUE(std::isnan(min(x).item<double>()));
    EXPECT_EQ(argmax(x).item<int64_t>(), 1);
    EXPECT_EQ(min(x, 0).indices.item<int64_t>(), 1);
    EXPECT_TRUE(any(x).item<bool>());
    const Tensor columns = stack({x, x + 1}, 1);
    EXPECT_EQ(max(columns, 0).indices.to_vector<int64_t>(), (std::vector<int64_t>{1, 1}));
    const Tensor low = full({3}, -inf, {.dtype = t});
    EXPECT_EQ(max(low, 0).indices.item<int64_t>(), 0);
    EXPECT_EQ(max(low).item<double>(), -inf);
    EXPECT_EQ(logsumexp(low, 0).item<double>(), -inf);
    EXPECT_EQ(logsumexp(-low, 0).item<double>(), inf);
    EXPECT_NEAR(logsumexp(tensor({-inf, 2.0}).to(t), 0).item<double>(), 2, 1e-6);
    EXPECT_TRUE(std::isnan(logsumexp(x, 0).item<double>()));
  }
  EXPECT_NEAR(logsumexp(tensor({1000.0, 1000.0}).to(f64), 0).item<double>(), 1000 + std::log(2), 1e-12);
  const Tensor wide = stack({full({40}, -1e4), full({40}, 1e4)}, 0);
  EXPECT_EQ(logsumexp(wide, 0).to_vector<float>()[7], 1e4f);
  EXPECT_NEAR(var(full({5000}, 1e4) + randn({5000}) * 0.01).item<double>(), 1e-4, 4e-5);
}

TEST(ValuesReduce, EmptyAndScalar) {
  const Tensor none = zeros({0}), rows = zeros({3, 0}), scalar = full({}, 2.5);
  EXPECT_EQ(sum(none).item<float>(), 0);
  EXPECT_EQ(prod(none).item<float>(), 1);
  EXPECT_TRUE(std::isnan(mean(none).item<float>()));
  EXPECT_TRUE(std::isnan(var(none).item<float>()));
  EXPECT_TRUE(std::isnan(var(ones({1})).item<float>()));
  EXPECT_FALSE(any(none).item<bool>());
  EXPECT_TRUE(all(none).item<bool>());
  EXPECT_EQ(logsumexp(none, 0).item<float>(), -inf);
  EXPECT_EQ(norm(none).item<float>(), 0);
  EXPECT_EQ(sum(rows, 1).shape(), Shape{3});
  EXPECT_EQ(sum(rows, 0).shape(), Shape{0});
  EXPECT_EQ(max(rows, 0).values.shape(), Shape{0});
  EXPECT_EQ(softmax(rows, 1).shape(), (Shape{3, 0}));
  EXPECT_EQ(cumsum(rows, 1).shape(), (Shape{3, 0}));
  EXPECT_EQ(sum(scalar).item<float>(), 2.5f);
  EXPECT_EQ(sum(scalar, 0).item<float>(), 2.5f);
  EXPECT_EQ(max(scalar, 0).indices.item<int64_t>(), 0);
  EXPECT_EQ(softmax(scalar, 0).item<float>(), 1);
  EXPECT_EQ(cumsum(scalar, 0).item<float>(), 2.5f);
  EXPECT_EQ(cummax(scalar, -1).indices.item<int64_t>(), 0);
  EXPECT_EQ(median(scalar).item<float>(), 2.5f);
  EXPECT_EQ(sum(ones({2, 3}), {0, 1}, true).shape(), (Shape{1, 1}));
}

TEST(ValuesReduce, ExpandedAndLarge) {
  const Tensor x = expand(reshape(arange(0, 3, 1, {.dtype = f32}), {3, 1}), {3, 70000});
  EXPECT_EQ(sum(x).item<float>(), 210000);
  EXPECT_EQ(sum(x, 1).to_vector<float>(), (std::vector<float>{0, 70000, 140000}));
  EXPECT_EQ(sum(x, 0).to_vector<float>()[69999], 3);
  EXPECT_EQ(max(x, 0).indices.to_vector<int64_t>()[5], 2);
  for (DType t : floats) {
    const Tensor v = full({70000}, 0.5, {.dtype = t});
    EXPECT_NEAR(mean(v).item<double>(), 0.5, 1e-7);
    EXPECT_EQ(sum(v).item<double>(), t == f16 ? 35008 : t == bf16 ? 35072 : 35000);  // rounded once
    EXPECT_NEAR(norm(v).item<double>(), std::sqrt(17500.0), 140 * rounding(t));
    EXPECT_EQ(sum(full({70000, 2}, 0.5, {.dtype = t}), 0).to_vector<double>()[1], sum(v).item<double>());
    EXPECT_NEAR(sum(softmax(v, 0).to(f64)).item<double>(), 1, 0.01);
  }
  const Tensor noise = rand({1 << 22});
  const double exact = sum(noise.to(f64)).item<double>();
  EXPECT_NEAR(sum(noise).item<double>(), exact, exact * 3e-7);
  EXPECT_NEAR(sum(reshape(noise, {1 << 20, 4}), 0).to(f64).sum().item<double>(), exact, exact * 3e-7);
  EXPECT_NEAR(cumsum(noise, 0).to_vector<float>().back(), exact, exact * 3e-7);
}

TEST(ValuesReduce, Median) {
  for (DType t : {f16, f32, f64, i8, i64, u8})
    for (const Shape& shape : {Shape{7}, Shape{6, 9}, Shape{3, 4, 5}}) {
      const Tensor x = randint(0, 30, shape).to(t);
      const auto middle = [](Row r) {
        std::sort(r.begin(), r.end());
        return r[(r.size() - 1) / 2];
      };
      for (const Tensor& v : layouts(x)) {
        for (int64_t axis = 0; axis < x.dim(); ++axis) {
          const auto m = median(v, axis, true);
          expect_near(m.values, reference(x, {axis}, middle), 0, "median");
          EXPECT_TRUE(equal(gather(v, axis, m.indices), m.values));
        }
        EXPECT_EQ(median(v).item<double>(), middle(reshape(x, {-1}).to(f64).to_vector<double>()));
      }
    }
  EXPECT_TRUE(std::isnan(median(tensor({1.0, nan, 2.0})).item<double>()));
}

TEST(ValuesReduce, SumTo) {
  const Tensor x = randn({4, 3, 5}, {.dtype = f64});
  for (const Shape& shape :
       {Shape{3, 5}, Shape{5}, Shape{1, 5}, Shape{3, 1}, Shape{}, Shape{1, 1, 1}, Shape{4, 1, 5}, Shape{4, 3, 5}}) {
    const Tensor y = sum_to(x, shape, "test");
    EXPECT_EQ(y.shape(), shape);
    const Tensor weights = randn(shape, {.dtype = f64});
    EXPECT_NEAR(sum(y * weights).item<double>(), sum(x * weights).item<double>(), 1e-10) << shape;
  }
  EXPECT_THROW(sum_to(x, {2, 5}, "test"), Error);
}

// Bits do not depend on the number of threads.
TEST(ThreadsReduce, SameBits) {
  const int before = get_num_threads();
  const Tensor long_row = randn({300001}), square = randn({500, 700}), tall = randn({100000, 3}),
               cube = randn({40, 50, 60});
  const auto everything = [&] {
    std::vector<Tensor> y{sum(long_row),     var(long_row),    logsumexp(long_row, 0),
                          norm(long_row, 3), argmax(long_row), cumsum(long_row, 0)};
    for (const Tensor& x : {square, tall, cube, transpose(square, 0, 1)})
      for (int64_t axis : {0, 1})
        for (const Tensor& r :
             {sum(x, axis), var(x, axis), logsumexp(x, axis), max(x, axis).indices, softmax(x, axis), cumsum(x, axis)})
          y.push_back(r);
    return y;
  };
  set_num_threads(1);
  const auto expected = everything();
  for (int threads : {2, 3}) {
    set_num_threads(threads);
    const auto actual = everything();
    for (size_t i = 0; i < actual.size(); ++i)
      EXPECT_TRUE(equal(actual[i], expected[i])) << threads << " threads, result " << i;
  }
  set_num_threads(before);
}

Error::Kind kind_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.kind();
  }
  return Error::Kind::internal;
}

TEST(ValuesReduce, RunningSumsBeyondTheRange) {
  const float big = 3e38f, inf = INFINITY;
  const auto check = [](const std::vector<float>& given, const std::vector<float>& expected) {
    for (const int64_t n : {16, 20, 40, 100})
      for (const int64_t at : {0, 3, 15}) {
        if (at + 4 > n) continue;
        std::vector<float> x(size_t(n), 0.f), y(size_t(n), 0.f);
        for (size_t i = 0; i < 4; ++i) x[size_t(at) + i] = given[i], y[size_t(at) + i] = expected[i];
        EXPECT_EQ(cumsum(tensor(x), 0).to_vector<float>(), y) << n << " " << at;
      }
  };
  check({big, big, -big, -big}, {big, inf, big, 0});
  check({-big, big, big, -big}, {-big, 0, big, 0});
  std::vector<float> spread(64, 0.f);
  spread[0] = spread[1] = big, spread[40] = -big, spread[63] = -big;
  const auto y = cumsum(tensor(spread), 0).to_vector<float>();
  EXPECT_EQ(y[39], inf);
  EXPECT_EQ(y[40], big);
  EXPECT_EQ(y[63], 0);
}

TEST(ValuesReduce, LogMeanExp) {
  const Tensor x = tensor<double>({{0, 1, 2}, {1000, 1000, 1001}, {-inf, -inf, -inf}, {-inf, 2, inf}});
  EXPECT_TRUE(allclose(logmeanexp(x, 1), logsumexp(x, 1) - std::log(3), {.rtol = 1e-15}));
  EXPECT_EQ(logmeanexp(x, 1, true).shape(), (Shape{4, 1}));
  EXPECT_EQ(logmeanexp(full({70000}, 3.0, {f16})).item<float>(), 3);
  EXPECT_EQ(logmeanexp(tensor({2, 2})).dtype(), default_dtype());
  EXPECT_TRUE(std::isnan(logmeanexp(zeros({0})).item<float>()));
  Tensor low = full({2}, -inf, {.dtype = f64, .requires_grad = true});
  EXPECT_EQ(grad(logmeanexp(low), low).to_vector<double>(), (std::vector<double>{0, 0}));
}

TEST(ErrorsReduce, BadCalls) {
  const Tensor whole = zeros({2, 3}, {.dtype = i32}), x = zeros({2, 3}), none = zeros({0, 3});
  EXPECT_EQ(kind_of([&] { mean(whole); }), Error::Kind::dtype);
  EXPECT_EQ(kind_of([&] { var(whole); }), Error::Kind::dtype);
  EXPECT_EQ(kind_of([&] { std_dev(whole); }), Error::Kind::dtype);
  EXPECT_EQ(kind_of([&] { norm(whole); }), Error::Kind::dtype);
  EXPECT_EQ(kind_of([&] { softmax(whole, 0); }), Error::Kind::dtype);
  EXPECT_EQ(kind_of([&] { log_softmax(whole, 0); }), Error::Kind::dtype);
  EXPECT_EQ(kind_of([&] { logcumsumexp(whole, 0); }), Error::Kind::dtype);
  EXPECT_EQ(kind_of([&] { max(none); }), Error::Kind::shape);
  EXPECT_EQ(kind_of([&] { amin(none, 0); }), Error::Kind::shape);
  EXPECT_EQ(kind_of([&] { argmax(none, 0); }), Error::Kind::shape);
  EXPECT_EQ(kind_of([&] { min(none, 0); }), Error::Kind::shape);
  EXPECT_EQ(kind_of([&] { norm(none, inf, 0); }), Error::Kind::shape);
  EXPECT_EQ(kind_of([&] { median(none.to(i64)); }), Error::Kind::shape);
  EXPECT_EQ(kind_of([&] { median(none, 0); }), Error::Kind::shape);
  EXPECT_EQ(kind_of([&] { norm(x, nan); }), Error::Kind::argument);
  EXPECT_EQ(kind_of([&] { diff(x, -1); }), Error::Kind::argument);
  EXPECT_EQ(kind_of([&] { diff(full({}, 1.0)); }), Error::Kind::shape);
  EXPECT_EQ(kind_of([&] { sum(x, {0, 0}); }), Error::Kind::argument);
  for (const auto& f : std::vector<std::function<void()>>{
           [&] { sum(x, 2); }, [&] { softmax(x, -3); }, [&] { cumsum(x, 5); }, [&] { max(x, 2); },
           [&] { median(x, 2); }, [&] { sum(Tensor()); }, [&] { softmax(Tensor(), 0); }, [&] { cumsum(Tensor(), 0); }})
    EXPECT_THROW(f(), Error);
}

}  // namespace
}  // namespace volta
