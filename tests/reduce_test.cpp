// Reductions, row ops and scans: values against naive references in every layout and dtype, gradients, threads, errors.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include <volta/volta.h>

#include "ops/reduce.h"

namespace volta {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr DType floats[] = {f16, bf16, f32, f64};
constexpr DType all_dtypes[] = {f16, bf16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64, boolean};

// The same values lying differently in memory.
std::vector<Tensor> layouts(const Tensor& x) {
  if (x.dim() == 0) return {x};
  Shape reversed;
  for (int64_t i = x.dim() - 1; i >= 0; --i) reversed.push_back(i);
  std::vector<int64_t> axes(static_cast<size_t>(x.dim()));
  std::iota(axes.begin(), axes.end(), 0);
  std::vector<Tensor> result{x, permute(contiguous(permute(x, reversed)), reversed), select(stack({x, x}, -1), -1, 0),
                             flip(contiguous(flip(x, axes)), axes)};
  if (x.dim() > 1) result.push_back(transpose(contiguous(transpose(x, 0, 1)), 0, 1));
  return result;
}

using Row = std::vector<double>;
using RowResult = std::function<double(const Row&)>;

// Calls f with the values of each row along the axes, in row-major order of the results.
std::vector<double> reference(const Tensor& x, const std::vector<int64_t>& axes, const RowResult& f) {
  Shape order;
  int64_t count = 1, results = 1;
  for (int64_t i = 0; i < x.dim(); ++i)
    if (std::find(axes.begin(), axes.end(), i) == axes.end()) order.push_back(i), results *= x.size(i);
  for (int64_t a : axes) order.push_back(a), count *= x.size(a);
  const auto values = contiguous(permute(x, order)).to(f64).to_vector<double>();
  std::vector<double> y;
  for (int64_t r = 0; r < results; ++r)
    y.push_back(f(Row(values.begin() + r * count, values.begin() + (r + 1) * count)));
  return y;
}

void expect_near(const Tensor& y, const std::vector<double>& expected, double tolerance, const std::string& what) {
  const auto values = y.to(f64).to_vector<double>();
  ASSERT_EQ(values.size(), expected.size()) << what;
  for (size_t i = 0; i < values.size(); ++i) {
    if (std::isnan(expected[i])) EXPECT_TRUE(std::isnan(values[i])) << what << " at " << i;
    else if (std::isinf(expected[i]) || tolerance == 0) EXPECT_EQ(values[i], expected[i]) << what << " at " << i;
    else EXPECT_NEAR(values[i], expected[i], tolerance * (1 + std::abs(expected[i]))) << what << " at " << i;
  }
}

double rounding(DType t) { return t == f16 ? 1e-3 : t == bf16 ? 8e-3 : t == f32 ? 2e-6 : 1e-13; }

double sum_of(const Row& r) { return double(std::accumulate(r.begin(), r.end(), 0.0L)); }
double mean_of(const Row& r) { return sum_of(r) / double(r.size()); }
double var_of(const Row& r) {
  const double m = mean_of(r);
  long double s = 0;
  for (double v : r) s += (v - m) * (v - m);
  return double(s) / double(r.size() - 1);
}
double prod_of(const Row& r) { return std::accumulate(r.begin(), r.end(), 1.0, std::multiplies<>()); }
double max_of(const Row& r) {
  double m = -inf;
  for (double v : r) m = std::isnan(m) || v <= m ? m : v;
  return m;
}
double min_of(const Row& r) {
  double m = inf;
  for (double v : r) m = std::isnan(m) || v >= m ? m : v;
  return m;
}
double index_of(const Row& r, double value) {
  for (size_t i = 0; i < r.size(); ++i)
    if (r[i] == value || (std::isnan(value) && std::isnan(r[i]))) return double(i);
  return -1;
}
double logsumexp_of(const Row& r) {
  const double m = max_of(r), shift = std::isfinite(m) ? m : 0;
  long double s = 0;
  for (double v : r) s += std::exp(v - shift);
  return double(std::log(s)) + shift;
}
RowResult norm_of(double p) {
  return [p](const Row& r) {
    long double s = 0;
    for (double v : r) s += p == 0 ? v != 0 : std::pow(std::abs(v), p);
    return p == 0 ? double(s) : double(std::pow(s, 1 / p));
  };
}

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

void check_everywhere(const Case& c, const Tensor& x, double tolerance) {
  for (const auto& axes : axis_choices(x.dim())) {
    const auto expected = reference(x, axes, c.expected);
    int which = 0;
    for (const Tensor& v : layouts(x))
      expect_near(c.op(v, axes), expected, tolerance,
                  std::string(c.name) + " of " + x.shape().str() + " over " + Shape(axes).str() + " layout " +
                      std::to_string(which++));
  }
}

const Shape shapes[] = {{7}, {5000}, {3, 4}, {200, 3}, {3, 200}, {70, 65}, {4, 5, 6}, {33, 2, 40}, {2, 3, 4, 5}, {2, 1, 3, 1, 2, 2}};

TEST(ValuesReduce, FloatsInEveryLayout) {
  const Case cases[] = {
      {"sum", [](const Tensor& x, const Axes& a) { return sum(x, a); }, sum_of},
      {"mean", [](const Tensor& x, const Axes& a) { return mean(x, a); }, mean_of},
      {"var", [](const Tensor& x, const Axes& a) { return var(x, a); }, var_of},
      {"std", [](const Tensor& x, const Axes& a) { return std_dev(x, a); }, [](const Row& r) { return std::sqrt(var_of(r)); }},
      {"max", [](const Tensor& x, const Axes& a) { return amax(x, a); }, max_of},
      {"min", [](const Tensor& x, const Axes& a) { return amin(x, a); }, min_of},
      {"logsumexp", [](const Tensor& x, const Axes& a) { return logsumexp(x, a); }, logsumexp_of},
      {"norm0", [](const Tensor& x, const Axes& a) { return norm(x, 0, a); }, norm_of(0)},
      {"norm1", [](const Tensor& x, const Axes& a) { return norm(x, 1, a); }, norm_of(1)},
      {"norm2", [](const Tensor& x, const Axes& a) { return norm(x, 2, a); }, norm_of(2)},
      {"norm2.5", [](const Tensor& x, const Axes& a) { return norm(x, 2.5, a); }, norm_of(2.5)},
      {"norm inf", [](const Tensor& x, const Axes& a) { return norm(x, inf, a); },
       [](const Row& r) { return std::max(max_of(r), -min_of(r)); }},
      {"any", [](const Tensor& x, const Axes& a) { return any(x > 1, a); }, [](const Row& r) { return double(max_of(r) > 1); }},
      {"all", [](const Tensor& x, const Axes& a) { return all(x > -1, a); }, [](const Row& r) { return double(min_of(r) > -1); }},
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
                        [](const Row& r) { return double(max_of(r) != 0); }}, x, 0);
      check_everywhere({"all", [](const Tensor& v, const Axes& a) { return all(v, a); },
                        [](const Row& r) { return double(min_of(r) != 0); }}, x, 0);
      check_everywhere({"count", [](const Tensor& v, const Axes& a) { return count_nonzero(v, a); }, norm_of(0)}, x, 0);
      const Tensor few = (x < 2).to(t) + (x < 1).to(t);
      if (shape.numel() <= 12) check_everywhere({"prod", [](const Tensor& v, const Axes& a) { return prod(v, a); }, prod_of}, few, 0);
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
          expect_near(best.indices, reference(x, {axis}, [](const Row& r) { return index_of(r, max_of(r)); }), 0, "max index");
          expect_near(least.values, reference(x, {axis}, min_of), 0, "min");
          expect_near(least.indices, reference(x, {axis}, [](const Row& r) { return index_of(r, min_of(r)); }), 0, "min index");
          EXPECT_EQ(least.indices.shape(), least.values.shape());
          expect_near(argmax(v, axis), reference(x, {axis}, [](const Row& r) { return index_of(r, max_of(r)); }), 0, "argmax");
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
  EXPECT_NEAR(logsumexp(tensor({1000.0, 1000.0}), 0).item<double>(), 1000 + std::log(2), 1e-12);
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
  for (const Shape& shape : {Shape{3, 5}, Shape{5}, Shape{1, 5}, Shape{3, 1}, Shape{}, Shape{1, 1, 1}, Shape{4, 1, 5}, Shape{4, 3, 5}}) {
    const Tensor y = sum_to(x, shape, "test");
    EXPECT_EQ(y.shape(), shape);
    const Tensor weights = randn(shape, {.dtype = f64});
    EXPECT_NEAR(sum(y * weights).item<double>(), sum(x * weights).item<double>(), 1e-10) << shape;
  }
  EXPECT_THROW(sum_to(x, {2, 5}, "test"), Error);
}

std::vector<double> rows_reference(const Tensor& x, int64_t axis, const std::function<Row(const Row&)>& f) {
  const Tensor last = transpose(x, axis, -1);
  const auto values = contiguous(last).to(f64).to_vector<double>();
  std::vector<double> out;
  const auto n = size_t(last.size(-1));
  for (size_t r = 0; r < values.size(); r += n) {
    const Row row = f(Row(values.begin() + int64_t(r), values.begin() + int64_t(r + n)));
    out.insert(out.end(), row.begin(), row.end());
  }
  return contiguous(transpose(reshape(tensor(out), last.shape()), axis, -1)).to_vector<double>();
}

Row softmax_of(const Row& r) {
  Row y;
  for (double v : r) y.push_back(std::exp(v - logsumexp_of(r)));
  return y;
}
Row log_softmax_of(const Row& r) {
  Row y;
  for (double v : r) y.push_back(v - logsumexp_of(r));
  return y;
}
template <class F> std::function<Row(const Row&)> running(F f) {
  return [f](const Row& r) {
    Row y;
    for (size_t i = 0; i < r.size(); ++i) y.push_back(f(Row(r.begin(), r.begin() + int64_t(i) + 1)));
    return y;
  };
}

TEST(ValuesRows, Softmax) {
  for (DType t : floats)
    for (const Shape& shape : {Shape{7}, Shape{1500}, Shape{5, 33}, Shape{33, 5}, Shape{3, 40, 4}, Shape{2, 3, 70, 20}}) {
      const Tensor x = randn(shape, {.dtype = t}) * 3;
      for (int64_t axis = 0; axis < x.dim(); ++axis)
        for (const Tensor& v : layouts(x)) {
          expect_near(softmax(v, axis), rows_reference(x, axis, softmax_of), rounding(t), "softmax");
          expect_near(log_softmax(v, axis), rows_reference(x, axis, log_softmax_of), rounding(t), "log_softmax");
        }
    }
  const auto far = log_softmax(tensor({1e4, -1e4, 0.0}).to(f32), 0).to_vector<float>();
  EXPECT_EQ(far, (std::vector<float>{0, -2e4f, -1e4f}));
  EXPECT_EQ(softmax(tensor({400.0, -400.0}).to(f32), 0).to_vector<float>(), (std::vector<float>{1, 0}));
}

TEST(ValuesRows, GradientsWithAndWithoutRecording) {
  for (DType t : floats)
    for (int64_t axis : {0, 1, 2}) {
      const Tensor base = randn({4, 30, 17}, {.dtype = t});
      for (const Tensor& v : layouts(base))
        for (const auto& op : {softmax, log_softmax}) {
          Tensor x = v.detach();
          x.requires_grad_();
          const Tensor weights = randn(base.shape(), {.dtype = t});
          const Tensor fused = grad(op(x, axis), x, {.grad_outputs = {weights}});
          const Tensor plain = grad(op(x, axis), x, {.grad_outputs = {weights}, .create_graph = true});
          expect_near(fused, plain.to(f64).to_vector<double>(), rounding(t) * 8, "gradient");
        }
    }
}

TEST(ValuesScan, EveryLayoutAndDtype) {
  for (DType t : all_dtypes)
    for (const Shape& shape : {Shape{9}, Shape{1100}, Shape{6, 40}, Shape{40, 6}, Shape{3, 20, 5}}) {
      const Tensor x = randint(0, 3, shape).to(t), signs = randint(0, 2, shape).to(t);
      const double loose = is_half(t) ? rounding(t) : 0;
      for (int64_t axis = 0; axis < x.dim(); ++axis) {
        const auto maxima = rows_reference(x, axis, running(max_of));
        for (const Tensor& v : layouts(x)) {
          expect_near(cumsum(v, axis), rows_reference(x, axis, running(sum_of)), loose, "cumsum");
          expect_near(cummax(v, axis).values, maxima, 0, "cummax");
          expect_near(cummin(v, axis).values, rows_reference(x, axis, running(min_of)), 0, "cummin");
          const auto m = cummax(v, axis);
          EXPECT_TRUE(equal(gather(v, axis, m.indices), m.values));
        }
        for (const Tensor& v : layouts(signs)) expect_near(cumprod(v, axis), rows_reference(signs, axis, running(prod_of)), 0, "cumprod");
      }
    }
}

TEST(ValuesScan, LogCumSumExpAndSpecials) {
  for (DType t : floats)
    for (int64_t axis : {0, 1}) {
      const Tensor x = randn({30, 20}, {.dtype = t}) * 5;
      for (const Tensor& v : layouts(x))
        expect_near(logcumsumexp(v, axis), rows_reference(x, axis, running(logsumexp_of)), rounding(t) * 4, "logcumsumexp");
    }
  EXPECT_EQ(cummax(tensor({1.0, 3.0, 3.0, 2.0}), 0).indices.to_vector<int64_t>(), (std::vector<int64_t>{0, 1, 2, 2}));
  const auto m = cummin(tensor({1.0, nan, 0.0}), 0);
  EXPECT_TRUE(std::isnan(m.values.to_vector<double>()[2]));
  EXPECT_EQ(m.indices.to_vector<int64_t>(), (std::vector<int64_t>{0, 1, 1}));
  EXPECT_EQ(logcumsumexp(tensor({-inf, -inf, 1.0}), 0).to_vector<double>(), (std::vector<double>{-inf, -inf, 1}));
}

TEST(ValuesScan, Diff) {
  const Tensor x = tensor(std::vector<int64_t>{1, 4, 9, 16});
  EXPECT_EQ(diff(x).to_vector<int64_t>(), (std::vector<int64_t>{3, 5, 7}));
  EXPECT_EQ(diff(x, 2).to_vector<int64_t>(), (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(diff(x, 9).numel(), 0);
  EXPECT_EQ(diff(reshape(x, {2, 2}), 1, 0).to_vector<int64_t>(), (std::vector<int64_t>{8, 12}));
  EXPECT_EQ(diff(x > 3).to_vector<bool>(), (std::vector<bool>{true, false, false}));
}

// Bits do not depend on the number of threads.
TEST(ThreadsReduce, SameBits) {
  const int before = get_num_threads();
  const Tensor long_row = randn({300001}), square = randn({500, 700}), tall = randn({100000, 3}), cube = randn({40, 50, 60});
  const auto everything = [&] {
    std::vector<Tensor> y{sum(long_row), var(long_row), logsumexp(long_row, 0), norm(long_row, 3), argmax(long_row), cumsum(long_row, 0)};
    for (const Tensor& x : {square, tall, cube, transpose(square, 0, 1)})
      for (int64_t axis : {0, 1})
        for (const Tensor& r : {sum(x, axis), var(x, axis), logsumexp(x, axis), max(x, axis).indices, softmax(x, axis), cumsum(x, axis)})
          y.push_back(r);
    return y;
  };
  set_num_threads(1);
  const auto expected = everything();
  for (int threads : {2, 3}) {
    set_num_threads(threads);
    const auto actual = everything();
    for (size_t i = 0; i < actual.size(); ++i) EXPECT_TRUE(equal(actual[i], expected[i])) << threads << " threads, result " << i;
  }
  set_num_threads(before);
}

struct GradCase {
  const char* name;
  std::function<Tensor(const Tensor&)> f;
};

class GradcheckReduce : public testing::TestWithParam<GradCase> {};

TEST_P(GradcheckReduce, FirstAndSecondOrder) {
  const GradCase& c = GetParam();
  const Tensor x = reshape(tensor({0.3, -1.2, 2.1, 0.7, -0.4, 1.6, -2.3, 0.9, 1.1, -0.8, 0.5, 1.9}), {3, 4});
  GradcheckOptions options;
  options.raise = true;
  for (const Tensor& v : {x, transpose(contiguous(transpose(x, 0, 1)), 0, 1)}) {
    const auto f = [&](const std::vector<Tensor>& in) { return std::vector<Tensor>{c.f(in[0])}; };
    Tensor leaf = v.detach();
    leaf.requires_grad_();
    EXPECT_TRUE(gradcheck_all(f, {leaf}, options));
    EXPECT_TRUE(gradgradcheck_all(f, {leaf}, options));
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, GradcheckReduce,
    testing::Values(GradCase{"sum", [](const Tensor& x) { return sum(x); }}, GradCase{"sum_axis", [](const Tensor& x) { return sum(x, 0, true); }},
                    GradCase{"mean", [](const Tensor& x) { return mean(x, {0, 1}); }}, GradCase{"mean_axis", [](const Tensor& x) { return mean(x, 1); }},
                    GradCase{"prod", [](const Tensor& x) { return prod(x); }}, GradCase{"prod_axis", [](const Tensor& x) { return prod(x, 0); }},
                    GradCase{"prod_two_axes", [](const Tensor& x) { return prod(unsqueeze(x, 1), {0, 1}, true); }},
                    GradCase{"nansum", [](const Tensor& x) { return nansum(x, 1); }},
                    GradCase{"amax", [](const Tensor& x) { return amax(x, 1); }}, GradCase{"amin", [](const Tensor& x) { return amin(x); }},
                    GradCase{"max_axis", [](const Tensor& x) { return max(x, 0).values; }}, GradCase{"min_axis", [](const Tensor& x) { return min(x, 1, true).values; }},
                    GradCase{"max", [](const Tensor& x) { return max(x); }},
                    GradCase{"var", [](const Tensor& x) { return var(x); }}, GradCase{"var_axis", [](const Tensor& x) { return var(x, 1, {.correction = 0, .keepdim = true}); }},
                    GradCase{"std", [](const Tensor& x) { return std_dev(x, 0); }}, GradCase{"std_all", [](const Tensor& x) { return std_dev(x); }},
                    GradCase{"norm1", [](const Tensor& x) { return norm(x, 1, 1); }}, GradCase{"norm2", [](const Tensor& x) { return norm(x); }},
                    GradCase{"norm3", [](const Tensor& x) { return norm(x, 3, 0, true); }}, GradCase{"norm_half", [](const Tensor& x) { return norm(x, 0.5, 1); }},
                    GradCase{"norm_inf", [](const Tensor& x) { return norm(x, inf, 1); }}, GradCase{"norm_minus_inf", [](const Tensor& x) { return norm(x, -inf, 1); }},
                    GradCase{"logsumexp", [](const Tensor& x) { return logsumexp(x, 1); }}, GradCase{"logsumexp_all", [](const Tensor& x) { return logsumexp(x, {0, 1}, true); }},
                    GradCase{"median", [](const Tensor& x) { return median(x); }}, GradCase{"median_axis", [](const Tensor& x) { return median(x, 1).values; }},
                    GradCase{"softmax", [](const Tensor& x) { return softmax(x, 1); }}, GradCase{"softmax_outer", [](const Tensor& x) { return softmax(x, 0); }},
                    GradCase{"log_softmax", [](const Tensor& x) { return log_softmax(x, 1); }}, GradCase{"log_softmax_outer", [](const Tensor& x) { return log_softmax(x, 0); }},
                    GradCase{"cumsum", [](const Tensor& x) { return cumsum(x, 1); }}, GradCase{"cumprod", [](const Tensor& x) { return cumprod(x, 1); }},
                    GradCase{"cumprod_outer", [](const Tensor& x) { return cumprod(x, 0); }},
                    GradCase{"cummax", [](const Tensor& x) { return cummax(x, 1).values; }}, GradCase{"cummin", [](const Tensor& x) { return cummin(x, 0).values; }},
                    GradCase{"logcumsumexp", [](const Tensor& x) { return logcumsumexp(x, 1); }}, GradCase{"diff", [](const Tensor& x) { return diff(x, 2, 1); }},
                    // Products stay right where elements are 0, once and twice in a row.
                    GradCase{"prod_zeros", [](const Tensor& x) { return prod(x * tensor({1.0, 0.0, 1.0, 0.0}) + x * x * 0.5, 1); }},
                    GradCase{"prod_at_zero", [](const Tensor& x) { return prod((x - x.detach()) * tensor({1.0, 0.0, 1.0, 0.0}) + x * tensor({0.0, 1.0, 0.0, 1.0}), 1); }},
                    GradCase{"cumprod_at_zero", [](const Tensor& x) { return cumprod((x - x.detach()) * tensor({0.0, 1.0, 1.0, 0.0}) + x * tensor({1.0, 0.0, 0.0, 1.0}), 1); }}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(GradReduce, TiesAndZeros) {
  Tensor x = tensor({2.0, 5.0, 5.0, 1.0});
  x.requires_grad_();
  EXPECT_EQ(grad(amax(x), x).to_vector<double>(), (std::vector<double>{0, 0.5, 0.5, 0}));
  EXPECT_EQ(grad(max(x, 0).values, x).to_vector<double>(), (std::vector<double>{0, 1, 0, 0}));
  EXPECT_EQ(grad(sum(cummax(x, 0).values), x).to_vector<double>(), (std::vector<double>{1, 1, 2, 0}));
  Tensor zero = zeros({3}, {.dtype = f64, .requires_grad = true});
  for (double p : {0.0, 0.5, 1.0, 2.0, 3.0, inf}) EXPECT_EQ(grad(norm(zero, p), zero).to_vector<double>(), (std::vector<double>{0, 0, 0})) << p;
  EXPECT_EQ(grad(std_dev(zero), zero).to_vector<double>(), (std::vector<double>{0, 0, 0}));
  Tensor low = full({2}, -inf, {.dtype = f64, .requires_grad = true});
  EXPECT_EQ(grad(logsumexp(low, 0), low).to_vector<double>(), (std::vector<double>{0, 0}));
  Tensor holes = tensor({1.0, nan});
  holes.requires_grad_();
  EXPECT_EQ(grad(nansum(holes), holes).to_vector<double>(), (std::vector<double>{1, 0}));
}

TEST(GradReduce, HalvesAtLength) {
  for (DType t : {f16, bf16}) {
    Tensor x = full({70000}, 0.25, {.dtype = t, .requires_grad = true});
    EXPECT_NEAR(grad(mean(x), x).to(f64).to_vector<double>()[69999], 1.0 / 70000, 1e-6);
    EXPECT_NEAR(grad(norm(x), x).to(f64).to_vector<double>()[5], 0.25 / std::sqrt(70000 / 16.0), 1e-4);
    const Tensor g = grad(amax(x), x).to(f64);
    EXPECT_NEAR(g.to_vector<double>()[3], 1.0 / 70000, 1e-6);
    EXPECT_EQ(grad(sum(x), x).dtype(), t);
    EXPECT_NEAR(grad(logsumexp(x, 0), x).to(f64).to_vector<double>()[9], 1.0 / 70000, 1e-6);
  }
}

Error::Kind kind_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.kind();
  }
  return Error::Kind::internal;
}

TEST(ErrorsReduce, BadCalls) {
  const Tensor whole = zeros({2, 3}, {.dtype = i32}), x = zeros({2, 3}), none = zeros({0, 3});
  EXPECT_EQ(kind_of([&] { mean(whole); }), Error::Kind::dtype);
  EXPECT_EQ(kind_of([&] { var(whole); }), Error::Kind::dtype);
  EXPECT_EQ(kind_of([&] { std_dev(whole); }), Error::Kind::dtype);
  EXPECT_EQ(kind_of([&] { norm(whole); }), Error::Kind::dtype);
  EXPECT_EQ(kind_of([&] { softmax(whole, 0); }), Error::Kind::dtype);
  EXPECT_EQ(kind_of([&] { log_softmax(whole, 0); }), Error::Kind::dtype);
  EXPECT_EQ(kind_of([&] { logsumexp(whole, 0); }), Error::Kind::dtype);
  EXPECT_EQ(kind_of([&] { logcumsumexp(whole, 0); }), Error::Kind::dtype);
  EXPECT_EQ(kind_of([&] { max(none); }), Error::Kind::shape);
  EXPECT_EQ(kind_of([&] { amin(none, 0); }), Error::Kind::shape);
  EXPECT_EQ(kind_of([&] { argmax(none, 0); }), Error::Kind::shape);
  EXPECT_EQ(kind_of([&] { min(none, 0); }), Error::Kind::shape);
  EXPECT_EQ(kind_of([&] { norm(none, inf, 0); }), Error::Kind::shape);
  EXPECT_EQ(kind_of([&] { median(none); }), Error::Kind::shape);
  EXPECT_EQ(kind_of([&] { median(none, 0); }), Error::Kind::shape);
  EXPECT_EQ(kind_of([&] { norm(x, nan); }), Error::Kind::argument);
  EXPECT_EQ(kind_of([&] { diff(x, -1); }), Error::Kind::argument);
  EXPECT_EQ(kind_of([&] { diff(full({}, 1.0)); }), Error::Kind::shape);
  EXPECT_EQ(kind_of([&] { sum(x, {0, 0}); }), Error::Kind::argument);
  for (const auto& f : std::vector<std::function<void()>>{[&] { sum(x, 2); }, [&] { softmax(x, -3); }, [&] { cumsum(x, 5); },
                                                          [&] { max(x, 2); }, [&] { median(x, 2); }, [&] { sum(Tensor()); },
                                                          [&] { softmax(Tensor(), 0); }, [&] { cumsum(Tensor(), 0); }})
    EXPECT_THROW(f(), Error);
}

}  // namespace
}  // namespace volta
