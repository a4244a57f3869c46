// What the functions that make tensors share: checked options, and filling with one number.
#pragma once
#include <volta/create.h>

#include "core/impl.h"

namespace volta {

// The dtype asked for, or `fallback`; throws when the options contradict themselves or the device is missing.
DType checked_dtype(const Options& options, DType fallback, const char* op);

// The options with the dtype and device of x where they leave them open.
Options options_like(const Tensor& x, Options options, const char* op);

// A new uninitialised tensor as the options say; requires_grad is left to `finished`.
Tensor make_empty(const Shape& shape, const Options& options, DType fallback, const char* op);

Tensor finished(Tensor x, const Options& options);

// Writes one number into every element; knows nothing of graphs and versions.
void fill(const Tensor& x, Scalar value);

}  // namespace volta
