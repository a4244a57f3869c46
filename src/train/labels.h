// Predictions and targets of classes, brought to class numbers.
#pragma once
#include <optional>

#include <volta/tensor.h>

namespace volta {

struct ClassLabels {
  Tensor predicted, target;  // i64, of one axis
  int64_t classes;
};

// `classes`: of predictions that are class numbers themselves; scores must have as many where it is given.
ClassLabels class_labels(const Tensor& prediction, const Tensor& target, double threshold,
                         std::optional<int64_t> classes, const char* op);
// Class numbers as i64 of one axis; floating ones are 0 or 1.
Tensor flat_targets(const Tensor& target, bool binary, const char* op);
bool holds_scores_of_classes(const Tensor& prediction, const Tensor& target);  // [N, C, …] of [N, …]
void require_same_device(const Tensor& prediction, const Tensor& target, const char* op);
// a + b, where a may be undefined yet.
Tensor plus(const Tensor& a, const Tensor& b);

}  // namespace volta
