// save and load: which reader a file wants is told by its content.
#include <volta/io/model_file.h>

#include "io/npy.h"
#include "io/safetensors.h"
#include "io/torch_file.h"

namespace volta {
namespace {

StateDict read_any(const char* op, const std::string& path) {
  if (io::is_folder(path)) return blamed_on(op, [&] { return read_safetensors(path); });
  const auto file = io::MappedFile::open(op, path);
  const io::Bytes bytes = file->bytes();
  file->context().require(!bytes.empty(), "the file is empty");
  if (io::looks_like_old_torch(bytes)) return io::read_torch_value(file).state_dict();
  if (io::looks_like_zip(bytes)) {
    if (!io::looks_like_torch_zip(file)) return io::read_npz(file);
    const TorchValue value = io::read_torch_value(file);
    file->context().require(value.is(TorchValue::Kind::dict), "the file holds a ", name(value.kind()),
                            ", not a state dict");
    return blamed_on(op, [&] { return value.state_dict(); });
  }
  file->context().require(!io::looks_like_npy(bytes), "this is one array (.npy), without a name; see read_npy");
  return blamed_on(op, [&] { return read_safetensors(path); });
}

bool tied(const Tensor& a, const Tensor& b) { return same_memory(a, b) && layout(a) == layout(b); }

// A weight that is tied to one in the state is there under that name.
void complete(StateDict& state, const StateDict& own) {
  for (const auto& [name, x] : own) {
    if (state.contains(name)) continue;
    for (const auto& [other, y] : own)
      if (other != name && tied(x, y) && state.contains(other)) {
        state.add(name, state.at(other));
        break;
      }
  }
}

}  // namespace

StateDict read_state(const std::string& path) { return read_any("read_state", path); }

void save(const ModelView& model, const std::string& path) {
  blamed_on("save", [&] { write_safetensors(path, state_dict(model)); });
}

LoadResult load(const ModelRef& model, const std::string& path, const LoadOptions& options) {
  StateDict state = read_any("load", path);
  complete(state, state_dict(model));
  try {
    return load_state_dict(model, state, options);
  } catch (const Error& e) {
    const std::string_view text(e.what());
    throw Error(e.kind(), "load", path + ": " + std::string(text.substr(e.op().size() + 2)));
  }
}

}  // namespace volta
