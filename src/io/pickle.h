// Pickle: reads the opcodes that torch.save writes and calls nothing but what is named here; writes the same.
#pragma once
#include <functional>
#include <string>

#include <volta/io/torch_file.h>

#include "core/layout.h"
#include "io/file.h"

namespace volta::io {

// A tensor as pickled: a layout over a storage that is kept elsewhere.
struct PickledTensor {
  std::string storage;  // its key
  int64_t storage_bytes = 0;
  DType dtype = f32;
  Layout layout = {};
};
using TensorSource = std::function<Tensor(const PickledTensor&)>;

constexpr int max_pickle_depth = 64;  // of values in values

TorchValue unpickle(const FileContext& context, Bytes pickle, const TensorSource& tensors);

using TensorSink = std::function<PickledTensor(const Tensor&)>;  // says where a tensor's bytes will be
std::string pickle(const FileContext& context, const TorchValue& value, const TensorSink& tensors);

// PyTorch's names: "FloatStorage", and "" for the dtypes that have only untyped storages; "float32".
std::string_view torch_storage_name(DType dtype);
std::string_view torch_dtype_name(DType dtype);

}  // namespace volta::io
