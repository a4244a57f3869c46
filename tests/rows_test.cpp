// Row ops and scans: values against naive references in every layout and dtype.
#include "reduce_reference.h"

namespace volta {
namespace {

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
  const double total = logsumexp_of(r);
  for (double v : r) y.push_back(std::exp(v - total));
  return y;
}
Row log_softmax_of(const Row& r) {
  Row y;
  const double total = logsumexp_of(r);
  for (double v : r) y.push_back(v - total);
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
    for (const Shape& shape :
         {Shape{7}, Shape{1500}, Shape{5, 33}, Shape{33, 5}, Shape{3, 40, 4}, Shape{2, 3, 70, 20}}) {
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
        for (const Tensor& v : layouts(signs))
          expect_near(cumprod(v, axis), rows_reference(signs, axis, running(prod_of)), 0, "cumprod");
      }
    }
}

TEST(ValuesScan, LogCumSumExpAndSpecials) {
  for (DType t : floats)
    for (int64_t axis : {0, 1}) {
      const Tensor x = randn({30, 20}, {.dtype = t}) * 5;
      for (const Tensor& v : layouts(x))
        expect_near(logcumsumexp(v, axis), rows_reference(x, axis, running(logsumexp_of)), rounding(t) * 4,
                    "logcumsumexp");
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

}  // namespace
}  // namespace volta
