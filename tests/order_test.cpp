// Sorting, selecting, searching and counting along axes of any layout against naive references.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "dense.h"

namespace volta::test {
namespace {

Tensor f64_of(const Shape& shape) {
  manual_seed(7);
  return randn(shape, {.dtype = f64, .requires_grad = true});
}

template <class F> void expect_gradients(const F& f, const Tensor& x) {
  EXPECT_TRUE(gradcheck(f, x));
  EXPECT_TRUE(gradgradcheck(f, x));
}

// The order of a row: by value, NaN last, equals by place; descending reverses the values, not the places.
std::vector<int64_t> order_of(const std::vector<double>& row, bool descending) {
  std::vector<int64_t> order(row.size());
  std::iota(order.begin(), order.end(), 0);
  const auto less = [](double a, double b) { return a < b || (!std::isnan(a) && std::isnan(b)); };
  std::stable_sort(order.begin(), order.end(), [&](int64_t i, int64_t j) {
    const double a = row[size_t(i)], b = row[size_t(j)];
    return descending ? less(b, a) : less(a, b);
  });
  return order;
}

Dense sort_reference(const Tensor& x, int axis, bool descending) {
  const Dense in(x);
  Dense out(x.shape());
  Shape starts = x.shape();
  starts[axis] = 1;
  each_index(starts, [&](const Shape& start) {
    std::vector<double> row;
    Shape i = start;
    for (i[axis] = 0; i[axis] < x.size(axis); ++i[axis]) row.push_back(in.at(i));
    const auto order = order_of(row, descending);
    for (i[axis] = 0; i[axis] < x.size(axis); ++i[axis]) out.at(i) = double(order[size_t(i[axis])]);
  });
  return out;
}

class OrderDTypes : public testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(All, OrderDTypes, testing::ValuesIn(all_dtypes),
                         [](const auto& p) { return std::string(name(p.param)); });

TEST_P(OrderDTypes, SortTopkKthEveryAxisAndLayout) {
  const Tensor x = (numbers({4, 20, 3}, i64) % 17).to(GetParam());
  for (int axis = 0; axis < 3; ++axis)
    for (const bool descending : {false, true}) {
      const Dense expected = sort_reference(x, axis, descending);
      const int64_t k = std::max<int64_t>(1, x.size(axis) / 9);
      for (const Tensor& from : layouts(x)) {
        const auto [values, indices] = sort(from, axis, descending);
        expect_same(indices, expected);
        expect_same(values, Dense(gather(x, axis, indices)));
        EXPECT_EQ(values.dtype(), GetParam());
        expect_same(argsort(from, axis, descending), expected);
        for (const int64_t n : {int64_t(0), k, x.size(axis)}) {
          const auto top = topk(from, n, axis, descending);
          expect_same(top.indices, Dense(indices.narrow(axis, 0, n)));
          expect_same(top.values, Dense(values.narrow(axis, 0, n)));
        }
        if (descending) continue;
        const auto kth = kthvalue(from, k, axis);
        expect_same(kth.indices, Dense(indices.select(axis, k - 1)));
        expect_same(kth.values, Dense(values.select(axis, k - 1)));
        EXPECT_EQ(kthvalue(from, k, axis, true).values.dim(), 3);
      }
    }
}

TEST_P(OrderDTypes, Unique) {
  const Tensor base = (numbers({5, 6}, i64) % 13).to(GetParam());
  std::map<double, int64_t> counts;
  for (const double v : Dense(base).values) ++counts[v];
  for (const Tensor& x : layouts(base)) {
    const auto r = unique(x, {.return_inverse = true, .return_counts = true});
    std::vector<double> values;
    std::vector<int64_t> each;
    for (const auto& [v, n] : counts) values.push_back(v), each.push_back(n);
    EXPECT_EQ(r.values.to(f64).to_vector<double>(), values);
    EXPECT_EQ(r.counts.to_vector<int64_t>(), each);
    expect_same(take(r.values, r.inverse), Dense(base));
    EXPECT_EQ(r.values.dtype(), GetParam());
  }
  EXPECT_FALSE(unique(base).inverse.defined());
  EXPECT_EQ(unique(base.narrow(0, 0, 0), {.return_inverse = true}).inverse.shape(), (Shape{0, 6}));
}

TEST_P(OrderDTypes, Searching) {
  const Tensor values = (numbers({2, 7}, i64) % 12).to(GetParam());
  const Tensor table = sort((numbers({2, 9}, i64) % 10).to(GetParam())).values;
  const Dense rows(table), sought(values);
  for (const bool right : {false, true}) {
    Dense expected({2, 7}), single({2, 7});
    each_index(expected.shape, [&](const Shape& i) {
      for (int64_t k = 0; k < 9; ++k) {
        const auto before = [&](int64_t row) {
          return right ? rows.at({row, k}) <= sought.at(i) : rows.at({row, k}) < sought.at(i);
        };
        expected.at(i) += before(i[0]);
        single.at(i) += before(0);
      }
    });
    for (const Tensor& t : layouts(table))
      for (const Tensor& v : layouts(values)) {
        expect_same(searchsorted(t, v, {.right = right}), expected);
        expect_same(bucketize(v, t.select(0, 0), {.right = right}), single);
      }
  }
}

TEST(OrderMore, SpecialValues) {
  const Tensor x = tensor({NAN, 1., -INFINITY, NAN, INFINITY, -0.0, 0.0});
  EXPECT_EQ(sort(x).indices.to_vector<int64_t>(), (std::vector<int64_t>{2, 5, 6, 1, 4, 0, 3}));
  EXPECT_EQ(argsort(x, 0, true).to_vector<int64_t>(), (std::vector<int64_t>{0, 3, 4, 1, 5, 6, 2}));
  EXPECT_EQ(kthvalue(x, 5).indices.item<int64_t>(), 4);
  EXPECT_EQ(searchsorted(tensor({1., 2., NAN}), tensor({NAN, 3.})).to_vector<int64_t>(), (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(searchsorted(tensor({1., 2., NAN}), NAN, {.right = true}).item<int64_t>(), 3);
  EXPECT_EQ(searchsorted(tensor({1, 3, 5}), 3.5).item<int64_t>(), 2);
  EXPECT_EQ(searchsorted(tensor({1, 3, 5}), 3).item<int64_t>(), 1);
  EXPECT_EQ(searchsorted(tensor({16777216, 16777217}), 16777216.5).item<int64_t>(), 1);
  EXPECT_EQ(searchsorted(tensor({16777216, 16777217}), tensor({16777217}).to(u64)).item<int64_t>(), 1);
  EXPECT_EQ(searchsorted(zeros({0}), tensor({1., 2.})).to_vector<int64_t>(), (std::vector<int64_t>{0, 0}));
}

TEST(OrderMore, EmptyAndScalar) {
  EXPECT_EQ(sort(tensor(3.0)).values.dim(), 0);
  EXPECT_EQ(sort(tensor(3.0)).indices.item<int64_t>(), 0);
  EXPECT_EQ(topk(tensor(3.0), 1).values.dim(), 0);
  EXPECT_EQ(kthvalue(tensor(3.0), 1).values.item<float>(), 3);
  EXPECT_EQ(sort(zeros({0, 3}), 0).values.shape(), (Shape{0, 3}));
  EXPECT_EQ(sort(zeros({0, 3}), 1).values.shape(), (Shape{0, 3}));
  EXPECT_EQ(topk(zeros({2, 3}), 0).values.shape(), (Shape{2, 0}));
}

TEST(OrderMore, CountsAndHistograms) {
  const Tensor x = tensor({3, 0, 3, 1});
  EXPECT_EQ(bincount(x).to_vector<int64_t>(), (std::vector<int64_t>{1, 1, 0, 2}));
  EXPECT_EQ(bincount(x.to(u8), {}, 6).to_vector<int64_t>(), (std::vector<int64_t>{1, 1, 0, 2, 0, 0}));
  EXPECT_EQ(bincount(x, tensor({0.5, 1., 2., 4.})).to_vector<float>(), (std::vector<float>{1, 4, 0, 2.5}));
  EXPECT_EQ(bincount(x, tensor({1, 1, 1, 1})).dtype(), f64);
  EXPECT_EQ(bincount(zeros({0}, {.dtype = i64}), {}, 2).to_vector<int64_t>(), (std::vector<int64_t>{0, 0}));
  const auto h = histogram(tensor({0., 1., 2., 2.5, 4., 9., -1., NAN}), 4, std::pair(0.0, 4.0));
  EXPECT_EQ(h.counts.to_vector<float>(), (std::vector<float>{1, 1, 2, 1}));
  EXPECT_EQ(h.edges.to_vector<float>(), (std::vector<float>{0, 1, 2, 3, 4}));
  const auto whole = histogram(tensor({1, 2, 3, 3}), 2);
  EXPECT_EQ(whole.counts.to_vector<float>(), (std::vector<float>{1, 3}));
  EXPECT_EQ(histogram(ones({3}), 2).edges.to_vector<float>(), (std::vector<float>{0.5, 1, 1.5}));
  EXPECT_EQ(histogram(ones({3}), 2).counts.to_vector<float>(), (std::vector<float>{0, 3}));
  EXPECT_EQ(histogram(zeros({0}), 2).counts.to_vector<float>(), (std::vector<float>{0, 0}));
}

TEST(OrderMore, LongAndManyRows) {
  manual_seed(5);
  const Tensor x = randn({2, 200000}), y = randn({5000, 33});
  for (const Tensor& t : {x, y}) {
    const auto [values, indices] = sort(t, 1);
    EXPECT_TRUE((values.narrow(1, 1, t.size(1) - 1) >= values.narrow(1, 0, t.size(1) - 1)).all().item<bool>());
    EXPECT_TRUE(equal(gather(t, 1, indices), values));
    EXPECT_TRUE(equal(topk(t, 3, 1, false).indices, indices.narrow(1, 0, 3)));
    EXPECT_TRUE(equal(kthvalue(t, 20, 1).indices, indices.select(1, 19)));
    const auto by_column = sort(t.transpose(0, 1).contiguous(), 0);
    EXPECT_TRUE(equal(by_column.indices.transpose(0, 1), indices));
  }
}

TEST(GradcheckOrder, ValuesCarryGradients) {
  const Tensor x = f64_of({3, 4});
  expect_gradients([](const Tensor& t) { return sort(t, 0, true).values; }, x);
  expect_gradients([](const Tensor& t) { return topk(t, 2, 1).values; }, x);
  expect_gradients([](const Tensor& t) { return kthvalue(t, 2, 0).values; }, x);
  expect_gradients([](const Tensor& t) { return kthvalue(t, 3, 1, true).values; }, x);
}

TEST(ErrorsOrder, Arguments) {
  const Tensor x = ones({2, 3});
  expect_error(Error::Kind::index, "sort", {"axis 2", "[2, 3]"}, [&] { return sort(x, 2); });
  expect_error(Error::Kind::argument, "topk", {"4", "3"}, [&] { return topk(x, 4); });
  expect_error(Error::Kind::argument, "topk", {"-1"}, [&] { return topk(x, -1); });
  expect_error(Error::Kind::argument, "kthvalue", {"0"}, [&] { return kthvalue(x, 0); });
  expect_error(Error::Kind::argument, "kthvalue", {"1", "0 elements"}, [&] { return kthvalue(zeros({2, 0}), 1); });
  expect_error(Error::Kind::shape, "searchsorted", {"[2, 3]", "[3, 1]"}, [&] { return searchsorted(x, ones({3, 1})); });
  expect_error(Error::Kind::shape, "bucketize", {"[2, 3]"}, [&] { return bucketize(x, x); });
  expect_error(Error::Kind::index, "bincount", {"-2"}, [&] { return bincount(tensor({1, -2})); });
  expect_error(Error::Kind::shape, "bincount", {"[2, 3]"}, [&] { return bincount(x.to(i64)); });
  expect_error(Error::Kind::dtype, "bincount", {"f32"}, [&] { return bincount(ones({2})); });
  expect_error(Error::Kind::argument, "histogram", {"bin"}, [&] { return histogram(x, 0); });
  expect_error(Error::Kind::argument, "histogram", {"finite"}, [&] { return histogram(tensor({NAN, 1.})); });
  expect_error(Error::Kind::autograd, "unique", {}, [&] { return unique(ones({2}).requires_grad_()); });
  expect_error(Error::Kind::autograd, "histogram", {}, [&] { return histogram(ones({2}).requires_grad_()); });
}

}  // namespace
}  // namespace volta::test
