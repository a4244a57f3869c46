// Handles that may be absent, temporaries, axes counted from the end, lists in braces: nothing is read that is not there.
#include <gtest/gtest.h>

#include <limits>
#include <sstream>
#include <type_traits>

#include <volta/volta.h>

#include "taken.h"

namespace volta::test {
namespace {

template <class F> Error::Kind kind_of(F f) {
  try {
    (void)f();
  } catch (const Error& e) {
    return e.kind();
  }
  ADD_FAILURE() << "no Error was thrown";
  return Error::Kind::internal;
}

constexpr int64_t most = std::numeric_limits<int64_t>::max(), least = std::numeric_limits<int64_t>::min();

TEST(ShapeAccess, NegativeAxesCountFromTheEnd) {
  const Shape s{2, 3, 7};
  EXPECT_EQ(s[-1], 7);
  EXPECT_EQ(s[-3], 2);
  EXPECT_EQ(zeros(s).shape()[-2], 3);
  EXPECT_EQ(s[size_t(1)], 3);
  EXPECT_EQ(s.back(), 7);
  Shape changed = s;
  changed[-1] = 5;
  EXPECT_EQ(changed, (Shape{2, 3, 5}));
}

TEST(ShapeAccess, OtherAxesThrow) {
  const Shape s{2, 3, 7};
  for (int64_t axis : {int64_t(3), int64_t(-4), int64_t(12), most, least})
    EXPECT_EQ(kind_of([&] { return s[axis]; }), Error::Kind::index) << axis;
  EXPECT_EQ(kind_of([&] { return s[~size_t(0)]; }), Error::Kind::index);
  EXPECT_EQ(kind_of([&] { return tensor(1.0).shape().back(); }), Error::Kind::index);
  EXPECT_EQ(kind_of([&] { return Shape()[0]; }), Error::Kind::index);
  EXPECT_EQ(kind_of([&] { return tensor(1.0).size(0); }), Error::Kind::index);
  EXPECT_EQ(kind_of([&] { return tensor(1.0).stride(-1); }), Error::Kind::index);
  EXPECT_EQ(tensor(1.0).movedim(0, -1).dim(), 0);
}

TEST(ShapeAccess, ChangesAreChecked) {
  Shape s{2, 3};
  const auto fails = [&](auto change) {
    Shape copy = s;
    const bool threw = !attempt([&] { change(copy); });
    return threw && copy == s;
  };
  EXPECT_TRUE(fails([](Shape& x) { x.insert(3, 1); }));
  EXPECT_TRUE(fails([](Shape& x) { x.insert(-3, 1); }));
  EXPECT_TRUE(fails([](Shape& x) { x.erase(2); }));
  EXPECT_TRUE(fails([](Shape& x) { x.erase(-3); }));
  EXPECT_TRUE(fails([](Shape& x) { x.resize(-1); }));
  EXPECT_TRUE(fails([](Shape& x) { x.resize(13); }));
  EXPECT_FALSE(attempt([] { return Shape::filled(13, 1); }));
  s.insert(2, 9);
  s.insert(0, 8);
  s.erase(-2);
  EXPECT_EQ(s, (Shape{8, 2, 9}));
  Shape full = Shape::filled(12, 1);
  EXPECT_FALSE(attempt([&] { full.push_back(1); }));
}

TEST(ShapeAccess, EntriesOfADictionaryAreChecked) {
  nn::Linear layer(2, 3);
  StateDict state = state_dict(layer);
  EXPECT_EQ(state.name(1), "bias");
  EXPECT_EQ(kind_of([&] { return state.name(2); }), Error::Kind::index);
  EXPECT_EQ(kind_of([&] { return state.item(size_t(-1)).numel(); }), Error::Kind::index);
  const Tensor& weight = state_dict(layer).at("weight");  // of a temporary: kept
  EXPECT_EQ(weight.shape(), (Shape{3, 2}));
}

TEST(AutogradHandles, AnAbsentGradientIsAskedOrThrows) {
  Tensor w = ones({3}).requires_grad_();
  EXPECT_TRUE(!w.grad());
  EXPECT_FALSE(w.grad().has_value());
  EXPECT_TRUE(w.grad() == std::nullopt);
  EXPECT_EQ(kind_of([&] { return w.grad()->norm(); }), Error::Kind::autograd);
  EXPECT_EQ(kind_of([&] { return *w.grad(); }), Error::Kind::autograd);
  EXPECT_EQ(kind_of([&] { return w.grad().value(); }), Error::Kind::autograd);
  EXPECT_EQ(kind_of([&] { return ones({2}).grad()->sum(); }), Error::Kind::autograd);
  EXPECT_EQ(w.grad().value_or(zeros({1})).numel(), 1);
  (w * 2).sum().backward();
  ASSERT_TRUE(w.grad());
  const Tensor& g = *w.grad();  // outlives the handle it came from
  EXPECT_TRUE(equal(g, full({3}, 2.0)));
  EXPECT_EQ(w.grad()->sum().item<float>(), 6.f);
  const std::optional<Tensor> optional = w.grad();
  EXPECT_TRUE(optional && optional->shares_storage(*w.grad()));
}

TEST(AutogradHandles, AResultGivesItsValueOrThrows) {
  const Tensor& value = *attempt([] { return ones({2}); });
  EXPECT_EQ(value.numel(), 2);
  EXPECT_EQ(kind_of([] { return attempt([] { return ones({2}).reshape({3}); })->numel(); }), Error::Kind::shape);
}

TEST(AutogradHandles, ResultsKeepGradientsWhenAsked) {
  Tensor x = tensor({1.0, 2.0}).requires_grad_();
  Tensor y = x * 3;
  EXPECT_FALSE(y.retains_grad());
  y.retain_grad();
  y.retain_grad();
  EXPECT_TRUE(y.retains_grad() && !y.grad());
  (y * y).sum().backward({.retain_graph = true});
  EXPECT_TRUE(equal(*y.grad(), tensor({6.0, 12.0})));
  EXPECT_TRUE(equal(*x.grad(), tensor({18.0, 36.0})));
  (y * y).sum().backward();
  EXPECT_TRUE(equal(*y.grad(), tensor({12.0, 24.0})));  // they add up, as those of leaves
  y.zero_grad();
  EXPECT_FALSE(y.grad());
  x.retain_grad();  // a leaf has its gradient anyway
  EXPECT_FALSE(x.retains_grad());
  EXPECT_EQ(kind_of([] { return ones({1}).retain_grad(), 0; }), Error::Kind::autograd);
}

TEST(AutogradHandles, AKeptGradientIsOfTheChangedTensor) {
  Tensor x = tensor({1.0, 2.0}).requires_grad_();
  Tensor y = x * 3;
  y.retain_grad();
  y.mul_(2);
  const Tensor other = y.detach() * 0 + 1;
  (y * other).sum().backward();
  EXPECT_TRUE(equal(*y.grad(), tensor({1.0, 1.0})));
  EXPECT_TRUE(equal(*x.grad(), tensor({6.0, 6.0})));
  Tensor z = x * 2;
  z.retain_grad();
  EXPECT_TRUE(equal(grad(z.sum(), x), tensor({2.0, 2.0})));
  EXPECT_FALSE(z.grad());  // grad() accumulates nothing
}

TEST(AutogradHandles, HooksComeBeforeWhatIsKept) {
  for (const bool first : {false, true}) {
    const Tensor x = tensor({1.0, 2.0}).requires_grad_();
    const Tensor y = x * 3;
    if (!first) y.retain_grad();
    y.register_hook([](const Tensor& g) { return g * 10; });
    if (first) y.retain_grad();
    y.sum().backward();
    EXPECT_TRUE(equal(*y.grad(), tensor({10.0, 10.0})));
    EXPECT_TRUE(equal(*x.grad(), tensor({30.0, 30.0})));
  }
}

TEST(AutogradHandles, ListsInBracesGiveLists) {
  Tensor x = tensor({{1.0, 2.0}, {3.0, 4.0}}).requires_grad_();
  EXPECT_TRUE(equal(grad({(x * x).sum()}, {x})[0], 2 * x.detach()));
  EXPECT_TRUE(equal(grad((x * x).sum(), {x})[0], 2 * x.detach()));
  EXPECT_TRUE(equal(grad({(x * x).sum(), x.sum()}, {x})[0], 2 * x.detach() + 1));
  nn::Linear layer(2, 2);
  EXPECT_EQ(grad({layer(x).sum()}, {layer.weight})[0].shape(), (Shape{2, 2}));
  const auto pieces = split(x, {2});  // one piece of two rows, not pieces of two
  EXPECT_EQ(pieces.size(), 1u);
  EXPECT_FALSE(attempt([&] { return split(x, {1}); }));
  EXPECT_EQ(split(x, 1).size(), 2u);
}

TEST(ApiTemporaries, InPlaceMethodsOfTemporariesGiveValues) {
  Tensor x = tensor({-1.0, 2.0});
  static_assert(std::is_same_v<decltype((x * 2).relu_()), Tensor>);
  static_assert(std::is_same_v<decltype(x.relu_()), Tensor&>);
  static_assert(std::is_same_v<decltype(zeros({2}).requires_grad_()), Tensor>);
  static_assert(std::is_same_v<decltype(zeros({2}).copy_(x)), Tensor>);
  static_assert(std::is_same_v<decltype(zeros({2}) += 1), Tensor>);
  static_assert(std::is_same_v<decltype((x * 2).shape()), Shape>);
  auto&& y = (x * 2).relu_();
  const Tensor& z = zeros({2}).fill_(3).add_(1);
  const Shape& shape = (x * 2).unsqueeze(0).shape();
  EXPECT_TRUE(equal(y, tensor({0.0, 4.0})));
  EXPECT_TRUE(equal(z, full({2}, 4.0)));
  EXPECT_EQ(shape, (Shape{1, 2}));
  x[0].fill_(5);
  x[{slice(1, 2)}].add_(1);
  EXPECT_TRUE(equal(x, tensor({5.0, 3.0})));
}

TEST(ApiOperators, ShiftsAndBits) {
  const Tensor x = tensor({1, 2, -8});
  EXPECT_TRUE(equal(x << 2, tensor({4, 8, -32})));
  EXPECT_TRUE(equal(x >> 1, tensor({0, 1, -4})));
  EXPECT_TRUE(equal(1 << tensor({0, 3}), tensor({1, 8})));
  EXPECT_TRUE(equal((x & 3) | (x ^ 1), tensor({1, 3, -7})));
  EXPECT_TRUE(equal(~x, tensor({-2, -3, 7})));
  Tensor y = tensor({6, 7});
  y <<= 1;
  y >>= 2;
  y |= 8;
  y &= 9;
  y ^= 1;
  y %= 5;
  EXPECT_TRUE(equal(y, tensor({3, 3})));
  std::ostringstream out;
  out << tensor({1, 2}) << tensor({3})[0];
  EXPECT_NE(out.str().find("[1, 2]"), std::string::npos);
}

TEST(ApiOperators, ANamedRowWritesIntoItsTensor) {
  Tensor x = zeros({2, 3});
  auto row = x[0];
  row += 4;
  row -= 1;
  row *= 4;
  row /= 2;
  EXPECT_TRUE(equal(x, tensor({{6.0, 6.0, 6.0}, {0.0, 0.0, 0.0}})));
  auto picked = x[tensor({0})];  // a copy
  picked += 1;
  EXPECT_EQ(x.sum().item<float>(), 18.f);
  EXPECT_EQ(picked.sum().item<float>(), 21.f);
  x[tensor({0})] += 1;
  EXPECT_EQ(x.sum().item<float>(), 21.f);
}

TEST(ApiSizes, AnyIntegerType) {
  const std::vector<float> v(6);
  EXPECT_EQ(zeros({v.size(), 2}).reshape({v.size() / 2, -1}).shape(), (Shape{3, 4}));
  EXPECT_FALSE(attempt([] { return zeros({~size_t(0)}); }));
  EXPECT_FALSE(attempt([] { return zeros({2})[~size_t(0)]; }));
  EXPECT_TRUE(equal(tensor(std::vector<bool>{true, false, true}), tensor({true, false, true})));
  EXPECT_EQ(tensor(std::vector<bool>(6), {2, 3}).dtype(), boolean);
  EXPECT_EQ(tensor(std::vector<bool>(6), {2, 3}, {.dtype = f32}).dtype(), f32);
  EXPECT_EQ(kind_of([] { return tensor(std::vector<bool>(5), {2, 3}); }), Error::Kind::shape);
}

TEST(ApiTypes, WhatDtypesHold) {
  EXPECT_EQ(finfo(f32).eps, std::numeric_limits<float>::epsilon());
  EXPECT_EQ(finfo(f32).max, double(std::numeric_limits<float>::max()));
  EXPECT_EQ(finfo(f64).tiny, std::numeric_limits<double>::min());
  EXPECT_EQ(finfo(f64).smallest_subnormal, std::numeric_limits<double>::denorm_min());
  EXPECT_EQ(finfo(f16).max, 65504);
  EXPECT_EQ(finfo(f16).eps, 0x1p-10);
  EXPECT_EQ(finfo(f16).smallest_subnormal, 0x1p-24);
  EXPECT_EQ(finfo(bf16).eps, 0x1p-7);
  EXPECT_EQ(finfo(bf16).min, -0x1.FEp127);
  EXPECT_EQ(finfo(bf16).bits, 16);
  EXPECT_EQ(iinfo(i8).min, -128);
  EXPECT_EQ(iinfo(u64).max, std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(iinfo(i64).max, uint64_t(most));
  EXPECT_EQ(iinfo(u16).bits, 16);
  EXPECT_EQ(kind_of([] { return finfo(i32); }), Error::Kind::dtype);
  EXPECT_EQ(kind_of([] { return iinfo(boolean); }), Error::Kind::dtype);
  EXPECT_EQ(kind_of([] { return iinfo(DType(200)); }), Error::Kind::dtype);
}

TEST(ApiTypes, HowDtypesMeet) {
  EXPECT_EQ(result_type(i8, u8), i16);
  EXPECT_EQ(result_type(zeros({1}, {.dtype = i32}), 0.5), f32);
  EXPECT_EQ(result_type(zeros({1}, {.dtype = bf16}), 2), bf16);
  EXPECT_EQ(result_type(zeros({1}, {.dtype = i8}), zeros({1}, {.dtype = f16})), f16);
  EXPECT_EQ(promote_types(f16, bf16), f32);
  EXPECT_TRUE(can_cast(f64, f16) && can_cast(i32, f32) && can_cast(i64, u8) && can_cast(boolean, i8));
  EXPECT_FALSE(can_cast(f32, i32) || can_cast(i32, boolean));
  EXPECT_TRUE(isdtype(u8, "integral") && isdtype(u8, "unsigned integer") && isdtype(f16, "real floating"));
  EXPECT_TRUE(isdtype(f32, "numeric") && !isdtype(boolean, "numeric") && isdtype(boolean, "bool"));
  EXPECT_TRUE(isdtype(i32, i32) && !isdtype(i32, i64));
  EXPECT_EQ(kind_of([] { return isdtype(i32, "whole"); }), Error::Kind::argument);
}

TEST(ApiTypes, NewTensorsLikeAnother) {
  const Tensor x = zeros({2, 3}, {.dtype = f64}), y = arange(6);
  EXPECT_EQ(y.new_zeros({2}).dtype(), i64);
  EXPECT_TRUE(equal(x.new_ones({2}), ones({2}, {.dtype = f64})));
  EXPECT_TRUE(equal(x.new_full({2}, 7), full({2}, 7, {.dtype = f64})));
  EXPECT_EQ(x.new_empty({4}, {.dtype = u8}).dtype(), u8);
  EXPECT_EQ(y.view_as(x).shape(), x.shape());
  EXPECT_TRUE(y.view_as(x).shares_storage(y));
  EXPECT_EQ(kind_of([&] { return x.mT().view_as(y); }), Error::Kind::shape);
  EXPECT_EQ(y.type_as(x).dtype(), f64);
  EXPECT_TRUE(equal(y.clip(1, 3), clamp(y, 1, 3)) && equal(clip(y, 1, 3), clamp(y, 1, 3)));
  Tensor z = arange(6);
  z.clip_(2, 4);
  EXPECT_TRUE(equal(z, clamp(y, 2, 4)));
}

TEST(ApiTypes, NamesAndRanksThatAreNone) {
  const char* const nothing = nullptr;
  EXPECT_EQ(kind_of([&] { return Device(nothing); }), kind_of([] { return Device(""); }));
  static_assert(!std::is_constructible_v<Device, std::nullptr_t>);
  EXPECT_EQ(kind_of([] { return Shape::filled(-1, 2); }), Error::Kind::argument);
  EXPECT_EQ(Shape::filled(0, 2).size(), 0);
}

TEST(ApiTypes, DtypesAndDevicesThatAreNone) {
  EXPECT_EQ(kind_of([] { return zeros({2}, {.dtype = DType(200)}); }), Error::Kind::dtype);
  EXPECT_EQ(kind_of([] { return ones({2}).to(DType(200)); }), Error::Kind::dtype);
  EXPECT_EQ(kind_of([] { return tensor({1, 2}, {.dtype = DType(13)}); }), Error::Kind::dtype);
  EXPECT_EQ(kind_of([] { return set_default_dtype(DType(99)), 0; }), Error::Kind::dtype);
  EXPECT_EQ(kind_of([] { return ones_like(ones({2}), {.dtype = DType(77)}); }), Error::Kind::dtype);
  float data[2] = {};
  EXPECT_EQ(kind_of([&] { return from_blob(data, {2}, {.dtype = DType(77)}); }), Error::Kind::dtype);
  EXPECT_EQ(name(DType(200)), "no dtype");
  for (int index : {300, -1, 256})
    EXPECT_EQ(kind_of([&] { return Device(DeviceType::cuda, index); }), Error::Kind::device) << index;
  EXPECT_EQ(kind_of([] { return Device(DeviceType::cpu, 1); }), Error::Kind::device);
  EXPECT_EQ(kind_of([] { return Device(DeviceType(9)); }), Error::Kind::device);
  const auto says = [](const char* text) { return std::string(attempt([&] { return Device(text); }).error().what()); };
  EXPECT_NE(says("cuda:").find("no device number"), std::string::npos);
  EXPECT_NE(says("cuda:-1").find("not a number from 0 on"), std::string::npos);
  EXPECT_NE(says("cuda:999999999999").find("too large"), std::string::npos);
}

TEST(ApiTypes, ItemsThatDoNotFit) {
  EXPECT_EQ(kind_of([] { return tensor(300).item<uint8_t>(); }), Error::Kind::argument);
  EXPECT_EQ(kind_of([] { return tensor(-1).item<uint64_t>(); }), Error::Kind::argument);
  EXPECT_EQ(kind_of([] { return tensor(1e10).item<int>(); }), Error::Kind::argument);
  EXPECT_EQ(kind_of([] { return tensor(0.0 / 0.0).item<int>(); }), Error::Kind::argument);
  EXPECT_EQ(kind_of([] { return full({}, ~uint64_t(0), {.dtype = u64}).item<int64_t>(); }), Error::Kind::argument);
  EXPECT_EQ(tensor(255).item<uint8_t>(), 255);
  EXPECT_EQ(tensor(-128).item<int8_t>(), -128);
  EXPECT_EQ(tensor(-0.5).item<uint8_t>(), 0);
  EXPECT_EQ(tensor<double>(-128.9).item<int8_t>(), -128);
  EXPECT_EQ(tensor(3.9).item<int>(), 3);
  EXPECT_EQ(tensor<double>(-0x1p63).item<int64_t>(), least);
  EXPECT_EQ(tensor(65).item<char>(), 'A');
  EXPECT_TRUE(tensor(300).item<bool>());
  EXPECT_EQ(full({}, ~uint64_t(0), {.dtype = u64}).item<uint64_t>(), ~uint64_t(0));
}

// Functions that hold none and pointers to none, where a function is asked for.
TEST(ApiFunctions, EmptyOnesAreErrors) {
  using Function = std::function<Tensor(const Tensor&)>;
  using Pointer = Tensor (*)(const Tensor&);
  const Tensor x = tensor({1.0, 2.0}).requires_grad_();
  const auto refused = [](auto f) { EXPECT_EQ(kind_of(f), Error::Kind::argument); };
  refused([] { return capture(std::function<int()>()); });
  refused([] { return capture(static_cast<void (*)()>(nullptr)); });
  refused([] { return nn::Lambda("Mine", nullptr), 0; });
  refused([] { return nn::AnyModule(Function()), 0; });
  refused([] { return nn::AnyModule(Pointer()), 0; });
  refused([] { return nn::Sequential(nn::ReLU(), Pointer()), 0; });
  refused([] { return nn::Sequential::builder().add("f", Function()).build(), 0; });
  refused([&] { return gradcheck(Function(), x); });
  refused([&] { return gradgradcheck(Pointer(), x); });
  refused([&] { return gradcheck_all({}, {x}); });
  refused([&] { return checkpoint(Function(), x); });
  refused([&] { return checkpoint(Pointer(), x); });
  refused([&] { return jacobian({}, x); });
  refused([&] { return with_backward("f", x, {x}, std::function<std::vector<Tensor>(const Tensor&)>()); });
  refused([&] { return x.register_hook({}); });
  nn::AnyModule held = Function(relu);
  held.get<Function>() = nullptr;
  refused([&] { return held(x); });
  struct Pair {
    nn::Linear fc{2, 2};
    Tensor operator()(const Tensor& a, const Tensor& b) const { return fc(a) + b; }
  };
  refused([&] { return nn::ModelView(Pair())(x); });
}

TEST(ApiFunctions, SchedulersThatAreNone) {
  const Tensor w = ones({2}).requires_grad_();
  optim::SGD opt({w}, {.lr = 0.1});
  const auto refused = [](auto f) { EXPECT_EQ(kind_of(f), Error::Kind::argument); };
  refused([] { return optim::AnyScheduler(std::shared_ptr<optim::Scheduler>()), 0; });
  optim::AnyScheduler any = optim::ConstantLR(opt);
  const optim::AnyScheduler moved = taken(any);
  EXPECT_EQ(moved.last_epoch(), 0);
  optim::SchedulerState state;
  refused([&] { return any.step(), 0; });
  refused([&] { return any.last_epoch(); });
  refused([&] { return any.get_last_lr(); });
  refused([&] { return any.state_dict(); });
  refused([&] { return any.load_state_dict({}), 0; });
  refused([&] { return any.rate(1, 1, 0); });
  refused([&] { return any.onward(1, 1, 1, 0); });
  refused([&] { return any.momentum(1, 0); });
  refused([&] { return any.advance(1), 0; });
  refused([&] { return any.save(state, "a."), 0; });
  refused([&] { return any.load(state, "a."), 0; });
  refused([&] { return optim::SequentialLR(opt, {moved, any}, {0}), 0; });
  refused([&] { return optim::ChainedScheduler(opt, {moved, any}), 0; });
  optim::SequentialLR one(opt, {moved, optim::ExponentialLR(opt, {.gamma = 0.9})}, {3});
  const optim::SequentialLR other = taken(one);
  refused([&] { return one.step(), 0; });
  refused([&] { return one.rate(1, 1, 0); });
  optim::ChainedScheduler chain(opt, {moved, optim::ExponentialLR(opt, {.gamma = 0.9})});
  const optim::ChainedScheduler whole = taken(chain);
  refused([&] { return chain.step(), 0; });
  optim::LambdaLR factor(opt, [](int64_t) { return 0.5; });
  const optim::LambdaLR kept = taken(factor);
  refused([&] { return factor.step(), 0; });
  EXPECT_EQ(kept.rate(1, 1, 0), 0.5);
  optim::WarmupLR warm(opt, {.steps = 1}, optim::ExponentialLR(opt, {.gamma = 0.9}));
  const optim::WarmupLR rest = taken(warm);
  refused([&] { return warm.rate(1, 2, 0); });
}

TEST(ApiFunctions, MovedFromLayersAreErrors) {
  const Tensor x = ones({3, 1, 4});
  const auto refuses = [&](auto layer, auto call) {
    call(layer);
    const auto now = taken(layer);
    call(now);
    EXPECT_EQ(kind_of([&] { return call(layer), 0; }), Error::Kind::argument) << now.type();
  };
  const auto on_x = [&](const auto& layer) { (void)layer(x); };
  for (const bool both : {false, true}) {
    refuses(nn::LSTM(4, 2, {.bidirectional = both}), on_x);
    refuses(nn::GRU(4, 2, {.bidirectional = both}), on_x);
    refuses(nn::RNN(4, 2, {.bidirectional = both}), on_x);
    refuses(nn::LSTM(4, 2, {.bidirectional = both}), [&](const nn::LSTM& l) { (void)l(pack_padded_sequence(x, {3})); });
  }
  refuses(nn::TransformerEncoder(nn::TransformerEncoderLayer(4, 2), 2), on_x);
  refuses(nn::TransformerDecoder(nn::TransformerDecoderLayer(4, 2), 2), [&](const auto& layer) { (void)layer(x, x); });
  refuses(nn::Transformer(4, 2, 1, 1), [&](const nn::Transformer& t) { (void)t(x, x); });
}

TEST(ApiFunctions, MovedFromOnesAreErrors) {
  const Tensor x = ones({1, 2, 2});
  nn::Lambda twice("Twice", [](const Tensor& t) { return t * 2; });
  nn::Flatten flat;
  nn::Identity same;
  nn::AnyModule any = nn::ReLU();
  const nn::Lambda twice_now = taken(twice);
  const nn::Flatten flat_now = taken(flat);
  const nn::Identity same_now = taken(same);
  const nn::AnyModule any_now = taken(any);
  EXPECT_EQ(twice_now(x).sum().item<float>() + flat_now(x).sum().item<float>(), 12.f);
  EXPECT_EQ(same_now(x).sum().item<float>() + any_now(x).sum().item<float>(), 8.f);
  for (const nn::Lambda* layer : std::initializer_list<const nn::Lambda*>{&twice, &flat, &same})
    EXPECT_EQ(kind_of([&] { return (*layer)(x); }), Error::Kind::argument) << layer->type();
  EXPECT_EQ(kind_of([&] { return any(x); }), Error::Kind::argument);
  nn::Sequential net{nn::ReLU(), nn::Flatten()};
  const nn::Sequential net_now = taken(net);
  EXPECT_EQ(net_now(x).shape(), (Shape{1, 4}));
  EXPECT_EQ(kind_of([&] { return net(x); }), Error::Kind::argument);
  EXPECT_EQ(kind_of([&] { return nn::Sequential(net)(x); }), Error::Kind::argument);
  net = net_now;
  EXPECT_EQ(net(x).shape(), (Shape{1, 4}));
  nn::Sequential other;
  std::swap(net, other);
  EXPECT_EQ(other(x).shape(), (Shape{1, 4}));
  EXPECT_TRUE(equal(net(x), x));
  net = nn::Sequential();
  EXPECT_TRUE(equal(net(x), x));
  auto builder = nn::Sequential::builder().add(nn::ReLU());
  const nn::Sequential first = builder.build(), second = builder.build();
  EXPECT_TRUE(equal(first(x), x));
  EXPECT_EQ(kind_of([&] { return second(x); }), Error::Kind::argument);
  auto step = capture([] { return 1; });
  auto later = taken(step);
  EXPECT_EQ(later(), 1);
  EXPECT_EQ(kind_of([&] { return step(); }), Error::Kind::argument);
  auto stored = capture(std::function<void()>([] {}));
  auto stored_now = taken(stored);
  stored_now();
  EXPECT_EQ(kind_of([&] { return stored(), 0; }), Error::Kind::argument);
  const Error cause(Error::Kind::io, "read", "gone");
  Error error = cause;
  const Error kept = taken(error);
  EXPECT_STREQ(error.what(), kept.what());
  EXPECT_EQ(error.kind(), Error::Kind::io);
}

}  // namespace
}  // namespace volta::test
