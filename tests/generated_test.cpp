// Suites generated over every op: gradients of both orders, awkward layouts, halves, recording, completeness.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "math/elementwise_names.h"
#include "samples.h"

namespace volta::test {
namespace {

struct Case {
  const Sample* sample;
  Device device;
};

std::vector<Case> cases(bool only_differentiable) {
  std::vector<Case> list;
  for (const Device& d : all_devices())
    for (const Sample& s : samples())
      if (s.differentiable || !only_differentiable) list.push_back({&s, d});
  return list;
}

std::string case_name(const testing::TestParamInfo<Case>& info) {
  std::string text = info.param.sample->label + (info.param.device.is_cpu() ? "" : "_" + info.param.device.str());
  for (char& c : text)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return text + "_" + std::to_string(info.index);
}

std::vector<Tensor> detached(std::vector<Tensor> xs) {
  for (Tensor& x : xs) x = x.detach();
  return xs;
}

void expect_close(const std::vector<Tensor>& a, const std::vector<Tensor>& b, double rtol, double atol) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(a[i].shape(), b[i].shape());
    EXPECT_TRUE(
        allclose(a[i].to(f64).to("cpu"), b[i].to(f64).to("cpu"), {.rtol = rtol, .atol = atol, .equal_nan = true}))
        << a[i].str() << "\n"
        << b[i].str();
  }
}

class GradcheckOps : public testing::TestWithParam<Case> {};

TEST_P(GradcheckOps, FirstOrder) {
  const Sample& s = *GetParam().sample;
  EXPECT_TRUE(gradcheck_all(s.f, draw(s, f64, GetParam().device, true), {.raise = true}));
}
TEST_P(GradcheckOps, SecondOrder) {
  const Sample& s = *GetParam().sample;
  EXPECT_TRUE(gradgradcheck_all(s.f, draw(s, f64, GetParam().device, true), {.atol = 1e-4, .raise = true}));
}
INSTANTIATE_TEST_SUITE_P(All, GradcheckOps, testing::ValuesIn(cases(true)), case_name);

class ValuesOps : public testing::TestWithParam<Case> {};

// The same values in another arrangement of memory.
std::vector<Tensor> rearranged(const std::vector<Tensor>& xs, int how) {
  std::vector<Tensor> out;
  for (const Tensor& x : xs) {
    const int64_t rank = x.dim();
    if (rank == 0) {
      out.push_back(x);
    } else if (how == 0 && rank > 1) {  // transposed in memory
      out.push_back(x.transpose(0, -1).contiguous().transpose(0, -1));
    } else if (how == 1) {  // every second element of something larger
      Shape doubled = x.shape();
      doubled[int(rank - 1)] *= 2;
      Tensor wide = full(doubled, x.dtype() == boolean ? 1 : 99, {x.dtype(), x.device()});
      Tensor part = wide.slice(-1, 1, {}, 2);
      part.copy_(x);
      out.push_back(part);
    } else if (how == 2) {  // stored backwards
      out.push_back(x.flip({0}).contiguous().flip({0}));
    } else {  // with an offset, in the middle of a larger block
      Shape taller = x.shape();
      taller[0] += 2;
      Tensor tall = full(taller, x.dtype() == boolean ? 1 : 77, {x.dtype(), x.device()});
      Tensor part = tall.narrow(0, 1, x.size(0));
      part.copy_(x);
      out.push_back(part);
    }
  }
  return out;
}

TEST_P(ValuesOps, LayoutsAgree) {
  const Sample& s = *GetParam().sample;
  const auto x = draw(s, f64, GetParam().device);
  const auto want = s.f(x);
  for (int how = 0; how < 4; ++how) expect_close(s.f(rearranged(x, how)), want, 1e-12, 1e-13);
}

TEST_P(ValuesOps, LayoutsAgreeBackward) {
  const Sample& s = *GetParam().sample;
  if (!s.differentiable) return;
  const auto gradients = [&](std::vector<Tensor> x) {
    std::vector<Tensor> leaves;
    for (Tensor& t : x)
      if (is_floating(t.dtype())) leaves.push_back(t = t.detach().requires_grad_());
    std::vector<Tensor> roots, cotangents;
    for (const Tensor& y : s.f(x))
      if (y.requires_grad()) {
        roots.push_back(y);
        // A cotangent that is itself not contiguous.
        Tensor c = linspace(0.5, 1.5, y.numel(), {f64, y.device()}).reshape(y.shape());
        if (c.dim() > 1) c = c.transpose(0, -1).contiguous().transpose(0, -1);
        cotangents.push_back(c);
      }
    return grad(roots, leaves, {.grad_outputs = cotangents});  // reaches every one, or throws
  };
  const auto x = draw(s, f64, GetParam().device);
  const auto want = gradients(x);
  for (int how = 0; how < 4; ++how) expect_close(gradients(rearranged(x, how)), want, 1e-11, 1e-12);
}

TEST_P(ValuesOps, SingleAndHalfPrecisionFollowDouble) {
  const Sample& s = *GetParam().sample;
  const auto widened = [](Tensors xs) {
    for (Tensor& x : xs)
      if (is_floating(x.dtype())) x = x.to(f64);
    return xs;
  };
  const auto x32 = draw(s, f32, GetParam().device);
  expect_close(s.f(x32), s.f(widened(x32)), 2e-5, 2e-5);
  if (!s.half) return;
  for (DType half : {f16, bf16}) {
    const auto xh = draw(s, half, GetParam().device);
    const double tolerance = half == f16 ? 4e-3 : 3e-2;
    const auto y = s.f(xh);
    expect_close(y, s.f(widened(xh)), tolerance, tolerance);
    if (s.differentiable) {
      EXPECT_EQ(y[0].dtype(), half);
    }
  }
}

TEST_P(ValuesOps, RecordingChangesNothing) {
  const Sample& s = *GetParam().sample;
  if (!s.differentiable) return;
  const auto with = s.f(draw(s, f32, GetParam().device, true));
  const NoGrad off;
  expect_close(detached(with), s.f(draw(s, f32, GetParam().device)), 0, 0);
}

TEST_P(ValuesOps, ThreadsChangeNothing) {
  const Sample& s = *GetParam().sample;
  const auto x = draw(s, f32, GetParam().device);
  set_num_threads(1);
  const auto want = s.f(x);
  for (int n : {2, 3}) {
    set_num_threads(n);
    expect_close(s.f(x), want, 0, 0);
  }
  set_num_threads(2);
}

// An op reached with an input that requires grad has a backward where the list says so; else it gives integers or
// booleans, or refuses by name.
TEST_P(ValuesOps, GradientsAsDeclared) {
  const Sample& s = *GetParam().sample;
  for (DType dtype : {f32, bf16, f64}) {
    Tensors x = draw(s, dtype, GetParam().device, true), ys;
    if (!s.differentiable)
      for (Tensor& t : x) t = t.detach().to(dtype).requires_grad_();
    try {
      ys = s.f(x);
    } catch (const Error& e) {
      EXPECT_FALSE(s.differentiable) << e.what();
      EXPECT_TRUE(e.kind() == Error::Kind::autograd || e.kind() == Error::Kind::dtype) << e.what();
      EXPECT_EQ(e.op(), s.op) << e.what();
      continue;
    }
    for (const Tensor& y : ys) EXPECT_EQ(y.requires_grad(), s.differentiable && is_floating(y.dtype())) << s.label;
    if (!s.differentiable) {
      EXPECT_FALSE(is_floating(ys[0].dtype())) << s.label;
    }
  }
}

bool takes(Takes what, DType dtype) {
  switch (what) {
    case Takes::floating: return is_floating(dtype);
    case Takes::numeric: return dtype != boolean;
    case Takes::integral: return !is_floating(dtype);
    case Takes::integers: return is_integral(dtype);
    default: return true;
  }
}

// The values of a sample in another dtype; its integers, if it has nothing else.
Tensors in_dtype(const Sample& s, DType dtype, Device device) {
  Tensors x = draw(s, f32, device);
  const bool values = std::any_of(s.inputs.begin(), s.inputs.end(), [](auto& i) { return i.draw == Draw::values; });
  for (size_t i = 0; i < x.size(); ++i)
    if (!values || s.inputs[i].draw == Draw::values)
      x[i] = (values && !is_floating(dtype) ? x[i].abs() + 1 : x[i]).to(dtype);
  return x;
}

TEST_P(ValuesOps, DtypesAsDeclared) {
  const Sample& s = *GetParam().sample;
  if (s.takes == Takes::by_group) return;
  for (int i = 0; i < dtype_count; ++i) {
    const auto dtype = DType(i);
    const auto y = attempt([&] { return s.f(in_dtype(s, dtype, GetParam().device)); });
    EXPECT_EQ(bool(y), takes(s.takes, dtype)) << name(dtype) << ": " << (y ? "accepted" : y.error().what());
    if (!y) {
      EXPECT_EQ(y.error().op(), s.op) << y.error().what();
      EXPECT_EQ(y.error().kind(), Error::Kind::dtype) << y.error().what();
    } else if (s.takes == Takes::promoted && s.differentiable) {
      EXPECT_EQ((*y)[0].dtype(), is_floating(dtype) ? dtype : default_dtype()) << name(dtype);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, ValuesOps, testing::ValuesIn(cases(false)), case_name);

TEST(ValuesComplete, EveryDeclaredOpHasASample) {
  std::set<std::string> sampled;
  for (const Sample& s : samples()) sampled.insert(s.op);
  for_each_function([&](const Function&, const std::string& name, const std::string&) {
    EXPECT_TRUE(sampled.contains(name)) << name;
  });
  for_each_point_name([&](const PointName& op) { EXPECT_TRUE(sampled.contains(op.name)) << op.name; });
}

}  // namespace
}  // namespace volta::test
