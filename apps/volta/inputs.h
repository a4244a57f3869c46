// Inputs from outside: files and bytes as tensors that a network takes.
#pragma once
#include <string>

#include "network.h"

namespace volta::app {

// [1, c, h, w] in 0 … 1: an image file brought to the size and number of channels that the recipe wants.
Tensor image_of_bytes(const std::string& bytes, const Recipe& recipe);
Tensor image_of_file(const std::string& path, const Recipe& recipe);

// The first of [n, …] that is not finite as the model would see it, in f32.
std::optional<int64_t> not_finite(const Tensor& items);

}  // namespace volta::app
