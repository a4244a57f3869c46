// Gradients everywhere: tensors in options, mixed dtypes, second derivatives at smooth kinks, empty selections, views made
// under NoGrad.
#include <gtest/gtest.h>

#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <set>
#include <sstream>

#include "samples.h"

namespace volta::test {
namespace {

using Tensors = std::vector<Tensor>;
using OneToOne = std::function<Tensor(const Tensor&)>;

Tensor numbers(const Shape& shape, double low, double high, uint64_t seed = 1) {
  manual_seed(seed);
  return uniform(shape, low, high, {.dtype = f64});
}

std::string why(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.kind() == Error::Kind::autograd ? "autograd: " + std::string(e.what()) : e.what();
  }
  return "";
}

// An input of a function, most of them in its options.
struct Side {
  const char* name;
  OneToOne f;
  Tensor at;
  bool refused = false;  // the function says in the forward that it has no such derivative
};

std::vector<Side> class_weights() {
  const Tensor x = numbers({4, 3}, -1, 1), y = tensor<int64_t>({0, 2, 1, 0}), w = numbers({3}, 0.3, 2, 2);
  const Tensor logs = log_softmax(x, 1), soft = softmax(numbers({4, 3}, -1, 1, 3), 1);
  std::vector<Side> list;
  for (const Reduce how : {Reduce::none, Reduce::mean, Reduce::sum}) {
    for (const double smoothing : {0.0, 0.2})
      for (const int64_t ignore : {-100, 2}) {
        list.push_back({"cross_entropy",
                        [=](const Tensor& t) {
                          return cross_entropy(x, y, {t, how, ignore, smoothing});
                        },
                        w});
      }
    list.push_back({"cross_entropy of probabilities",
                    [=](const Tensor& t) {
                      return cross_entropy(x, soft, {.weight = t, .reduction = how, .label_smoothing = 0.1});
                    },
                    w});
    list.push_back({"nll_loss", [=](const Tensor& t) { return nll_loss(logs, y, {t, how, 1}); }, w});
    list.push_back({"multi_margin_loss",
                    [=](const Tensor& t) { return multi_margin_loss(x, y, {.weight = t, .reduction = how}); }, w});
  }
  const Tensor with_zero = tensor<double>({0.0, 2.0, 1.0});
  list.push_back(
      {"cross_entropy, a weight of 0", [=](const Tensor& t) { return cross_entropy(x, y, {.weight = t}); }, with_zero});
  list.push_back(
      {"nll_loss, a weight of 0", [=](const Tensor& t) { return nll_loss(logs, y, {.weight = t}); }, with_zero});
  return list;
}

std::vector<Side> targets() {
  const Tensor x = numbers({3, 4}, -1, 1), p = numbers({3, 4}, 0.2, 0.8, 2), t = numbers({3, 4}, 0.2, 0.9, 3);
  const Tensor positive = numbers({3, 4}, 1.2, 3, 4), signs = tensor<double>({1.0, -1.0, 1.0});
  std::vector<Side> list = {
      {"mse", [=](const Tensor& v) { return mse_loss(x, v); }, t},
      {"l1", [=](const Tensor& v) { return l1_loss(x, v); }, t},
      {"smooth_l1", [=](const Tensor& v) { return smooth_l1_loss(x, v, {.beta = 0.7}); }, t},
      {"huber", [=](const Tensor& v) { return huber_loss(x, v, {.delta = 0.6}); }, t},
      {"cross_entropy target", [=](const Tensor& v) { return cross_entropy(x, v, {.label_smoothing = 0.1}); }, t},
      {"bce target", [=](const Tensor& v) { return binary_cross_entropy(p, v); }, t},
      {"bce weight", [=](const Tensor& v) { return binary_cross_entropy(p, t, {.weight = v}); }, t},
      {"logits target", [=](const Tensor& v) { return binary_cross_entropy_with_logits(x, v); }, t},
      {"logits weight", [=](const Tensor& v) { return binary_cross_entropy_with_logits(x, t, {.weight = v}); }, t},
      {"pos_weight", [=](const Tensor& v) { return binary_cross_entropy_with_logits(x, t, {.pos_weight = v}); }, t[0]},
      {"focal target", [=](const Tensor& v) { return sigmoid_focal_loss(x, v); }, t},
      {"kl_div target", [=](const Tensor& v) { return kl_div(x, v); }, t},
      {"kl_div log target", [=](const Tensor& v) { return kl_div(x, v, {.log_target = true}); }, x},
      {"gaussian_kl", [=](const Tensor& v) { return gaussian_kl(x, v); }, x},
      {"gaussian_nll target", [=](const Tensor& v) { return gaussian_nll_loss(x, v, p); }, t},
      {"gaussian_nll var", [=](const Tensor& v) { return gaussian_nll_loss(x, t, v, {.full = true}); }, p},
      {"poisson target", [=](const Tensor& v) { return poisson_nll_loss(x, v, {.full = true}); }, positive},
      {"soft_margin target", [=](const Tensor& v) { return soft_margin_loss(x, v); }, t},
      {"margin_ranking target", [=](const Tensor& v) { return margin_ranking_loss(x, p, v, {.margin = 5}); }, t},
      {"triplet negative", [=](const Tensor& v) { return triplet_margin_loss(x, p, v, {.margin = 5}); }, t},
      {"hinge target", [=](const Tensor& v) { return hinge_embedding_loss(x[0], v); }, signs.repeat({2})[{slice(0, 4)}],
       true},
      {"cosine target", [=](const Tensor& v) { return cosine_embedding_loss(x, p, v); }, signs, true},
  };
  return list;
}

std::vector<Side> layers() {
  const Tensor x = numbers({2, 3, 4}, -1, 1), c = numbers({3}, 0.5, 2, 2), row = numbers({4}, 0.5, 2, 3);
  const Tensor mean = numbers({3}, -1, 1, 4), q = numbers({2, 3, 4}, -1, 1, 5), one = q[{slice(), slice(0, 1)}];
  const Tensor table = numbers({5, 2}, -1, 1, 6), ids = tensor<int64_t>({0, 4, 1, 1, 3, 2});
  const nn::MultiheadAttention mha(4, 2, {.batch_first = true});
  to(const_cast<nn::MultiheadAttention&>(mha), f64);
  const nn::TransformerEncoderLayer encoder(4, 2, {.dim_feedforward = 8, .dropout = 0, .batch_first = true});
  to(const_cast<nn::TransformerEncoderLayer&>(encoder), f64);
  std::vector<Side> list = {
      {"batch_norm mean", [=](const Tensor& v) { return batch_norm(x, v, c, c, mean); }, mean},
      {"batch_norm var", [=](const Tensor& v) { return batch_norm(x, mean, v, c, mean); }, c},
      {"batch_norm weight", [=](const Tensor& v) { return batch_norm(x, mean, c, v, mean); }, c},
      {"batch_norm training", [=](const Tensor& v) { return batch_norm(x, v, c.clone(), c, mean, true); }, mean, true},
      {"batch_norm training var", [=](const Tensor& v) { return batch_norm(x, mean.clone(), v, c, mean, true); }, c,
       true},
      {"instance_norm mean", [=](const Tensor& v) { return instance_norm(x, v, c, c, mean, false); }, mean},
      {"instance_norm var", [=](const Tensor& v) { return instance_norm(x, mean, v, c, mean, false); }, c},
      {"instance_norm training", [=](const Tensor& v) { return instance_norm(x, v, c.clone(), c, mean); }, mean, true},
      {"layer_norm bias", [=](const Tensor& v) { return layer_norm(x, {4}, row, v); }, row},
      {"group_norm weight", [=](const Tensor& v) { return group_norm(x, 3, v, mean); }, c},
      {"rms_norm weight", [=](const Tensor& v) { return rms_norm(x, {4}, v); }, row},
      {"attention mask", [=](const Tensor& v) { return scaled_dot_product_attention(q, x, x, {.attn_mask = v}); },
       numbers({3, 3}, -1, 1, 7)},
      {"attention mask of one query",
       [=](const Tensor& v) { return scaled_dot_product_attention(one, x, x, {.attn_mask = v}); },
       numbers({1, 3}, -1, 1, 7)},
      {"multihead mask", [=](const Tensor& v) { return mha(q, x, x, {.attn_mask = v}).output; },
       numbers({3, 3}, -1, 1, 7)},
      {"multihead padding", [=](const Tensor& v) { return mha(q, x, x, {.key_padding_mask = v}).output; },
       numbers({2, 3}, -1, 1, 7)},
      {"encoder mask", [=](const Tensor& v) { return encoder(x, {.mask = v}); }, numbers({3, 3}, -1, 1, 7)},
      {"per_sample_weights",
       [=](const Tensor& v) {
         return embedding_bag(ids, table, tensor<int64_t>({0, 2, 2}), {.mode = "sum"}, v);
       },
       numbers({6}, 0.5, 2, 8)},
      {"conv bias",
       [=](const Tensor& v) {
         return conv1d(x, numbers({2, 3, 2}, -1, 1), v);
       },
       numbers({2}, 0, 1)},
      {"masked_fill value", [=](const Tensor& v) { return x.masked_fill(x > 0, v); }, numbers({}, 1, 2)},
      {"clamp bounds", [=](const Tensor& v) { return clamp(x, v, v + 1); }, numbers({4}, -1, 1, 9)},
      {"assigned value",
       [=](const Tensor& v) {
         Tensor y = x.clone();
         y[tensor<int64_t>({1})] = v;
         return y;
       },
       row},
      {"bincount weights", [=](const Tensor& v) { return bincount(ids, v); }, numbers({6}, 0, 1), true},
  };
  return list;
}

void expect_gradients(const std::vector<Side>& sides) {
  for (const Side& s : sides) {
    const Tensor at = s.at.detach().clone().requires_grad_();
    if (s.refused) {
      EXPECT_EQ(why([&] { s.f(at); }).find("autograd: "), 0u) << s.name;
      continue;
    }
    EXPECT_TRUE(s.f(at).requires_grad()) << s.name;
    EXPECT_EQ(why([&] { gradcheck_all([&](const Tensors& x) { return Tensors{s.f(x[0])}; }, {at}, {.raise = true}); }),
              "")
        << s.name;
  }
}

TEST(AutogradOptions, ClassWeights) { expect_gradients(class_weights()); }
TEST(AutogradOptions, TargetsOfLosses) { expect_gradients(targets()); }
TEST(AutogradOptions, StatisticsMasksAndWeights) { expect_gradients(layers()); }

TEST(AutogradOptions, ClassWeightsWithSmoothingByHand) {
  const Tensor x = tensor<double>({{0.1, 0.5}, {1.0, -1.0}}), y = tensor<int64_t>({0, 1});
  const Tensor w = tensor<double>({0.5, 2.0}).requires_grad_();
  const Tensor g = grad(cross_entropy(x, y, {.weight = w, .label_smoothing = 0.2}), w);
  EXPECT_TRUE(allclose(g, tensor<double>({-0.3620, 0.0905}), {.atol = 5e-5})) << g.str();
}

// An infinite loss that is ignored or weighs nothing spoils neither the value nor the gradients.
TEST(AutogradOptions, InfiniteLossesUnderZeroWeights) {
  const double inf = std::numeric_limits<double>::infinity();
  const Tensor logs = tensor<double>({{-inf, 0.0}, {-1.0, -0.5}}).requires_grad_();
  const Tensor w = tensor<double>({0.0, 1.0}).requires_grad_(), y = tensor<int64_t>({0, 1});
  const Tensor loss = nll_loss(logs, y, {.weight = w});
  EXPECT_DOUBLE_EQ(loss.item<double>(), 0.5);
  for (const Tensor& g : grad(loss, {logs, w})) EXPECT_TRUE(isfinite(g).all().item<bool>()) << g.str();
}

TEST(AutogradViews, ViewsMadeUnderNoGradRefuseChanges) {
  const Tensor x = ones({3}, {.dtype = f64}).requires_grad_();
  const auto view_of = [](const Tensor& t) {
    const NoGrad off;
    return Tensor(t[{slice(0, 1)}].reshape({1, 1}));
  };
  const Tensor a = x * 1;
  Tensor v = view_of(a);
  EXPECT_NE(why([&] { v.mul_(5); }).find("NoGrad"), std::string::npos);
  EXPECT_NE(why([&] { v.fill_(5); }).find("NoGrad"), std::string::npos);
  EXPECT_NE(why([&] { v.copy_(zeros({1, 1})); }).find("NoGrad"), std::string::npos);
  EXPECT_NE(why([&] { v[0] = 5; }).find("NoGrad"), std::string::npos);
  EXPECT_TRUE(equal(a.detach(), ones({3}, {.dtype = f64})));
  {
    const NoGrad off;
    v.mul_(5);
  }
  EXPECT_EQ(a[0].item<double>(), 5);
  // The base gets its graph after the view was made, or from what is written.
  const Tensor late = zeros({3}, {.dtype = f64});
  Tensor w = view_of(late);
  w.add_(1);
  EXPECT_NE(why([&] { w.add_(x.sum()); }).find("NoGrad"), std::string::npos);
  EXPECT_NE(why([&] { w.copy_(x.sum()); }).find("NoGrad"), std::string::npos);
  Tensor(late).add_(x);
  EXPECT_NE(why([&] { w.mul_(2); }).find("NoGrad"), std::string::npos);
  w = w.detach();
  w.mul_(2);
}

// The gradients of every op on operands of several dtypes are the same whether or not they are recorded.
class AutogradMixed : public testing::TestWithParam<const Sample*> {};

double rounding(DType dtype) {
  return dtype == f16 ? 0x1p-10 : dtype == bf16 ? 0x1p-7 : dtype == f32 ? 0x1p-22 : 0x1p-50;
}

// The rounding is that of the gradient's dtype (or of the result's, where that is coarser), at the size of the largest
// term: of the gradient, or of the cotangents (1.5) that cancel.
bool within_rounding(const Tensor& a, const Tensor& b, DType result = f64) {
  const Tensor x = a.detach().to(f64), y = b.detach().to(f64);
  const double largest = x.numel() ? nan_to_num(x.abs(), 0, 0).amax().item<double>() : 0;
  const double eps = std::max(rounding(a.dtype()), rounding(result)) * 4, size = std::max(largest, 1.5);
  return allclose(x, y, {.rtol = eps, .atol = eps * size, .equal_nan = true});
}

TEST_P(AutogradMixed, RecordingTheGradientDoesNotChangeIt) {
  const Sample& s = *GetParam();
  const auto drawn = draw(s, f64);
  for (const auto& [first, second] :
       {std::pair(f32, u8), std::pair(u8, f32), std::pair(f16, bf16), std::pair(f64, f32), std::pair(f32, f64),
        std::pair(f32, i64), std::pair(f16, f16), std::pair(bf16, f32)}) {
    Tensors x;
    for (size_t i = 0; i < drawn.size(); ++i) {
      const DType dtype = s.inputs[i].draw != Draw::values ? drawn[i].dtype() : i % 2 ? second : first;
      Tensor t = (drawn[i].dtype() == f64 && !is_floating(dtype) ? drawn[i].abs() * 9 + 1 : drawn[i].clone()).to(dtype);
      x.push_back(is_floating(dtype) ? t.requires_grad_() : t);
    }
    std::vector<Tensors> found;
    DType result = f64;
    for (const bool create : {false, true}) {
      Tensors ys, wanted;
      try {
        for (const Tensor& y : s.f(x))
          if (y.requires_grad()) ys.push_back(y);
      } catch (const Error&) {
        break;  // not defined for these dtypes
      }
      for (const Tensor& t : x)
        if (t.requires_grad()) wanted.push_back(t);
      if (ys.empty()) break;
      result = ys[0].dtype();
      Tensors cotangents;
      for (const Tensor& y : ys)
        cotangents.push_back(linspace(0.5, 1.5, y.numel(), {.dtype = f64}).reshape(y.shape()).to(y.dtype()));
      found.push_back(grad(ys, wanted, {.grad_outputs = cotangents, .create_graph = create, .allow_unused = true}));
    }
    if (found.size() < 2) continue;
    for (size_t i = 0; i < found[0].size(); ++i) {
      const Tensor &a = found[0][i], &b = found[1][i];
      ASSERT_EQ(a.defined(), b.defined());
      if (!a.defined()) continue;
      ASSERT_EQ(a.dtype(), b.dtype());
      EXPECT_TRUE(within_rounding(a, b, result)) << name(first) << ' ' << name(second) << " input " << i << '\n'
                                                 << a.str() << '\n'
                                                 << b.detach().str();
    }
  }
}

std::string plain(std::string text) {
  for (char& c : text)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return text;
}
std::vector<const Sample*> differentiable() {
  std::vector<const Sample*> list;
  for (const Sample& s : samples())
    if (s.differentiable) list.push_back(&s);
  return list;
}
std::string label(const testing::TestParamInfo<const Sample*>& info) {
  return plain(info.param->label) + "_" + std::to_string(info.index);
}
INSTANTIATE_TEST_SUITE_P(All, AutogradMixed, testing::ValuesIn(differentiable()), label);

TEST(AutogradMixedValues, FusedFamiliesInHalves) {
  const Tensor labels = tensor<int64_t>({0, 2, 1, 0});
  const std::map<std::string, OneToOne> functions = {
      {"layer_norm", [](const Tensor& x) { return layer_norm(x, {6}); }},
      {"rms_norm", [](const Tensor& x) { return rms_norm(x, {6}); }},
      {"group_norm",
       [](const Tensor& x) {
         return group_norm(x.reshape({2, 4, 3}), 2);
       }},
      {"batch_norm", [](const Tensor& x) { return batch_norm(x, {}, {}, {}, {}, true); }},
      {"cross_entropy", [&](const Tensor& x) { return cross_entropy(x, labels); }},
      {"smoothed", [&](const Tensor& x) { return cross_entropy(x, labels, {.label_smoothing = 0.1}); }},
      {"attention", [](const Tensor& x) { return scaled_dot_product_attention(x, x * 2, x + 1); }},
      {"normalize", [](const Tensor& x) { return normalize(x); }},
      {"logits", [](const Tensor& x) { return binary_cross_entropy_with_logits(x, (x > 0).to(x.dtype())); }},
  };
  for (const DType half : {f16, bf16})
    for (const auto& [name, f] : functions) {
      const Tensor x = numbers({4, 6}, -2, 2).to(half).requires_grad_();
      Tensors found;
      for (const bool create : {false, true}) {
        const Tensor y = f(x);
        found.push_back(grad(
            y, x,
            {.grad_outputs = {linspace(0.5, 1.5, y.numel()).reshape(y.shape()).to(half)}, .create_graph = create}));
      }
      EXPECT_TRUE(within_rounding(found[0], found[1])) << name << '\n' << found[0].str() << found[1].detach().str();
    }
}

// Against the rule in f64 at the same numbers: what is wider than the gradient's dtype shows in its last bits.
TEST(AutogradMixedValues, AsInDoublesRoundedOnce) {
  using Rule = std::function<Tensor(const Tensor&, const Tensor&)>;
  const std::map<std::string, Rule> rules = {
      {"pow", [](const Tensor& a, const Tensor& b) { return pow(a, b); }},
      {"atan2", [](const Tensor& a, const Tensor& b) { return atan2(a, b); }},
      {"lerp", [](const Tensor& a, const Tensor& b) { return lerp(a, b, 0.3); }},
      {"hypot", [](const Tensor& a, const Tensor& b) { return hypot(a, b); }},
      {"div", [](const Tensor& a, const Tensor& b) { return a / b; }},
  };
  const std::pair<DType, DType> pairs[] = {{f16, bf16}, {bf16, f16}, {f16, f32}, {f32, bf16}, {f64, f32},
                                           {f64, f16},  {f32, u8},   {f64, i32}, {f16, f16},  {bf16, bf16}};
  for (const auto& entry : rules)
    for (const auto& dtypes : pairs) {
      const Rule& rule = entry.second;
      const DType first = dtypes.first, second = dtypes.second;
      const auto made = [](DType t, uint64_t seed) { return numbers({8}, 1, is_floating(t) ? 2 : 9, seed).to(t); };
      const Tensor x = made(first, 4), y = made(second, 5);
      const auto gradients = [&](const Tensor& a, const Tensor& b, bool create) {
        Tensors wanted{a.detach().requires_grad_()};
        const Tensor other = is_floating(second) ? b.detach().requires_grad_() : b;
        if (other.requires_grad()) wanted.push_back(other);
        return grad(rule(wanted[0], other).sum(), wanted, {.create_graph = create});
      };
      const Tensors exact = gradients(x.to(f64), is_floating(second) ? y.to(f64) : y, false);
      for (const bool create : {false, true}) {
        const Tensors got = gradients(x, y, create);
        for (size_t i = 0; i < got.size(); ++i)
          EXPECT_TRUE(allclose(got[i].detach().to(f64), exact[i], {.rtol = rounding(got[i].dtype()), .atol = 0}))
              << entry.first << ' ' << name(first) << ' ' << name(second) << " input " << i << " create " << create
              << '\n'
              << got[i].detach().str() << exact[i].str();
      }
    }
}

TEST(AutogradMixedValues, Atan2) {
  const Tensor a = tensor<float>({2.f}).requires_grad_(), b = tensor<uint8_t>({uint8_t(20)});
  for (const bool create : {false, true})
    EXPECT_NEAR(grad(atan2(a, b).sum(), a, {.create_graph = create}).item<double>(), 20.0 / 404, 1e-7);
}

// Ops with a real kink at 0, or where all operands are equal: they have no second derivative there to compare with.
const std::set<std::string>& kinks() {
  static const std::set<std::string> names = [] {
    std::istringstream text(
        "abs amax amin aminmax cdist cdist_3 ceil clamp_above clamp_below clamp_max clamp_min copysign corrcoef "
        "cummax cummin dist dist_3 elu "
        "floor floor_divide fmax fmin heaviside kthvalue leaky_relu linear_relu masked_fill max_all max_axis max_other "
        "mode msort "
        "maximum median_all median_axis min_all min_axis min_other minimum nanmedian_all nanmedian_axis nanquantile "
        "pdist quantile_higher quantile_linear quantile_lower quantile_midpoint quantile_nearest relu relu6 "
        "remainder selu sign sort sort_descending std std_mean threshold topk topk_smallest where clip "
        "hinge_embedding_loss l1_loss grid_sample normalize cosine_similarity pairwise_distance prelu rrelu "
        "rms_norm_affine embedding_bag_rows_max embedding_bag_offsets_max cosine_embedding_loss "
        "triplet_margin_loss triplet_margin_with_distance_loss rnn_relu rnn_relu_cell");
    return std::set<std::string>(std::istream_iterator<std::string>(text), {});
  }();
  return names;
}

class AutogradKinks : public testing::TestWithParam<const Sample*> {};

TEST_P(AutogradKinks, SecondOrderAtZero) {
  const Sample& s = *GetParam();
  if (kinks().contains(plain(s.label)) || kinks().contains(s.op) || s.op.find("max_pool") != std::string::npos) return;
  Tensors x = draw(s, f64);
  bool any = false;
  for (size_t i = 0; i < x.size(); ++i) {
    const bool zero = s.inputs[i].low < 0 && s.inputs[i].high > 0;
    any |= zero;
    if (is_floating(x[i].dtype())) x[i] = (zero ? zeros_like(x[i]) : x[i]).requires_grad_();
  }
  if (!any) return;
  EXPECT_TRUE(gradcheck_all(s.f, x, {.raise = true}));
  EXPECT_TRUE(gradgradcheck_all(s.f, x, {.atol = 1e-4, .raise = true}));
}
INSTANTIATE_TEST_SUITE_P(All, AutogradKinks, testing::ValuesIn(differentiable()), label);

double second_at_0(const OneToOne& f) {
  const Tensor x = zeros({}, {.dtype = f64}).requires_grad_();
  return grad(grad(f(x), x, {.create_graph = true}), x).item<double>();
}

TEST(AutogradKinksValues, KnownSecondDerivatives) {
  const Tensor zero = zeros({}, {.dtype = f64}), one = ones({}, {.dtype = f64});
  const auto sum = Reduce::sum;
  EXPECT_DOUBLE_EQ(second_at_0([](const Tensor& x) { return softplus(x); }), 0.25);
  EXPECT_DOUBLE_EQ(second_at_0([](const Tensor& x) { return logsigmoid(x); }), -0.25);
  EXPECT_DOUBLE_EQ(second_at_0([](const Tensor& x) { return silu(x); }), 0.5);
  EXPECT_DOUBLE_EQ(second_at_0([](const Tensor& x) { return sigmoid(x); }), 0);
  EXPECT_DOUBLE_EQ(second_at_0([&](const Tensor& x) { return logaddexp(x, zero); }), 0.25);
  EXPECT_NEAR(second_at_0([&](const Tensor& x) { return logaddexp2(x, zero); }), 0.25 * std::log(2), 1e-12);
  EXPECT_DOUBLE_EQ(second_at_0([&](const Tensor& x) { return binary_cross_entropy_with_logits(x, one); }), 0.25);
  EXPECT_DOUBLE_EQ(second_at_0([&](const Tensor& x) { return soft_margin_loss(x, one); }), 0.25);
  EXPECT_DOUBLE_EQ(second_at_0([&](const Tensor& x) { return huber_loss(x, zero); }), 1);
  EXPECT_DOUBLE_EQ(second_at_0([&](const Tensor& x) { return smooth_l1_loss(x, zero, {.beta = 0.5}); }), 2);
  EXPECT_DOUBLE_EQ(second_at_0([&](const Tensor& x) { return mse_loss(x, zero, {sum}); }), 2);
  const OneToOne fused = [](const Tensor& x) {
    return linear(x.reshape({1, 1}), ones({1, 1}, {.dtype = f64}), {}, {.activation = "silu"}).sum();
  };
  EXPECT_DOUBLE_EQ(second_at_0(fused), 0.5);
}

TEST(AutogradKinksValues, XlogyWhereItsFactorIsZero) {
  const Options wide{.dtype = f64};
  const Tensor a = zeros({4}, wide).requires_grad_(), b = tensor<double>({2, 0.5, 0, -1});
  EXPECT_TRUE(allclose(grad(xlogy(a, b).sum(), a), tensor<double>({std::log(2), std::log(0.5), 0, 0})));
  const Tensor above = tensor<double>({2, 0.5, 3, 4}).requires_grad_();
  EXPECT_TRUE(gradcheck([&](const Tensor& t) { return xlogy(t, above); }, a));
  EXPECT_TRUE(gradgradcheck([&](const Tensor& t) { return xlogy(t, above); }, a));
  EXPECT_TRUE(gradgradcheck([&](const Tensor& t) { return xlogy(a, t); }, above));
}

TEST(AutogradKinksValues, SincFarOut) {
  for (const auto& [dtype, far] : {std::pair{f32, 1e12}, {f64, 1e300}, {bf16, 1e30}}) {
    const Tensor x = full({2}, far, {.dtype = dtype}).requires_grad_();
    const Tensor g = grad(sinc(x).sum(), x, {.create_graph = true}), second = grad(g.sum(), x);
    EXPECT_TRUE((isfinite(g) & isfinite(second)).all().item<bool>()) << second;
  }
}

// Third derivatives at 0: gradgradcheck of the gradient.
TEST(AutogradKinksValues, ThirdOrderAtZero) {
  const Tensor x = zeros({3}, {.dtype = f64}).requires_grad_();
  const std::map<std::string, OneToOne> functions = {{"softplus", [](const Tensor& t) { return softplus(t); }},
                                                     {"logsigmoid", [](const Tensor& t) { return logsigmoid(t); }},
                                                     {"silu", [](const Tensor& t) { return silu(t); }},
                                                     {"mish", [](const Tensor& t) { return mish(t); }},
                                                     {"gelu", [](const Tensor& t) { return gelu(t); }},
                                                     {"gelu_tanh", [](const Tensor& t) { return gelu_tanh(t); }},
                                                     {"sigmoid", [](const Tensor& t) { return sigmoid(t); }},
                                                     {"tanhshrink", [](const Tensor& t) { return tanhshrink(t); }},
                                                     {"sinc", [](const Tensor& t) { return sinc(t); }}};
  for (const auto& [name, function] : functions) {
    const auto first = [&f = function](const Tensor& t) {
      const Tensor at = t.requires_grad() ? t : t.detach().requires_grad_();
      return grad(f(at).sum(), at, {.create_graph = true});
    };
    EXPECT_TRUE(gradgradcheck(first, x)) << name;
  }
}

TEST(AutogradKinksValues, LossesWhereInputAndTargetMeet) {
  const Tensor x = numbers({2, 3}, -1, 1), t = tensor<double>({{0.0, 1.0, 0.5}, {1.0, 0.0, 0.25}});
  const Tensor zero = zeros({2, 3}, {.dtype = f64}), labels = tensor<int64_t>({0, 2});
  const std::map<std::string, std::pair<OneToOne, Tensor>> losses = {
      {"mse", {[=](const Tensor& v) { return mse_loss(v, x); }, x}},
      {"huber", {[=](const Tensor& v) { return huber_loss(v, x); }, x}},
      {"smooth_l1", {[=](const Tensor& v) { return smooth_l1_loss(v, x); }, x}},
      {"logits", {[=](const Tensor& v) { return binary_cross_entropy_with_logits(v, t); }, zero}},
      {"focal", {[=](const Tensor& v) { return sigmoid_focal_loss(v, t); }, zero}},
      {"soft_margin", {[=](const Tensor& v) { return soft_margin_loss(v, t * 2 - 1); }, zero}},
      {"cross_entropy", {[=](const Tensor& v) { return cross_entropy(v, labels); }, zero}},
      {"smoothed", {[=](const Tensor& v) { return cross_entropy(v, labels, {.label_smoothing = 0.1}); }, zero}},
      {"nll", {[=](const Tensor& v) { return nll_loss(log_softmax(v, 1), labels); }, zero}},
      {"gaussian_kl", {[=](const Tensor& v) { return gaussian_kl(v, v); }, zero}},
      {"gaussian_nll", {[=](const Tensor& v) { return gaussian_nll_loss(v, x, t + 1); }, x}},
      {"poisson", {[=](const Tensor& v) { return poisson_nll_loss(v, t); }, zero}},
      {"kl_div", {[=](const Tensor& v) { return kl_div(v, t); }, zero}},
  };
  for (const auto& [name, pair] : losses)
    EXPECT_EQ(why([&f = pair.first, &at = pair.second] {
                gradgradcheck_all([&](const Tensors& in) { return Tensors{f(in[0])}; },
                                  {at.detach().clone().requires_grad_()}, {.atol = 1e-4, .raise = true});
              }),
              "")
        << name;
}

// With an axis of size 0 a result requires grad if it does otherwise.
class AutogradEmpty : public testing::TestWithParam<const Sample*> {};

TEST_P(AutogradEmpty, NothingIsSevered) {
  const Sample& s = *GetParam();
  const auto wants = [](const Tensors& ys) {
    bool all = true;
    for (const Tensor& y : ys) all &= !is_floating(y.dtype()) || y.requires_grad();
    return all;
  };
  ASSERT_TRUE(wants(s.f(draw(s, f64, {}, true))));
  std::set<int64_t> sizes;
  for (const Input& in : s.inputs) sizes.insert(in.shape.begin(), in.shape.end());
  for (const int64_t size : sizes) {
    Sample empty = s;
    for (Input& in : empty.inputs)
      for (int64_t& n : in.shape)
        if (n == size) n = 0;
    Tensors x = draw(empty, f64, {}, true), ys;
    try {
      ys = s.f(x);
    } catch (const Error& e) {
      continue;  // not defined for such sizes
    }
    EXPECT_TRUE(wants(ys)) << "with 0 for " << size;
    Tensors roots, cotangents;
    for (const Tensor& y : ys)
      if (y.requires_grad()) roots.push_back(y), cotangents.push_back(ones_like(y));
    if (roots.empty()) continue;
    std::erase_if(x, [](const Tensor& t) { return !t.requires_grad(); });
    for (const Tensor& g : grad(roots, x, {.grad_outputs = cotangents, .allow_unused = true})) {
      if (!g.defined()) continue;
      EXPECT_TRUE(isfinite(g).all().item<bool>());
    }
  }
}
INSTANTIATE_TEST_SUITE_P(All, AutogradEmpty, testing::ValuesIn(differentiable()), label);

TEST(AutogradEmptyValues, EmptySelectionsGiveZeros) {
  const Tensor w = numbers({3}, 1, 2).requires_grad_(), x = numbers({4, 3}, 1, 2, 2);
  const Tensor none = empty({0}, {.dtype = i64}), nothing = w[{slice(0, 0)}], no_rows = w.expand({0, 3});
  const Tensor no_mask = zeros({4, 3}, {.dtype = boolean});
  const auto assigned = [&](const Index& at, const Tensor& value) {
    Tensor y = x.clone();
    y[{at}] = value;
    return y;
  };
  const std::map<std::string, Tensor> results = {
      {"mask", assigned(no_mask, w.sum())},
      {"row mask", assigned(zeros({4}, {.dtype = boolean}), w)},
      {"index", assigned(none, w)},
      {"slice", assigned(slice(2, 2), w)},
      {"index_add", index_add(x, 0, none, no_rows)},
      {"scatter", scatter(x, 0, empty({0, 3}, {.dtype = i64}), no_rows)},
      {"scatter_add", scatter_add(x, 0, empty({0, 3}, {.dtype = i64}), no_rows)},
      {"scatter_add of a larger source", scatter_add(x, 0, empty({0, 3}, {.dtype = i64}), w.expand({2, 3}))},
      {"scatter_reduce", scatter_reduce(x, 0, empty({0, 3}, {.dtype = i64}), no_rows, "amax")},
      {"scatter_reduce prod", scatter_reduce(x, 0, empty({0, 3}, {.dtype = i64}), no_rows, "prod", false)},
      {"masked_fill", x.masked_fill(no_mask, w.sum())},
      {"masked_select", masked_select(w, zeros({3}, {.dtype = boolean}))},
      {"index_select", index_select(w, 0, none)},
      {"gather", gather(w, 0, none)},
      {"take", take(w, none)},
      {"where", where(no_mask, w, x)},
      {"cat", cat({nothing, x[0]})},
      {"sum", nothing.sum()},
      {"prod", nothing.prod()},
      {"embedding", embedding(none, w.reshape({3, 1}))},
      {"bags", embedding_bag(none, w.reshape({3, 1}), tensor<int64_t>({0, 0}), {.mode = "sum"})},
      {"bags mean", embedding_bag(none, w.reshape({3, 1}), tensor<int64_t>({0, 0}), {.mode = "mean"})},
      {"bags max", embedding_bag(none, w.reshape({3, 1}), tensor<int64_t>({0, 0}), {.mode = "max"})},
      {"repeat_interleave", repeat_interleave(w, zeros({3}, {.dtype = i64}), 0)},
      {"matmul", matmul(zeros({2, 0}, {.dtype = f64}), no_rows)},
      {"einsum", einsum("ij,jk->ik", {zeros({2, 0}, {.dtype = f64}), no_rows})},
  };
  for (const auto& [name, y] : results) {
    ASSERT_TRUE(y.requires_grad()) << name;
    const Tensor g = grad(y.sum(), w, {.retain_graph = true});
    EXPECT_TRUE(equal(g, zeros({3}, {.dtype = f64}))) << name << ' ' << g.str();
  }
}

}  // namespace
}  // namespace volta::test
