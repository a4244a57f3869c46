// Sequences of different lengths: packed without their padding, or padded.
#pragma once
#include <string>
#include <vector>

#include <volta/tensor.h>

namespace volta {

// Sequences of different lengths without their padding: the steps of time one after the other, longest sequence first.
struct PackedSequence {
  Tensor data;                       // [sum of lengths, ...]
  std::vector<int64_t> batch_sizes;  // how many sequences last to each step
  std::vector<int64_t> order;        // of the sequences: order[i] is the place of number i in the batch it came from
  std::vector<int64_t> lengths() const;  // in the batch's order
  void check(const char* op) const;      // throws unless the parts fit each other; everything that takes one asks
};
struct PaddedSequence {
  Tensor data;
  std::vector<int64_t> lengths;
};

// A tensor [n] of integers as lengths, for `op`.
std::vector<int64_t> lengths_of(const Tensor& lengths, const char* op);

enum class PaddingSide { right, left };
constexpr std::array<std::string_view, 2> choice_names(PaddingSide) { return {"right", "left"}; }
struct PadSequenceOptions {
  bool batch_first = false;
  double padding_value = 0;
  Choice<PaddingSide> padding_side = PaddingSide::right;
};

}  // namespace volta
