// Autocast over every op: each sample of the generated suites under the guard, against the table and against casts by hand.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "math/elementwise_names.h"
#include "ops/autocast_table.h"
#include "samples.h"

namespace volta::test {
namespace {

struct Case {
  const Sample* sample;
  Device device;
};

std::vector<Case> cases() {
  std::vector<Case> list;
  for (const Device& d : all_devices())
    for (const Sample& s : samples()) list.push_back({&s, d});
  return list;
}

std::string case_name(const testing::TestParamInfo<Case>& info) {
  std::string text = info.param.sample->label + (info.param.device.is_cpu() ? "" : "_" + info.param.device.str());
  for (char& c : text)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return text + "_" + std::to_string(info.index);
}

// The inputs that f sees, in the dtype; f itself may make others from them.
Tensors in(DType dtype, Tensors xs) {
  for (Tensor& x : xs)
    if (x.defined() && is_floating(x.dtype())) x = x.to(dtype);
  return xs;
}

void expect_same(const Tensors& a, const Tensors& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].dtype(), b[i].dtype());
    ASSERT_EQ(a[i].shape(), b[i].shape());
    // On a GPU, gradients that are scattered meet in any order.
    const double near = !a[i].device().is_cuda() ? 0 : is_half(a[i].dtype()) ? 1e-2 : 1e-6;
    EXPECT_TRUE(allclose(a[i].detach().to(f64).to("cpu"), b[i].detach().to(f64).to("cpu"),
                         {.rtol = near, .atol = near, .equal_nan = true}))
        << a[i].str() << "\n"
        << b[i].str();
  }
}

Tensors gradients(const Tensors& ys, const Tensors& xs) {
  Tensors roots, cotangents, leaves;
  for (const Tensor& y : ys) {
    if (!y.requires_grad()) continue;
    roots.push_back(y);
    cotangents.push_back(linspace(0.5, 1.5, y.numel(), {f32, y.device()}).reshape(y.shape()).to(y.dtype()));
  }
  for (const Tensor& x : xs)
    if (x.defined() && x.requires_grad()) leaves.push_back(x);
  return roots.empty() || leaves.empty() ? Tensors() : grad(roots, leaves, {cotangents, {}, false, true});
}

class AutocastOps : public testing::TestWithParam<Case> {};

// f32 inputs: what the table says, to the bit. Gradients arrive in f32.
TEST_P(AutocastOps, SinglesBehaveAsTheTableSays) {
  const Sample& s = *GetParam().sample;
  const Cast how = cast_of(s.op);
  for (const DType half : {bf16, f16}) {
    const Tensors x = draw(s, f32, GetParam().device, s.differentiable);
    Tensors ys, by_hand;
    {
      const Autocast guard(half);
      ys = s.f(x);
    }
    by_hand = s.f(how == Cast::low ? in(half, x) : x);
    expect_same(ys, by_hand);
    const Tensors g = gradients(ys, x), want = gradients(by_hand, x);
    for (const Tensor& d : g)
      if (d.defined()) {
        EXPECT_EQ(d.dtype(), f32);
      }
    ASSERT_EQ(g.size(), want.size());
    for (size_t i = 0; i < g.size(); ++i) {
      ASSERT_EQ(g[i].defined(), want[i].defined());
      if (g[i].defined()) expect_same({g[i]}, {want[i]});
    }
  }
}

// Halves: sensitive ops widen them, the others keep them.
TEST_P(AutocastOps, HalvesBehaveAsTheTableSays) {
  const Sample& s = *GetParam().sample;
  if (!s.half) return;
  const Tensors x = draw(s, bf16, GetParam().device);
  const Tensors by_hand = s.f(cast_of(s.op) == Cast::wide ? in(f32, x) : x);
  const Autocast guard(bf16);
  expect_same(s.f(x), by_hand);
}

TEST_P(AutocastOps, DoublesAreLeftAlone) {
  const Sample& s = *GetParam().sample;
  const Tensors x = draw(s, f64, GetParam().device), want = s.f(x);
  const Autocast guard(f16);
  expect_same(s.f(x), want);
}

// What a layer meets: the output of a product next to f32, in either order.
TEST_P(AutocastOps, HalvesMeetSingles) {
  const Sample& s = *GetParam().sample;
  const auto values = [](const Input& i) { return i.draw == Draw::values; };
  if (s.label == "in-place forms") return;  // what is written into keeps its dtype
  if (!s.half || std::count_if(s.inputs.begin(), s.inputs.end(), values) < 2) return;
  for (const bool first : {true, false}) {
    Tensors x = draw(s, f32, GetParam().device);
    bool at_first = true;
    for (Tensor& t : x) {
      if (!is_floating(t.dtype())) continue;
      if (at_first == first) t = t.to(bf16);
      at_first = false;
    }
    const auto y = attempt([&] {
      const Autocast guard(bf16);
      return s.f(x);
    });
    EXPECT_TRUE(y) << y.error().what();
  }
}

INSTANTIATE_TEST_SUITE_P(All, AutocastOps, testing::ValuesIn(cases()), case_name);

TEST(AutocastTable, NamesOpsAndEachOnce) {
  std::set<std::string, std::less<>> ops;
  for_each_function([&](const Function&, const std::string& name, const std::string&) { ops.insert(name); });
  for_each_point_name([&](const PointName& op) { ops.insert(op.name); });
  for_each(reducers::Named{}, [&]<class R>(int) { ops.insert(R::name); });
  std::set<std::string_view> seen;
  const auto check = [&](const auto& list, Cast how) {
    for (const std::string_view name : list) {
      EXPECT_TRUE(ops.contains(name)) << name;
      EXPECT_TRUE(seen.insert(name).second) << name;
      EXPECT_EQ(cast_of(name), how) << name;
    }
  };
  check(low_ops, Cast::low);
  check(wide_ops, Cast::wide);
  check(widest_ops, Cast::widest);
  EXPECT_EQ(cast_of("add"), Cast::as_given);
  for_each_function([&](const Function& f, const std::string& name, const std::string&) {
    if (std::string_view(f.group) == "loss") {
      EXPECT_EQ(cast_of(name), Cast::wide) << name;
    }
  });
}

}  // namespace
}  // namespace volta::test
