// Numbers that make no sense are refused where they are given, with the name of the field; nothing accepts them in silence.
#include <gtest/gtest.h>
#include <volta/volta.h>

#include <limits>

namespace volta {
namespace {

using namespace optim;
constexpr double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
const std::vector<double> not_numbers{nan, inf, -inf}, below{nan, inf, -inf, -1, -1e-9},
    at_most_0{nan, inf, -inf, -1, 0};
const std::vector<double> no_share{nan, inf, -inf, -0.1, 1.1};

// A field, the values it must not have, one that it may have, and the call that is given them.
struct Field {
  std::string op, name;
  std::vector<double> bad;
  double good;
  std::function<void(double)> use;
};

void refuses(const std::vector<Field>& fields) {
  for (const Field& f : fields) {
    SCOPED_TRACE(f.op + " " + f.name);
    EXPECT_NO_THROW(f.use(f.good));
    for (const double value : f.bad) {
      const auto r = attempt([&] { f.use(value); });
      ASSERT_FALSE(r) << value;
      EXPECT_EQ(r.error().kind(), Error::Kind::argument) << r.error().what();
      EXPECT_EQ(r.error().op(), f.op) << r.error().what();
      EXPECT_NE(std::string(r.error().what()).find(f.name), std::string::npos) << r.error().what();
    }
  }
}

Tensor weight() { return ones({2, 2}, {.requires_grad = true}); }

TEST(NnArguments, Optimizers) {
  std::vector<Field> fields;
  const auto add = [&](const char* op, const char* name, const std::vector<double>& bad, double good, auto make) {
    fields.push_back({op, name, bad, good, [make](double v) { (void)make(v); }});
  };
#define FIELD(Type, field, bad, good)          \
  add(#Type, #field, bad, good, [](double v) { \
    Type::Options o;                           \
    o.field = v;                               \
    Type made({weight()}, o);                  \
    return 0;                                  \
  })
#define BETA(Type, which)                                      \
  add(#Type, "betas", {nan, inf, -0.1, 1}, 0.5, [](double v) { \
    Type::Options o;                                           \
    o.betas.which = v;                                         \
    Type made({weight()}, o);                                  \
    return 0;                                                  \
  })
  FIELD(SGD, lr, below, 0), FIELD(SGD, momentum, below, 0.9), FIELD(SGD, weight_decay, below, 0.1);
  FIELD(SGD, dampening, not_numbers, -0.5);
  FIELD(Adam, lr, below, 0), FIELD(Adam, eps, below, 0), FIELD(Adam, weight_decay, below, 0);
  FIELD(AdamW, lr, below, 0), FIELD(AdamW, eps, below, 0), FIELD(AdamW, weight_decay, below, 0);
  FIELD(Adamax, lr, below, 0), FIELD(Adamax, eps, below, 0), FIELD(Adamax, weight_decay, below, 0);
  FIELD(NAdam, lr, below, 0), FIELD(NAdam, eps, below, 0), FIELD(NAdam, weight_decay, below, 0);
  FIELD(NAdam, momentum_decay, below, 0);
  FIELD(RAdam, lr, below, 0), FIELD(RAdam, eps, below, 0), FIELD(RAdam, weight_decay, below, 0);
  FIELD(RMSprop, lr, below, 0), FIELD(RMSprop, eps, below, 0), FIELD(RMSprop, weight_decay, below, 0);
  FIELD(RMSprop, momentum, below, 0.5), FIELD(RMSprop, alpha, (std::vector<double>{nan, inf, -0.1, 1}), 0.5);
  FIELD(Adagrad, lr, below, 0), FIELD(Adagrad, eps, below, 0), FIELD(Adagrad, lr_decay, below, 0);
  FIELD(Adagrad, initial_accumulator_value, below, 0);
  FIELD(Adadelta, lr, below, 0), FIELD(Adadelta, eps, below, 0), FIELD(Adadelta, rho, no_share, 0.5);
  FIELD(Lion, lr, below, 0), FIELD(Lion, weight_decay, below, 0);
  FIELD(LAMB, lr, below, 0), FIELD(LAMB, eps, below, 0), FIELD(LAMB, weight_decay, below, 0);
  FIELD(Muon, lr, below, 0), FIELD(Muon, eps, below, 0), FIELD(Muon, adamw_lr, below, 0);
  FIELD(Muon, adamw_eps, below, 0), FIELD(Muon, momentum, below, 0), FIELD(Muon, ns_coefficients[1], not_numbers, 1);
  FIELD(LBFGS, lr, below, 1), FIELD(LBFGS, tolerance_grad, below, 0), FIELD(LBFGS, tolerance_change, below, 0);
  BETA(Adam, first), BETA(Adam, second), BETA(AdamW, first), BETA(NAdam, second), BETA(RAdam, first);
  BETA(Adamax, second), BETA(Lion, first), BETA(LAMB, second), BETA(Muon, first);
#undef FIELD
#undef BETA
  for (Field& f : fields) f.name = f.name.substr(0, f.name.find('['));
  fields.push_back({"EMA", "decay", no_share, 0.5, [](double v) { EMA average({weight()}, v); }});
  fields.push_back({"SGD", "lr", below, 0, [](double v) { SGD({weight()}).set_lr(v); }});
  fields.push_back({"clip_grad_norm_", "max_norm", {nan, -1}, 1, [](double v) { nn::clip_grad_norm_({weight()}, v); }});
  fields.push_back({"clip_grad_norm_", "norm_type", {nan, -1, 0}, 2, [](double v) {
                      nn::clip_grad_norm_({weight()}, 1, {.norm_type = v});
                    }});
  refuses(fields);
  EXPECT_THROW(LBFGS({weight()}, {.max_iter = 0}), Error);
  EXPECT_THROW(LBFGS({weight()}, {.max_eval = -1}), Error);
  EXPECT_THROW(LBFGS({weight()}, {.history_size = 0}), Error);
  EXPECT_NO_THROW(LBFGS({weight()}, {.max_iter = std::numeric_limits<int>::max()}));
  EXPECT_THROW(Muon({weight()}, {.ns_steps = 0}), Error);
  SGD opt({weight()});
  EXPECT_THROW(opt.step(Optimizer::Closure()), Error);
}

TEST(NnArguments, Schedulers) {
  const auto on = [](auto make) {
    return [make](double v) {
      SGD opt({weight()}, {.lr = 1, .momentum = 0.9});
      make(opt, v);
    };
  };
  refuses({
      {"StepLR", "gamma", below, 0, on([](SGD& o, double v) { StepLR s(o, {.gamma = v}); })},
      {"StepLR", "step_size", {0, -1}, 1, on([](SGD& o, double v) { StepLR s(o, {.step_size = int64_t(v)}); })},
      {"MultiStepLR", "gamma", below, 0, on([](SGD& o, double v) { MultiStepLR s(o, {.gamma = v}); })},
      {"MultiStepLR", "milestones", {-1}, 0, on([](SGD& o, double v) {
         MultiStepLR s(o, {.milestones = {int64_t(v)}});
       })},
      {"ConstantLR", "factor", no_share, 0, on([](SGD& o, double v) { ConstantLR s(o, {.factor = v}); })},
      {"ConstantLR", "total_iters", {-1}, 0, on([](SGD& o, double v) {
         ConstantLR s(o, {.total_iters = int64_t(v)});
       })},
      {"ExponentialLR", "gamma", below, 0, on([](SGD& o, double v) { ExponentialLR s(o, {.gamma = v}); })},
      {"PolynomialLR", "power", below, 0, on([](SGD& o, double v) { PolynomialLR s(o, {.power = v}); })},
      {"PolynomialLR", "total_iters", {0, -1}, 1, on([](SGD& o, double v) {
         PolynomialLR s(o, {.total_iters = int64_t(v)});
       })},
      {"LinearLR", "start_factor", {nan, inf, -1, 0, 1.1}, 1, on([](SGD& o, double v) {
         LinearLR s(o, {.start_factor = v});
       })},
      {"LinearLR", "end_factor", no_share, 0, on([](SGD& o, double v) { LinearLR s(o, {.end_factor = v}); })},
      {"CosineAnnealingLR", "eta_min", below, 0, on([](SGD& o, double v) { CosineAnnealingLR s(o, {.eta_min = v}); })},
      {"CosineAnnealingLR", "t_max", {0, -1}, 1, on([](SGD& o, double v) {
         CosineAnnealingLR s(o, {.t_max = int64_t(v)});
       })},
      {"CosineAnnealingWarmRestarts", "eta_min", below, 0,
       on([](SGD& o, double v) { CosineAnnealingWarmRestarts s(o, {.eta_min = v}); })},
      {"OneCycleLR", "max_lr", at_most_0, 1,
       on([](SGD& o, double v) { OneCycleLR s(o, {.max_lr = v, .total_steps = 9}); })},
      {"OneCycleLR", "pct_start", no_share, 0.5,
       on([](SGD& o, double v) { OneCycleLR s(o, {.max_lr = 1, .total_steps = 9, .pct_start = v}); })},
      {"OneCycleLR", "base_momentum", no_share, 0.5,
       on([](SGD& o, double v) { OneCycleLR s(o, {.max_lr = 1, .total_steps = 9, .base_momentum = v}); })},
      {"OneCycleLR", "max_momentum", no_share, 0.5,
       on([](SGD& o, double v) { OneCycleLR s(o, {.max_lr = 1, .total_steps = 9, .max_momentum = v}); })},
      {"OneCycleLR", "div_factor", at_most_0, 1,
       on([](SGD& o, double v) { OneCycleLR s(o, {.max_lr = 1, .total_steps = 9, .div_factor = v}); })},
      {"OneCycleLR", "final_div_factor", at_most_0, 1,
       on([](SGD& o, double v) { OneCycleLR s(o, {.max_lr = 1, .total_steps = 9, .final_div_factor = v}); })},
      {"OneCycleLR", "epochs", {-2}, 2, on([](SGD& o, double v) {
         OneCycleLR s(o, {.max_lr = 1, .epochs = int64_t(v), .steps_per_epoch = int64_t(v)});
       })},
      {"CyclicLR", "base_lr", below, 0, on([](SGD& o, double v) { CyclicLR s(o, {.base_lr = v, .max_lr = 1}); })},
      {"CyclicLR", "max_lr", below, 1, on([](SGD& o, double v) { CyclicLR s(o, {.base_lr = 0, .max_lr = v}); })},
      {"CyclicLR", "gamma", below, 1, on([](SGD& o, double v) { CyclicLR s(o, {.max_lr = 1, .gamma = v}); })},
      {"CyclicLR", "base_momentum", no_share, 0.5,
       on([](SGD& o, double v) { CyclicLR s(o, {.max_lr = 1, .base_momentum = v}); })},
      {"WarmupLR", "start_factor", no_share, 0.5, on([](SGD& o, double v) { WarmupLR s(o, {.start_factor = v}); })},
      {"WarmupLR", "steps", {0, -1}, 1, on([](SGD& o, double v) { WarmupLR s(o, {.steps = int64_t(v)}); })},
      {"SequentialLR", "milestones", {-1}, 1, on([](SGD& o, double v) {
         SequentialLR s(o, {ConstantLR(o), ConstantLR(o)}, {int64_t(v)});
       })},
      {"ReduceLROnPlateau", "factor", {nan, inf, -1, 0, 1}, 0.5, on([](SGD& o, double v) {
         ReduceLROnPlateau s(o, {.factor = v});
       })},
      {"ReduceLROnPlateau", "patience", {-1}, 0, on([](SGD& o, double v) {
         ReduceLROnPlateau s(o, {.patience = int64_t(v)});
       })},
      {"ReduceLROnPlateau", "threshold", below, 0,
       on([](SGD& o, double v) { ReduceLROnPlateau s(o, {.threshold = v}); })},
      {"ReduceLROnPlateau", "cooldown", {-1}, 0, on([](SGD& o, double v) {
         ReduceLROnPlateau s(o, {.cooldown = int64_t(v)});
       })},
      {"ReduceLROnPlateau", "min_lr", below, 0, on([](SGD& o, double v) { ReduceLROnPlateau s(o, {.min_lr = v}); })},
      {"ReduceLROnPlateau", "eps", below, 0, on([](SGD& o, double v) { ReduceLROnPlateau s(o, {.eps = v}); })},
      {"scheduler", "rate", not_numbers, 1, on([](SGD& o, double v) { LambdaLR s(o, [v](int64_t) { return v; }); })},
  });
  SGD opt({weight()}, {.lr = 1, .momentum = 0.9});
  EXPECT_THROW(LambdaLR(opt, LambdaLR::Factor()), Error);
  EXPECT_THROW(OneCycleLR(opt, {.max_lr = 1, .epochs = int64_t(1) << 40, .steps_per_epoch = int64_t(1) << 40}), Error);
  CosineAnnealingWarmRestarts far(opt, {.t_0 = 1, .t_mult = int64_t(1) << 62});
  for (int i = 0; i < 4; ++i) EXPECT_NO_THROW(far.step());
  StepLR step(opt, {});
  for (const double epoch : {nan, inf, -1., 1e300}) {
    SchedulerState state = step.state_dict();
    state["last_epoch"] = epoch;
    EXPECT_THROW(step.load_state_dict(state), Error) << epoch;
  }
}

TEST(NnArguments, SavedStates) {
  const Tensor w = weight();
  Adam opt({w});
  w.square().sum().backward();
  opt.step();
  for (const double bad : {nan, inf, -1.}) {
    for (const char* key : {"lr", "eps", "weight_decay"}) {
      optim::StateDict saved = opt.state_dict();
      saved.param_groups[0].options[key] = {bad};
      EXPECT_THROW(opt.load_state_dict(saved), Error) << key << " " << bad;
    }
    optim::StateDict saved = opt.state_dict();
    saved.state[0]["step"] = tensor<double>(bad);
    EXPECT_THROW(opt.load_state_dict(saved), Error) << bad;
  }
  optim::StateDict wrong = opt.state_dict();
  wrong.state[0]["step"] = Tensor();
  EXPECT_THROW(opt.load_state_dict(wrong), Error);
  EXPECT_EQ(opt.lr(), 1e-3);

  LBFGS quasi({weight()});
  optim::StateDict partial = quasi.state_dict();
  partial.state[0]["n_iter"] = tensor<int64_t>(1);
  EXPECT_THROW(quasi.load_state_dict(partial), Error);

  EMA ema({weight()});
  EXPECT_THROW(ema.load({ones({2})}, 1), Error);
  EXPECT_THROW(ema.load({ones({2, 2})}, -1), Error);
  EXPECT_THROW(ema.copy_to({ones({3, 2, 2})}), Error);
}

TEST(NnArguments, Layers) {
  const auto whole = [](auto make) { return [make](double v) { make(int64_t(v)); }; };
  const std::vector<double> none{0, -1, -0x1p62};
  refuses({
      {"Linear", "in_features", none, 2, whole([](int64_t n) { nn::Linear layer(n, 2); })},
      {"Linear", "out_features", none, 2, whole([](int64_t n) { nn::Linear layer(2, n); })},
      {"Bilinear", "in1_features", none, 2, whole([](int64_t n) { nn::Bilinear layer(n, 2, 2); })},
      {"Bilinear", "in2_features", none, 2, whole([](int64_t n) { nn::Bilinear layer(2, n, 2); })},
      {"Conv2d", "in_channels", none, 2, whole([](int64_t n) { nn::Conv2d layer(n, 2, 1); })},
      {"Conv2d", "kernel_size", none, 2, whole([](int64_t n) { nn::Conv2d layer(2, 2, n); })},
      {"Conv2d", "groups", none, 2, whole([](int64_t n) { nn::Conv2d layer(2, 2, 1, {.groups = n}); })},
      {"ConvTranspose2d", "kernel_size", none, 2, whole([](int64_t n) { nn::ConvTranspose2d layer(2, 2, n); })},
      {"Embedding", "num_embeddings", none, 2, whole([](int64_t n) { nn::Embedding layer(n, 2); })},
      {"EmbeddingBag", "embedding_dim", none, 2, whole([](int64_t n) { nn::EmbeddingBag layer(2, n); })},
      {"LSTM", "hidden_size", none, 2, whole([](int64_t n) { nn::LSTM layer(2, n); })},
      {"GRU", "num_layers", {0, -1, 0x1p40, 0x1p62}, 2, whole([](int64_t n) {
         nn::GRU layer(2, 2, {.num_layers = n});
       })},
      {"GRUCell", "input_size", none, 2, whole([](int64_t n) { nn::GRUCell layer(n, 2); })},
      {"BatchNorm2d", "num_features", none, 2, whole([](int64_t n) { nn::BatchNorm2d layer(n); })},
      {"InstanceNorm1d", "num_features", none, 2, whole([](int64_t n) { nn::InstanceNorm1d layer(n); })},
      {"GroupNorm", "num_groups", none, 2, whole([](int64_t n) { nn::GroupNorm layer(n, 4); })},
      {"LayerNorm", "size", none, 2, whole([](int64_t n) { nn::LayerNorm layer(n); })},
      {"RMSNorm", "size", none, 2, whole([](int64_t n) { nn::RMSNorm layer(n); })},
      {"PReLU", "num_parameters", none, 2, whole([](int64_t n) { nn::PReLU layer(n); })},
      {"PixelShuffle", "upscale_factor", none, 2, whole([](int64_t n) { nn::PixelShuffle layer(n); })},
      {"ChannelShuffle", "groups", none, 2, whole([](int64_t n) { nn::ChannelShuffle layer(n); })},
      {"PixelUnshuffle", "downscale_factor", none, 2, whole([](int64_t n) { nn::PixelUnshuffle layer(n); })},
      {"LocalResponseNorm", "size", none, 2, whole([](int64_t n) { nn::LocalResponseNorm layer(n); })},
      {"MultiheadAttention", "num_heads", none, 2, whole([](int64_t n) { nn::MultiheadAttention layer(4, n); })},
      {"MultiheadAttention", "kdim", none, 2,
       whole([](int64_t n) { nn::MultiheadAttention layer(4, 2, {.kdim = n}); })},
      {"SinusoidalPositions", "width", none, 2, whole([](int64_t n) { nn::SinusoidalPositions layer(n); })},
      {"repeat", "modules", {-1, 0x1p62}, 2, whole([](int64_t n) { nn::repeat<nn::ReLU>(n); })},

      {"Dropout", "p", no_share, 0.5, [](double v) { nn::Dropout layer(v); }},
      {"Dropout2d", "p", no_share, 0.5, [](double v) { nn::Dropout2d layer(v); }},
      {"AlphaDropout", "p", no_share, 0.5, [](double v) { nn::AlphaDropout layer(v); }},
      {"dropout", "p", no_share, 0.5, [](double v) { dropout(ones({2}), v); }},
      {"LSTM", "dropout", no_share, 0.5, [](double v) { nn::LSTM layer(2, 2, {.dropout = v}); }},
      {"MultiheadAttention", "dropout", no_share, 0.5,
       [](double v) { nn::MultiheadAttention layer(4, 2, {.dropout = v}); }},
      {"scaled_dot_product_attention", "dropout_p", no_share, 0.5,
       [](double v) {
         scaled_dot_product_attention(ones({2, 2}), ones({2, 2}), ones({2, 2}), {.dropout_p = v});
       }},
      {"scaled_dot_product_attention", "scale", not_numbers, -1,
       [](double v) {
         scaled_dot_product_attention(ones({2, 2}), ones({2, 2}), ones({2, 2}), {.scale = v});
       }},
      {"BatchNorm1d", "eps", below, 0, [](double v) { nn::BatchNorm1d layer(2, {.eps = v}); }},
      {"BatchNorm1d", "momentum", no_share, 0.5, [](double v) { nn::BatchNorm1d layer(2, {.momentum = v}); }},
      {"InstanceNorm2d", "eps", below, 0, [](double v) { nn::InstanceNorm2d layer(2, {.eps = v}); }},
      {"InstanceNorm2d", "momentum", no_share, 0.5, [](double v) { nn::InstanceNorm2d layer(2, {.momentum = v}); }},
      {"LayerNorm", "eps", below, 0, [](double v) { nn::LayerNorm layer(2, {.eps = v}); }},
      {"RMSNorm", "eps", below, 0, [](double v) { nn::RMSNorm layer(2, {.eps = v}); }},
      {"GroupNorm", "eps", below, 0, [](double v) { nn::GroupNorm layer(2, 2, {.eps = v}); }},
      {"layer_norm", "eps", below, 1,
       [](double v) {
         layer_norm(ones({2, 2}), {2}, {}, {}, v);
       }},
      {"rms_norm", "eps", below, 1,
       [](double v) {
         rms_norm(ones({2, 2}), {2}, {}, v);
       }},
      {"group_norm", "eps", below, 1,
       [](double v) {
         group_norm(ones({2, 2, 2}), 2, {}, {}, v);
       }},
      {"batch_norm", "eps", below, 1,
       [](double v) {
         batch_norm(ones({2, 2}), {}, {}, {}, {}, true, 0.1, v);
       }},
      {"batch_norm", "momentum", not_numbers, 1,
       [](double v) {
         batch_norm(ones({2, 2}), {}, {}, {}, {}, true, v);
       }},
      {"instance_norm", "eps", below, 1,
       [](double v) {
         instance_norm(ones({2, 2, 2}), {}, {}, {}, {}, true, 0.1, v);
       }},
      {"normalize", "eps", below, 1,
       [](double v) {
         normalize(ones({2, 2}), 2, 1, v);
       }},
      {"cosine_similarity", "eps", below, 1,
       [](double v) {
         cosine_similarity(ones({2, 2}), ones({2, 2}), 1, v);
       }},
      {"pairwise_distance", "eps", not_numbers, 1,
       [](double v) {
         pairwise_distance(ones({2, 2}), ones({2, 2}), 2, v);
       }},
      {"Embedding", "max_norm", {nan, -1, -inf}, 0, [](double v) { nn::Embedding layer(2, 2, {.max_norm = v}); }},
      {"Embedding",
       "norm_type",
       {nan, -1, 0},
       1,
       [](double v) { nn::Embedding layer(2, 2, {.max_norm = 1, .norm_type = v}); }},
      {"EmbeddingBag", "max_norm", {nan, -1}, 1, [](double v) { nn::EmbeddingBag layer(2, 2, {.max_norm = v}); }},
      {"embedding_bag",
       "max_norm",
       {nan, -1},
       1,
       [](double v) {
         embedding_bag(tensor({{0}}), ones({2, 2}), {}, {.max_norm = v});
       }},
      {"LeakyReLU", "negative_slope", not_numbers, -1, [](double v) { nn::LeakyReLU layer(v); }},
      {"ELU", "alpha", not_numbers, -1, [](double v) { nn::ELU layer(v); }},
      {"CELU", "alpha", {nan, inf, 0}, -1, [](double v) { nn::CELU layer(v); }},
      {"celu", "alpha", {0}, -1, [](double v) { celu(ones({2}), v); }},
      {"Softplus", "beta", {nan, inf, 0}, 1, [](double v) { nn::Softplus layer(v); }},
      {"Softplus", "threshold", {nan}, 1, [](double v) { nn::Softplus layer(1, v); }},
      {"Hardtanh", "max_val", {nan, -1, -2}, 1, [](double v) { nn::Hardtanh layer(-1, v); }},
      {"Threshold", "threshold", {nan}, 1, [](double v) { nn::Threshold layer(v, 0); }},
      {"Softshrink", "lambda", below, 0, [](double v) { nn::Softshrink layer(v); }},
      {"Hardshrink", "lambda", below, 0, [](double v) { nn::Hardshrink layer(v); }},
      {"PReLU", "init", not_numbers, -1, [](double v) { nn::PReLU layer(1, v); }},
      {"RReLU", "lower", {nan, inf, -inf}, 0.1, [](double v) { nn::RReLU layer(v); }},
      {"SinusoidalPositions", "base", at_most_0, 2, [](double v) { nn::SinusoidalPositions layer(2, true, v); }},
      {"rotary_positions", "base", at_most_0, 2,
       [](double v) {
         rotary_positions(ones({2, 2}), {.base = v});
       }},
      {"SpectralNorm", "n_power_iterations", {-1, 0x1p62}, 2, whole([](int64_t n) {
         nn::spectral_norm(nn::Linear(2, 2), {.n_power_iterations = n})(ones({1, 2}));
       })},
      {"SpectralNorm", "eps", at_most_0, 1e-9, [](double v) { nn::spectral_norm(nn::Linear(2, 2), {.eps = v}); }},
  });
}

TEST(NnArguments, Losses) {
  const Tensor x = rand({2, 3}), y = ones({2, 3});
  refuses({
      {"smooth_l1_loss", "beta", {nan, -1}, 0, [=](double v) { smooth_l1_loss(x, y, {.beta = v}); }},
      {"huber_loss", "delta", {nan, -1, 0}, 1, [=](double v) { huber_loss(x, y, {.delta = v}); }},
      {"cross_entropy", "label_smoothing", no_share, 0.5,
       [=](double v) {
         cross_entropy(x, tensor({0, 1}), {.label_smoothing = v});
       }},
      {"multi_margin_loss", "margin", not_numbers, 0,
       [=](double v) {
         multi_margin_loss(x, tensor({0, 1}), {.margin = v});
       }},
      {"sigmoid_focal_loss", "gamma", below, 0, [=](double v) { sigmoid_focal_loss(x, y, {.gamma = v}); }},
      {"sigmoid_focal_loss", "alpha", not_numbers, -1, [=](double v) { sigmoid_focal_loss(x, y, {.alpha = v}); }},
      {"gaussian_nll_loss", "eps", {nan, -1, 0}, 1, [=](double v) { gaussian_nll_loss(x, x, y, {.eps = v}); }},
      {"poisson_nll_loss", "eps", below, 0, [=](double v) { poisson_nll_loss(x, y, {.eps = v}); }},
      {"hinge_embedding_loss", "margin", not_numbers, -1, [=](double v) { hinge_embedding_loss(x, y, {.margin = v}); }},
      {"margin_ranking_loss", "margin", not_numbers, -1,
       [=](double v) { margin_ranking_loss(x, y, y, {.margin = v}); }},
      {"cosine_embedding_loss", "margin", not_numbers, -1,
       [=](double v) { cosine_embedding_loss(x, y, ones({2}), {.margin = v}); }},
      {"triplet_margin_loss", "margin", at_most_0, 1, [=](double v) { triplet_margin_loss(x, y, -y, {.margin = v}); }},
      {"triplet_margin_loss", "p", {nan, -1}, 2, [=](double v) { triplet_margin_loss(x, y, -y, {.p = v}); }},
      {"triplet_margin_loss", "eps", not_numbers, 0, [=](double v) { triplet_margin_loss(x, y, -y, {.eps = v}); }},
      {"local_response_norm", "alpha", not_numbers, 1,
       [=](double v) {
         local_response_norm(ones({1, 2, 3}), 2, v);
       }},
      {"xavier_uniform_", "gain", below, 1,
       [](double v) {
         nn::init::xavier_uniform_(ones({2, 2}), v);
       }},
      {"xavier_normal_", "gain", below, 1,
       [](double v) {
         nn::init::xavier_normal_(ones({2, 2}), v);
       }},
      {"kaiming_normal_", "a", not_numbers, 1,
       [](double v) {
         nn::init::kaiming_normal_(ones({2, 2}), {.a = v});
       }},
      {"orthogonal_", "gain", not_numbers, -1,
       [](double v) {
         nn::init::orthogonal_(ones({2, 2}), v);
       }},
      {"sparse_", "sparsity", no_share, 0.5,
       [](double v) {
         nn::init::sparse_(ones({2, 2}), v);
       }},
  });
}

TEST(NnArguments, NothingChangesOnError) {
  const Tensor table = ones({3, 2});
  EXPECT_THROW(embedding(tensor({0, 1}), table, EmbeddingOptions{.max_norm = nan}), Error);
  EXPECT_THROW(embedding(tensor({0, 1}), table, EmbeddingOptions{.max_norm = -1}), Error);
  EXPECT_TRUE(equal(table, ones({3, 2})));
}

}  // namespace
}  // namespace volta
