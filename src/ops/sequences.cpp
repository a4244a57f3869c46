// Lists of sequences of different lengths as one tensor, and back.
#include <algorithm>

#include <volta/create.h>
#include <volta/ops.h>
#include <volta/plain.h>
#include "ops/check.h"

namespace volta {

Tensor Plain::pad_sequence(const std::vector<Tensor>& sequences, const PadSequenceOptions& o) {
  const char* op = "pad_sequence";
  const bool left = o.padding_side.of(op, "padding_side") == PaddingSide::left;
  require(!sequences.empty(), ErrorKind::argument, op, "needs a sequence");
  const Tensor& first = sequences[0].checked(op);
  require_storable(o.padding_value, first.dtype(), op);
  int64_t time = 0;
  for (const Tensor& x : sequences) {
    bool fits = x.checked(op).dim() >= 1 && x.dim() == first.dim();
    for (int i = 1; fits && i < int(x.dim()); ++i) fits = x.shape()[i] == first.shape()[i];
    require(fits, ErrorKind::shape, op, "sequences of shapes ", first, " and ", x, " differ in more than their length");
    require(x.dtype() == first.dtype(), ErrorKind::dtype, op, "sequences of ", first.dtype(), " and ", x.dtype());
    common_device(first, x, op);
    time = std::max(time, x.size(0));
  }
  std::vector<Tensor> padded;
  for (const Tensor& x : sequences) {
    std::vector<int64_t> sides(2 * size_t(x.dim()), 0);
    sides[sides.size() - (left ? 2 : 1)] = time - x.size(0);
    padded.push_back(pad(x, sides, {.value = o.padding_value}));
  }
  return blamed_on(op, [&] { return stack(padded, o.batch_first ? 0 : 1); });
}

std::vector<Tensor> unpad_sequence(const Tensor& padded, const std::vector<int64_t>& lengths, bool batch_first) {
  const char* op = "unpad_sequence";
  require(padded.checked(op).dim() >= 2, ErrorKind::shape, op, "needs [time, batch, ...], got ", padded);
  const int batch = batch_first ? 0 : 1;
  require(int64_t(lengths.size()) == padded.size(batch), ErrorKind::argument, op, lengths.size(), " lengths for shape ",
          padded);
  for (const int64_t n : lengths)
    require(n >= 0 && n <= padded.size(1 - batch), ErrorKind::argument, op, "length ", n, " is not within 0 and ",
            padded.size(1 - batch));
  std::vector<Tensor> sequences;
  for (size_t i = 0; i < lengths.size(); ++i)
    sequences.push_back(padded.select(batch, int64_t(i)).narrow(0, 0, lengths[i]));
  return sequences;
}

PackedSequence Plain::pack_sequence(const std::vector<Tensor>& sequences) {
  const Tensor padded = blamed_on("pack_sequence", [&] { return pad_sequence(sequences); });
  std::vector<int64_t> lengths;
  for (const Tensor& x : sequences) lengths.push_back(x.size(0));
  return blamed_on("pack_sequence", [&] { return pack_padded_sequence(padded, lengths); });
}

}  // namespace volta
