// How far a result may lie from PyTorch's, and why.
#pragma once
#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <sstream>
#include <string>

#include <volta/dtype.h>

namespace volta::oracle {

inline int significand_bits(DType t) { return t == f64 ? 53 : t == f32 ? 24 : t == f16 ? 11 : 8; }
inline int least_exponent(DType t) { return t == f64 ? -1022 : t == f16 ? -14 : -126; }
inline double epsilon(DType t) { return std::ldexp(1.0, 1 - significand_bits(t)); }

// The distance between neighbours at x.
inline double ulp(double x, DType t) {
  const int exponent = x == 0 || !std::isfinite(x) ? least_exponent(t) : std::max(std::ilogb(x), least_exponent(t));
  return std::ldexp(1.0, exponent + 1 - significand_bits(t));
}

// The sum of three allowances. Results of f16, bf16 and f32 are measured from the nearer end of the interval between
// what PyTorch gives and what it gives in f64; in f64 both sides' errors add up, so there the rounding of intermediates
// counts twice, and where a formula amplifies it the ulps are the wider `ulps_in_f64`.
struct Bound {
  double ulps = 0;         // units in the last place of the element itself
  double absolute = 0;     // epsilons of 1: formulas that subtract numbers of size 1, such as 1 - y^2
  double of_largest = 0;   // epsilons of the largest element: sums, whose terms are larger than the result
  double ulps_in_f64 = 0;  // instead of ulps, if larger
};

inline std::set<std::string> words(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

// Nothing is rounded, or once and as IEEE 754 says: PyTorch's bits.
inline bool is_exact(const std::string& op) {
  static const std::set<std::string> names = words(
      "neg abs sign positive square sqrt reciprocal floor ceil trunc round frac relu relu6 hardtanh "
      "threshold hardshrink softshrink leaky_relu add sub mul div maximum minimum fmax fmin fmod copysign "
      "nextafter heaviside where clamp clamp_min clamp_max amax amin max min median cummax cummin sort topk "
      "kthvalue unique nan_to_num reshape view permute transpose t mT movedim expand expand_as broadcast_to "
      "squeeze unsqueeze flatten unflatten narrow slice select flip diagonal unfold as_strided split chunk "
      "unbind contiguous clone to cat stack roll tile repeat repeat_interleave pad tril triu diag gather "
      "scatter index_select take take_along_dim masked_fill masked_select embedding outer kron "
      "nanmedian aminmax moveaxis swapaxes swapdims atleast_1d atleast_2d atleast_3d tensor_split fliplr flipud "
      "vstack hstack dstack column_stack block_diag cartesian_prod combinations rot90 diag_embed index_copy "
      "index_fill masked_scatter unique_consecutive hsplit vsplit dsplit broadcast_tensors ravel reshape_as diagflat "
      "select_scatter slice_scatter diagonal_scatter mode msort histc unravel_index isposinf isneginf");
  return names.contains(op);
}

// The signs of zero that PyTorch leaves open: of maximum and minimum, which compare equal, and of gelu, where its
// dtypes differ; the others subtract equal numbers or round differently to zero.
inline bool zero_has_a_sign(const std::string& op) {
  static const std::set<std::string> names =
      words("maximum minimum fmax fmin clamp clamp_min clamp_max gelu gelu_tanh remainder logaddexp2 tanhshrink sign");
  return !names.contains(op);
}

// Values. Elementary functions are good to 2 ulp here and in PyTorch.
inline Bound value_bound(const std::string& op, bool pointwise) {
  static const std::map<std::string, Bound> table = {
      {"gelu", {2, 1}},               // x (1 + erf) / 2: at -5 the sum cancels to an epsilon
      {"gelu_tanh", {2, 2}},          // likewise
      {"tanhshrink", {2, 1}},         // x - tanh x
      {"logit", {2, 1}},              // log x - log(1 - x), 0 at 1/2
      {"lgamma", {2, 1}},             // 0 at 1 and 2
      {"digamma", {4, 4}},            // 0 at 1.46; PyTorch's own is 4 ulp off at -0.9
      {"trigamma", {4}},              // of PyTorch's zeta function
      {"polygamma2", {4, 0, 0, 64}},  // likewise; at -2.5 it sums terms of size 16 to 0.1
      {"logaddexp2", {2, 1}},
      {"logaddexp", {2, 1}},
      {"lerp", {2, 1}},  // subtracts operands of size 1 and more
      // Running means, here by columns and in PyTorch by rows: the error grows with count times mean over deviation.
      {"var", {32}},
      {"std_dev", {16}},
      {"erfinv", {2, 0, 0, 32}},  // PyTorch's: good to 20 ulp in f64 at 0.999
  };
  if (is_exact(op)) return {};
  if (const auto found = table.find(op); found != table.end()) return found->second;
  return pointwise ? Bound{2} : Bound{2, 0, 2};
}

// Gradients: a few operations each, so a few ulp; sums over broadcast axes are sums.
inline Bound gradient_bound(const std::string& op, bool elementwise) {
  static const std::map<std::string, Bound> table = {
      {"sinc", {4, 4}},    // (cos a - sin a / a) / a
      {"lgamma", {4, 4}},  // digamma
      // 1 - x^2 at x = 0.999 loses nine bits, and f64 has nothing wider to compare with.
      {"asin", {4, 0, 0, 256}},
      {"acos", {4, 0, 0, 256}},
      {"acosh", {4, 0, 0, 512}},
      {"atanh", {4, 0, 0, 512}},
      {"erfinv", {8, 0, 0, 400}},        // e^(y^2) of a y = 2.3 that is 20 ulp off in PyTorch
      {"logcumsumexp", {4, 1, 4, 200}},  // e^(a - b) of |a| up to 200
      {"var", {32, 4, 4}},
      {"std_dev", {32, 4, 4}},  // x - mean, of numbers near 10
  };
  if (const auto found = table.find(op); found != table.end()) return found->second;
  if (is_exact(op)) return elementwise ? Bound{4} : Bound{4, 0, 4};
  return elementwise ? Bound{4, 1} : Bound{4, 1, 4};
}

}  // namespace volta::oracle
