// The losses as layers that hold their options.
#pragma once
#include <concepts>
#include <vector>

#include <volta/nn/layer.h>
#include <volta/ops.h>

namespace volta::nn {

// The losses as layers: nn::CrossEntropyLoss criterion{{.label_smoothing = 0.1}}; criterion(logits, labels).
template <auto Function, class Options> struct Loss {
  Options options = {};
  void fields(Fields&) {}
  Tensor operator()(const Tensor& input, const Tensor& target) const { return Function(input, target, options); }
};
template <auto Function, class Options> struct Loss3 {
  Options options = {};
  void fields(Fields&) {}  // a distance function in the options has no parameters that are the model's
  Tensor operator()(const Tensor& a, const Tensor& b, const Tensor& c) const { return Function(a, b, c, options); }
};

using MSELoss = Loss<mse_loss, LossOptions>;
using L1Loss = Loss<l1_loss, LossOptions>;
using SmoothL1Loss = Loss<smooth_l1_loss, SmoothL1LossOptions>;
using HuberLoss = Loss<huber_loss, HuberLossOptions>;
using CrossEntropyLoss = Loss<cross_entropy, CrossEntropyOptions>;
using NLLLoss = Loss<nll_loss, NLLLossOptions>;
using MultiMarginLoss = Loss<multi_margin_loss, MultiMarginLossOptions>;
using BCELoss = Loss<binary_cross_entropy, WeightedLossOptions>;
using BCEWithLogitsLoss = Loss<binary_cross_entropy_with_logits, BCEWithLogitsOptions>;
using SigmoidFocalLoss = Loss<sigmoid_focal_loss, FocalLossOptions>;
using KLDivLoss = Loss<kl_div, KLDivOptions>;
using GaussianKLLoss = Loss<gaussian_kl, LossOptions>;
using PoissonNLLLoss = Loss<poisson_nll_loss, PoissonNLLOptions>;
using HingeEmbeddingLoss = Loss<hinge_embedding_loss, HingeEmbeddingOptions>;
using SoftMarginLoss = Loss<soft_margin_loss, LossOptions>;
using MultiLabelMarginLoss = Loss<multilabel_margin_loss, LossOptions>;
using MultiLabelSoftMarginLoss = Loss<multilabel_soft_margin_loss, WeightedLossOptions>;
using TripletMarginWithDistanceLoss = Loss3<triplet_margin_with_distance_loss, TripletDistanceOptions>;
using GaussianNLLLoss = Loss3<gaussian_nll_loss, GaussianNLLOptions>;
using MarginRankingLoss = Loss3<margin_ranking_loss, MarginOptions>;
using CosineEmbeddingLoss = Loss3<cosine_embedding_loss, MarginOptions>;
using TripletMarginLoss = Loss3<triplet_margin_loss, TripletMarginOptions>;
// Two tensors compared slice by slice: nn::CosineSimilarity(1)(a, b), nn::PairwiseDistance(2)(a, b).
struct CosineSimilarity {
  explicit CosineSimilarity(int64_t axis = 1, double least = 1e-8) : dim(axis), eps(least) {}
  void fields(Fields&) {}
  Tensor operator()(const Tensor& a, const Tensor& b) const { return cosine_similarity(a, b, dim, eps); }
  int64_t dim;
  double eps;
};
struct PairwiseDistance {
  explicit PairwiseDistance(double power = 2, double added = 1e-6, bool keep = false)
      : p(power), eps(added), keepdim(keep) {}
  void fields(Fields&) {}
  Tensor operator()(const Tensor& a, const Tensor& b) const { return pairwise_distance(a, b, p, eps, keepdim); }
  double p, eps;
  bool keepdim;
};
struct CTCLoss {
  CTCLossOptions options = {};
  Tensor operator()(const Tensor& log_probs, const Tensor& targets, const std::vector<int64_t>& input_lengths,
                    const std::vector<int64_t>& target_lengths) const {
    return ctc_loss(log_probs, targets, input_lengths, target_lengths, options);
  }
  template <std::same_as<Tensor> Lengths> Tensor operator()(const Tensor& log_probs, const Tensor& targets,
                                                            const Lengths& input_lengths,
                                                            const Lengths& target_lengths) const {
    return ctc_loss(log_probs, targets, input_lengths, target_lengths, options);
  }
};

}  // namespace volta::nn
