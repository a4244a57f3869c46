// Sizes, strides, offsets and counts near the ends of 64 bits: a result or an Error, soon, and nothing read outside.
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <limits>

#include <volta/volta.h>

#include "core/checked_arithmetic.h"
#include "core/impl.h"
#include "samples.h"

namespace volta::test {
namespace {

constexpr int64_t most = std::numeric_limits<int64_t>::max(), least = std::numeric_limits<int64_t>::min();
const int64_t extremes[] = {int64_t(1) << 31,
                            int64_t(1) << 45,
                            (int64_t(1) << 59) + 1,
                            int64_t(1) << 62,
                            most - 1,
                            most,
                            -1,
                            -(int64_t(1) << 31),
                            least + 1,
                            least};

// Nothing but an Error may be thrown, within a second.
template <class F> void expect_survived(const char* what, int64_t n, F f) {
  const auto begin = std::chrono::steady_clock::now();
  try {
    f();
  } catch (const Error& e) {
    EXPECT_NE(e.kind(), Error::Kind::internal) << what << " " << n << ": " << e.what();
  } catch (const std::exception& e) {
    ADD_FAILURE() << what << " " << n << " threw something else: " << e.what();
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2)) << what << " " << n;
}

// With little memory what cannot be had is refused at once.
class LittleMemory {
 public:
  LittleMemory() { memory::set_limit(memory::stats().in_use + (int64_t(1) << 28)); }
  ~LittleMemory() { memory::set_limit(limit_); }

 private:
  const int64_t limit_ = memory::stats().limit;
};

TEST(ErrorsExtremes, CheckedArithmetic) {
  EXPECT_EQ((Checked(most) + 1).get(), std::nullopt);
  EXPECT_EQ((Checked(least) - 1).get(), std::nullopt);
  EXPECT_EQ((Checked(int64_t(1) << 62) * 2).get(), std::nullopt);
  EXPECT_EQ((Checked(least) / -1).get(), std::nullopt);
  EXPECT_EQ((Checked(1) / 0).get(), std::nullopt);
  EXPECT_EQ((-Checked(least)).get(), std::nullopt);
  EXPECT_FALSE(Checked(~uint64_t(0)).fits());
  EXPECT_EQ(((Checked(most) + 1) - 1).get(), std::nullopt);  // once lost, lost
  EXPECT_EQ((Checked(3) * 4 - 2).value("op"), 10);
  EXPECT_EQ((Checked(most) + 1).value_or(7), 7);
  EXPECT_FALSE(attempt([] { return (Checked(most) * 2).value("op"); }));
}

TEST(ErrorsExtremes, OneSizeAtATime) {
  const LittleMemory little;
  const Tensor x = arange(24).to(f32).reshape({2, 3, 4}), v = arange(5);
  for (const int64_t n : extremes) {
    expect_survived("narrow", n, [&] { (void)x.narrow(0, n, 1), (void)x.narrow(0, 0, n); });
    expect_survived("narrow length", n, [&] { (void)x.narrow(0, 1, n); });
    expect_survived("slice", n, [&] { (void)x.slice(1, n, {}, 1); });
    expect_survived("slice end", n, [&] { (void)x.slice(1, {}, n, 2); });
    expect_survived("slice step", n, [&] { (void)x.slice(1, {}, {}, n); });
    expect_survived("slice all", n, [&] { (void)x[{slice(n, n, n)}]; });
    expect_survived("select", n, [&] { (void)x.select(0, n); });
    expect_survived("axis", n, [&] { (void)x.sum(n); });
    expect_survived("size", n, [&] { (void)x.size(n); });
    expect_survived("unfold", n, [&] { (void)x.unfold(2, n, 1); });
    expect_survived("unfold step", n, [&] { (void)x.unfold(2, 1, n); });
    expect_survived("diagonal", n, [&] { (void)x.diagonal(n); });
    expect_survived("diag", n, [&] { (void)diag(v, n); });
    expect_survived("tril", n, [&] { (void)tril(x, n); });
    expect_survived("roll", n, [&] { (void)roll(x, n, 1); });
    expect_survived("roll flat", n, [&] { (void)roll(x, n); });
    expect_survived("repeat", n, [&] { (void)x.repeat({n, 1, 1}); });
    expect_survived("repeat two", n, [&] { (void)x.repeat({n, n, 1}); });
    expect_survived("tile", n, [&] { (void)x.tile({n}); });
    expect_survived("repeat_interleave", n, [&] { (void)x.repeat_interleave(n, 0); });
    expect_survived("repeat_interleave each", n, [&] {
      (void)tensor({1, 2, 3}).repeat_interleave(tensor({n, n, int64_t(2)}));
    });
    expect_survived("reshape", n, [&] { (void)x.reshape({n, -1}); });
    expect_survived("reshape of none", n, [&] { (void)zeros({0}).reshape({0, n, n}); });
    expect_survived("expand", n, [&] { (void)x.expand({n, 2, 3, 4}); });
    expect_survived("unflatten", n, [&] { (void)x.unflatten(2, {n, -1}); });
    expect_survived("arange", n, [&] { (void)arange(n); });
    expect_survived("arange step", n, [&] { (void)arange(0, 10, n); });
    expect_survived("arange far", n, [&] { (void)arange(least, most, n); });
    expect_survived("linspace", n, [&] { (void)linspace(0, 1, n); });
    expect_survived("logspace", n, [&] { (void)logspace(0, 1, n); });
    expect_survived("full", n, [&] { (void)full({n}, 1); });
    expect_survived("zeros", n, [&] { (void)zeros({n, n}); });
    expect_survived("eye", n, [&] { (void)eye(n); });
    expect_survived("tri", n, [&] { (void)tri(3, 3, n); });
    expect_survived("randperm", n, [&] { (void)randperm(n); });
    expect_survived("randint", n, [&] { (void)randint(least, n, {2}); });
    expect_survived("rand", n, [&] { (void)rand({n}); });
    expect_survived("multinomial", n, [&] { (void)multinomial(ones({3}), n, true); });
    expect_survived("pad", n, [&] { (void)pad(x, {n, 0}); });
    expect_survived("pad both", n, [&] { (void)pad(x, {n, n}); });
    expect_survived("chunk", n, [&] { (void)x.chunk(n); });
    expect_survived("chunk none", n, [&] { (void)zeros({0, 2}).chunk(n); });
    expect_survived("split", n, [&] { (void)x.split(n); });
    expect_survived("split sizes", n, [&] { (void)x.split(std::vector<int64_t>{n, n, 2}); });
    expect_survived("diff", n, [&] { (void)diff(x, n); });
    expect_survived("topk", n, [&] { (void)topk(x, n); });
    expect_survived("kthvalue", n, [&] { (void)kthvalue(x, n); });
    expect_survived("one_hot", n, [&] { (void)one_hot(v, n); });
    expect_survived("one_hot value", n, [&] { (void)one_hot(tensor({n})); });
    expect_survived("bincount", n, [&] { (void)bincount(v, {}, n); });
    expect_survived("bincount value", n, [&] { (void)bincount(tensor({n})); });
    expect_survived("histogram", n, [&] { (void)histogram(x, n); });
    expect_survived("gather", n, [&] { (void)gather(x, 0, full({1, 1, 1}, n)); });
    expect_survived("index_select", n, [&] { (void)index_select(x, 0, tensor({n})); });
    expect_survived("take", n, [&] { (void)take(x, tensor({n})); });
    expect_survived("subscript", n, [&] { (void)x[tensor({n, n})]; });
    expect_survived("polygamma", n, [&] { (void)polygamma(n, x); });
    expect_survived("movedim", n, [&] { (void)x.movedim(n, 0); });
    expect_survived("tensordot", n, [&] { (void)tensordot(x, x, n); });
    expect_survived("sum of strange strides", n, [&] { (void)x.as_strided({1}, {n}).reshape({1, 1}).sum(); });
    expect_survived("unbind", n, [&] { (void)ones({1}).expand({n}).unbind(); });
    expect_survived("split expanded", n, [&] { (void)ones({1}).expand({n}).split(1); });
    expect_survived("cat expanded", n, [&] { (void)cat({ones({1}).expand({n}), ones({1}).expand({n})}); });
    expect_survived("meshgrid", n, [&] { (void)meshgrid({ones({1}).expand({n}), ones({1}).expand({n})}); });
    expect_survived("contiguous", n, [&] { (void)ones({1}).expand({n}).contiguous(); });
    expect_survived("to_vector", n, [&] {
      (void)ones({1}).expand({n >> 8}).expand({256, n >> 8}).to_vector<double>();
    });
    expect_survived("nonzero", n, [&] { (void)nonzero(ones({1}).expand({n}).as_strided({3}, {1})); });
    expect_survived("masked_select", n, [&] { (void)masked_select(ones({1}).expand({n}), tensor({true})); });
    expect_survived("searchsorted", n, [&] { (void)searchsorted(ones({1}).expand({n}).narrow(0, 0, 1), 1); });
    expect_survived("outer", n, [&] { (void)outer(ones({1}).expand({n}), ones({1}).expand({n})); });
    expect_survived("kron", n, [&] { (void)kron(ones({1}).expand({n}), ones({1}).expand({n})); });
    expect_survived("tensor", n, [&] { (void)tensor(std::vector<float>(2), {n, n}); });
  }
}

TEST(ErrorsExtremes, ReplicationBuildsNoTable) {
  const LittleMemory little;
  for (const char* mode : {"replicate", "reflect", "circular"})
    for (const int64_t n : extremes)
      expect_survived(mode, n, [&] { (void)pad(ones({1, 3, 3}), {n, 0, 0, n}, {.mode = mode}); });
}

TEST(ErrorsExtremes, StridesStayInsideTheStorage) {
  const Tensor x = arange(8).to(u8);
  const auto refused = [&](const Shape& size, const Shape& stride, std::optional<int64_t> offset = {}) {
    const auto r = attempt([&] { return x.as_strided(size, stride, offset); });
    return !r && r.error().kind() == Error::Kind::index && r.error().op() == "as_strided";
  };
  EXPECT_TRUE(refused({1025}, {int64_t(1) << 54}));
  EXPECT_TRUE(refused({2}, {1}, most - 1));
  EXPECT_TRUE(refused({2}, {1}, most));
  EXPECT_TRUE(refused({1}, {1}, -1));
  EXPECT_TRUE(refused({1}, {1}, least));
  EXPECT_TRUE(refused({2}, {-1}, 0));
  EXPECT_TRUE(refused({2, 2}, {most, most}));
  EXPECT_TRUE(refused({3, 3}, {most / 2, -(most / 2)}));
  EXPECT_TRUE(refused({9}, {1}));
  EXPECT_TRUE(refused({0}, {1}, most));
  EXPECT_TRUE(refused({1}, {least}));
  EXPECT_TRUE(equal(x.as_strided({8}, {-1}, 7), x.flip(0)));
  EXPECT_EQ(x.as_strided({2, 2}, {4, 2}, 1).sum().item<int>(), 1 + 3 + 5 + 7);
  EXPECT_EQ(x.as_strided({0}, {1}, 8).numel(), 0);
}

TEST(ErrorsExtremes, CountsThatDoNotFitAreErrors) {
  const auto fails = [](auto f) { return !attempt(f); };
  EXPECT_TRUE(fails([] { return repeat_interleave(tensor({1, 2, 3}), tensor({most, most, int64_t(2)})); }));
  EXPECT_TRUE(fails([] { return bincount(tensor({most})); }));
  EXPECT_TRUE(fails([] { return one_hot(tensor({most})); }));
  EXPECT_TRUE(fails([] { return histogram(ones({3}), most); }));
  EXPECT_TRUE(fails([] { return diag(ones({3}), least); }));
  EXPECT_EQ((Shape{int64_t(1) << 40, int64_t(1) << 40}).numel(), most);
  EXPECT_EQ((Shape{int64_t(1) << 40, int64_t(1) << 40, 0}).numel(), 0);
  EXPECT_EQ(diagonal(ones({2, 2}), least).numel(), 0);
  EXPECT_EQ(repeat_interleave(tensor({1, 2}), tensor({2, 0})).numel(), 2);
}

TEST(ErrorsExtremes, EmptyFunctionsAreErrors) {
  const Tensor x = ones({2}, {.dtype = f64, .requires_grad = true});
  nn::Linear layer(2, 2);
  optim::SGD sgd(parameters(layer), {.lr = 0.1});
  optim::LBFGS lbfgs(parameters(layer));
  const auto refused = [](auto f) {
    const auto r = attempt(f);
    return !r && r.error().kind() == Error::Kind::argument;
  };
  const std::function<Tensor(const Tensor&)> none;
  EXPECT_TRUE(refused([&] { return x.register_hook({}); }));
  EXPECT_TRUE(refused([&] { return with_backward("mine", x.detach(), {x}, {}); }));
  EXPECT_TRUE(refused([&] { return checkpoint(std::function<Tensor(const std::vector<Tensor>&)>(), {x}); }));
  EXPECT_TRUE(refused([&] { return jacobian(none, x); }));
  EXPECT_TRUE(refused([&] { return hessian(none, x); }));
  EXPECT_TRUE(refused([&] { return vjp(none, x, x).value; }));
  EXPECT_TRUE(refused([&] { return jvp(none, x, x).value; }));
  EXPECT_TRUE(refused([&] { return gradcheck_all({}, {x}); }));
  EXPECT_TRUE(refused([&] { return gradgradcheck_all({}, {x}); }));
  EXPECT_TRUE(refused([&] { return nn::Lambda("Mine", {}); }));
  EXPECT_TRUE(refused([&] { apply(layer, {}); }));
  EXPECT_TRUE(refused([&] { return summary(layer, std::function<void()>()); }));
  EXPECT_TRUE(refused([&] { return layer.register_forward_hook({}); }));
  EXPECT_TRUE(refused([&] { return layer.register_forward_pre_hook({}); }));
  EXPECT_TRUE(refused([&] { const nn::Watch watch({}); }));
  EXPECT_TRUE(refused([&] { return sgd.step(optim::Optimizer::Closure()); }));
  EXPECT_TRUE(refused([&] { return lbfgs.step(optim::Optimizer::Closure()); }));
  EXPECT_TRUE(refused([&] { optim::LambdaLR schedule(sgd, optim::LambdaLR::Factor()); }));
}

TEST(ErrorsExtremes, AttemptMakesErrorsOfTheStandardLibrarys) {
  const auto memory = attempt([]() -> int { throw std::bad_alloc(); });
  const auto length = attempt([] { return std::vector<int>(size_t(-1)).size(); });
  EXPECT_TRUE(!memory && memory.error().kind() == Error::Kind::memory);
  EXPECT_TRUE(!length && length.error().kind() == Error::Kind::memory);
}

TEST(ErrorsExtremes, ErrorsNameTheOpThatWasCalled) {
  const LittleMemory little;
  const auto op_of = [](auto f) { return attempt(f).error().op(); };
  const int64_t huge = int64_t(1) << 45;
  EXPECT_EQ(op_of([] { return zeros({3}).copy_(ones({2})); }), "copy_");
  EXPECT_EQ(op_of([&] { return ones({3}).broadcast_to({2}); }), "broadcast_to");
  EXPECT_EQ(op_of([&] { return ones({3}).expand_as(ones({2})); }), "expand_as");
  EXPECT_EQ(op_of([&] { return Tensor().clip(0, 1); }), "clip");
  EXPECT_EQ(op_of([&] { return ones({3}).repeat({huge}); }), "repeat");
  EXPECT_EQ(op_of([&] { return ones({3}).tile({huge}); }), "tile");
  EXPECT_EQ(op_of([&] { return ones({3}).repeat_interleave(huge); }), "repeat_interleave");
  EXPECT_EQ(op_of([&] { return repeat_interleave(ones({1}), tensor({huge})); }), "repeat_interleave");
  EXPECT_EQ(op_of([&] { return bincount(tensor({huge})); }), "bincount");
  EXPECT_EQ(op_of([&] { return histogram(ones({3}), huge).counts; }), "histogram");
  EXPECT_EQ(op_of([&] { return one_hot(tensor({1}), huge); }), "one_hot");
  EXPECT_EQ(op_of([&] { return pad(ones({1, 2}), {huge, 0}, {.mode = "replicate"}); }), "pad");
  EXPECT_EQ(op_of([&] { return pad(ones({1, 2}), {huge, 0}); }), "pad");
  for (const int64_t before : {int64_t(0), huge}) {  // the whole is looked at first, not the memory of one axis
    const Ints both = {before, huge - before, before, huge - before};
    const auto padded = attempt([&] { return pad(ones({1, 1}), both, {.mode = "replicate"}); });
    EXPECT_EQ(padded.error().kind(), Error::Kind::shape);
  }
  const Tensor x = ones({3, 4}), other = ones({2, 5}), v = ones({3});
  EXPECT_EQ(op_of([&] { return x.select(0, 99); }), "select");
  EXPECT_EQ(op_of([&] { return glu(x, 9); }), "glu");
  EXPECT_EQ(op_of([&] { return cosine_similarity(x, x, 9); }), "cosine_similarity");
  EXPECT_EQ(op_of([&] { return combinations(v, INT64_MAX); }), "combinations");
  EXPECT_EQ(op_of([&] { return multinomial(v, INT64_MAX, true); }), "multinomial");
  EXPECT_EQ(op_of([&] { return local_response_norm(ones({1, 2, 3}), INT64_MAX); }), "local_response_norm");
  EXPECT_EQ(op_of([&] { return vstack({x, other}); }), "vstack");
  EXPECT_EQ(op_of([&] { return hstack({x, other}); }), "hstack");
  EXPECT_EQ(op_of([&] { return dstack({x, other}); }), "dstack");
  EXPECT_EQ(op_of([&] { return column_stack({x, other}); }), "column_stack");
  EXPECT_EQ(op_of([&] { return moveaxis(x, 0, 9); }), "moveaxis");
  EXPECT_EQ(op_of([&] { return swapaxes(x, 0, 9); }), "swapaxes");
  EXPECT_EQ(op_of([&] { return swapdims(x, 0, 9); }), "swapdims");
  EXPECT_EQ(op_of([&] { return index_put(x, {tensor({9})}, 1.0); }), "index_put");
  EXPECT_EQ(op_of([&] { return embedding_bag(tensor({{0, 1}}), v); }), "embedding_bag");
  const Tensor many = zeros({1}).expand({huge});
  EXPECT_EQ(op_of([&] { return cartesian_prod({many, many}); }), "cartesian_prod");
  EXPECT_EQ(op_of([&] { return zeros({1}).expand({huge}).tensor_split(huge); }), "tensor_split");
  EXPECT_EQ(op_of([&] { return ones({}).tensor_split(1); }), "tensor_split");
  EXPECT_EQ(op_of([&] { return ones({}).tensor_split({1}); }), "tensor_split");
  for (const auto& [name, f] : std::map<std::string, std::vector<Tensor> (*)(const Tensor&, const Ints&)>{
           {"hsplit", hsplit}, {"vsplit", vsplit}, {"dsplit", dsplit}})
    EXPECT_EQ(op_of([&, split = f] { return split(ones({}), {1}); }), name);
  EXPECT_EQ(op_of([&] { return hsplit(ones({}), 1); }), "hsplit");
  EXPECT_EQ(op_of([&] { return vsplit(ones({3}), 1); }), "vsplit");
  EXPECT_EQ(op_of([&] { return dsplit(ones({3, 3}), 1); }), "dsplit");
  EXPECT_EQ(op_of([&] { return hsplit(ones({1}).expand({huge}), huge); }), "hsplit");
  EXPECT_EQ(op_of([&] { return broadcast_tensors({ones({2}), ones({3})}); }), "broadcast_tensors");
  EXPECT_EQ(op_of([&] { return reshape_as(ones({2}), ones({3})); }), "reshape_as");
  EXPECT_EQ(op_of([&] { return diagflat(many); }), "diagflat");
  EXPECT_EQ(op_of([&] { return diagflat(v, INT64_MAX); }), "diagflat");
  EXPECT_EQ(op_of([&] { return select_scatter(many, v, 0, 0); }), "select_scatter");
  EXPECT_EQ(op_of([&] { return select_scatter(ones({}), v, 0, 0); }), "select_scatter");
  EXPECT_EQ(op_of([&] { return slice_scatter(v, v, 0, 0, {}, 0); }), "slice_scatter");
  EXPECT_EQ(op_of([&] { return diagonal_scatter(v, v); }), "diagonal_scatter");
  EXPECT_EQ(op_of([&] { return channel_shuffle(ones({2, 3, 4}), 2); }), "channel_shuffle");
  EXPECT_EQ(op_of([&] { return index_reduce(v, 0, tensor({99}), ones({1}), "sum"); }), "index_reduce");
  EXPECT_EQ(op_of([&] { return mode(many); }), "mode");
  EXPECT_EQ(op_of([&] { return mode(zeros({2, 0})); }), "mode");
  EXPECT_EQ(op_of([&] { return msort(many); }), "msort");
  EXPECT_EQ(op_of([&] { return histc(v, INT64_MAX); }), "histc");
  EXPECT_EQ(op_of([&] { return unravel_index(tensor({6}), {2, 3}); }), "unravel_index");
  EXPECT_EQ(op_of([&] { return unravel_index(tensor({0}), {huge, huge}); }), "unravel_index");
  EXPECT_EQ(op_of([&] { return float_power(many, many); }), "float_power");
  EXPECT_EQ(op_of([&] { return isposinf(many); }), "isposinf");
  EXPECT_EQ(op_of([&] { return isneginf(many.to(f32)); }), "isneginf");
  EXPECT_EQ(op_of([&] { return inner(ones({2, 3}), ones({2})); }), "inner");
  EXPECT_EQ(op_of([&] { return renorm(many.reshape({huge, 1}), 2, 0, 1); }), "renorm");
  EXPECT_EQ(op_of([&] { return renorm(v, 2, 0, 1); }), "renorm");
  EXPECT_EQ(op_of([&] { return ones({}).split(Ints{1, 0}); }), "split");
  EXPECT_EQ(op_of([&] { return ones({}).split(1); }), "split");
  EXPECT_EQ(op_of([&] { return fliplr(ones({3})); }), "fliplr");
  EXPECT_EQ(op_of([&] { return flipud(ones({})); }), "flipud");
}

TEST(ErrorsExtremes, ErrorsNameTheLayerThatWasMade) {
  const LittleMemory little;
  const auto op_of = [](auto f) { return attempt(f).error().op(); };
  const int64_t huge = int64_t(1) << 45;
  EXPECT_EQ(op_of([&] { return nn::Linear(huge, 2); }), "Linear");
  EXPECT_EQ(op_of([&] { return nn::Bilinear(2, huge, 2); }), "Bilinear");
  EXPECT_EQ(op_of([&] { return nn::Conv2d(huge, 2, 3); }), "Conv2d");
  EXPECT_EQ(op_of([&] { return nn::ConvTranspose2d(huge, 2, 3); }), "ConvTranspose2d");
  EXPECT_EQ(op_of([&] { return nn::LSTM(huge, 2); }), "LSTM");
  EXPECT_EQ(op_of([&] { return nn::GRUCell(huge, 2); }), "GRUCell");
  EXPECT_EQ(op_of([&] { return nn::BatchNorm2d(huge); }), "BatchNorm2d");
  EXPECT_EQ(op_of([&] { return nn::LayerNorm(huge); }), "LayerNorm");
  EXPECT_EQ(op_of([&] { return nn::RMSNorm(huge); }), "RMSNorm");
  EXPECT_EQ(op_of([&] { return nn::GroupNorm(1, huge); }), "GroupNorm");
  EXPECT_EQ(op_of([&] { return nn::Embedding(huge, 2); }), "Embedding");
  EXPECT_EQ(op_of([&] { return nn::EmbeddingBag(huge, 2); }), "EmbeddingBag");
  EXPECT_EQ(op_of([&] { return nn::PReLU(huge); }), "PReLU");
  EXPECT_EQ(op_of([&] { return nn::MultiheadAttention(huge, 2); }), "MultiheadAttention");
  EXPECT_EQ(op_of([&] { return nn::MultiheadAttention(8, 2, {.kdim = huge}); }), "MultiheadAttention");
}

// Ops that promise a new tensor.
TEST(ShapeFresh, RepeatAndTileCopy) {
  Tensor t = zeros({5}).tile({2, 2});
  t[0] = 1.0;
  EXPECT_EQ(t.sum().item<float>(), 10.f);
  for (const Tensor& y :
       {ones({1}).repeat({4}), ones({3}).repeat({2, 1}), ones({1, 1}).tile({3, 3}), ones({1}).repeat_interleave(4),
        ones({2, 1}).repeat_interleave(3, 1), ones({3}).repeat({1}), ones({1}).expand({4}).roll(0),
        ones({1}).expand({4}).clone(), ones({1}).expand({4}).contiguous(),
        pad(ones({1, 1}), {0, 0}, {.mode = "replicate"}), pad(ones({1, 1}), {2, 2}, {.mode = "replicate"})})
    EXPECT_FALSE(layout(y).overlaps_itself()) << y.shape() << y.strides();
  const Tensor x = arange(4).to(f32);
  for (const Tensor& y : {diff(x, 0), roll(x, 0), roll(x, 4, 0), x.repeat({1}), x.tile({1}), x.repeat_interleave(1),
                          pad(x, {0, 0}), clone(x)}) {
    EXPECT_FALSE(y.shares_storage(x));
    EXPECT_TRUE(equal(y, x));
  }
}

// Every op of samples.cpp, also of tensors of one element: a result that is no view shares nothing with its inputs.
TEST(ShapeFresh, ResultsOwnTheirMemory) {
  const std::set<std::string> views = {
      "reshape",    "view",           "view_as",    "permute",       "transpose",       "t",
      "mT",         "movedim",        "expand",     "expand_as",     "broadcast_to",    "squeeze",
      "unsqueeze",  "flatten",        "unflatten",  "narrow",        "slice",           "select",
      "flip",       "diagonal",       "unfold",     "moveaxis",      "swapaxes",        "swapdims",
      "atleast_1d", "atleast_2d",     "atleast_3d", "tensor_split",  "fliplr",          "flipud",
      "as_strided", "split",          "chunk",      "unbind",        "contiguous",      "to",
      "type_as",    "meshgrid",       "dropout",    "alpha_dropout", "feature_dropout", "einsum",
      "index",      "unpad_sequence", "hsplit",     "vsplit",        "dsplit",          "broadcast_tensors",
      "ravel",      "reshape_as"};
  for (const Sample& s : samples()) {
    if (views.contains(s.op)) continue;
    for (const int kind : {0, 1, 2}) {
      std::vector<Tensor> x = kind == 0 ? draw(s, f32) : std::vector<Tensor>();
      for (size_t i = x.size(); i < s.inputs.size(); ++i)
        x.push_back(rand(kind == 1 ? Shape::filled(s.inputs[i].shape.size(), 1) : Shape()) + 0.3);
      const auto results = attempt([&] { return s.f(x); });
      if (!results) continue;
      for (const Tensor& y : *results) {
        EXPECT_FALSE(layout(y).overlaps_itself()) << s.label << " of kind " << kind;
        for (const Tensor& t : x) EXPECT_FALSE(y.shares_storage(t)) << s.label << " of kind " << kind;
      }
    }
  }
}

TEST(ShapeFresh, ANumberInATensorIndexesLikeANumber) {
  Tensor x = arange(12).reshape({3, 4});
  Tensor row = x[tensor(1)];
  EXPECT_TRUE(row.shares_storage(x) && equal(row, tensor({4, 5, 6, 7})));
  row.fill_(0);
  EXPECT_EQ(x[1].sum().item<int>(), 0);
  EXPECT_EQ((x[{tensor(-1), tensor(2)}]).item<int>(), 10);
  EXPECT_EQ((x[{slice(), tensor(3), newaxis}]).shape(), (Shape{3, 1}));
  x[tensor(0)] = 5;
  x[{tensor(2), tensor({0, 1})}] = 6;
  EXPECT_EQ(x.sum().item<int>(), 20 + 12 + 10 + 11);
  const auto r = attempt([&] { return x[tensor(3)]; });
  EXPECT_TRUE(!r && r.error().kind() == Error::Kind::index);
  EXPECT_FALSE(attempt([&] { return x[full({}, ~uint64_t(0), {.dtype = u64})]; }));
}

TEST(ShapeFresh, ChunksOfAnEmptyAxis) {
  const auto pieces = zeros({0, 3}).chunk(4);
  ASSERT_EQ(pieces.size(), 4u);
  for (const Tensor& p : pieces) EXPECT_EQ(p.shape(), (Shape{0, 3}));
  EXPECT_EQ(arange(5).chunk(3).size(), 3u);
  EXPECT_EQ(arange(5).chunk(4).size(), 3u);
  EXPECT_EQ(arange(2).chunk(most).size(), 2u);
}

}  // namespace
}  // namespace volta::test
