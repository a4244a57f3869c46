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
};

// (softmax(scores) - one hot) * g * factor; g is [outer, inner], of any strides. The result is contiguous.
struct CrossEntropyBackwardCall {
  Arg scores, labels, factors, statistics, g;  // factors may be without data: all are 1
  Arg grad_scores;
};

}  // namespace volta
