// Pooling, resampling and normalisation against what PyTorch answers (tests/oracle/windows.py), in both forms.
#include <gtest/gtest.h>

#include <cstring>

#include "ops/fused.h"
#include "oracle/reader.h"

namespace volta::oracle {
namespace {

using Tensors = std::vector<Tensor>;

Tensors both(const ValuesIndices& r) { return {r.values, r.indices}; }
PerAxis per_axis(const Args& a, const char* key) { return a.shape(key); }
int axes_of(const Args& a) { return int(a.whole("axes", 0)); }
std::vector<double> numbers(const Args& a, const char* key) {
  std::vector<double> values;
  std::istringstream in(a.has(key) ? a.text(key) : "");
  for (std::string word; std::getline(in, word, ',');) values.push_back(std::stod(word));
  return values;
}
ColumnOptions columns(const Args& a) {
  return {per_axis(a, "dilation"), per_axis(a, "padding"), per_axis(a, "stride")};
}

// batch_norm or instance_norm, and the running statistics it leaves.
template <class F> Tensors running(const F& f, const Tensors& x, const Args& a) {
  const Tensor mean = x[3].clone(), var = x[4].clone();
  const Tensor y = f(x[0], mean, var, x[1], x[2], a.flag("own"), 0.3, 1e-5);
  return {y, mean, var};
}

using Call = Tensors (*)(const Tensors&, const Args&);
const std::map<std::string, Call> calls = {
    {"max_pool",
     [](const Tensors& x, const Args& a) {
       return both(pooling::max(
           axes_of(a), x[0], per_axis(a, "kernel"),
           {per_axis(a, "stride"), per_axis(a, "padding"), per_axis(a, "dilation"), a.flag("ceil")}, true));
     }},
    {"avg_pool",
     [](const Tensors& x, const Args& a) {
       return Tensors{pooling::average(
           axes_of(a), x[0], per_axis(a, "kernel"),
           {per_axis(a, "stride"), per_axis(a, "padding"), a.flag("ceil"), a.flag("include"), a.maybe("divisor")})};
     }},
    {"lp_pool",
     [](const Tensors& x, const Args& a) {
       return Tensors{pooling::lp(axes_of(a), x[0], a.number("norm", 2), per_axis(a, "kernel"),
                                  {per_axis(a, "stride"), a.flag("ceil")})};
     }},
    {"adaptive_avg_pool",
     [](const Tensors& x, const Args& a) {
       return Tensors{pooling::adaptive_average(axes_of(a), x[0], per_axis(a, "size"))};
     }},
    {"adaptive_max_pool",
     [](const Tensors& x, const Args& a) {
       return both(pooling::adaptive_max(axes_of(a), x[0], per_axis(a, "size"), true));
     }},
    {"max_unpool",
     [](const Tensors& x, const Args& a) {
       return Tensors{pooling::unpool(axes_of(a), x[0], x[1], per_axis(a, "kernel"), {.output_size = a.shape("size")})};
     }},
    {"interpolate",
     [](const Tensors& x, const Args& a) {
       return Tensors{interpolate(
           x[0], {per_axis(a, "size"), numbers(a, "scale"), a.text("mode"), a.flag("align"), a.flag("recompute")})};
     }},
    {"grid_sample",
     [](const Tensors& x, const Args& a) {
       return Tensors{grid_sample(x[0], x[1], {a.text("mode"), a.text("padding"), a.flag("align")})};
     }},
    {"affine_grid",
     [](const Tensors& x, const Args& a) { return Tensors{affine_grid(x[0], a.shape("size"), a.flag("align"))}; }},
    {"im2col",
     [](const Tensors& x, const Args& a) { return Tensors{im2col(x[0], per_axis(a, "kernel"), columns(a))}; }},
    {"col2im",
     [](const Tensors& x, const Args& a) {
       return Tensors{col2im(x[0], per_axis(a, "size"), per_axis(a, "kernel"), columns(a))};
     }},
    {"layer_norm",
     [](const Tensors& x, const Args& a) { return Tensors{layer_norm(x[0], a.shape("shape"), x[1], x[2])}; }},
    {"rms_norm", [](const Tensors& x, const Args& a) { return Tensors{rms_norm(x[0], a.shape("shape"), x[1])}; }},
    {"group_norm",
     [](const Tensors& x, const Args& a) { return Tensors{group_norm(x[0], a.whole("groups", 1), x[1], x[2])}; }},
    {"batch_norm", [](const Tensors& x, const Args& a) { return running(batch_norm, x, a); }},
    {"instance_norm", [](const Tensors& x, const Args& a) { return running(instance_norm, x, a); }},
};

class WindowOracle {
 public:
  WindowOracle() : oracle_(read(std::string(VOLTA_TEST_DATA) + "/windows")) {}
  const auto& cases() const { return oracle_.cases; }

  // Values and gradients of one call.
  void check(const Case& c) const {
    SCOPED_TRACE(c.op + " " + c.label);
    Tensors x;
    for (const auto& operand : c.operands) {
      const auto& in = std::get<Input>(operand);
      x.push_back(stored(in.data, in.data.at).requires_grad_(in.grad != nothing));
    }
    const Tensors y = calls.at(c.op)(x, c.args);
    ASSERT_EQ(y.size(), c.outputs.size());
    for (size_t i = 0; i < y.size(); ++i) expect_near(y[i], stored(c.outputs[i].data, c.outputs[i].data.at));
    if (c.outputs[0].cotangent == nothing) return;
    y[0].backward(stored(c.outputs[0].data, c.outputs[0].cotangent));
    for (size_t i = 0; i < x.size(); ++i) {
      const auto& in = std::get<Input>(c.operands[i]);
      if (in.grad != nothing) expect_near(x[i].grad().value_or(zeros_like(x[i])), stored(in.data, in.grad));
    }
  }

 private:
  Tensor stored(const Stored& s, int64_t at) const {
    Tensor t = empty(s.shape, {.dtype = s.dtype});
    std::memcpy(t.raw_data(), oracle_.data.data() + at, size_t(t.nbytes()));
    return t;
  }
  static void expect_near(const Tensor& got, const Tensor& wanted) {
    ASSERT_EQ(got.shape(), wanted.shape());
    ASSERT_EQ(got.dtype(), wanted.dtype());
    EXPECT_TRUE(allclose(got.detach().to(f64), wanted.to(f64), {.rtol = 1e-10, .atol = 1e-11}));
  }

  Oracle oracle_;
};

TEST(OracleWindows, EqualPyTorch) {
  const WindowOracle oracle;
  EXPECT_EQ(oracle.cases().size(), calls.size());
  for (const bool fused : {true, false}) {
    use_fused_loops = fused;
    for (const auto& [op, list] : oracle.cases())
      for (const Case& c : list) oracle.check(c);
  }
  use_fused_loops = true;
}

}  // namespace
}  // namespace volta::oracle
