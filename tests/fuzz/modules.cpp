// The remaining layers and optimizers: wrappers of functions, cells, stacks, containers.
#include "source.h"

namespace volta::fuzz {
namespace {

using Tensors = std::vector<Tensor>;

// A layer made by `make` and called with any tensor, or with [n, c, ...] of some axes.
template <class Make> void add(std::vector<Call>& calls, const char* name, Make make, int axes = -1) {
  calls.push_back({name, [make, axes](Source& s) {
                     const auto layer = make(s);
                     if (axes < 0 || s.chance(10)) return Tensors{layer(s.tensor())};
                     Shape shape{s.within(0, 3), s.within(1, 3)};
                     for (int i = 0; i < axes; ++i) shape.push_back(s.within(1, 7));
                     return Tensors{layer(s.tensor(shape, f32))};
                   }});
}

#define PLAIN(Type) add(calls, #Type, [](Source&) { return nn::Type(); })
#define NUMBER(Type) add(calls, #Type, [](Source& s) { return nn::Type(s.number()); })
#define AXIS(Type) add(calls, #Type, [](Source& s) { return nn::Type(s.axis()); })
#define SIDES(Type, axes) \
  add(                    \
      calls, #Type, [](Source& s) { return nn::Type(s.few(-1)); }, axes)
#define FEATURES(Type, axes) \
  add(                       \
      calls, #Type, [](Source& s) { return nn::Type(s.few()); }, axes)
#define CHANCE(Type) add(calls, #Type, [](Source& s) { return nn::Type(s.probability()); })

void add_elementwise(std::vector<Call>& calls) {
  PLAIN(ReLU), PLAIN(ReLU6), PLAIN(SELU), PLAIN(Sigmoid), PLAIN(SiLU), PLAIN(Mish), PLAIN(Tanh), PLAIN(Softsign);
  PLAIN(Hardsigmoid), PLAIN(Hardswish), PLAIN(LogSigmoid), PLAIN(Tanhshrink), PLAIN(Identity);
  NUMBER(LeakyReLU), NUMBER(ELU), NUMBER(Softshrink), NUMBER(Hardshrink);
  AXIS(Softmax), AXIS(LogSoftmax);
  CHANCE(Dropout1d), CHANCE(Dropout3d), CHANCE(FeatureAlphaDropout);
  add(calls, "Threshold", [](Source& s) {
    const double limit = s.number();
    return nn::Threshold(limit, s.number());
  });
  SIDES(ZeroPad1d, 1), SIDES(ZeroPad2d, 2), SIDES(ReflectionPad1d, 1), SIDES(ReflectionPad3d, 3);
  SIDES(ReplicationPad1d, 1), SIDES(ReplicationPad3d, 3), SIDES(CircularPad2d, 2), SIDES(CircularPad3d, 3);
  add(
      calls, "ConstantPad1d", [](Source& s) { return nn::ConstantPad1d(s.few(-1), 1); }, 1);
  add(
      calls, "ConstantPad2d",
      [](Source& s) {
        return nn::ConstantPad2d({s.few(-1), s.few(-1), s.few(-1), s.few(-1)}, 1);
      },
      2);
  add(
      calls, "ConstantPad3d", [](Source& s) { return nn::ConstantPad3d(s.few(-1), s.number()); }, 3);
  add(
      calls, "LocalResponseNorm", [](Source& s) { return nn::LocalResponseNorm(s.few()); }, 2);
  FEATURES(BatchNorm1d, 1), FEATURES(BatchNorm3d, 3), FEATURES(InstanceNorm2d, 2), FEATURES(InstanceNorm3d, 3);
  FEATURES(RMSNorm, 1);
}

template <int n> void add_pools(std::vector<Call>& calls, const char* const (&names)[8]) {
  add(
      calls, names[0], [](Source& s) { return nn::MaxPool<n>(s.per_axis(n), {.padding = s.per_axis(n, 0)}); }, n);
  add(
      calls, names[1], [](Source& s) { return nn::AvgPool<n>(s.per_axis(n), {.padding = s.per_axis(n, 0)}); }, n);
  add(
      calls, names[2],
      [](Source& s) {
        const double p = s.number();
        return nn::LPPool<n>(p, s.per_axis(n));
      },
      n);
  add(
      calls, names[3], [](Source& s) { return nn::AdaptiveAvgPool<n>(s.per_axis(n)); }, n);
  add(
      calls, names[4], [](Source& s) { return nn::AdaptiveMaxPool<n>(s.per_axis(n)); }, n);
  calls.push_back({names[5], [](Source& s) {
                     const Tensor x = s.tensor(), i = s.indices(x.shape(), 9);
                     return Tensors{nn::MaxUnpool<n>(s.per_axis(n))(x, i)};
                   }});
  if constexpr (n > 1)
    add(
        calls, names[6],
        [](Source& s) { return nn::FractionalMaxPool<n>(s.per_axis(n), {.output_size = s.per_axis(n)}); }, n);
  add(
      calls, names[7],
      [](Source& s) {
        return nn::Upsample(
            {.scale_factor = s.number(), .mode = s.choice<InterpolateMode>(), .antialias = s.chance(30)});
      },
      n);
}

void add_cells(std::vector<Call>& calls) {
  calls.push_back({"RNNCell", [](Source& s) {
                     const int64_t in = s.few(), hidden = s.few();
                     const nn::RNNCell cell(in, hidden,
                                            {.bias = s.chance(50), .nonlinearity = s.choice<nn::Nonlinearity>()});
                     return Tensors{cell(s.tensor({s.within(0, 4), in}, f32), s.chance(50) ? s.tensor() : Tensor())};
                   }});
  calls.push_back({"GRUCell", [](Source& s) {
                     const int64_t in = s.few();
                     return Tensors{nn::GRUCell(in, s.few())(s.tensor({s.within(0, 4), in}, f32))};
                   }});
  calls.push_back({"LSTMCell", [](Source& s) {
                     const int64_t in = s.few(), hidden = s.few(), n = s.within(0, 4);
                     nn::LSTMState state;
                     if (s.chance(50)) state = {s.tensor({n, hidden}, f32), s.tensor({n, hidden}, f32)};
                     return Tensors{nn::LSTMCell(in, hidden)(s.tensor({n, in}, f32), state).h};
                   }});
}

void add_stacks(std::vector<Call>& calls) {
  const auto options = [](Source& s) {
    return nn::TransformerOptions{.dim_feedforward = s.few(), .dropout = s.probability(), .norm_first = s.chance(50)};
  };
  const auto words = [](Source& s) { return s.tensor({s.within(0, 4), s.within(0, 3), 8}, f32); };
  calls.push_back({"TransformerDecoderLayer", [=](Source& s) {
                     const nn::TransformerDecoderLayer layer(8, 2, options(s));
                     const Tensor a = words(s);
                     return Tensors{layer(a, s.chance(60) ? a : words(s), {.tgt_is_causal = s.chance(50)})};
                   }});
  calls.push_back({"TransformerEncoder", [=](Source& s) {
                     const nn::TransformerEncoder stack(nn::TransformerEncoderLayer(8, 2, options(s)), s.few());
                     return Tensors{stack(words(s))};
                   }});
  calls.push_back({"Transformer", [=](Source& s) {
                     const nn::Transformer model(8, 2, s.few(), s.few(), options(s));
                     const Tensor a = words(s);
                     return Tensors{model(a, a)};
                   }});
  add(
      calls, "SinusoidalPositions", [](Source& s) { return nn::SinusoidalPositions(s.few()); }, 1);
  add(
      calls, "RotaryPositions", [](Source& s) { return nn::RotaryPositions({.offset = s.size()}); }, 1);
  add(
      calls, "WeightNorm", [](Source& s) { return nn::weight_norm(nn::Linear(3, 4), s.axis()); }, 1);
  add(
      calls, "SpectralNorm",
      [](Source& s) {
        return nn::spectral_norm(nn::Linear(3, 4),
                                 {.n_power_iterations = s.few(0), .eps = s.chance(80) ? 1e-12 : s.number()});
      },
      1);
  add(
      calls, "Sequential",
      [](Source& s) { return nn::Sequential(nn::Linear(s.few(), 4), nn::ReLU(), nn::Linear(4, s.few())); }, 1);
  add(
      calls, "Unfold",
      [](Source& s) {
        return nn::Unfold(s.per_axis(2), {s.per_axis(2), s.per_axis(2, 0), s.per_axis(2)});
      },
      2);
  add(
      calls, "Fold",
      [](Source& s) {
        const PerAxis size = s.per_axis(2, 3);
        return nn::Fold(size, s.per_axis(2));
      },
      1);
  calls.push_back({"Bilinear", [](Source& s) {
                     const int64_t a = s.few(), b = s.few(), n = s.within(0, 3);
                     return Tensors{nn::Bilinear(a, b, s.few())(s.tensor({n, a}, f32), s.tensor({n, b}, f32))};
                   }});
  calls.push_back({"EmbeddingBag", [](Source& s) {
                     const int64_t rows = s.few();
                     const nn::EmbeddingBag bag(rows, s.few(), {.mode = s.choice<BagMode>()});
                     return Tensors{bag(s.indices({s.within(0, 3), s.within(0, 4)}, rows))};
                   }});
  calls.push_back({"generate_square_subsequent_mask",
                   [](Source& s) { return Tensors{nn::generate_square_subsequent_mask(s.size())}; }});
}

void add_training(std::vector<Call>& calls) {
  calls.push_back({"LBFGS", [](Source& s) {
                     Tensor w = s.tensor(s.shape(), f64).detach().requires_grad_();
                     optim::LBFGS opt({w}, {.lr = s.number(),
                                            .max_iter = int(s.few()),
                                            .history_size = int(s.few()),
                                            .line_search_fn = s.choice<optim::LineSearch>()});
                     opt.step([&] {
                       opt.zero_grad();
                       const Tensor loss = w.square().sum();
                       loss.backward();
                       return loss;
                     });
                     return Tensors{};
                   }});
  calls.push_back({"ReduceLROnPlateau", [](Source& s) {
                     const Tensor w = ones({2}, {.requires_grad = true});
                     optim::SGD opt({w});
                     optim::ReduceLROnPlateau plateau(opt, {.mode = s.choice<optim::Plateau>(),
                                                            .factor = s.probability(),
                                                            .patience = s.size(),
                                                            .threshold = s.number(),
                                                            .threshold_mode = s.choice<optim::Threshold>(),
                                                            .cooldown = s.size(),
                                                            .min_lr = s.number()});
                     for (int i = 0; i < 4; ++i) plateau.step(s.number());
                     plateau.load_state_dict(plateau.state_dict());
                     return Tensors{};
                   }});
  calls.push_back({"clip_grad_norm_", [](Source& s) {
                     const Tensor w = s.tensor(s.shape(), f32).detach();
                     w.set_grad(s.tensor(w.shape(), f32).detach());
                     nn::clip_grad_norm_({w}, s.number(),
                                         {.norm_type = s.number(), .error_if_nonfinite = s.chance(50)});
                     nn::clip_grad_value_({w}, s.number());
                     return Tensors{};
                   }});
  calls.push_back({"EMA", [](Source& s) {
                     const Tensor w = s.tensor(s.shape(), s.dtype()).detach();
                     optim::EMA ema({w}, s.probability());
                     ema.update(), ema.update();
                     ema.load({s.tensor()}, s.size());
                     return Tensors{};
                   }});
}

}  // namespace

void add_modules(std::vector<Call>& calls) {
  add_elementwise(calls), add_cells(calls), add_stacks(calls), add_training(calls);
  add_pools<1>(calls, {"MaxPool1d", "AvgPool1d", "LPPool1d", "AdaptiveAvgPool1d", "AdaptiveMaxPool1d", "MaxUnpool1d",
                       "", "Upsample"});
  add_pools<2>(calls, {"MaxPool2d", "AvgPool2d", "LPPool2d", "AdaptiveAvgPool2d", "AdaptiveMaxPool2d", "MaxUnpool2d",
                       "FractionalMaxPool2d", "Upsample"});
  add_pools<3>(calls, {"MaxPool3d", "AvgPool3d", "LPPool3d", "AdaptiveAvgPool3d", "AdaptiveMaxPool3d", "MaxUnpool3d",
                       "FractionalMaxPool3d", "Upsample"});
}

}  // namespace volta::fuzz
