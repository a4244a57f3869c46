// Inputs from outside: files and bytes as tensors that a network takes.
#pragma once
#include <string>

#include "network.h"

namespace volta::app {

// [1, c, h, w] in 0 … 1: an image file brought to the size and number of channels that the recipe wants.
Tensor image_of_bytes(const std::string& bytes, const Recipe& recipe);
Tensor image_of_file(const std::string& path, const Recipe& recipe);

// Columns of a table as numbers, [rows, columns]; what is none is told with the file and its line.
Tensor numbers_of(const data::Table& table, const std::vector<std::string>& columns, const std::string& file,
                  DType dtype = f32);

// The first of [n, …] that is not finite as the model would see it, in f32.
std::optional<int64_t> not_finite(const Tensor& items);

}  // namespace volta::app
