// save and load: the weights of a model in a file.
#pragma once
#include <string>

#include <volta/nn/model.h>

namespace volta {

// Parameters and persistent buffers as safetensors: save(net, "net.safetensors"). The file appears whole or not at all.
void save(const ModelView& model, const std::string& path);

// load(net, "net.safetensors"). The file's content says what it is: safetensors, a file of torch.save, .npz, an index of
// shards of these, or a folder of the Hub (model.safetensors or its index, else pytorch_model.bin or its index).
// Differences are treated as by load_state_dict; a weight that is tied to another needs to be in the file once.
LoadResult load(const ModelRef& model, const std::string& path, const LoadOptions& options = {});

// The tensors of any such file by name: read_state("model.pt").
[[nodiscard]] StateDict read_state(const std::string& path);

}  // namespace volta
