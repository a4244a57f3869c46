// Multi-label and triplet losses, fractional pooling, antialiasing, padded sequences, Adafactor, ASGD, Rprop and SWALR:
// against PyTorch (tests/oracle/further.py), their derivatives against differences, and their errors.
#include <gtest/gtest.h>

#include <sstream>

#include "ops/fused.h"
#include "oracle/training.h"

namespace volta::oracle {
namespace {

using Tensors = std::vector<Tensor>;
using Call = std::function<Tensors(const Tensors&, const Args&)>;

const Oracle& further() {
  static const Oracle oracle = read(std::string(VOLTA_TEST_DATA) + "/further");
  return oracle;
}
Tensor kept(const Stored& s, int64_t at) {
  return tensor_from(further().data.data() + at, s.dtype, s.shape, {.dtype = s.dtype});
}
Tensor kept(const Stored& s) { return kept(s, s.at); }

std::vector<double> numbers(const Args& a, const char* key) {
  std::vector<double> values;
  std::istringstream in(a.has(key) ? a.text(key) : "");
  for (std::string word; std::getline(in, word, ',');) values.push_back(std::stod(word));
  return values;
}
Tensor at(const Tensors& x, size_t i) { return i < x.size() ? x[i] : Tensor(); }
Tensors both(const ValuesIndices& r) { return {r.values, r.indices}; }
Tensor manhattan(const Tensor& a, const Tensor& b) { return abs(a - b).sum(-1); }

const std::map<std::string, Call>& calls() {
  static const std::map<std::string, Call> table = {
      {"multilabel_margin_loss",
       [](auto& x, auto& a) { return Tensors{multilabel_margin_loss(x[0], x[1], {a.text("reduction")})}; }},
      {"multilabel_soft_margin_loss",
       [](auto& x, auto& a) {
         return Tensors{multilabel_soft_margin_loss(x[0], x[1], {at(x, 2), a.text("reduction")})};
       }},
      {"triplet_margin_with_distance_loss",
       [](auto& x, auto& a) {
         TripletDistanceOptions o{
             .margin = a.number("margin", 1), .swap = a.flag("swap"), .reduction = a.text("reduction")};
         if (a.has("distance")) o.distance_function = manhattan;
         return Tensors{triplet_margin_with_distance_loss(x[0], x[1], x[2], o)};
       }},
      {"fractional_max_pool",
       [](auto& x, auto& a) {
         const FractionalPoolOptions o{.output_size = a.shape("size"), .random_samples = x[1]};
         const auto f =
             a.whole("axes", 2) == 2 ? fractional_max_pool2d_with_indices : fractional_max_pool3d_with_indices;
         return both(f(x[0], a.shape("kernel"), o));
       }},
      {"antialias",
       [](auto& x, auto& a) {
         return Tensors{interpolate(x[0], {.size = a.shape("size"),
                                           .scale_factor = numbers(a, "scale_factor"),
                                           .mode = a.text("mode"),
                                           .align_corners = a.flag("align"),
                                           .antialias = true})};
       }},
      {"pad_sequence",
       [](auto& x, auto& a) {
         return Tensors{pad_sequence(
             x, {.batch_first = a.flag("batch_first"), .padding_value = -1.5, .padding_side = a.text("side")})};
       }},
      {"pack_sequence",
       [](auto& x, auto&) {
         const PackedSequence p = pack_sequence(x);
         return Tensors{p.data, tensor(p.batch_sizes)};
       }},
  };
  return table;
}

// Values within 16 epsilons of the largest, gradients within 32.
void check(const Case& c, const Call& call) {
  SCOPED_TRACE(c.op + " " + c.dtype + " " + c.label);
  Tensors x;
  for (const auto& operand : c.operands) {
    const auto& in = std::get<Input>(operand);
    x.push_back(kept(in.data).requires_grad_(in.grad != nothing));
  }
  const Tensors y = call(x, c.args);
  ASSERT_EQ(y.size(), c.outputs.size());
  for (size_t i = 0; i < y.size(); ++i) {
    const Output& out = c.outputs[i];
    EXPECT_EQ(difference(y[i], kept(out.data, out.exact != nothing ? out.exact : out.data.at), 16), "");
  }
  if (c.outputs[0].cotangent == nothing) return;
  y[0].backward(kept(c.outputs[0].data, c.outputs[0].cotangent));
  for (size_t i = 0; i < x.size(); ++i) {
    const auto& in = std::get<Input>(c.operands[i]);
    if (in.grad == nothing) continue;
    const Tensor wanted = kept(in.data, in.grad_exact != nothing ? in.grad_exact : in.grad);
    EXPECT_EQ(difference(x[i].grad().value_or(zeros_like(x[i])), wanted, 32), "") << "gradient " << i;
  }
}

TEST(OracleFurther, FunctionsEqualPyTorch) {
  for (const bool fused : {true, false}) {
    use_fused_loops = fused;
    for (const auto& [op, call] : calls())
      for (const Case& c : further().cases.at(op)) check(c, call);
  }
  use_fused_loops = true;
}

template <class O> std::unique_ptr<optim::Optimizer> made(const Tensors& params, const Args& a) {
  typename O::Options o;
  o.lr = a.number("lr", o.lr), o.maximize = a.has("maximize");
  if constexpr (requires { o.weight_decay; }) o.weight_decay = a.number("weight_decay", o.weight_decay);
  if constexpr (requires { o.lambd; })
    o.lambd = a.number("lambd", o.lambd), o.alpha = a.number("alpha", o.alpha), o.t0 = a.number("t0", o.t0);
  if constexpr (requires { o.etas; }) {
    if (const auto v = numbers(a, "etas"); !v.empty()) o.etas = {v[0], v[1]};
    if (const auto v = numbers(a, "step_sizes"); !v.empty()) o.step_sizes = {v[0], v[1]};
  }
  if constexpr (requires { o.beta2_decay; }) {
    o.beta2_decay = a.number("beta2_decay", o.beta2_decay), o.d = a.number("d", o.d);
    if (const auto v = numbers(a, "eps"); !v.empty()) o.eps = {v[0], v[1]};
  }
  return std::make_unique<O>(params, o);
}

// In one go; from memory that is not plain; and saved and loaded on the way.
template <class O> void follows(const char* name) {
  for (const Case& c : further().cases.at(name))
    for (const char* how : {"plain", "strided", "resumed"}) {
      SCOPED_TRACE(c.op + " " + c.dtype + " " + c.label + " " + how);
      const size_t count = c.operands.size() / 2;
      Tensors params, gradients;
      for (size_t i = 0; i < count; ++i) {
        const Tensor x = kept(std::get<Input>(c.operands[i]).data);
        params.push_back(how == std::string("strided") ? stack({x, x}, -1).select(-1, 0).detach() : x);
        params[i].requires_grad_();
        gradients.push_back(kept(std::get<Input>(c.operands[count + i]).data));
      }
      auto opt = made<O>(params, c.args);
      std::vector<Tensors> after(count);
      for (int64_t step = 0; step < 100; ++step) {
        for (size_t i = 0; i < count; ++i) params[i].set_grad(gradients[i].select(0, step));
        opt->step();
        if (how == std::string("resumed") && step % 30 == 10) {
          auto next = made<O>(params, c.args);
          next->load_state_dict(opt->state_dict());
          opt = std::move(next);
        }
        if (step == 0 || step == 9 || step == 99)
          for (size_t i = 0; i < count; ++i) after[i].push_back(params[i].detach().clone());
      }
      for (size_t i = 0; i < count; ++i) EXPECT_EQ(difference(stack(after[i]), kept(c.outputs[i].data), 16), "") << i;
      std::string keys;
      const auto saved = opt->state_dict();
      for (const auto& [key, value] : saved.state.at(0)) keys += (keys.empty() ? "" : ",") + key;
      EXPECT_EQ(keys, c.args.text("keys"));
    }
}

TEST(OracleFurther, ASGD) { follows<optim::ASGD>("ASGD"); }
TEST(OracleFurther, Rprop) { follows<optim::Rprop>("Rprop"); }
TEST(OracleFurther, Adafactor) { follows<optim::Adafactor>("Adafactor"); }

TEST(OracleFurther, SWALR) {
  for (const Case& c : further().cases.at("SWALR")) {
    const Tensor w = zeros({1}, {.requires_grad = true});
    optim::SGD opt({w}, {.lr = 0.5});
    const optim::SWALROptions o{.swa_lr = c.args.number("swa_lr", 0),
                                .anneal_epochs = c.args.whole("anneal_epochs", 10),
                                .anneal_strategy = c.args.has("anneal_strategy") ? "linear" : "cos"};
    optim::ExponentialLR before(opt, {.gamma = 0.9});
    auto swa = std::make_unique<optim::SWALR>(opt, o);
    std::vector<double> rates;
    for (int i = 0; i < 30; ++i) {
      rates.push_back(opt.lr());
      if (i < 8) before.step();
      else swa->step();
      if (i != 11) continue;
      const optim::SchedulerState saved = swa->state_dict();
      swa = std::make_unique<optim::SWALR>(opt, o);
      swa->load_state_dict(saved);
    }
    EXPECT_TRUE(allclose(tensor(rates), kept(c.outputs[0].data), {.rtol = 1e-12, .atol = 0})) << c.label;
  }
  const Tensor w = zeros({1}, {.requires_grad = true});
  optim::SGD opt({w}, {.lr = 0.5});
  optim::SWALR at_once(opt, {.swa_lr = 0.2, .anneal_epochs = 0});
  EXPECT_EQ(opt.lr(), 0.2);
}

TEST(NnFurther, SecondDerivatives) {
  manual_seed(4);
  const auto wide = [](const Shape& s) { return randn(s, {.dtype = f64}).requires_grad_(); };
  const Tensor labels = tensor({{1, 0, -1, 2}, {3, -1, 0, 0}});
  const auto smooth = [](const TensorFunction& f, const Tensors& x) {
    EXPECT_TRUE(gradcheck_all(f, x, {.raise = true}));
    EXPECT_TRUE(gradgradcheck_all(f, x, {.raise = true}));
  };
  smooth([&](const Tensors& x) { return Tensors{square(multilabel_margin_loss(x[0], labels))}; }, {wide({2, 4})});
  smooth([&](const Tensors& x) { return Tensors{multilabel_soft_margin_loss(x[0], sigmoid(x[1]), {.weight = x[2]})}; },
         {wide({2, 4}), wide({2, 4}), wide({4})});
  smooth([&](const Tensors& x) { return Tensors{triplet_margin_with_distance_loss(x[0], x[1], x[2])}; },
         {wide({3, 4}), wide({3, 4}), wide({3, 4})});
  const Tensor samples = rand({1, 2, 2}, {.dtype = f64});
  smooth(
      [&](const Tensors& x) {
        return Tensors{square(fractional_max_pool2d(x[0], 2, {.output_size = 3, .random_samples = samples}))};
      },
      {wide({1, 2, 6, 5})});
  smooth(
      [&](const Tensors& x) {
        return Tensors{square(interpolate(x[0], {.size = {3, 4}, .mode = "bicubic", .antialias = true}))};
      },
      {wide({1, 1, 7, 6})});
  smooth([&](const Tensors& x) { return Tensors{square(pad_sequence(x))}; }, {wide({3, 2}), wide({1, 2})});
}

TEST(NnFurther, Layers) {
  manual_seed(1);
  const Tensor x = randn({2, 3, 8, 9}), y = (x.flatten(1) > 0).to(f32);
  const Tensor flat = x.flatten(1), ids = zeros({2, 216}, {.dtype = i64});
  EXPECT_TRUE(equal(nn::MultiLabelMarginLoss{}(flat, ids), multilabel_margin_loss(flat, ids)));
  EXPECT_TRUE(equal(nn::MultiLabelSoftMarginLoss{{.reduction = "sum"}}(flat, y),
                    multilabel_soft_margin_loss(flat, y, {.reduction = Reduce::sum})));
  EXPECT_TRUE(equal(nn::SoftMarginLoss{}(flat, y * 2 - 1), soft_margin_loss(flat, y * 2 - 1)));
  const nn::TripletMarginWithDistanceLoss loss{{.distance_function = manhattan, .margin = 2}};
  EXPECT_TRUE(equal(loss(flat, y, -y), triplet_margin_with_distance_loss(flat, y, -y, loss.options)));

  const nn::FractionalMaxPool2d pool(3, {.output_ratio = 0.5});
  manual_seed(2);
  const auto [values, indices] = pool.with_indices(x);
  EXPECT_EQ(values.shape(), (Shape{2, 3, 4, 4}));
  EXPECT_TRUE(equal(x.flatten(2).gather(2, indices.flatten(2)), values.flatten(2)));
  manual_seed(2);
  EXPECT_TRUE(equal(pool(x), values));
  EXPECT_EQ(nn::FractionalMaxPool3d({2, 1, 2}, {.output_size = {2, 3, 2}})(randn({2, 4, 4, 4})).shape(),
            (Shape{2, 2, 3, 2}));

  EXPECT_EQ(fractional_max_pool2d(arange(16).to(f32).reshape({1, 1, 4, 4}), 2,
                                  {.output_size = 2, .random_samples = zeros({1, 1, 2})})
                .to_vector<float>(),
            (std::vector<float>{5, 7, 13, 15}));
  EXPECT_FALSE(attempt([&] {
    (void)fractional_max_pool2d(x, 2, {.output_size = 2, .random_samples = zeros({2, 3, 2}).requires_grad_()});
  }));
  const Tensors parts = {randn({3, 2}), randn({5, 2}), randn({1, 2})};
  EXPECT_EQ(pad_sequence({ones({0, 2}), ones({0, 2})}).shape(), (Shape{0, 2, 2}));
  EXPECT_TRUE(equal(pad_sequence({parts[0]}), parts[0].unsqueeze(1)));
  EXPECT_EQ(pad_sequence({ones({1}), ones({2})}, {.batch_first = true}).to_vector<float>(),
            (std::vector<float>{1, 0, 1, 1}));
  const Tensors back = unpad_sequence(pad_sequence(parts), {3, 5, 1});
  for (size_t i = 0; i < parts.size(); ++i) EXPECT_TRUE(equal(back[i], parts[i]));
  const auto padded = pad_packed_sequence(pack_sequence(parts));
  EXPECT_TRUE(equal(padded.data, pad_sequence(parts)));
  EXPECT_EQ(padded.lengths, (std::vector<int64_t>{3, 5, 1}));
}

TEST(NnFurther, GluOfAVector) {
  EXPECT_TRUE(allclose(glu(tensor({1., -2., 0., 0.}), 0), tensor({0.5, -1.})));
  EXPECT_THROW((void)glu(tensor(1.), 0), Error);
}

TEST(NnFurther, Errors) {
  const Tensor x = rand({2, 3}), image = rand({1, 1, 5, 5});
  const auto kind = [](const std::function<void()>& f) {
    const auto r = attempt(f);
    return r ? "none" : std::string(name(r.error().kind()));
  };
  EXPECT_EQ(kind([&] { multilabel_margin_loss(x, tensor({{0, 3, 1}, {0, 0, 0}})); }), "index");
  EXPECT_EQ(kind([&] { multilabel_margin_loss(x, tensor({{0, -2, 1}, {0, 0, 0}})); }), "index");
  EXPECT_EQ(kind([&] { multilabel_margin_loss(x, zeros({2, 3})); }), "dtype");
  EXPECT_EQ(kind([&] { multilabel_margin_loss(x, zeros({2, 2}, {.dtype = i64})); }), "shape");
  EXPECT_EQ(kind([&] { multilabel_soft_margin_loss(rand({}), rand({})); }), "shape");
  EXPECT_EQ(kind([&] { triplet_margin_with_distance_loss(x, x, x, {.margin = 0}); }), "argument");
  EXPECT_EQ(kind([&] { triplet_margin_with_distance_loss(x, x, x[0]); }), "shape");
  EXPECT_EQ(kind([&] { fractional_max_pool2d(image, 2, {}); }), "argument");
  EXPECT_EQ(kind([&] { fractional_max_pool2d(image, 2, {.output_size = 2, .output_ratio = 0.5}); }), "argument");
  EXPECT_EQ(kind([&] { fractional_max_pool2d(image, 2, {.output_ratio = 1.5}); }), "argument");
  EXPECT_EQ(kind([&] { fractional_max_pool2d(image, 4, {.output_size = 3}); }), "shape");
  EXPECT_EQ(kind([&] { fractional_max_pool2d(image, INT64_MAX, {.output_size = 1}); }), "shape");
  EXPECT_EQ(kind([&] {
              fractional_max_pool2d(image, 2, {.output_size = 2, .random_samples = ones({1, 1, 2})});
            }),
            "argument");
  EXPECT_EQ(kind([&] { interpolate(image, {.size = 3, .mode = "nearest", .antialias = true}); }), "argument");
  EXPECT_EQ(kind([&] { pad_sequence({}); }), "argument");
  EXPECT_EQ(kind([&] { pad_sequence({x, rand({2, 4})}); }), "shape");
  EXPECT_EQ(kind([&] { pad_sequence({x, x.to(f64)}); }), "dtype");
  EXPECT_EQ(kind([&] { pad_sequence({x}, {.padding_side = "middle"}); }), "argument");
  EXPECT_EQ(kind([&] { unpad_sequence(rand({3, 2}), {4, 1}); }), "argument");
  const Tensor w = ones({2}, {.requires_grad = true});
  EXPECT_EQ(kind([&] { optim::Rprop({w}, {.etas = {1.5, 1.2}}); }), "argument");
  EXPECT_EQ(kind([&] { optim::Rprop({w}, {.step_sizes = {2, 1}}); }), "argument");
  EXPECT_EQ(kind([&] { optim::ASGD({w}, {.t0 = -1}); }), "argument");
  EXPECT_EQ(kind([&] { optim::Adafactor({w}, {.beta2_decay = 0.5}); }), "argument");
  EXPECT_EQ(kind([&] { optim::Adafactor({w}, {.d = 0.5}); }), "argument");
  optim::SGD opt({w});
  EXPECT_EQ(kind([&] { optim::SWALR(opt, {.swa_lr = -1}); }), "argument");
  EXPECT_EQ(kind([&] { optim::SWALR(opt, {.anneal_epochs = -1}); }), "argument");
}

}  // namespace
}  // namespace volta::oracle
