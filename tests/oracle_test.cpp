// Every op against PyTorch's answers: values, dtypes and gradients, for every dtype and awkward layout.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <set>

#include "math/elementwise_names.h"
#include "math/reducers.h"
#include "ops/elementwise.h"
#include "ops/functions.h"
#include "oracle/calls.h"
#include "oracle/tolerance.h"
#include "samples.h"

namespace volta::test {
namespace {

using oracle::Case;
using oracle::nothing;
using oracle::Stored;
using oracle::Tensors;

const oracle::Oracle& answers() {
  static const oracle::Oracle oracle = oracle::read(std::string(VOLTA_TEST_DATA) + "/oracle");
  return oracle;
}

Tensor stored(const Stored& s) {
  return tensor_from(answers().data.data() + s.at, s.dtype, s.shape, {.dtype = s.dtype});
}

enum class Arrangement { contiguous, transposed, strided, backwards, offset };
constexpr const char* arrangement_names[] = {"contiguous", "transposed", "strided", "backwards", "offset"};

// The same values in another arrangement of memory.
Tensor arranged(const Tensor& x, Arrangement how) {
  const int64_t rank = x.dim();
  if (rank == 0 || how == Arrangement::contiguous) return x.clone();
  if (how == Arrangement::transposed) return x.transpose(0, -1).clone().contiguous().transpose(0, -1);
  if (how == Arrangement::backwards) {
    std::vector<int64_t> axes;
    for (int64_t i = 0; i < rank; ++i) axes.push_back(i);
    return x.flip(axes).contiguous().flip(axes);
  }
  Shape larger = x.shape();
  const int axis = how == Arrangement::strided ? int(rank - 1) : 0;
  larger[axis] = how == Arrangement::strided ? larger[axis] * 2 : larger[axis] + 2;
  const Tensor block = ones(larger, {x.dtype(), x.device()});
  Tensor part = how == Arrangement::strided ? block.slice(axis, 1, {}, 2) : block.narrow(axis, 1, x.size(axis));
  part.copy_(x);
  return part;
}

// What one element may differ by, and how to see it.
class Comparison {
 public:
  Comparison(const Tensor& got, const Stored& want, int64_t exact, oracle::Bound bound, bool signs)
      : got_(got.detach().to("cpu").contiguous()), want_(want), bound_(bound), signs_(signs) {
    if (exact != nothing) exact_ = stored({want.dtype, want.shape, exact});
  }

  // Empty, or what is wrong.
  std::string difference() const {
    if (got_.dtype() != want_.dtype)
      return "dtype " + std::string(name(got_.dtype())) + ", not " + std::string(name(want_.dtype));
    if (got_.shape() != want_.shape) return "shape " + got_.shape().str() + ", not " + want_.shape.str();
    return is_floating(want_.dtype) ? floating() : whole();
  }

 private:
  std::string whole() const {
    const Tensor want = stored(want_);
    const auto* a = static_cast<const char*>(got_.raw_data());
    const auto* b = static_cast<const char*>(want.raw_data());
    if (std::memcmp(a, b, size_t(got_.nbytes())) == 0) return "";
    return "got " + got_.str() + ", not " + want.str();
  }

  std::string floating() const {
    const std::vector<double> got = got_.to(f64).to_vector<double>(), want = stored(want_).to(f64).to_vector<double>();
    const std::vector<double> exact = exact_.defined() ? exact_.to(f64).to_vector<double>() : want;
    const double scale = bound_.of_largest > 0 ? largest(want) : 0;
    for (size_t i = 0; i < got.size(); ++i)
      if (!close(got[i], want[i], exact[i], scale)) {
        std::ostringstream text;
        text.precision(17);
        text << "element " << i << " is " << got[i] << ", not " << want[i] << " (in f64 " << exact[i] << "), "
             << std::fabs(got[i] - exact[i]) / oracle::ulp(exact[i], want_.dtype) << " ulp";
        return text.str();
      }
    return "";
  }

  static double largest(const std::vector<double>& values) {
    double most = 0;
    for (double v : values)
      if (std::isfinite(v)) most = std::max(most, std::fabs(v));
    return most;
  }

  bool close(double got, double want, double exact, double scale) const {
    if (std::isnan(got)) return std::isnan(want) || std::isnan(exact);
    if (got == 0 && want == 0 && exact == 0 && signs_)
      return std::signbit(got) == std::signbit(want) || std::signbit(got) == std::signbit(exact);
    if (got == want || got == exact) return true;
    if (!std::isfinite(got) || !std::isfinite(want) || !std::isfinite(exact)) return false;
    const double low = std::min(want, exact), high = std::max(want, exact);
    const double most = std::max(std::fabs(low), std::fabs(high));
    const double ulps = want_.dtype == f64 ? std::max(bound_.ulps, bound_.ulps_in_f64) : bound_.ulps;
    const double slack = ulps * oracle::ulp(most, want_.dtype) +
                         (bound_.absolute + bound_.of_largest * scale) * oracle::epsilon(want_.dtype);
    return got >= low - slack && got <= high + slack;
  }

  Tensor got_;
  Stored want_;
  Tensor exact_;
  oracle::Bound bound_;
  bool signs_;
};

struct Parameter {
  std::string op;
  Device device;
};

// Runs one case in one arrangement.
class Attempt {
 public:
  Attempt(const Case& c, Arrangement how, Device device, const ElementwiseOp* point)
      : case_(c), how_(how), point_(point) {
    for (const auto& operand : c.operands) {
      if (const auto* number = std::get_if<Scalar>(&operand)) {
        given_.numbers.push_back(*number);
        continue;
      }
      const auto& input = std::get<oracle::Input>(operand);
      Tensor x = arranged(stored(input.data).to(device), how);
      if (input.shape != input.data.shape) x = x.expand(input.shape);
      if (input.grad != nothing) x = x.detach().requires_grad_();
      given_.x.push_back(x);
      inputs_.push_back(&input);
    }
  }

  std::string difference() {
    const Tensors y = call();
    const bool pieces = y.size() != case_.outputs.size() && case_.outputs.size() != 1;
    if (pieces) return std::to_string(y.size()) + " results, not " + std::to_string(case_.outputs.size());
    for (size_t i = 0; i < case_.outputs.size(); ++i) {
      const oracle::Output& want = case_.outputs[i];
      const std::string wrong = value(y[i], want);
      if (!wrong.empty()) return "result " + std::to_string(i) + ": " + wrong;
    }
    const std::string wrong = gradient_difference(y);
    return wrong.empty() ? in_place_difference() : wrong;
  }

 private:
  Tensors call() const {
    if (point_) return {detail::map(*point_, operands())};
    return oracle::function_calls().at(case_.op)(given_, case_.args);
  }

  std::vector<Operand> operands() const {
    std::vector<Operand> list;
    size_t tensors = 0, numbers = 0;
    for (const auto& operand : case_.operands) {
      if (std::holds_alternative<Scalar>(operand)) list.emplace_back(given_.numbers[numbers++]);
      else list.emplace_back(given_.x[tensors++]);
    }
    return list;
  }

  std::string gradient_difference(const Tensors& y) const {
    Tensors roots, cotangents, wanted;
    std::vector<const oracle::Input*> answers_for;
    for (size_t i = 0; i < case_.outputs.size(); ++i) {
      const oracle::Output& out = case_.outputs[i];
      if (out.cotangent == nothing) continue;
      roots.push_back(y[i]);
      cotangents.push_back(arranged(stored({out.data.dtype, out.data.shape, out.cotangent}).to(y[i].device()), how_));
    }
    for (size_t i = 0; i < given_.x.size(); ++i)
      if (inputs_[i]->grad != nothing) {
        wanted.push_back(given_.x[i]);
        answers_for.push_back(inputs_[i]);
      }
    if (roots.empty() || wanted.empty()) return "";
    const Tensors found = grad(roots, wanted, {.grad_outputs = cotangents, .allow_unused = true});
    for (size_t i = 0; i < found.size(); ++i) {
      const oracle::Input& input = *answers_for[i];
      const Tensor g = found[i].defined() ? found[i] : zeros_like(wanted[i]);
      const bool summed = point_ && input.shape != case_.outputs[0].data.shape;
      const Comparison comparison(g, {input.data.dtype, input.shape, input.grad}, input.grad_exact,
                                  oracle::gradient_bound(case_.op, point_ && !summed), false);
      const std::string wrong = comparison.difference();
      if (!wrong.empty()) return "gradient " + std::to_string(i) + ": " + wrong;
    }
    return "";
  }

  std::string value(const Tensor& y, const oracle::Output& want) const {
    const bool pointwise = point_ != nullptr;
    const oracle::Bound bound = oracle::value_bound(case_.op, pointwise);
    return Comparison(y, want.data, want.exact, bound, pointwise && oracle::zero_has_a_sign(case_.op)).difference();
  }

  // Pointwise ops can also write into their first operand, whatever its layout.
  std::string in_place_difference() const {
    const oracle::Output& want = case_.outputs[0];
    if (!point_ || point_->masks || point_->truth || inputs_.empty() ||
        !std::holds_alternative<oracle::Input>(case_.operands[0]))
      return "";
    const oracle::Input& first = *inputs_[0];
    if (first.data.shape != want.data.shape || first.data.dtype != want.data.dtype) return "";
    const NoGrad off;
    Tensor self = arranged(given_.x[0].detach(), how_);
    std::vector<Operand> x = operands();
    if (x.size() == 1) map_in_place(*point_, self, {});
    else if (x.size() == 2) map_in_place(*point_, self, {x[1]});
    else map_in_place(*point_, self, {x[1], x[2]});
    const std::string wrong = value(self, want);
    return wrong.empty() ? "" : "in place: " + wrong;
  }

  const Case& case_;
  Arrangement how_;
  const ElementwiseOp* point_;
  oracle::Given given_;
  std::vector<const oracle::Input*> inputs_;
};

const ElementwiseOp* point_named(const std::string& wanted) {
  const ElementwiseOp* found = nullptr;
  int index = 0;
  for_each_point_name([&](const PointName& op) {
    if (op.name == wanted) found = &point_op(index);
    ++index;
  });
  return found;
}

class ValuesOracle : public testing::TestWithParam<Parameter> {};

TEST_P(ValuesOracle, EqualsPyTorch) {
  const auto& [op, device] = GetParam();
  const ElementwiseOp* point = point_named(op);
  for (const Case& c : answers().cases.at(op))
    for (Arrangement how : {Arrangement::contiguous, Arrangement::transposed, Arrangement::strided,
                            Arrangement::backwards, Arrangement::offset}) {
      std::string wrong;
      try {
        wrong = Attempt(c, how, device, point).difference();
      } catch (const Error& e) {
        wrong = e.what();
      }
      EXPECT_TRUE(wrong.empty()) << op << " " << c.dtype << " " << c.label << " (" << arrangement_names[int(how)]
                                 << "): " << wrong;
      if (!wrong.empty()) break;  // the other arrangements would say the same
    }
}

std::vector<Parameter> parameters() {
  std::vector<Parameter> list;
  for (const Device& device : devices())
    for (const auto& [op, cases] : answers().cases) list.push_back({op, device});
  return list;
}

std::string parameter_name(const testing::TestParamInfo<Parameter>& info) {
  return info.param.op + (info.param.device.is_cuda() ? "_cuda" : "");
}

INSTANTIATE_TEST_SUITE_P(All, ValuesOracle, testing::ValuesIn(parameters()), parameter_name);

// Numbers are weak: they count with their kind alone.
std::variant<Tensor, Scalar> operand_of(const std::string& dtype) {
  if (dtype == "num_int") return Scalar(1);
  if (dtype == "num_float") return Scalar(0.5);
  if (dtype == "num_bool") return Scalar(true);
  return ones({2}, {oracle::dtype_named(dtype)});
}

TEST(ValuesOraclePromotion, EveryPairMeetsWhereTheStandardSays) {
  ASSERT_GT(answers().promotions.size(), 1000u);
  for (const oracle::Promotion& p : answers().promotions) {
    const ElementwiseOp* op = point_named(p.op);
    ASSERT_TRUE(op) << p.op;
    const auto a = operand_of(p.a), b = operand_of(p.b);
    const Tensor mask = ones({2}, {boolean});
    std::vector<Operand> x;
    if (op->masks) x.emplace_back(mask);
    for (const auto* one : {&a, &b}) {
      if (const auto* t = std::get_if<Tensor>(one)) x.emplace_back(*t);
      else x.emplace_back(std::get<Scalar>(*one));
    }
    EXPECT_EQ(name(detail::map(*op, x).dtype()), name(p.result)) << p.op << " of " << p.a << " and " << p.b;
  }
}

// Where we differ from PyTorch on purpose and the oracle does not say so already: docs/differences.md.
TEST(ValuesOracleDifferences, AreAsDocumented) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  const auto slope = [](auto f, double at) {
    Tensor x = tensor<double>({at}, {.requires_grad = true});
    return grad(f(x).sum(), x).template item<double>();
  };
  EXPECT_TRUE(std::isnan(tensor({nan}).sign().item<float>()));
  EXPECT_TRUE(std::isnan(slope([](const Tensor& x) { return x.abs(); }, nan)));
  EXPECT_EQ(slope([](const Tensor& x) { return x.softsign(); }, inf), 0);
  EXPECT_EQ(slope([](const Tensor& x) { return x.copysign(-1.0); }, inf), -1);
  EXPECT_EQ(slope([](const Tensor& x) { return x.clamp_min(zeros({1}, {f64})); }, 0), 1);
  EXPECT_EQ(slope([](const Tensor& x) { return x.logit(); }, 2), -0.5);
  EXPECT_NEAR(slope([](const Tensor& x) { return x.sinc(); }, 1e-3), -0.0032898648867, 1e-13);
  EXPECT_EQ(slope([](const Tensor& x) { return x.heaviside(0.5); }, 1), 0);
  Tensor half = tensor<double>({0.5}, {.requires_grad = true});
  EXPECT_EQ(grad(heaviside(tensor<double>({0.0}), half).sum(), half).item<double>(), 1);
  EXPECT_FALSE(std::signbit(tensor<double>({-3.0}).remainder(3.0).item<double>()));
  EXPECT_TRUE(std::signbit(tensor<double>({3.0}).remainder(-3.0).item<double>()));
  EXPECT_EQ(tensor<double>({-2.0}).trigamma().item<double>(), inf);
  EXPECT_EQ(tensor<double>({inf}).trigamma().item<double>(), 0);

  Tensor row = tensor<double>({1.0, nan, 3.0, nan}, {.requires_grad = true});
  EXPECT_EQ(grad(row.amax(), row).to_vector<double>(), (std::vector<double>{0, 0.5, 0, 0.5}));

  EXPECT_EQ((ones({2}, {i32}) + full({}, 1, {i64})).dtype(), i64);
  EXPECT_THROW((void)lt(ones({2}, {u8}), -1), Error);
}

TEST(ValuesOracleDifferences, IntegerDivisionIsDefinedEverywhere) {
  for (DType dtype : {i8, i16, i32, i64}) {
    const Tensor lowest = bitwise_left_shift(ones({1}, {dtype}), full({1}, size_of(dtype) * 8 - 1, {dtype}));
    ASSERT_LT(lowest.item<int64_t>(), 0);
    for (const Tensor& x : {lowest, full({1}, 7, {dtype}), full({1}, -7, {dtype})}) {
      EXPECT_EQ(x.floor_divide(zeros({1}, {dtype})).item<int64_t>(), 0);
      EXPECT_EQ(x.remainder(zeros({1}, {dtype})).item<int64_t>(), 0);
      EXPECT_EQ(x.fmod(zeros({1}, {dtype})).item<int64_t>(), 0);
    }
    const Tensor minus = full({1}, -1, {dtype});
    EXPECT_EQ(lowest.floor_divide(minus).item<int64_t>(), lowest.item<int64_t>());
    EXPECT_EQ(lowest.remainder(minus).item<int64_t>(), 0);
    EXPECT_EQ(lowest.fmod(minus).item<int64_t>(), 0);
  }
}

// Ops the oracle does not ask about, each with its reason.
const std::map<std::string, std::string>& left_out() {
  static const std::map<std::string, std::string> table = {
      {"bilinear", "compared in layers_test.cpp"},
      {"clip", "clamp under its other name"},
      {"embedding_bag", "compared in layers_test.cpp"},
      {"deg2rad", "see pointwise_test.cpp"},
      {"is_nonzero", "see names_test.cpp"},
      {"logmeanexp", "no name of PyTorch's; see reduce_test.cpp"},
      {"xlogy", "see pointwise_test.cpp"},
      {"type_as", "asked about as to"},
      {"view_as", "asked about as view"},
      {"polygamma", "asked about as digamma, trigamma and polygamma2; see pointwise_test.cpp for the others"}};
  return table;
}

TEST(ValuesOracleComplete, EveryDeclaredOpIsAskedAbout) {
  std::set<std::string> names;
  // The groups that are functions alone: window_oracle, sequence_oracle, layers, loss and further_test ask about those.
  for (const Function& f : functions)
    if (f.of_group().as == As::both) names.insert(f.name);
  for_each_point_name([&](const PointName& op) { names.insert(op.name); });
  for_each(reducers::Named{}, [&]<class R>(int) { names.insert(R::name); });
  for (const std::string& name : names) {
    const bool asked = answers().cases.contains(name);
    EXPECT_NE(asked, left_out().contains(name)) << name;
  }
  for (const auto& [op, cases] : answers().cases)
    EXPECT_TRUE(names.contains(op)) << op << " is in the oracle but not declared";
}

}  // namespace
}  // namespace volta::test
