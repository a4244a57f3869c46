// Options of the losses, with PyTorch's names and defaults.
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
struct SmoothL1LossOptions {
  Choice<Reduce> reduction = Reduce::mean;
  double beta = 1;  // where squares become lines
};
struct HuberLossOptions {
  Choice<Reduce> reduction = Reduce::mean;
  double delta = 1;
};

// Losses over classes. The scores have the shape [N, C, …] or [C], the labels [N, …] or []; of any integer dtype.
struct CrossEntropyOptions {
  Tensor weight = {};  // one factor for each class
  Choice<Reduce> reduction = Reduce::mean;
  int64_t ignore_index = -100;
  double label_smoothing = 0;
};
struct NLLLossOptions {
  Tensor weight = {};
  Choice<Reduce> reduction = Reduce::mean;
  int64_t ignore_index = -100;
};
struct MultiMarginLossOptions {
  int p = 1;  // or 2
  double margin = 1;
  Tensor weight = {};
  Choice<Reduce> reduction = Reduce::mean;
};
struct BCEWithLogitsOptions {
  Tensor weight = {};
  Choice<Reduce> reduction = Reduce::mean;
  Tensor pos_weight = {};  // factors of the positive answers, broadcast
};
struct FocalLossOptions {
  double alpha = 0.25, gamma = 2;  // alpha below 0: positive and negative weigh the same
  Choice<Reduce> reduction = Reduce::none;
};
struct KLDivOptions {
  Choice<Reduce> reduction = Reduce::mean;
  bool batchmean = false;  // the sum divided by the batch size, the divergence as mathematics has it
  bool log_target = false;
};
struct GaussianNLLOptions {
  bool full = false;  // with the constant log(2 pi) / 2
  double eps = 1e-6;  // the least variance
  Choice<Reduce> reduction = Reduce::mean;
};
struct PoissonNLLOptions {
  bool log_input = true, full = false;
  double eps = 1e-8;
  Choice<Reduce> reduction = Reduce::mean;
};

// Losses over margins and distances. Targets are 1 and -1.
struct MarginOptions {
  double margin = 0;
  Choice<Reduce> reduction = Reduce::mean;
};
struct HingeEmbeddingOptions {
  double margin = 1;
  Choice<Reduce> reduction = Reduce::mean;
};
struct TripletMarginOptions {
  double margin = 1, p = 2, eps = 1e-6;
  bool swap = false;  // the negative's distance to the positive counts if it is smaller
  Choice<Reduce> reduction = Reduce::mean;
};
struct TripletDistanceOptions {
  std::function<Tensor(const Tensor&, const Tensor&)> distance_function = {};  // pairwise_distance
  double margin = 1;
  bool swap = false;
  Choice<Reduce> reduction = Reduce::mean;
};
struct CTCLossOptions {
  int64_t blank = 0;
  Choice<Reduce> reduction = Reduce::mean;
  bool zero_infinity = false;  // targets that cannot fit their input cost 0 instead of infinity
};

// The loss itself, or an Error that says it is NaN or infinite: check_finite(mse_loss(model(x), y)).backward()
Tensor check_finite(const Tensor& loss);

}  // namespace volta
