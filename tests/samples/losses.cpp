// Samples of the losses: every reduction, weights, labels that are ignored, probabilities as targets.
#include "samples.h"

namespace volta::test {
namespace {

using List = std::vector<Sample>;
constexpr const char* reductions[] = {"none", "mean", "sum"};

Tensor signs(const Tensor& truths) { return truths.defined() ? truths.to(f32) * 2 - 1 : truths; }

// A loss of two tensors of one shape, in every reduction; f(input, target, reduction).
template <class F> void pair(List& list, const char* op, const char* label, Input input, Input target, F f) {
  for (const char* how : reductions)
    list.push_back(one(op, std::string(op) + " " + label + " " + how, {input, target},
                       [=](const Tensors& x) { return f(x[0], x[1], how); }));
}

void add_numbers(List& list) {
  const Input x{{3, 4}}, rate{{3, 4}, 0.3, 2}, probability{{3, 4}, 0.1, 0.9}, sign = {{3, 4}, 0.5, 2};
  pair(list, "mse_loss", "", x, x, [](auto& a, auto& b, auto how) { return mse_loss(a, b, {how}); });
  pair(list, "l1_loss", "", x, x, [](auto& a, auto& b, auto how) { return l1_loss(a, b, {how}); });
  for (double d : {0.5, 1.5}) {
    const char* label = d < 1 ? "narrow" : "wide";
    pair(list, "smooth_l1_loss", label, x, x, [d](auto& a, auto& b, auto how) {
      return smooth_l1_loss(a, b, {how, d});
    });
    pair(list, "huber_loss", label, x, x, [d](auto& a, auto& b, auto how) { return huber_loss(a, b, {how, d}); });
  }
  pair(list, "binary_cross_entropy", "", probability, probability,
       [](auto& p, auto& y, auto how) { return binary_cross_entropy(p, y, {.reduction = how}); });
  pair(list, "binary_cross_entropy_with_logits", "", x, probability,
       [](auto& p, auto& y, auto how) { return binary_cross_entropy_with_logits(p, y, {.reduction = how}); });
  pair(list, "sigmoid_focal_loss", "", x, probability,
       [](auto& p, auto& y, auto how) { return sigmoid_focal_loss(p, y, {.reduction = how}); });
  pair(list, "multilabel_soft_margin_loss", "", x, probability,
       [](auto& p, auto& y, auto how) { return multilabel_soft_margin_loss(p, y, {.reduction = how}); });
  pair(list, "kl_div", "", x, probability, [](auto& a, auto& b, auto how) { return kl_div(a, b, {.reduction = how}); });
  pair(list, "kl_div", "logarithms", x, x, [](auto& a, auto& b, auto how) {
    return kl_div(a, b, {.reduction = how, .batchmean = std::string(how) == "mean", .log_target = true});
  });
  pair(list, "gaussian_kl", "", x, x, [](auto& a, auto& b, auto how) { return gaussian_kl(a, b, {how}); });
  pair(list, "poisson_nll_loss", "", x, rate,
       [](auto& a, auto& b, auto how) { return poisson_nll_loss(a, b, {.reduction = how}); });
  pair(list, "poisson_nll_loss", "rates", rate, {{3, 4}, 1.2, 4}, [](auto& a, auto& b, auto how) {
    return poisson_nll_loss(a, b, {.log_input = false, .full = true, .reduction = how});
  });
  pair(list, "soft_margin_loss", "", x, x, [](auto& a, auto& b, auto how) { return soft_margin_loss(a, b, {how}); });
  pair(list, "hinge_embedding_loss", "", rate, truths({3, 4}),
       [](auto& a, auto& b, auto how) { return hinge_embedding_loss(a, signs(b), {.margin = 1.1, .reduction = how}); });
  for (bool full : {false, true})
    list.push_back(one("gaussian_nll_loss", full ? "gaussian_nll_loss full" : "gaussian_nll_loss", {x, x, rate},
                       [=](auto& v) { return gaussian_nll_loss(v[0], v[1], v[2], {.full = full}); }));
  list.push_back(one("gaussian_nll_loss", "gaussian_nll_loss by row", {x, x, {{3}, 0.3, 2}},
                     [](auto& v) { return gaussian_nll_loss(v[0], v[1], v[2], {.reduction = "sum"}); }));
  const Input factors = optional({4});
  list.push_back(one("binary_cross_entropy", "binary_cross_entropy weighted", {probability, probability, factors},
                     [](auto& v) { return binary_cross_entropy(v[0], v[1], {.weight = v[2]}); }));
  list.push_back(
      one("binary_cross_entropy_with_logits", "logits weighted", {x, probability, factors, factors},
          [](auto& v) { return binary_cross_entropy_with_logits(v[0], v[1], {.weight = v[2], .pos_weight = v[3]}); }));
  list.push_back(one("multilabel_soft_margin_loss", "multilabel weighted", {x, probability, factors},
                     [](auto& v) { return multilabel_soft_margin_loss(v[0], v[1], {.weight = v[2]}); }));
  for (const char* how : reductions) {
    const auto label = [&](const char* op) { return std::string(op) + " " + how; };
    list.push_back(one("margin_ranking_loss", label("margin_ranking_loss"), {x, x, sign}, [how](auto& v) {
      return margin_ranking_loss(v[0], v[1], v[2], {.margin = 0.3, .reduction = how});
    }));
    list.push_back(one("cosine_embedding_loss", label("cosine_embedding_loss"), {x, x, truths({3})}, [how](auto& v) {
      return cosine_embedding_loss(v[0], v[1], signs(v[2]), {.margin = -0.9, .reduction = how});
    }));
    for (bool swap : {false, true}) {
      const std::string swapped = swap ? " swapped" : "";
      list.push_back(one("triplet_margin_loss", label("triplet_margin_loss") + swapped, {x, x, x}, [=](auto& v) {
        return triplet_margin_loss(v[0], v[1], v[2],
                                   {.margin = 4, .p = swap ? 3. : 2., .swap = swap, .reduction = how});
      }));
      list.push_back(
          one("triplet_margin_with_distance_loss", label("triplet_distance") + swapped, {x, x, x}, [=](auto& v) {
            TripletDistanceOptions o{.margin = 4, .swap = swap, .reduction = how};
            if (swap) o.distance_function = [](auto& a, auto& b) { return (a - b).abs().mean(-1); };
            return triplet_margin_with_distance_loss(v[0], v[1], v[2], o);
          }));
    }
  }
}

void add_classes(List& list) {
  const Input scores{{3, 4}}, weight{{4}, 0.5, 2, Draw::values, true}, labels = integers({3}, 4);
  for (const char* how : reductions) {
    const auto add = [&](const char* op, const std::string& label, std::vector<Input> inputs, auto f) {
      list.push_back(one(op, std::string(op) + " " + label + " " + how, std::move(inputs), f));
    };
    add("cross_entropy", "", {scores, labels},
        [how](auto& x) { return cross_entropy(x[0], x[1], {.reduction = how}); });
    add("cross_entropy", "weighted", {scores, labels, weight},
        [how](auto& x) { return cross_entropy(x[0], x[1], {.weight = x[2], .reduction = how, .ignore_index = 1}); });
    add("cross_entropy", "smoothed", {scores, labels, weight}, [how](auto& x) {
      return cross_entropy(x[0], x[1], {.weight = x[2], .reduction = how, .label_smoothing = 0.2});
    });
    add("cross_entropy", "image", {{{2, 4, 3}}, integers({2, 3}, 4)},
        [how](auto& x) { return cross_entropy(x[0], x[1], {.reduction = how}); });
    add("cross_entropy", "probabilities", {scores, {{3, 4}, 0.1, 0.9}, weight}, [how](auto& x) {
      return cross_entropy(x[0], x[1], {.weight = x[2], .reduction = how, .label_smoothing = 0.1});
    });
    add("nll_loss", "", {scores, labels}, [how](auto& x) { return nll_loss(x[0], x[1], {.reduction = how}); });
    add("nll_loss", "weighted", {scores, labels, weight},
        [how](auto& x) { return nll_loss(x[0], x[1], {.weight = x[2], .reduction = how, .ignore_index = 2}); });
    for (int p : {1, 2})
      add("multi_margin_loss", p == 1 ? "lines" : "squares", {scores, labels, weight}, [=](auto& x) {
        return multi_margin_loss(x[0], x[1], {.p = p, .margin = 1.3, .weight = x[2], .reduction = how});
      });
    add("multilabel_margin_loss", "", {scores, integers({3, 4}, 4)},
        [how](auto& x) { return multilabel_margin_loss(x[0], x[1], {how}); });
    add("ctc_loss", "", {{{5, 2, 4}}, integers({2, 2}, 3)}, [how](auto& x) {
      return ctc_loss(x[0], x[1], {5, 4}, {2, 1}, {.blank = 3, .reduction = how});
    });
  }
}

}  // namespace

void add_losses(List& list) {
  add_numbers(list);
  add_classes(list);
}

}  // namespace volta::test
