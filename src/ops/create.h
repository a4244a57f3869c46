// What the functions that make tensors share: options, filling with one number, numbers that fit a dtype.
#pragma once
#include <volta/create.h>

#include "core/impl.h"

namespace volta {

// The options with what they leave open; throws when they contradict themselves or the device is missing.
Options resolved(Options options, DType dtype, const char* op, Device device = {});
Options resolved_like(const Tensor& x, const Options& options, const char* op);

// As the resolved options say, the tensor that begins a graph.
Tensor finished(Tensor x, const Options& options);

// Writes one number into every element; knows nothing of graphs and versions.
void fill(const Tensor& x, Scalar value);

// Throws unless the dtype, if one of integers, holds the number (less its fraction).
void require_held(const Scalar& value, DType dtype, const char* op);

double largest_finite(DType dtype);  // of floats

}  // namespace volta
