// How Autocast treats every op, in one place: opgen writes from it what casts the inputs of ops, and a column of docs/ops.md.
#pragma once
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string_view>

namespace volta {

// as_given: the op promotes its inputs itself. low: its f32 inputs become the half dtype. wide: its halves become f32.
// widest: its halves become f32 where another input is f32. An op with an f64 input is left alone.
enum class Cast : uint8_t { as_given, low, wide, widest };
inline constexpr const char* cast_words[] = {"as given", "half", "f32", "widest input"};

// An op is as_given unless it is named here. Layers of nn follow from the ops they are made of; recurrent layers and cells
// cast themselves, as the functions of recurrence do.
// clang-format off
inline constexpr std::string_view low_ops[] = {
    "matmul", "mm", "mv", "bmm", "addmm", "addmv", "addr", "addbmm", "baddbmm", "linear", "bilinear", "tensordot",
    "einsum", "inner", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "prelu",
    "scaled_dot_product_attention", "rnn_tanh", "rnn_relu", "gru", "lstm", "rnn_tanh_cell", "rnn_relu_cell", "gru_cell",
    "lstm_cell"};
inline constexpr std::string_view wide_ops[] = {
    // Exponentials, logarithms, powers, and what grows or cancels like them.
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "pow", "reciprocal", "rsqrt", "tan", "sinh", "cosh",
    "asin", "acos", "acosh", "atanh", "erfinv", "lgamma", "digamma", "trigamma", "polygamma2", "polygamma", "softplus",
    "logit", "logaddexp", "logaddexp2", "xlogy", "vander",
    // Sums and statistics of many elements.
    "sum", "prod", "trace", "nansum", "logsumexp", "logmeanexp", "cumsum", "cumprod", "logcumsumexp", "norm", "var",
    "std_dev", "var_mean", "std_mean", "cov", "corrcoef", "trapezoid", "cumulative_trapezoid", "dist", "cdist", "pdist",
    "softmax", "log_softmax", "softmin", "gumbel_softmax", "lp_pool1d", "lp_pool2d", "lp_pool3d",
    // Places in a picture.
    "affine_grid",
    // Batch and instance norm are not here: they compute in f32 whatever they are given.
    "layer_norm", "rms_norm", "group_norm", "local_response_norm", "normalize", "renorm", "cosine_similarity",
    "pairwise_distance",
    // Losses.
    "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "cross_entropy", "nll_loss", "multi_margin_loss",
    "multilabel_margin_loss", "multilabel_soft_margin_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits",
    "sigmoid_focal_loss", "kl_div", "gaussian_kl", "gaussian_nll_loss", "poisson_nll_loss", "hinge_embedding_loss",
    "soft_margin_loss", "margin_ranking_loss", "cosine_embedding_loss", "triplet_margin_loss",
    "triplet_margin_with_distance_loss", "ctc_loss"};
inline constexpr std::string_view widest_ops[] = {
    // What takes several tensors and refuses to mix dtypes.
    "scatter", "scatter_add", "scatter_reduce", "index_add", "index_copy", "index_reduce", "masked_scatter", "cartesian_prod",
    "grid_sample", "embedding_bag", "pad_sequence", "pack_sequence"};
// clang-format on

constexpr Cast cast_of(std::string_view op) {
  const auto among = [op](const auto& list) {
    return std::find(std::begin(list), std::end(list), op) != std::end(list);
  };
  if (among(low_ops)) return Cast::low;
  if (among(wide_ops)) return Cast::wide;
  return among(widest_ops) ? Cast::widest : Cast::as_given;
}

}  // namespace volta
