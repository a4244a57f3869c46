// Losses, optimizers, schedulers, makers of tensors, and sequences.
#include "source.h"

namespace volta::fuzz {
namespace {

using Tensors = std::vector<Tensor>;

void add_elementwise(std::vector<Call>& calls) {
  const auto two = [&](const char* name, auto f) {
    calls.push_back({name, [f](Source& s) {
                       const Tensor x = s.tensor(), y = s.tensor();
                       return Tensors{f(x, y, s)};
                     }});
  };
  two("mse_loss", [](auto& x, auto& y, Source& s) { return mse_loss(x, y, {s.choice<Reduce>()}); });
  two("l1_loss", [](auto& x, auto& y, Source& s) { return l1_loss(x, y, {s.choice<Reduce>()}); });
  two("smooth_l1_loss", [](auto& x, auto& y, Source& s) {
    return smooth_l1_loss(x, y, {s.choice<Reduce>(), s.number()});
  });
  two("huber_loss", [](auto& x, auto& y, Source& s) { return huber_loss(x, y, {s.choice<Reduce>(), s.number()}); });
  two("binary_cross_entropy", [](auto& x, auto& y, Source& s) {
    return binary_cross_entropy(s.chance(80) ? sigmoid(x) : x, y,
                                {s.chance(30) ? s.tensor() : Tensor(), s.choice<Reduce>()});
  });
  two("binary_cross_entropy_with_logits", [](auto& x, auto& y, Source& s) {
    return binary_cross_entropy_with_logits(
        x, y, {s.chance(30) ? s.tensor() : Tensor(), s.choice<Reduce>(), s.chance(30) ? s.tensor() : Tensor()});
  });
  two("sigmoid_focal_loss", [](auto& x, auto& y, Source& s) {
    return sigmoid_focal_loss(x, y, {s.number(), s.number(), s.choice<Reduce>()});
  });
  two("kl_div", [](auto& x, auto& y, Source& s) {
    return kl_div(x, y, {s.choice<Reduce>(), s.chance(30), s.chance(50)});
  });
  two("gaussian_kl", [](auto& x, auto& y, Source& s) { return gaussian_kl(x, y, {s.choice<Reduce>()}); });
  two("poisson_nll_loss", [](auto& x, auto& y, Source& s) {
    return poisson_nll_loss(x, y, {s.chance(50), s.chance(50), s.number(), s.choice<Reduce>()});
  });
  two("hinge_embedding_loss", [](auto& x, auto& y, Source& s) {
    return hinge_embedding_loss(x, y, {s.number(), s.choice<Reduce>()});
  });
  two("soft_margin_loss", [](auto& x, auto& y, Source& s) { return soft_margin_loss(x, y, {s.choice<Reduce>()}); });
  two("multilabel_soft_margin_loss", [](auto& x, auto& y, Source& s) {
    return multilabel_soft_margin_loss(x, y, {s.chance(30) ? s.tensor() : Tensor(), s.choice<Reduce>()});
  });
  two("multilabel_margin_loss", [](auto& x, auto&, Source& s) {
    return multilabel_margin_loss(x, s.indices(x.shape(), 4) - 1, {s.choice<Reduce>()});
  });
  two("gaussian_nll_loss", [](auto& x, auto& y, Source& s) {
    return gaussian_nll_loss(x, y, s.chance(80) ? abs(s.tensor()) : s.tensor(),
                             {s.chance(50), 1e-6, s.choice<Reduce>()});
  });
  two("margin_ranking_loss", [](auto& x, auto& y, Source& s) {
    return margin_ranking_loss(x, y, s.tensor(), {s.number(), s.choice<Reduce>()});
  });
  two("cosine_embedding_loss", [](auto& x, auto& y, Source& s) {
    return cosine_embedding_loss(x, y, s.tensor(), {s.number(), s.choice<Reduce>()});
  });
  two("triplet_margin_loss", [](auto& x, auto& y, Source& s) {
    return triplet_margin_loss(
        x, y, s.tensor(),
        {s.chance(70) ? 1 : s.number(), s.chance(60) ? 2 : s.number(), 1e-6, s.chance(50), s.choice<Reduce>()});
  });
  two("triplet_margin_with_distance_loss", [](auto& x, auto& y, Source& s) {
    return triplet_margin_with_distance_loss(
        x, y, s.tensor(), {.margin = s.number(), .swap = s.chance(50), .reduction = s.choice<Reduce>()});
  });
}

void add_classes(std::vector<Call>& calls) {
  const auto scores = [](Source& s) {
    Shape shape{s.within(0, 5), s.within(0, 7)};
    for (int64_t n = s.within(0, 2); n > 0; --n) shape.push_back(s.within(0, 3));
    if (s.chance(10)) shape = {s.within(0, 5)};
    return s.floats(shape);
  };
  const auto labels = [](Source& s, const Tensor& x) {
    Shape shape = x.shape();
    if (!shape.empty()) shape.erase(shape.size() > 1 ? 1 : 0);
    return s.indices(shape, x.dim() ? x.size(x.dim() > 1 ? 1 : 0) : 1);
  };
  const auto weight = [](Source& s, const Tensor& x) {
    return s.chance(30) && x.dim() > 1 ? s.floats({x.size(1)}) : Tensor();
  };
  calls.push_back({"cross_entropy", [=](Source& s) {
                     const Tensor x = scores(s), t = s.chance(80) ? labels(s, x) : s.floats(x.shape());
                     return Tensors{cross_entropy(x, t,
                                                  {weight(s, x), s.choice<Reduce>(), s.chance(50) ? -100 : s.size(),
                                                   s.chance(60) ? 0 : s.probability()})};
                   }});
  calls.push_back(
      {"nll_loss", [=](Source& s) {
         const Tensor x = scores(s);
         return Tensors{nll_loss(x, labels(s, x), {weight(s, x), s.choice<Reduce>(), s.chance(50) ? -100 : s.size()})};
       }});
  calls.push_back({"multi_margin_loss", [=](Source& s) {
                     const Tensor x = scores(s);
                     return Tensors{multi_margin_loss(x, labels(s, x),
                                                      {s.chance(90) ? int(s.within(1, 2)) : int(s.size()), s.number(),
                                                       weight(s, x), s.choice<Reduce>()})};
                   }});
  calls.push_back({"ctc_loss", [](Source& s) {
                     const int64_t t = s.within(0, 6), n = s.within(0, 3), c = s.within(0, 5), most = s.within(0, 4);
                     std::vector<int64_t> inputs, targets;
                     for (int64_t i = 0; i < n; ++i)
                       inputs.push_back(s.chance(90) ? s.within(0, t) : s.size()),
                           targets.push_back(s.chance(90) ? s.within(0, most) : s.size());
                     const Tensor x = s.floats({t, n, c});
                     return Tensors{ctc_loss(s.chance(80) ? log_softmax(x, -1) : x, s.indices({n, most}, c), inputs,
                                             targets, {s.chance(80) ? 0 : s.size(), s.choice<Reduce>(), s.chance(50)})};
                   }});
}

template <class O> void add_optimizer(std::vector<Call>& calls, const char* name) {
  calls.push_back({name, [](Source& s) {
                     typename O::Options o;
                     o.lr = s.chance(70) ? 0.1 : s.number();
                     if constexpr (requires { o.weight_decay; }) o.weight_decay = s.chance(70) ? 0.1 : s.number();
                     if constexpr (requires { o.betas; }) o.betas = {s.probability(), s.probability()};
                     if constexpr (requires { o.momentum; }) o.momentum = s.chance(70) ? 0.5 : s.number();
                     if constexpr (requires { o.momentum_decay; }) o.momentum_decay = s.number();
                     if constexpr (requires { o.eps = 0.0; }) o.eps = s.chance(70) ? 1e-8 : s.number();
                     const Tensor x = s.tensor(s.shape(), s.chance(95) ? f32 : s.dtype()).detach();
                     Tensor w = is_floating(x.dtype()) ? Tensor(x).requires_grad_() : x;
                     O opt(optim::Params{w}, o);
                     for (int i = 0; i < 2; ++i) {
                       w.set_grad(s.tensor(w.shape(), w.dtype()).detach());
                       opt.step();
                     }
                     O other(optim::Params{w}, o);
                     other.load_state_dict(opt.state_dict());
                     return Tensors{};
                   }});
}

void add_schedulers(std::vector<Call>& calls) {
  const auto add = [&](const char* name, auto make) {
    calls.push_back({name, [make](Source& s) {
                       const Tensor w = ones({2}, {.requires_grad = true});
                       optim::SGD opt({w}, {.lr = 0.5, .momentum = 0.9});
                       auto schedule = make(opt, s);
                       for (int i = 0; i < 5; ++i) schedule.step();
                       auto state = schedule.state_dict();
                       if (s.chance(30)) state["last_epoch"] = s.number();
                       schedule.load_state_dict(state);
                       return Tensors{};
                     }});
  };
  using namespace optim;
  add("StepLR", [](SGD& o, Source& s) { return StepLR(o, {.step_size = s.size(), .gamma = s.number()}); });
  add("MultiStepLR", [](SGD& o, Source& s) { return MultiStepLR(o, {.milestones = s.list(), .gamma = s.number()}); });
  add("ConstantLR", [](SGD& o, Source& s) { return ConstantLR(o, {.factor = s.number(), .total_iters = s.size()}); });
  add("ExponentialLR", [](SGD& o, Source& s) { return ExponentialLR(o, {.gamma = s.number()}); });
  add("PolynomialLR",
      [](SGD& o, Source& s) { return PolynomialLR(o, {.total_iters = s.size(), .power = s.number()}); });
  add("LinearLR", [](SGD& o, Source& s) {
    return LinearLR(o, {.start_factor = s.probability(), .end_factor = s.probability(), .total_iters = s.size()});
  });
  add("CosineAnnealingLR",
      [](SGD& o, Source& s) { return CosineAnnealingLR(o, {.t_max = s.size(), .eta_min = s.number()}); });
  add("CosineAnnealingWarmRestarts", [](SGD& o, Source& s) {
    return CosineAnnealingWarmRestarts(o, {.t_0 = s.size(), .t_mult = s.size(), .eta_min = s.number()});
  });
  add("OneCycleLR", [](SGD& o, Source& s) {
    return OneCycleLR(o, {.max_lr = s.number(),
                          .total_steps = s.size(),
                          .epochs = s.size(),
                          .steps_per_epoch = s.size(),
                          .pct_start = s.probability(),
                          .anneal_strategy = s.choice<Anneal>(),
                          .div_factor = s.number(),
                          .three_phase = s.chance(50)});
  });
  add("CyclicLR", [](SGD& o, Source& s) {
    return CyclicLR(o, {.base_lr = s.number(),
                        .max_lr = s.number(),
                        .step_size_up = s.size(),
                        .step_size_down = s.size(),
                        .mode = s.choice<Cycle>(),
                        .gamma = s.number()});
  });
  add("SWALR", [](SGD& o, Source& s) {
    return SWALR(o, {.swa_lr = s.number(), .anneal_epochs = s.size(), .anneal_strategy = s.choice<Anneal>()});
  });
  add("WarmupLR", [](SGD& o, Source& s) { return WarmupLR(o, {.steps = s.size(), .start_factor = s.probability()}); });
}

void add_sequences(std::vector<Call>& calls) {
  const auto list = [](Source& s) {
    std::vector<int64_t> values;
    for (int64_t n = s.within(0, 4); n > 0; --n) values.push_back(s.few(0));
    return values;
  };
  calls.push_back({"pack_padded_sequence",
                   [=](Source& s) { return Tensors{pack_padded_sequence(s.tensor(), list(s), s.chance(50)).data}; }});
  calls.push_back({"pad_packed_sequence", [=](Source& s) {
                     return Tensors{pad_packed_sequence({s.tensor(), list(s), list(s)}, s.chance(50), s.number()).data};
                   }});
  calls.push_back({"PackedSequence::lengths", [=](Source& s) {
                     PackedSequence{s.tensor(), list(s), list(s)}.lengths();
                     return Tensors{};
                   }});
  calls.push_back({"pad_sequence", [](Source& s) {
                     return Tensors{pad_sequence(s.tensors(), {.batch_first = s.chance(50),
                                                               .padding_value = s.number(),
                                                               .padding_side = s.choice<PaddingSide>()})};
                   }});
  calls.push_back({"pack_sequence", [](Source& s) { return Tensors{pack_sequence(s.tensors()).data}; }});
  calls.push_back({"unpad_sequence", [=](Source& s) { return unpad_sequence(s.tensor(), list(s), s.chance(50)); }});
}

void add_makers(std::vector<Call>& calls) {
  const auto add = [&](const char* name, const std::function<Tensor(Source&)>& f) {
    calls.push_back({name, [f](Source& s) { return Tensors{f(s)}; }});
  };
  const auto options = [](Source& s) { return Options{.dtype = s.dtype()}; };
  add("zeros", [=](Source& s) { return zeros(s.sizes(), options(s)); });
  add("full", [=](Source& s) { return full(s.sizes(), s.number(), options(s)); });
  add("arange", [=](Source& s) {
    const double a = s.number(), b = s.number();
    return arange(a, b, s.number(), options(s));
  });
  add("arange of integers", [=](Source& s) {
    const int64_t a = s.size(), b = s.size();
    return arange(a, b, s.size(), options(s));
  });
  add("linspace", [=](Source& s) {
    const double a = s.number(), b = s.number();
    return linspace(a, b, s.size(), options(s));
  });
  add("logspace", [=](Source& s) {
    const double a = s.number(), b = s.number();
    return logspace(a, b, s.size(), s.number(), options(s));
  });
  add("eye", [=](Source& s) {
    const int64_t n = s.size();
    return eye(n, s.size(), options(s));
  });
  add("tri", [=](Source& s) {
    const int64_t n = s.size(), m = s.size();
    return tri(n, m, s.size(), options(s));
  });
  add("rand", [=](Source& s) { return rand(s.sizes(), options(s)); });
  add("randint", [=](Source& s) {
    const int64_t a = s.size(), b = s.size();
    return randint(a, b, s.sizes(), options(s));
  });
  add("randperm", [=](Source& s) { return randperm(s.size(), options(s)); });
  add("uniform", [=](Source& s) {
    const double a = s.number(), b = s.number();
    return uniform(s.sizes(), a, b, options(s));
  });
  add("normal", [=](Source& s) {
    const double a = s.number(), b = s.number();
    return normal(s.sizes(), a, b, options(s));
  });
  add("multinomial", [](Source& s) {
    const Tensor w = s.tensor();
    return multinomial(w, s.size(), s.chance(50));
  });
  add("bernoulli", [](Source& s) { return bernoulli(s.tensor()); });
  calls.push_back({"meshgrid", [](Source& s) { return meshgrid(s.tensors(), s.choice<MeshIndexing>()); }});
  calls.push_back({"init", [](Source& s) {
                     const Tensor x = s.tensor().detach();
                     switch (s.within(0, 5)) {
                       case 0:
                         nn::init::kaiming_uniform_(x, {.a = s.number(),
                                                        .mode = s.choice<nn::init::FanMode>(),
                                                        .nonlinearity = s.choice<nn::init::Gain>()});
                         break;
                       case 1: nn::init::xavier_normal_(x, s.number()); break;
                       case 2: nn::init::orthogonal_(x, s.number()); break;
                       case 3: nn::init::sparse_(x, s.probability(), s.number()); break;
                       case 4: nn::init::dirac_(x, s.size()); break;
                       default: nn::init::trunc_normal_(x, s.number(), s.number(), s.number(), s.number()); break;
                     }
                     return Tensors{};
                   }});
}

}  // namespace

void add_losses(std::vector<Call>& calls) {
  add_elementwise(calls), add_classes(calls), add_schedulers(calls), add_sequences(calls), add_makers(calls);
  add_optimizer<optim::SGD>(calls, "SGD"), add_optimizer<optim::Adam>(calls, "Adam");
  add_optimizer<optim::AdamW>(calls, "AdamW"), add_optimizer<optim::Adamax>(calls, "Adamax");
  add_optimizer<optim::NAdam>(calls, "NAdam"), add_optimizer<optim::RAdam>(calls, "RAdam");
  add_optimizer<optim::RMSprop>(calls, "RMSprop"), add_optimizer<optim::Adagrad>(calls, "Adagrad");
  add_optimizer<optim::Adadelta>(calls, "Adadelta"), add_optimizer<optim::Lion>(calls, "Lion");
  add_optimizer<optim::LAMB>(calls, "LAMB"), add_optimizer<optim::Muon>(calls, "Muon");
  add_optimizer<optim::ASGD>(calls, "ASGD"), add_optimizer<optim::Rprop>(calls, "Rprop");
  add_optimizer<optim::Adafactor>(calls, "Adafactor");
}

}  // namespace volta::fuzz
