// Losses, with PyTorch's names, options and defaults.
#pragma once
#include <functional>
#include <vector>

#include <volta/tensor.h>

namespace volta {

// What becomes of the losses of the elements: kept, averaged, added up, or added up and divided by the batch (kl_div).
enum class Reduce { none, mean, sum, batchmean };
constexpr std::array<std::string_view, 4> choice_names(Reduce) { return {"none", "mean", "sum", "batchmean"}; }

struct LossOptions {
  Choice<Reduce> reduction = Reduce::mean;
};
struct WeightedLossOptions {
  Tensor weight = {};  // factors, broadcast against the losses
  Choice<Reduce> reduction = Reduce::mean;
};

// Of real numbers. Input and target have one shape.
[[nodiscard]] Tensor mse_loss(const Tensor& input, const Tensor& target,
                              const LossOptions& = {});  // mse_loss(model(x), y)
[[nodiscard]] Tensor l1_loss(const Tensor& input, const Tensor& target,
                             const LossOptions& = {});  // l1_loss(model(x), y)

struct SmoothL1LossOptions {
  Choice<Reduce> reduction = Reduce::mean;
  double beta = 1;  // where squares become lines
};
[[nodiscard]] Tensor smooth_l1_loss(const Tensor& input, const Tensor& target,
                                    const SmoothL1LossOptions& = {});  // smooth_l1_loss(x, y, {.beta = 0.5})

struct HuberLossOptions {
  Choice<Reduce> reduction = Reduce::mean;
  double delta = 1;
};
[[nodiscard]] Tensor huber_loss(const Tensor& input, const Tensor& target,
                                const HuberLossOptions& = {});  // huber_loss(x, y, {.delta = 2})

// Of classes. The scores have the shape [N, C, …] or [C], the labels [N, …] or []; of any integer dtype.
struct CrossEntropyOptions {
  Tensor weight = {};  // one factor for each class
  Choice<Reduce> reduction = Reduce::mean;
  int64_t ignore_index = -100;
  double label_smoothing = 0;
};
// cross_entropy(logits, labels); a floating target of the logits' shape holds probabilities.
[[nodiscard]] Tensor cross_entropy(const Tensor& input, const Tensor& target, const CrossEntropyOptions& = {});

struct NLLLossOptions {
  Tensor weight = {};
  Choice<Reduce> reduction = Reduce::mean;
  int64_t ignore_index = -100;
};
[[nodiscard]] Tensor nll_loss(const Tensor& input, const Tensor& target,
                              const NLLLossOptions& = {});  // nll_loss(log_softmax(x, 1), t)

struct MultiMarginLossOptions {
  int p = 1;  // or 2
  double margin = 1;
  Tensor weight = {};
  Choice<Reduce> reduction = Reduce::mean;
};
[[nodiscard]] Tensor multi_margin_loss(const Tensor& input, const Tensor& target,
                                       const MultiMarginLossOptions& = {});  // multi_margin_loss(scores, labels)

// Several labels at once: the target has the input's shape [N, C] or [C], and lists classes (i64) until the first -1; or
// says 1 or 0 of every class.
[[nodiscard]] Tensor multilabel_margin_loss(
    const Tensor& input, const Tensor& target,
    const LossOptions& = {});  // multilabel_margin_loss(x, tensor({3, 0, -1, 1}))
[[nodiscard]] Tensor multilabel_soft_margin_loss(const Tensor& input, const Tensor& target,
                                                 const WeightedLossOptions& = {});  // multilabel_soft_margin_loss(x, y)

// Of probabilities.
[[nodiscard]] Tensor binary_cross_entropy(const Tensor& input, const Tensor& target,
                                          const WeightedLossOptions& = {});  // binary_cross_entropy(sigmoid(x), y)
struct BCEWithLogitsOptions {
  Tensor weight = {};
  Choice<Reduce> reduction = Reduce::mean;
  Tensor pos_weight = {};  // factors of the positive answers, broadcast
};
[[nodiscard]] Tensor binary_cross_entropy_with_logits(
    const Tensor& input, const Tensor& target,
    const BCEWithLogitsOptions& = {});  // binary_cross_entropy_with_logits(x, y, {.pos_weight = w})
struct FocalLossOptions {
  double alpha = 0.25, gamma = 2;  // alpha below 0: positive and negative weigh the same
  Choice<Reduce> reduction = Reduce::none;
};
[[nodiscard]] Tensor sigmoid_focal_loss(
    const Tensor& input, const Tensor& target,
    const FocalLossOptions& = {});  // sigmoid_focal_loss(x, y, {.reduction = Reduce::mean})

struct KLDivOptions {
  Choice<Reduce> reduction = Reduce::mean;
  bool batchmean = false;  // the sum divided by the batch size, the divergence as mathematics has it
  bool log_target = false;
};
[[nodiscard]] Tensor kl_div(const Tensor& input, const Tensor& target,
                            const KLDivOptions& = {});  // kl_div(log_softmax(x, 1), p, {.batchmean = true})
// KL(N(mean, e^log_variance) || N(0, 1)) of a VAE, by element: gaussian_kl(mean, log_variance, {.reduction = Reduce::sum})
[[nodiscard]] Tensor gaussian_kl(const Tensor& mean, const Tensor& log_variance, const LossOptions& = {});

struct GaussianNLLOptions {
  bool full = false;  // with the constant log(2 pi) / 2
  double eps = 1e-6;  // the least variance
  Choice<Reduce> reduction = Reduce::mean;
};
[[nodiscard]] Tensor gaussian_nll_loss(const Tensor& input, const Tensor& target, const Tensor& var,
                                       const GaussianNLLOptions& = {});  // gaussian_nll_loss(mean, y, variance)
struct PoissonNLLOptions {
  bool log_input = true, full = false;
  double eps = 1e-8;
  Choice<Reduce> reduction = Reduce::mean;
};
[[nodiscard]] Tensor poisson_nll_loss(const Tensor& input, const Tensor& target,
                                      const PoissonNLLOptions& = {});  // poisson_nll_loss(log_rate, counts)

// Of margins and distances. Targets are 1 and -1.
struct MarginOptions {
  double margin = 0;
  Choice<Reduce> reduction = Reduce::mean;
};
struct HingeEmbeddingOptions {
  double margin = 1;
  Choice<Reduce> reduction = Reduce::mean;
};
[[nodiscard]] Tensor hinge_embedding_loss(const Tensor& input, const Tensor& target,
                                          const HingeEmbeddingOptions& = {});  // hinge_embedding_loss(distance, y)
[[nodiscard]] Tensor soft_margin_loss(const Tensor& input, const Tensor& target,
                                      const LossOptions& = {});  // soft_margin_loss(x, y)
[[nodiscard]] Tensor margin_ranking_loss(const Tensor& input1, const Tensor& input2, const Tensor& target,
                                         const MarginOptions& = {});  // margin_ranking_loss(a, b, y)
[[nodiscard]] Tensor cosine_embedding_loss(const Tensor& input1, const Tensor& input2, const Tensor& target,
                                           const MarginOptions& = {});  // cosine_embedding_loss(a, b, y)
struct TripletMarginOptions {
  double margin = 1, p = 2, eps = 1e-6;
  bool swap = false;  // the negative's distance to the positive counts if it is smaller
  Choice<Reduce> reduction = Reduce::mean;
};
[[nodiscard]] Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                                         const TripletMarginOptions& = {});  // triplet_margin_loss(a, p, n)

struct TripletDistanceOptions {
  std::function<Tensor(const Tensor&, const Tensor&)> distance_function = {};  // pairwise_distance
  double margin = 1;
  bool swap = false;
  Choice<Reduce> reduction = Reduce::mean;
};
[[nodiscard]] Tensor triplet_margin_with_distance_loss(
    const Tensor& anchor, const Tensor& positive, const Tensor& negative,
    const TripletDistanceOptions& = {});  // triplet_margin_with_distance_loss(a, p, n, {.distance_function = f})

struct CTCLossOptions {
  int64_t blank = 0;
  Choice<Reduce> reduction = Reduce::mean;
  bool zero_infinity = false;  // targets that cannot fit their input cost 0 instead of infinity
};
// Unaligned sequences: ctc_loss(log_softmax(x, 2), targets, input_lengths, target_lengths). The log probabilities have
// the shape [T, N, C], the targets [N, S] or all of them in a row.
[[nodiscard]] Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, const std::vector<int64_t>& input_lengths,
                              const std::vector<int64_t>& target_lengths, const CTCLossOptions& = {});

// The loss itself, or an Error that says it is NaN or infinite: check_finite(mse_loss(model(x), y)).backward()
const Tensor& check_finite(const Tensor& loss);

}  // namespace volta
