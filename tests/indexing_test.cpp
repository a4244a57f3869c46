// x[…]: views, index tensors, masks and their mixtures; assignment through them; gradients; errors.
#include <cmath>

#include "dense.h"

namespace volta::test {
namespace {

Tensor f64_of(const Shape& shape, uint64_t seed = 7) {
  manual_seed(seed);
  return randn(shape, {.dtype = f64, .requires_grad = true});
}

template <class F, class... X> void expect_gradients(const F& f, const X&... x) {
  EXPECT_TRUE(gradcheck(f, x...));
  EXPECT_TRUE(gradgradcheck(f, x...));
}

template <class F> Dense filled(const Shape& shape, F value) {
  Dense out(shape);
  each_index(shape, [&](const Shape& i) { out.at(i) = value(i); });
  return out;
}

TEST(IndexingBasic, ViewsOfTheSameMemory) {
  const Tensor base = numbers({3, 4, 5});
  const Dense in(base);
  for (const Tensor& x : layouts(base)) {
    expect_same(x[1], filled({4, 5}, [&](const Shape& i) { return in.at({1, i[0], i[1]}); }));
    expect_same(x[-1], filled({4, 5}, [&](const Shape& i) { return in.at({2, i[0], i[1]}); }));
    expect_same(x[slice(1)], filled({2, 4, 5}, [&](const Shape& i) { return in.at({i[0] + 1, i[1], i[2]}); }));
    expect_same(x[{slice(), slice({}, {}, -2), 3}], filled({3, 2}, [&](const Shape& i) {
                  return in.at({i[0], 3 - 2 * i[1], 3});
                }));
    expect_same(x[{ellipsis, 2}], filled({3, 4}, [&](const Shape& i) { return in.at({i[0], i[1], 2}); }));
    expect_same(x[{0, ellipsis, newaxis, slice(1, 3)}], filled({4, 1, 2}, [&](const Shape& i) {
                  return in.at({0, i[0], i[2] + 1});
                }));
    expect_same(x[{newaxis, 2, newaxis}], filled({1, 1, 4, 5}, [&](const Shape& i) { return in.at({2, i[2], i[3]}); }));
    expect_same(x[{slice(5, 1)}], Dense(Shape{0, 4, 5}));
    expect_same(x[{1, 2, 3, ellipsis}], filled({}, [&](const Shape&) { return in.at({1, 2, 3}); }));
    expect_same(x[{ellipsis}], in);
    expect_same(x[std::initializer_list<Index>{}], in);
    EXPECT_TRUE((x[{slice(), slice({}, {}, -2), 3}].shares_storage(x)));
    EXPECT_TRUE((x[{newaxis, 2, newaxis}].shares_storage(x)));
  }
  EXPECT_EQ(tensor(3.0)[{newaxis}].shape(), (Shape{1}));
}

TEST(IndexingHandles, WithANameAssignmentRebinds) {
  Tensor x = tensor({{1.0, 2.0}, {3.0, 4.0}}), y = tensor({{5.0, 6.0}, {7.0, 8.0}});
  const Tensor before = x.clone();
  auto h = x[0];
  for (int i = 0; i < 2; ++i) h = h + y[i];
  EXPECT_TRUE(equal(h, tensor({13.0, 16.0})));
  auto best = x[0];
  best = y[1];
  EXPECT_TRUE(best.shares_storage(y));
  best = h;
  EXPECT_TRUE(best.shares_storage(h));
  std::vector rows{x[0], y[0]};
  rows[0] = x[1];
  rows.erase(rows.begin() + 1);
  EXPECT_TRUE(equal(rows[0], x[1]));
  auto [a, b] = std::pair{x[0], x[tensor({1})]};
  a = a * 2;
  b = y;
  std::swap(a, b);
  EXPECT_TRUE(equal(b, tensor({2.0, 4.0})));
  EXPECT_TRUE(equal(x, before));
  // A name that has let go writes into what it holds now, a temporary into its tensor.
  h = y[0];
  h += 1;
  std::move(h) = 9.0;
  x[0] = y[1];
  EXPECT_TRUE(equal(y, tensor({{9.0, 9.0}, {7.0, 8.0}})));
  EXPECT_TRUE(equal(x, tensor({{7.0, 8.0}, {3.0, 4.0}})));
}

TEST(IndexingAdvanced, IndexTensors) {
  const Tensor base = numbers({3, 4, 5});
  const Dense in(base);
  const Tensor a = tensor({2, 0}), b = tensor({{1}, {-1}, {3}});  // broadcast to [3, 2]
  const auto at_a = [](const Shape&, int64_t k) { return k == 0 ? 2 : 0; };
  const auto at_b = [](int64_t k) { return k == 0 ? 1 : 3; };
  for (const Tensor& x : layouts(base)) {
    expect_same(x[a], filled({2, 4, 5}, [&](const Shape& i) { return in.at({at_a(i, i[0]), i[1], i[2]}); }));
    expect_same(x[{slice(), b}], filled({3, 3, 1, 5}, [&](const Shape& i) { return in.at({i[0], at_b(i[1]), i[3]}); }));
    // Adjacent: in place. Separated: in front.
    expect_same(x[{a, b}], filled({3, 2, 5}, [&](const Shape& i) { return in.at({at_a(i, i[1]), at_b(i[0]), i[2]}); }));
    expect_same(x[{slice(), b, a}], filled({3, 3, 2}, [&](const Shape& i) {
                  return in.at({i[0], at_b(i[1]), at_a(i, i[2])});
                }));
    expect_same(x[{a, slice(1, 3), b % 4}], filled({3, 2, 2}, [&](const Shape& i) {
                  return in.at({at_a(i, i[1]), i[2] + 1, at_b(i[0])});
                }));
    expect_same(x[{a, newaxis, b}], filled({3, 2, 1, 5}, [&](const Shape& i) {
                  return in.at({at_a(i, i[1]), at_b(i[0]), i[3]});
                }));
    expect_same(x[{1, slice(), a}], filled({4, 2}, [&](const Shape& i) { return in.at({1, i[0], at_a(i, i[1])}); }));
    expect_same(x[{ellipsis, a, slice({}, {}, -1)}], filled({3, 2, 5}, [&](const Shape& i) {
                  return in.at({i[0], at_a(i, i[1]), 4 - i[2]});
                }));
    expect_same(x[{a, a, a}], filled({2}, [&](const Shape& i) {
                  return in.at({at_a(i, i[0]), at_a(i, i[0]), at_a(i, i[0])});
                }));
    expect_same(x[tensor(1)], filled({4, 5}, [&](const Shape& i) { return in.at({1, i[0], i[1]}); }));
    EXPECT_FALSE(x[a].shares_storage(x));
  }
  EXPECT_EQ(base[zeros({0, 2}, {.dtype = i64})].shape(), (Shape{0, 2, 4, 5}));
  EXPECT_EQ(zeros({0, 3})[zeros({0}, {.dtype = i64})].shape(), (Shape{0, 3}));
  EXPECT_EQ((zeros({4, 0})[{tensor({1, 2}), slice()}].shape()), (Shape{2, 0}));
}

TEST(IndexingAdvanced, Masks) {
  const Tensor base = numbers({3, 4, 2});
  const Dense in(base);
  const Tensor rows = tensor({true, false, true}), plane = numbers({3, 4}, i64) % 2 == 0, all = base > 20;
  for (const Tensor& x : layouts(base)) {
    expect_same(x[rows], Dense(base.index_select(0, tensor({0, 2}))));
    expect_same(x[{rows, 1}], Dense(base.select(1, 1).index_select(0, tensor({0, 2}))));
    expect_same(x[all], Dense(masked_select(base, all)));
    expect_same(x[plane], Dense(base.reshape({12, 2}).index_select(0, nonzero(plane.reshape({12})).reshape({-1}))));
    expect_same(x[{plane, 0}], Dense(masked_select(base.select(2, 0), plane)));
    expect_same(x[{rows, tensor({3, 1})}], filled({2, 2}, [&](const Shape& i) {
                  return in.at({2 * i[0], i[0] == 0 ? 3 : 1, i[1]});
                }));
    expect_same(x[{rows, slice(), tensor({0})}], filled({2, 4}, [&](const Shape& i) {
                  return in.at({2 * i[0], i[1], 0});
                }));
  }
  EXPECT_EQ(base[zeros({3}, {.dtype = boolean})].shape(), (Shape{0, 4, 2}));
  EXPECT_EQ(base[tensor(true)].shape(), (Shape{1, 3, 4, 2}));
  EXPECT_EQ(base[tensor(false)].shape(), (Shape{0, 3, 4, 2}));
}

class IndexingAssign : public testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(All, IndexingAssign, testing::ValuesIn(all_dtypes),
                         [](const auto& p) { return std::string(name(p.param)); });

// Assigning through an index must change exactly the elements that reading through it shows.
TEST_P(IndexingAssign, EveryKindOfIndexAndLayout) {
  const DType dtype = GetParam();
  const Tensor a = tensor({2, 0}), b = tensor({1, 3}), rows = tensor({true, false, true});
  const std::vector<std::vector<Index>> cases = {{1},
                                                 {slice(), slice({}, {}, -2)},
                                                 {ellipsis, 3},
                                                 {newaxis, 2},
                                                 {a},
                                                 {slice(), b},
                                                 {a, b},
                                                 {a, slice(), b},
                                                 {1, slice(), a},
                                                 {rows},
                                                 {rows, 1},
                                                 {slice(), slice(0, 4, 2), a},
                                                 {numbers({3, 4}, i64) % 2 == 0},
                                                 {tensor({-1, 0})}};
  const Tensor start = numbers({3, 4, 5}, dtype);
  for (const auto& index : cases)
    for (const bool number : {true, false}) {
      size_t which = 0;
      for (const Tensor& layout : layouts(start)) {
        Tensor x = layout.clone();
        if (which++ == 2) x = stack({start, start}, -1).select(-1, 0);
        const auto at = [&](const Tensor& t) -> Indexed {
          switch (index.size()) {
            case 1: return t[{index[0]}];
            case 2: return t[{index[0], index[1]}];
            default: return t[{index[0], index[1], index[2]}];
          }
        };
        // Which element of x each place shows.
        const Tensor places = Tensor(at(arange(0, 60).reshape({3, 4, 5})));
        const Tensor value = number ? ones({}, {.dtype = dtype}) : (numbers(places.shape(), i64) % 50).to(dtype);
        Dense expected(start);
        const Dense to(places), from(value.expand(places.shape()));
        for (size_t i = 0; i < to.values.size(); ++i) expected.values[size_t(to.values[i])] = from.values[i];
        if (number) at(x) = 1;
        else at(x) = value;
        expect_same(x, expected);
      }
    }
}

TEST(IndexingAssign, ScalarMasksAndBroadcasting) {
  Tensor x = zeros({2, 3});
  x[x == 0] = 4;
  x[{slice(), tensor({true, false, true})}] = -1;
  EXPECT_TRUE(equal(x, tensor({{-1., 4., -1.}, {-1., 4., -1.}})));
  x[tensor({true, false})] = 9;
  EXPECT_TRUE(equal(x, tensor({{9., 9., 9.}, {-1., 4., -1.}})));
  x[{slice(), tensor({0, 2})}] = tensor({{5.}, {6.}});
  EXPECT_TRUE(equal(x, tensor({{5., 9., 5.}, {6., 4., 6.}})));
  x[1] = ones({1, 1, 3});
  EXPECT_TRUE(equal(x[1], ones({3})));
  x[{ellipsis}] = 0;
  EXPECT_TRUE(equal(x, zeros({2, 3})));
  x[tensor(true)] = 2;
  EXPECT_TRUE(equal(x, full({2, 3}, 2)));
  x[tensor({0, 0, 0})] = tensor({{1.}, {2.}, {3.}});  // the last one stays
  EXPECT_TRUE(equal(x[0], full({3}, 3)));
  x[zeros({0}, {.dtype = i64})] = 7;
  x[zeros({2, 3}, {.dtype = boolean})] = 7;
  EXPECT_TRUE(equal(x[0], full({3}, 3)));
}

TEST(IndexingAssign, ByNumbersInTensors) {
  const Tensor one = tensor(1), two = tensor(2), none;
  Tensor x = zeros({2, 3});
  x.index_put_({one}, 5);
  EXPECT_TRUE(equal(x, tensor<float>({{0, 0, 0}, {5, 5, 5}})));
  x.index_put_({one, two}, tensor({7.f}));
  EXPECT_TRUE(equal(x, tensor<float>({{0, 0, 0}, {5, 5, 7}})));
  x.index_put_({none, one}, tensor({8.f, 9.f}));
  EXPECT_TRUE(equal(x, tensor<float>({{0, 8, 0}, {5, 9, 7}})));
  EXPECT_TRUE(equal(index_put(x, {none}, 1), ones({2, 3})));
  const Tensor v = tensor({1., 2., 3.}).requires_grad_(), leaf = ones({2, 3}, {.requires_grad = true});
  const auto g = grad(index_put(leaf * 2, {one}, v).sum(), std::vector{leaf, v});
  EXPECT_TRUE(equal(g[0], tensor<float>({{2, 2, 2}, {0, 0, 0}})));
  EXPECT_TRUE(equal(g[1], ones({3}, {.dtype = v.dtype()})));
}

TEST(IndexingAssign, CompoundReadsAddsWrites) {
  Tensor x = zeros({4});
  x[tensor({1, 1, 2})] += 1;  // as NumPy: duplicates count once
  EXPECT_TRUE(equal(x, tensor({0., 1., 1., 0.})));
  x[slice(2)] += tensor({1., 5.});
  x[0] -= 3;
  x[x > 1] *= 10;
  x[tensor({0})] /= 2;
  EXPECT_TRUE(equal(x, tensor({-1.5, 1., 20., 50.})));
  Tensor n = tensor({1, 2, 3});
  expect_error(Error::Kind::dtype, "index", {"f32", "i64"}, [&] { n[tensor({0})] += 0.5; });
  expect_error(Error::Kind::shape, "index", {"[2, 1]"}, [&] { n[tensor({0})] += ones({2, 1}, {.dtype = i64}); });
  EXPECT_TRUE(equal(n, tensor({1, 2, 3})));
}

TEST(IndexingAssign, EveryCompoundOperatorWrites) {
  const Tensor i = tensor({0, 2}), mask = tensor({true, false, true, false});
  const auto each = [&](auto place) {
    Tensor x = tensor({12, 7, 9, 4});
    place(x) %= 5;
    EXPECT_TRUE(equal(x, tensor({2, 7, 4, 4})));
    place(x) |= 9;
    EXPECT_TRUE(equal(x, tensor({11, 7, 13, 4})));
    place(x) &= tensor({6, 7});
    EXPECT_TRUE(equal(x, tensor({2, 7, 5, 4})));
    place(x) ^= 1;
    EXPECT_TRUE(equal(x, tensor({3, 7, 4, 4})));
    place(x) <<= 2;
    EXPECT_TRUE(equal(x, tensor({12, 7, 16, 4})));
    place(x) >>= 1;
    EXPECT_TRUE(equal(x, tensor({6, 7, 8, 4})));
    place(x) += 1, place(x) -= 2, place(x) *= 4;
    EXPECT_TRUE(equal(x, tensor({20, 7, 28, 4})));
  };
  each([&](Tensor& x) { return x[i]; });
  each([&](Tensor& x) { return x[mask]; });
  each([&](Tensor& x) { return x[slice({}, {}, 2)]; });
  each([&](Tensor& x) { return x[{i}]; });
  Tensor flags = tensor({true, false, true});
  flags[flags] ^= true;
  EXPECT_FALSE(flags.any().item<bool>());
  // With a name it is the view or the copy that it holds.
  Tensor x = tensor({12, 7});
  auto row = x[0];
  row %= 5, row |= 8, row &= 11, row ^= 1, row <<= 2, row >>= 1;
  EXPECT_TRUE(equal(x, tensor({22, 7})));
  // Derivatives, and an error that changes nothing.
  const Tensor leaf = tensor({5.5, 2.0}).requires_grad_();
  Tensor y = leaf * 1;
  y[tensor({0})] %= 2;
  EXPECT_TRUE(equal(y.detach(), tensor({1.5, 2.0})));
  EXPECT_TRUE(equal(grad(y.sum(), leaf), tensor({1.0, 1.0})));
  expect_error(Error::Kind::dtype, "bitwise_and", {"f32"}, [&] { y[tensor({0})] &= 1; });
  EXPECT_TRUE(equal(y.detach(), tensor({1.5, 2.0})));
}

TEST(IndexingAssign, ValuesAndIndicesInTheSameMemory) {
  Tensor x = arange(0, 6);
  x[slice(1)] = x[slice(0, -1)];
  EXPECT_TRUE(equal(x, tensor({0, 0, 1, 2, 3, 4})));
  Tensor y = arange(0, 5);
  y[tensor({4, 3, 2, 1, 0})] = y;
  EXPECT_TRUE(equal(y, tensor({4, 3, 2, 1, 0})));
  y[y] = 0 * y + 7;  // the index is the tensor itself
  EXPECT_TRUE(equal(y, full({5}, 7, {.dtype = i64})));
  Tensor m = tensor({true, false, true});
  m[m] = false;
  EXPECT_TRUE(equal(m, zeros({3}, {.dtype = boolean})));
  Tensor z = arange(0, 4).to(f32);
  z[tensor({0, 1})] = z[tensor({2, 3})];
  EXPECT_TRUE(equal(z, tensor({2., 3., 2., 3.})));
}

TEST(ErrorsIndexing, NothingChanges) {
  Tensor x = ones({2, 3});
  const auto expect = [&](Error::Kind kind, std::initializer_list<const char*> words, auto f) {
    expect_error(kind, "index", words, f);
  };
  using enum Error::Kind;
  expect(index, {"index 3", "axis 1", "size 3"}, [&] { return x[{0, 3}]; });
  expect(index, {"index -3", "axis 0", "size 2"}, [&] { return x[-3]; });
  expect(index, {"too many", "3", "[2, 3]"}, [&] { return x[{0, 0, 0}]; });
  expect(index, {"too many"}, [&] { return tensor(1.0)[0]; });
  expect(index, {"too many"}, [&] { return x[ones({2, 3, 1}, {.dtype = boolean})]; });
  expect(index, {"ellipsis"}, [&] { return x[{ellipsis, ellipsis}]; });
  expect(index, {"[3]", "[2, 3]"}, [&] { return x[ones({3}, {.dtype = boolean})]; });
  expect(index, {"index 2", "axis 0"}, [&] { x[tensor({0, 2})] = 5; });
  expect(index, {"index 9"}, [&] { return x[{tensor({0, 1}), tensor({0, 9})}]; });
  expect(argument, {"step"}, [&] { return x[slice(0, 1, 0)]; });
  expect(shape, {"[2]", "[3]"}, [&] { return x[{tensor({0, 1}), tensor({0, 1, 2})}]; });
  expect(shape, {"[4]", "[2, 3]"}, [&] { x[tensor({0, 1})] = ones({4}); });
  expect(shape, {"[2, 2, 3]"}, [&] { x[slice()] = ones({2, 2, 3}); });
  expect(dtype, {"f32"}, [&] { return x[ones({2})]; });
  expect(argument, {"undefined"}, [&] { return x[Tensor()]; });
  EXPECT_TRUE(equal(x, ones({2, 3})));
  Tensor n = arange(0, 3);
  expect(dtype, {"0.5", "i64"}, [&] { n[tensor({0})] = 0.5; });
  EXPECT_FALSE(attempt([&] { n[0] = 0.5; }));
  EXPECT_FALSE(attempt([&] { n[n == 1] = 0.5; }));
  EXPECT_TRUE(equal(n, arange(0, 3)));
  Tensor wide = zeros({1}).expand({3});
  EXPECT_FALSE(attempt([&] { wide[tensor({0})] = 1; }));
  EXPECT_FALSE(attempt([&] { wide[0] = 1; }) && false);
  Tensor leaf = ones({3}).requires_grad_();
  expect(autograd, {"leaf"}, [&] { leaf[tensor({0})] = 1; });
  EXPECT_FALSE(attempt([&] { leaf[0] = 1; }));
  EXPECT_TRUE(equal(leaf, ones({3})));
  {
    const NoGrad off;
    leaf[tensor({0})] = 5;
  }
  EXPECT_EQ(leaf[0].item<float>(), 5);
}

TEST(ErrorsIndexing, MasksOfOtherShapes) {
  for (const Shape& shape : {Shape{1, 3}, Shape{2, 1}, Shape{1}, Shape{3}, Shape{2, 3, 1}}) {
    const Tensor mask = ones(shape, {.dtype = boolean});
    Tensor x = zeros({2, 3});
    EXPECT_THROW(x.index_put_({mask}, 1), Error) << shape.str();
    EXPECT_THROW((void)index_put(x, {mask}, 1), Error) << shape.str();
    EXPECT_THROW(x[mask] = 1, Error) << shape.str();
    EXPECT_TRUE(equal(x, zeros({2, 3})));
  }
  Tensor row = zeros({3});
  EXPECT_THROW(row.index_put_({ones({1}, {.dtype = boolean})}, 1), Error);
}

TEST(ErrorsIndexing, NumbersThatDoNotFit) {
  for (const Scalar value : {Scalar(300), Scalar(300.), Scalar(-1), Scalar(NAN), Scalar(1e30)}) {
    Tensor x = zeros({3}, {.dtype = u8});
    const Tensor mask = tensor({true, false, true}), place = tensor({1});
    EXPECT_THROW(x.fill_(value), Error);
    EXPECT_THROW(x[0] = value, Error);
    EXPECT_THROW(x[mask] = value, Error);
    EXPECT_THROW(x[place] = value, Error);
    EXPECT_THROW(x.index_put_({place}, value), Error);
    EXPECT_THROW((void)masked_fill(x, mask, value), Error);
    EXPECT_THROW(x.masked_fill_(mask, value), Error);
    EXPECT_THROW((void)scatter(x, 0, place, value), Error);
    EXPECT_THROW((void)index_fill(x, 0, place, value), Error);
    EXPECT_TRUE(equal(x, zeros_like(x)));
  }
  EXPECT_THROW((void)index_fill(zeros({2}, {.dtype = i64}), 0, tensor({0}), 1e30), Error);
  Tensor x = zeros({2}, {.dtype = u64});
  EXPECT_EQ(x.fill_(0x1p63)[1].item<uint64_t>(), uint64_t(1) << 63);
}

TEST(GradcheckIndexing, Reading) {
  const Tensor x = f64_of({3, 4, 2}), a = tensor({2, 0, 2}), mask = numbers({3, 4}, i64) % 2 == 0;
  expect_gradients([=](const Tensor& t) { return Tensor(t[{1, slice({}, {}, -1)}]); }, x);
  expect_gradients([=](const Tensor& t) { return Tensor(t[a]); }, x);
  expect_gradients([=](const Tensor& t) { return Tensor(t[{a, slice(), tensor({0, 1, 1})}]); }, x);
  expect_gradients([=](const Tensor& t) { return Tensor(t[{slice(), a, tensor({{1}, {0}})}]); }, x);
  expect_gradients([=](const Tensor& t) { return Tensor(t[mask]); }, x);
  expect_gradients([=](const Tensor& t) { return Tensor(t[{mask, 1}]); }, x);
}

TEST(GradcheckIndexing, Writing) {
  const Tensor x = f64_of({3, 4}), v = f64_of({2, 4}, 8), a = tensor({2, 0}), twice = tensor({1, 1});
  const auto written = [](auto write) {
    return [=](const Tensor& t, const Tensor& value) {
      Tensor y = t * 2;
      write(y, value);
      return y * y;
    };
  };
  expect_gradients(written([](Tensor& y, const Tensor& value) { y[slice(1)] = value; }), x, v);
  expect_gradients(written([=](Tensor& y, const Tensor& value) { y[a] = value; }), x, v);
  expect_gradients(written([=](Tensor& y, const Tensor& value) { y[twice] = value; }), x, v);
  expect_gradients(written([=](Tensor& y, const Tensor& value) {
                     y[{slice(), a}] = value[{slice(), slice(0, 2)}].sum(0);
                   }),
                   x, v);
  expect_gradients(written([=](Tensor& y, const Tensor& value) {
                     y[{a, slice({}, {}, 2)}] += value[{slice(), slice(0, 2)}];
                   }),
                   x, v);
  expect_gradients(written([=](Tensor& y, const Tensor& value) { y[{1, slice(1)}] *= value[{0, slice(1)}]; }), x, v);
  expect_gradients(written([=](Tensor& y, const Tensor& value) { y[tensor({true, false, true})] = value; }), x, v);
  expect_gradients(
      [](const Tensor& t) {
        Tensor y = t * 2;
        y[t > 0] = 3;
        return y * y;
      },
      x);
  expect_gradients(
      [=](const Tensor& value) {
        Tensor y = zeros({3, 4}, {.dtype = f64});
        y[a] = value;
        return y * y;
      },
      v);
}

TEST(AutogradIndexing, WritingThroughAViewReachesTheBase) {
  Tensor x = ones({2, 3}, {.dtype = f64, .requires_grad = true});
  Tensor y = x * 2;
  Tensor row = y[1];
  row[tensor({0, 2})] = 5;
  const Tensor g = grad((y * y).sum(), x);
  EXPECT_TRUE(equal(g, tensor<double>({{8, 8, 8}, {0, 8, 0}})));
}

}  // namespace
}  // namespace volta::test
