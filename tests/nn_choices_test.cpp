// Choices: every option that is one of a few takes the enum's values and PyTorch's names, and lists them when given another.
#include <gtest/gtest.h>
#include <volta/volta.h>

namespace volta {
namespace {

// An option as the calls below take it: by its number in the enum, by its name, and by a name that there is not.
struct Given {
  int value = -1;
  const char* name = nullptr;
  template <class E> operator Choice<E>() const { return name ? Choice<E>(name) : Choice<E>(E(value)); }
};

// A use of a choice: the result for what is given, which tells different values apart unless `one_result`.
struct Use {
  std::string op, field;
  std::vector<const char*> names;
  std::function<Tensor(const Given&)> run;
  bool one_result = false;
};

template <class Schedule, class Options> Tensor rates_of(const Options& options) {
  const Tensor w = zeros({1}, {.requires_grad = true});
  optim::SGD opt({w}, {.lr = 0.5, .momentum = 0.9});
  Schedule schedule(opt, options);
  std::vector<double> rates;
  for (int i = 0; i < 7; ++i) rates.push_back(opt.lr()), schedule.step();
  return tensor(rates);
}

Tensor plateau_rates(const optim::ReduceLROnPlateauOptions& options) {
  const Tensor w = zeros({1}, {.requires_grad = true});
  optim::SGD opt({w}, {.lr = 1});
  optim::ReduceLROnPlateau schedule(opt, options);
  std::vector<double> rates;
  for (const double metric : {10., 10.05, 9.3, 9.2, 9.1, 12., 12.5, 13.})
    schedule.step(metric), rates.push_back(opt.lr());
  return tensor(rates);
}

Tensor minimized(const optim::LBFGSOptions& options) {
  const Tensor w = tensor<double>({-1.2, 1}).requires_grad_();
  optim::LBFGS opt({w}, options);
  opt.step([&] {
    opt.zero_grad();
    const Tensor x = w.select(0, 0), y = w.select(0, 1), loss = 100 * square(y - x * x) + square(1 - x);
    loss.backward();
    return loss;
  });
  return w.detach().clone();
}

Tensor moved(const optim::MuonOptions& options) {
  const Tensor w = arange(0, 6, 1, {.dtype = f64}).reshape({3, 2}).requires_grad_();
  optim::Muon opt({w}, options);
  w.square().sum().backward();
  opt.step();
  return w.detach().clone();
}

Tensor drawn(const std::function<void(const Tensor&)>& fill) {
  manual_seed(1);
  const Tensor w = empty({4, 6});
  fill(w);
  return w;
}

std::vector<Use> uses() {
  manual_seed(7);
  const Tensor x = randn({3, 4}), y = rand({3, 4}) + 0.5, signs = where(y > 1, 1, -1), labels = tensor({1, 0, 2});
  const Tensor image = randn({1, 2, 5, 5}), line = randn({1, 2, 5}), volume = randn({1, 2, 3, 3, 3});
  const std::vector<const char*> reductions{"none", "mean", "sum"};
  std::vector<Use> list;
  const auto loss = [&](const char* op, std::function<Tensor(const Given&)> f) {
    list.push_back({op, "reduction", reductions, std::move(f)});
  };
  loss("mse_loss", [=](const Given& g) { return mse_loss(x, y, {.reduction = g}); });
  loss("l1_loss", [=](const Given& g) { return l1_loss(x, y, {.reduction = g}); });
  loss("smooth_l1_loss", [=](const Given& g) { return smooth_l1_loss(x, y, {.reduction = g}); });
  loss("huber_loss", [=](const Given& g) { return huber_loss(x, y, {.reduction = g}); });
  loss("cross_entropy", [=](const Given& g) { return cross_entropy(x, labels, {.reduction = g}); });
  loss("cross_entropy", [=](const Given& g) { return cross_entropy(x, softmax(y, 1), {.reduction = g}); });
  loss("nll_loss", [=](const Given& g) { return nll_loss(x, labels, {.reduction = g}); });
  loss("multi_margin_loss", [=](const Given& g) { return multi_margin_loss(x, labels, {.reduction = g}); });
  loss("binary_cross_entropy",
       [=](const Given& g) { return binary_cross_entropy(sigmoid(x), y.frac(), {.reduction = g}); });
  loss("binary_cross_entropy_with_logits",
       [=](const Given& g) { return binary_cross_entropy_with_logits(x, y, {.reduction = g}); });
  loss("sigmoid_focal_loss", [=](const Given& g) { return sigmoid_focal_loss(x, y, {.reduction = g}); });
  loss("gaussian_kl", [=](const Given& g) { return gaussian_kl(x, y, {.reduction = g}); });
  loss("gaussian_nll_loss", [=](const Given& g) { return gaussian_nll_loss(x, x, y, {.reduction = g}); });
  loss("poisson_nll_loss", [=](const Given& g) { return poisson_nll_loss(x, y, {.reduction = g}); });
  loss("hinge_embedding_loss", [=](const Given& g) { return hinge_embedding_loss(x, signs, {.reduction = g}); });
  loss("soft_margin_loss", [=](const Given& g) { return soft_margin_loss(x, signs, {.reduction = g}); });
  loss("margin_ranking_loss", [=](const Given& g) { return margin_ranking_loss(x, y, signs, {.reduction = g}); });
  loss("cosine_embedding_loss",
       [=](const Given& g) { return cosine_embedding_loss(x, y, signs.select(1, 0), {.reduction = g}); });
  loss("triplet_margin_loss", [=](const Given& g) { return triplet_margin_loss(x, y, -y, {.reduction = g}); });
  loss("ctc_loss", [=](const Given& g) {
    const Tensor steps = log_softmax(stack({x, y, x, y}), 2);
    return ctc_loss(steps, tensor({{1, 2}, {2, 1}, {3, 1}}), {4, 4, 4}, {2, 2, 1}, {.reduction = g});
  });
  loss("multilabel_margin_loss", [=](const Given& g) {
    return multilabel_margin_loss(x, tensor({{1, -1, 0, 0}, {0, 2, -1, 0}, {3, -1, 0, 0}}), {.reduction = g});
  });
  loss("multilabel_soft_margin_loss",
       [=](const Given& g) { return multilabel_soft_margin_loss(x, y, {.reduction = g}); });
  loss("triplet_margin_with_distance_loss",
       [=](const Given& g) { return triplet_margin_with_distance_loss(x, y, -y, {.margin = 9, .reduction = g}); });
  list.push_back({"kl_div", "reduction", {"none", "mean", "sum", "batchmean"}, [=](const Given& g) {
                    return kl_div(log_softmax(x, 1), softmax(y, 1), {.reduction = g});
                  }});

  list.push_back(
      {"gelu", "approximate", {"none", "tanh"}, [=](const Given& g) { return gelu(x, {.approximate = g}); }});
  list.push_back({"GELU", "approximate", {"none", "tanh"}, [=](const Given& g) {
                    return nn::GELU(GELUOptions{.approximate = g})(x);
                  }});
  list.push_back(
      {"linear", "activation", {"none", "relu", "gelu", "gelu_tanh", "silu", "tanh", "sigmoid"}, [=](const Given& g) {
         return linear(x, x - y, {}, {.activation = g});
       }});
  list.push_back({"pad", "mode", {"constant", "reflect", "replicate", "circular"}, [=](const Given& g) {
                    return pad(image, {1, 2, 2, 1}, {.mode = g});
                  }});
  list.push_back({"scatter_reduce", "reduce", {"sum", "prod", "mean", "amax", "amin"}, [=](const Given& g) {
                    return scatter_reduce(y, 0, zeros({3, 4}, {.dtype = i64}), x, g);
                  }});
  list.push_back({"pad_sequence", "padding_side", {"right", "left"}, [=](const Given& g) {
                    return pad_sequence({x, x.narrow(0, 0, 1)}, {.padding_side = g});
                  }});
  list.push_back({"SWALR", "anneal_strategy", {"cos", "linear"}, [](const Given& g) {
                    return rates_of<optim::SWALR>(optim::SWALROptions{.anneal_strategy = g});
                  }});
  list.push_back({"meshgrid", "indexing", {"ij", "xy"}, [=](const Given& g) {
                    return meshgrid({arange(2), arange(3)}, g)[0].reshape({-1});
                  }});
  list.push_back({"interpolate",
                  "mode",
                  {"nearest", "nearest-exact", "linear", "bilinear", "trilinear", "bicubic", "area"},
                  [=](const Given& g) {
                    const std::string name(Choice<InterpolateMode>(g).name());
                    const Tensor& in = name == "linear" ? line : name == "trilinear" ? volume : image;
                    return interpolate(in, {.scale_factor = 1.7, .mode = g});
                  }});
  const Tensor grid = rand({1, 4, 4, 2}) * 3 - 1.5;
  list.push_back({"grid_sample", "mode", {"bilinear", "nearest", "bicubic"}, [=](const Given& g) {
                    return grid_sample(image, grid, {.mode = g});
                  }});
  list.push_back({"grid_sample", "padding_mode", {"zeros", "border", "reflection"}, [=](const Given& g) {
                    return grid_sample(image, grid, {.padding_mode = g});
                  }});
  list.push_back({"embedding_bag", "mode", {"sum", "mean", "max"}, [=](const Given& g) {
                    return embedding_bag(tensor({{0, 1}, {2, 1}}), x, {}, {.mode = g});
                  }});
  list.push_back({"EmbeddingBag", "mode", {"sum", "mean", "max"}, [=](const Given& g) {
                    manual_seed(1);
                    return nn::EmbeddingBag(4, 3, {.mode = g})(tensor({{0, 1}, {2, 1}}));
                  }});
  const std::vector<const char*> fills{"zeros", "reflect", "replicate", "circular"};
  list.push_back({"Conv1d", "padding_mode", fills, [=](const Given& g) {
                    manual_seed(1);
                    return nn::Conv1d(2, 3, 3, {.padding = 1, .padding_mode = g})(line);
                  }});
  list.push_back({"Conv2d", "padding_mode", fills, [=](const Given& g) {
                    manual_seed(1);
                    return nn::Conv2d(2, 3, 3, {.padding = 1, .padding_mode = g})(image);
                  }});
  list.push_back({"Conv3d", "padding_mode", fills, [=](const Given& g) {
                    manual_seed(1);
                    return nn::Conv3d(2, 3, 3, {.padding = 1, .padding_mode = g})(volume);
                  }});
  const std::vector<const char*> algorithms{"automatic", "direct", "im2col", "implicit_gemm", "winograd"};
  const Tensor kernel = randn({2, 2, 3, 3});
  list.push_back({"conv2d", "algorithm", algorithms,
                  [=](const Given& g) { return conv2d(image, kernel, {}, {.padding = 1, .algorithm = g}); }, true});
  list.push_back({"conv_transpose2d", "algorithm", algorithms,
                  [=](const Given& g) { return conv_transpose2d(image, kernel, {}, {.padding = 1, .algorithm = g}); },
                  true});
  list.push_back({"Conv2d", "algorithm", algorithms,
                  [=](const Given& g) {
                    manual_seed(1);
                    return nn::Conv2d(2, 3, 3, {.algorithm = g})(image);
                  },
                  true});
  list.push_back({"UseConvAlgorithm", "algorithm", algorithms,
                  [=](const Given& g) {
                    const UseConvAlgorithm use(g);
                    return conv2d(image, kernel);
                  },
                  true});
  list.push_back(
      {"conv_algorithm",
       "piece",
       {"forward", "input", "weight"},
       [=](const Given& g) { return tensor(int(conv_algorithm(image, kernel, {.algorithm = "direct"}, g))); },
       true});
  const std::vector<const char*> squashes{"tanh", "relu"};
  list.push_back({"RNN", "nonlinearity", squashes, [=](const Given& g) {
                    manual_seed(1);
                    return nn::RNN(4, 3, {.nonlinearity = g})(x).output;
                  }});
  list.push_back({"RNNCell", "nonlinearity", squashes, [=](const Given& g) {
                    manual_seed(1);
                    return nn::RNNCell(4, 3, {.nonlinearity = g})(x);
                  }});
  const Tensor words = randn({3, 1, 4});
  list.push_back({"TransformerEncoderLayer", "activation", {"relu", "gelu"}, [=](const Given& g) {
                    manual_seed(1);
                    return nn::TransformerEncoderLayer(4, 2,
                                                       {.dim_feedforward = 8, .dropout = 0, .activation = g})(words);
                  }});
  list.push_back({"TransformerDecoderLayer", "activation", {"relu", "gelu"}, [=](const Given& g) {
                    manual_seed(1);
                    return nn::TransformerDecoderLayer(4, 2, {.dim_feedforward = 8, .dropout = 0, .activation = g})(
                        words, words);
                  }});
  const std::vector<const char*> gains{
      "linear",           "conv1d",  "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d",
      "conv_transpose3d", "sigmoid", "tanh",   "relu",   "leaky_relu",       "selu"};
  list.push_back({"calculate_gain", "nonlinearity", gains,
                  [](const Given& g) { return tensor(nn::init::calculate_gain(g)); }, true});
  for (const bool normal : {false, true}) {
    const char* op = normal ? "kaiming_normal_" : "kaiming_uniform_";
    const auto fill = normal ? nn::init::kaiming_normal_ : nn::init::kaiming_uniform_;
    list.push_back({op, "mode", {"fan_in", "fan_out"}, [=](const Given& g) {
                      return drawn([&](const Tensor& w) { fill(w, {.mode = g}); });
                    }});
    list.push_back(
        {op, "nonlinearity", gains,
         [=](const Given& g) { return drawn([&](const Tensor& w) { fill(w, {.a = 0.1, .nonlinearity = g}); }); },
         true});
  }

  list.push_back({"OneCycleLR", "anneal_strategy", {"cos", "linear"}, [](const Given& g) {
                    return rates_of<optim::OneCycleLR>(
                        optim::OneCycleLROptions{.max_lr = 1, .total_steps = 9, .anneal_strategy = g});
                  }});
  list.push_back({"CyclicLR", "mode", {"triangular", "triangular2", "exp_range"}, [](const Given& g) {
                    return rates_of<optim::CyclicLR>(optim::CyclicLROptions{
                        .base_lr = 0.1, .max_lr = 1, .step_size_up = 2, .mode = g, .gamma = 0.9});
                  }});
  list.push_back({"ReduceLROnPlateau", "mode", {"min", "max"}, [](const Given& g) {
                    return plateau_rates({.mode = g, .patience = 0});
                  }});
  list.push_back({"ReduceLROnPlateau", "threshold_mode", {"rel", "abs"}, [](const Given& g) {
                    return plateau_rates({.patience = 0, .threshold = 0.09, .threshold_mode = g});
                  }});
  list.push_back({"LBFGS", "line_search_fn", {"none", "strong_wolfe"}, [](const Given& g) {
                    return minimized({.lr = 0.001, .max_iter = 5, .line_search_fn = g});
                  }});
  list.push_back({"Muon", "adjust_lr_fn", {"original", "match_rms_adamw"}, [](const Given& g) {
                    return moved({.adjust_lr_fn = g});
                  }});
  return list;
}

TEST(NnChoices, NamesAndValuesAreTheSame) {
  for (const Use& use : uses()) {
    SCOPED_TRACE(use.op + " " + use.field);
    std::vector<Tensor> seen;
    for (int i = 0; i < int(use.names.size()); ++i) {
      const Tensor by_value = use.run({.value = i}), by_name = use.run({.name = use.names[size_t(i)]});
      EXPECT_TRUE(equal(by_value, by_name)) << use.names[size_t(i)];
      for (const Tensor& before : seen)
        EXPECT_TRUE(use.one_result || by_name.shape() != before.shape() || !equal(before, by_name))
            << use.names[size_t(i)] << " does what another does";
      seen.push_back(by_name);
    }
  }
}

TEST(NnChoices, UnknownOnesListTheKnown) {
  for (const Use& use : uses()) {
    SCOPED_TRACE(use.op + " " + use.field);
    const auto r = attempt([&] { return use.run({.name = "avg"}); });
    ASSERT_FALSE(r);
    const std::string text = r.error().what();
    EXPECT_EQ(r.error().kind(), Error::Kind::argument);
    EXPECT_EQ(r.error().op(), use.op) << text;
    EXPECT_NE(text.find(use.field + " 'avg'"), std::string::npos) << text;
    for (const char* name : use.names) EXPECT_NE(text.find(name), std::string::npos) << text;
  }
}

TEST(NnChoices, NumbersThatStandForNothing) {
  const Tensor x = ones({3}), ids = tensor<int64_t>({0, 1, 2});
  for (const int wrong : {-1, 9, 255}) {
    const auto r = attempt([&] { return x.scatter_reduce(0, ids, x, ScatterReduce(wrong)); });
    ASSERT_FALSE(r);
    EXPECT_EQ(r.error().op(), "scatter_reduce");
    EXPECT_FALSE(attempt([&] { return mse_loss(x, x, {.reduction = Reduce(wrong)}); }));
    EXPECT_NE(Choice<Reduce>(Reduce(wrong)), Reduce::none);
  }
}

TEST(NnChoices, OnlyKlDivDividesByTheBatch) {
  const Tensor x = randn({3, 4}), y = rand({3, 4});
  EXPECT_THROW(mse_loss(x, y, {.reduction = "batchmean"}), Error);
  EXPECT_THROW(cross_entropy(x, tensor({0, 1, 2}), {.reduction = Reduce::batchmean}), Error);
  EXPECT_TRUE(equal(kl_div(x, y, {.reduction = "batchmean"}), kl_div(x, y, {.batchmean = true})));
  EXPECT_TRUE(allclose(kl_div(x, y, {.reduction = "batchmean"}), kl_div(x, y, {.reduction = "sum"}) / 3));
  EXPECT_TRUE(equal(nn::KLDivLoss{{.reduction = "batchmean"}}(x, y), kl_div(x, y, {.batchmean = true})));
}

TEST(NnChoices, ComparesAndConverts) {
  Choice<Reduce> how = "sum";
  EXPECT_TRUE(how == Reduce::sum && how == "sum" && Reduce::sum == how && how == std::string("sum"));
  EXPECT_TRUE(how != Reduce::mean && how != "mean");
  how = Reduce::none;
  const Reduce value = how;
  EXPECT_EQ(value, Reduce::none);
  EXPECT_EQ(how.name(), "none");
  how = std::string("other");
  EXPECT_TRUE(how == "other" && how != Reduce::none);
  EXPECT_THROW((void)Reduce(how), Error);
  const nn::ConvLayerOptions options;
  EXPECT_TRUE(options.padding_mode == "zeros" && options.padding_mode == nn::PaddingMode::zeros);
}

TEST(NnChoices, PaddingByName) {
  const Tensor x = randn({1, 2, 6, 6}), w = randn({3, 2, 3, 3});
  EXPECT_TRUE(equal(conv2d(x, w, {}, {.padding = "same"}), conv2d(x, w, {}, {.padding = ConvPad::same})));
  EXPECT_TRUE(equal(conv2d(x, w, {}, {.padding = "valid"}), conv2d(x, w, {}, {.padding = ConvPad::valid})));
  EXPECT_THROW(conv2d(x, w, {}, {.padding = "full"}), Error);
  EXPECT_THROW(nn::Conv2d(2, 3, 3, {.padding = "full"}), Error);
}

TEST(NnChoices, GeluApproximations) {
  const Tensor x = randn({50}, {.dtype = f64});
  EXPECT_TRUE(equal(gelu(x, {.approximate = "tanh"}), gelu_tanh(x)));
  EXPECT_TRUE(equal(x.gelu({.approximate = "none"}), gelu(x)));
  EXPECT_TRUE(equal(nn::GELU("tanh")(x), gelu_tanh(x)));
  EXPECT_TRUE(equal(nn::GELU({.approximate = "tanh"})(x), gelu_tanh(x)));
  EXPECT_TRUE(equal(nn::GELU()(x), gelu(x)));
}

TEST(NnChoices, OneNumberOrSeveral) {
  const Tensor x = randn({1, 2, 4, 4});
  const Tensor twice = interpolate(x, {.scale_factor = 2.0, .mode = "bilinear"});
  EXPECT_TRUE(equal(twice, interpolate(x, {.scale_factor = {2, 2}, .mode = "bilinear"})));
  EXPECT_TRUE(equal(twice, interpolate(x, {.scale_factor = 2, .mode = "bilinear"})));
  EXPECT_TRUE(equal(twice, interpolate(x, {.scale_factor = std::vector<double>{2}, .mode = "bilinear"})));
  EXPECT_TRUE(equal(interpolate(x, {.size = 8}), interpolate(x, {.size = {8, 8}})));
  EXPECT_TRUE(equal(nn::Upsample({.scale_factor = 2.0})(x), interpolate(x, {.scale_factor = 2.0})));

  const Tensor a = zeros({1}, {.requires_grad = true}), b = zeros({1}, {.requires_grad = true});
  optim::SGD opt({{.params = {a}}, {.params = {b}}}, {.lr = 1, .momentum = 0.9});
  optim::CyclicLR cycle(opt, {.base_lr = {0.1, 0.2}, .max_lr = 1, .step_size_up = 2});
  EXPECT_EQ(cycle.get_last_lr(), (std::vector<double>{0.1, 0.2}));
  cycle.step(), cycle.step();
  EXPECT_EQ(cycle.get_last_lr(), (std::vector<double>{1, 1}));
  optim::OneCycleLR one(opt, {.max_lr = {1, 0.5}, .total_steps = 10});
  EXPECT_NEAR(one.get_last_lr()[0], 1 / 25., 1e-12);
  EXPECT_NEAR(one.get_last_lr()[1], 0.5 / 25, 1e-12);
  opt.set_lr(1);
  optim::ReduceLROnPlateau plateau(opt, {.patience = 0, .min_lr = {0.05, 0.5}});
  plateau.step(1), plateau.step(1);
  EXPECT_EQ(plateau.get_last_lr(), (std::vector<double>{0.1, 0.5}));
  EXPECT_THROW(optim::CyclicLR(opt, {.base_lr = {1, 2, 3}, .max_lr = 1}), Error);
}

}  // namespace
}  // namespace volta
