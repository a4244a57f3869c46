// What embeddings check of their options, as functions and as layers.
#pragma once
#include <optional>

#include <volta/tensor.h>

namespace volta {

// A row of the weight, counted from the start; throws unless it is one.
int64_t checked_padding(const Tensor& weight, int64_t row, const char* op);
void check_norm(const std::optional<double>& max_norm, double norm_type, const char* op);

}  // namespace volta
