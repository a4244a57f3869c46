// CrossEntropyCall: -log(softmax(scores))[label] of each label; CrossEntropyBackwardCall: the gradient of the scores.
#pragma once
#include "backend/backend.h"

namespace volta {

// Scores are [outer, classes, inner], of any strides; what is [outer, inner] has a number for each label. Labels that
// are out of range were refused before, or are clamped and reported at the next synchronisation.
struct CrossEntropyCall {
  Arg scores;
  Arg labels;                     // i64 [outer, inner]
  std::optional<int64_t> ignore;  // labels that count nothing
  Arg weight;                     // of each class, of the scores' dtype and contiguous, or without data
  Arg losses;                     // [outer, inner]: times the label's factor; where that is 0 the loss is 0
  Arg factors;                    // [outer, inner], if wanted: the label's weight, 0 where it is ignored
  Arg statistics;                 // f64 [outer, inner, 2]: the largest score, and the sum of exp(score - largest)
  // If wanted, one number of the losses' dtype: their sum over that of the factors, or over the number of labels where
  // no factors are wanted. Sums are taken in f64 of f64, else in f32, and in the same order every time.
  Arg mean;
  Arg divisor;  // wanted with a mean and factors: the sum of these, in the dtype of sums
};

// (softmax(scores) - one hot) * g / divisor * factor; g is [outer, inner], of any strides. The result is contiguous.
struct CrossEntropyBackwardCall {
  Arg scores, labels, factors, statistics, g;  // factors may be without data: all are 1
  Arg grad_scores;
  Arg divisor{nullptr, nullptr, f64, 1};  // as a forward call left it, or the number in `scalar`
};

}  // namespace volta
