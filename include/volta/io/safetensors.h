// Safetensors: named tensors in one file, as the Hugging Face Hub keeps weights; read in place, written whole or not at all.
#pragma once
#include <string>
#include <vector>

#include <volta/nn/model.h>

namespace volta {

// Texts by name: write_safetensors("net.safetensors", state, {{"format", "pt"}}).
using Metadata = Dict<std::string>;

// A tensor of a file that has not been loaded.
struct TensorInfo {
  std::string name;
  DType dtype = f32;
  Shape shape = {};
  int64_t bytes = 0;
};
struct SafetensorsInfo {
  Metadata metadata = {};
  std::vector<TensorInfo> tensors = {};
};

// Takes a file, an index of shards (model.safetensors.index.json) or a folder that holds either:
// StateDict s = read_safetensors("model.safetensors"). The tensors live in the mapped file, whose pages are read at first
// use; changing them changes neither the file nor other readers. While they live the file may be replaced, not truncated.
[[nodiscard]] StateDict read_safetensors(const std::string& path);
[[nodiscard]] Metadata read_safetensors_metadata(
    const std::string& path);  // read_safetensors_metadata(path).at("format")
[[nodiscard]] SafetensorsInfo read_safetensors_info(
    const std::string& path);  // names, dtypes and shapes; loads nothing

// write_safetensors("net.safetensors", state_dict(net)). The file appears whole or not at all; other threads may read the
// tensors meanwhile. Tensors that share memory are written one by one.
void write_safetensors(const std::string& path, const StateDict& state, const Metadata& metadata = {});

struct ShardOptions {
  int64_t max_shard_bytes = 5'000'000'000;  // of tensors; one that is larger has a shard of its own
  Metadata metadata = {};
};
// Several files and their index, all in a folder: write_safetensors_sharded("out", state, {.max_shard_bytes = 1 << 30}).
void write_safetensors_sharded(const std::string& folder, const StateDict& state, const ShardOptions& options = {});

}  // namespace volta
