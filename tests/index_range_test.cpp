// Indices given as tensors lie in [0, size); subscripts and take count negative ones from the end.
#include <gtest/gtest.h>

#include <volta/volta.h>

namespace volta::test {
namespace {

template <class F> void expect_refused(const char* op, const F& f) {
  try {
    f();
    ADD_FAILURE() << op << " accepted a negative index";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), Error::Kind::index) << e.what();
    const std::string text = e.what();
    EXPECT_NE(text.find(std::string(op) + ":"), std::string::npos) << text;
    EXPECT_NE(text.find("-1"), std::string::npos) << text;
  }
}

TEST(IndexNegative, IsRefusedWhereAnIndexIsATensor) {
  const Tensor x = arange(12).to(f64).reshape({3, 4}), i = tensor({{0, 1, -1, 2}}), row = tensor({0, -1});
  const Tensor v = ones({1, 4}, {.dtype = f64}), rows = ones({2, 4}, {.dtype = f64});
  expect_refused("gather", [&] { return gather(x, 0, i); });
  expect_refused("scatter", [&] { return scatter(x, 0, i, v); });
  expect_refused("scatter", [&] { return scatter(x, 0, i, 1.0); });
  expect_refused("scatter_add", [&] { return scatter_add(x, 0, i, v); });
  for (const char* how : {"sum", "prod", "mean", "amax", "amin"})
    expect_refused("scatter_reduce", [&] { return scatter_reduce(x, 0, i, v, how); });
  expect_refused("index_select", [&] { return index_select(x, 0, row); });
  expect_refused("index_add", [&] { return index_add(x, 0, row, rows); });
  expect_refused("take_along_dim", [&] { return take_along_dim(x, i, 0); });
  expect_refused("take_along_dim", [&] { return take_along_dim(x, row); });
  expect_refused("embedding", [&] { return embedding(row, x); });
  expect_refused("embedding", [&] { return embedding(row, x, {.padding_idx = 0}); });
  expect_refused("embedding", [&] { return embedding(row, x, {.max_norm = 1.0}); });
  expect_refused("embedding_bag", [&] { return embedding_bag(row, x, tensor({0, 1})); });
  for (const DType t : {f32, f64, boolean})
    EXPECT_THROW(embedding_bag(tensor({0, 1, 2}), x, tensor({0., 1.5}).to(t)), Error) << name(t);
  expect_refused("one_hot", [&] { return one_hot(row, 3); });
  for (const DType narrow : {i8, i16, i32}) expect_refused("gather", [&] { return gather(x, 0, i.to(narrow)); });
  EXPECT_TRUE(equal(x, arange(12).to(f64).reshape({3, 4})));
}

TEST(IndexNegative, CountsFromTheEndInSubscriptsAndTake) {
  const Tensor x = arange(12).to(f64).reshape({3, 4}).requires_grad_();
  EXPECT_EQ((Tensor(x[tensor({-1, 0, -3})]).select(1, 0).to_vector<double>()), (std::vector<double>{8, 0, 0}));
  EXPECT_EQ((Tensor(x[{tensor({-1, 1}), tensor({-4, -1})}]).to_vector<double>()), (std::vector<double>{8, 7}));
  EXPECT_EQ(take(x, tensor({-1, 3, -12})).to_vector<double>(), (std::vector<double>{11, 3, 0}));
  const Tensor g = grad(Tensor(x[tensor({-1, 2, 0})]).sum() + take(x, tensor({-1})).sum(), x);
  EXPECT_EQ(g.select(1, 3).to_vector<double>(), (std::vector<double>{1, 0, 3}));
  Tensor y = zeros({3, 2});
  y[tensor({-1, -3})] = 2.0;
  EXPECT_EQ(y.sum(1).to_vector<float>(), (std::vector<float>{4, 0, 4}));
  EXPECT_TRUE(gradcheck([](const Tensor& a) { return Tensor(a[{slice(), tensor({-1, -1, 0})}]); }, x));
  EXPECT_FALSE(attempt([&] { return Tensor(x[tensor({-4})]); }));
  EXPECT_FALSE(attempt([&] { return take(x, tensor({-13})); }));
}

TEST(IndexEmbedding, TakesIndicesThenTheTable) {
  const Tensor w = arange(6).to(f32).reshape({3, 2});
  EXPECT_EQ(embedding(tensor({2, 0}), w).to_vector<float>(), (std::vector<float>{4, 5, 0, 1}));
  EXPECT_EQ(embedding(tensor({2, 0}), w, {.padding_idx = 0}).to_vector<float>(), (std::vector<float>{4, 5, 0, 1}));
  EXPECT_EQ(embedding_bag(tensor({2, 0, 1}), w, tensor({0, 2}), {.mode = "sum"}).to_vector<float>(),
            (std::vector<float>{4, 6, 2, 3}));
}

}  // namespace
}  // namespace volta::test
