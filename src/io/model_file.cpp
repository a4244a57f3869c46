// save and load: which reader a file wants is told by its content.
#include <volta/io/model_file.h>

#include "io/npy.h"
#include "io/safetensors.h"
#include "io/torch_file.h"

namespace volta {
namespace {

// Reads one file, which is no index.
StateDict read_one(const std::shared_ptr<io::MappedFile>& file) {
  const io::Bytes bytes = file->bytes();
  file->context().require(!bytes.empty(), "the file is empty");
  if (io::looks_like_old_torch(bytes)) return io::read_torch(file);
  if (io::looks_like_zip(bytes)) return io::looks_like_torch_zip(file) ? io::read_torch(file) : io::read_npz(file);
  file->context().require(!io::looks_like_npy(bytes), "this is one array (.npy), without a name; see read_npy");
  return io::read_safetensors(file);
}

StateDict read_any(const char* op, const std::string& path) {
  const auto file = io::MappedFile::open(op, io::is_folder(path) ? io::model_file_in(op, path) : path);
  return io::is_index(*file) ? io::read_shards(*file, read_one) : read_one(file);
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
  return io::FileContext{"load", path}.about([&] { return load_state_dict(model, state, options); });
}

}  // namespace volta
