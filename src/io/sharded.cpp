// Safetensors in several files: an index says which file holds which tensor.
#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "io/glob.h"
#include "io/json.h"
#include "io/safetensors.h"

namespace volta {
namespace fs = std::filesystem;
namespace io {
namespace {

constexpr const char* index_name = "model.safetensors.index.json";
constexpr const char* single_name = "model.safetensors";
// How the Hub's libraries called them before they wrote safetensors.
constexpr const char* torch_index_name = "pytorch_model.bin.index.json";
constexpr const char* torch_single_name = "pytorch_model.bin";

bool stays_inside(const std::string& shard) {
  const fs::path path(shard);
  if (shard.empty() || path.is_absolute() || shard.find('\0') != std::string::npos) return false;
  return std::none_of(path.begin(), path.end(), [](const fs::path& part) { return part == ".."; });
}

// The first of these that a folder holds; empty where it holds none.
std::string file_in(const std::string& folder, std::initializer_list<const char*> candidates) {
  for (const char* name : candidates) {
    std::error_code error;
    const fs::path file = fs::path(folder) / name;
    if (fs::exists(file, error)) return file.string();
  }
  return "";
}

// The file to read for what the user named.
std::string file_for(const char* op, const std::string& path) {
  if (!is_folder(path)) return path;
  const std::string file = file_in(path, {index_name, single_name});
  if (!file.empty()) return file;
  FileContext{op, path}.fail("this folder holds neither ", index_name, " nor ", single_name);
}

std::string beside(const std::string& index, const std::string& shard) {
  return (fs::path(index).parent_path() / shard).string();
}

// Calls f(file) with each shard, in the order in which the index names them first; f gives the set of names in it.
template <class F> void each_shard(const MappedFile& index, F f) {
  const FileContext& context = index.context();
  const Dict<std::string> places = parse_safetensors_index(index);
  std::set<std::string> done;
  for (const auto& [name, shard] : places) {
    if (!done.insert(shard).second) continue;
    const auto held = f(MappedFile::open(context.op, beside(context.path, shard)));
    for (const std::string& one : held)
      context.require(places.contains(one) && places.at(one) == shard, "shard '", shard, "' holds tensor '", one,
                      "', which the index does not place there");
    for (const auto& [n, s] : places)
      context.require(s != shard || held.contains(n), "tensor '", n, "' is not in its shard '", shard, "'");
  }
}

TensorInfo info_of(const SafetensorsEntry& e) { return {e.name, e.dtype, e.shape, e.end - e.begin}; }

SafetensorsInfo read_info(const char* op, const std::string& path) {
  const auto file = MappedFile::open(op, file_for(op, path));
  SafetensorsInfo info;
  const auto add = [&](const MappedFile& one) {
    const SafetensorsHeader header = parse_safetensors_header(one);
    for (const auto& [key, value] : header.metadata)
      if (!info.metadata.contains(key)) info.metadata.add(key, value);
    std::set<std::string> held;
    for (const SafetensorsEntry& e : header.entries) {
      info.tensors.push_back(info_of(e));
      held.insert(e.name);
    }
    return held;
  };
  if (is_index(*file)) each_shard(*file, [&](const auto& shard) { return add(*shard); });
  else add(*file);
  return info;
}

// Names in the order of the state, cut where a shard would become too large.
std::vector<StateDict> cut(const StateDict& state, int64_t most, const FileContext& context) {
  std::vector<StateDict> shards;
  int64_t bytes = 0;
  for (const auto& [name, x] : state) {
    require(x.defined(), ErrorKind::argument, context.op, context.path, ": tensor '", name, "' is undefined");
    const int64_t more = x.nbytes();
    if (shards.empty() || (bytes > 0 && more > most - bytes)) {
      shards.emplace_back();
      bytes = 0;
    }
    shards.back().add(name, x);
    bytes += more;
  }
  if (shards.empty()) shards.emplace_back();
  return shards;
}

std::string shard_name(const std::string& stem, size_t number, size_t count) {
  const auto digits = [](size_t n) {
    const std::string text = std::to_string(n);
    return std::string(5 - std::min<size_t>(5, text.size()), '0') + text;
  };
  return stem + "-" + digits(number + 1) + "-of-" + digits(count) + ".safetensors";
}

// A beginning of names that no file here has: shards that are in use are not overwritten before the new index is there.
std::string free_stem(const fs::path& folder, size_t count) {
  for (int i = 1;; ++i) {
    const std::string stem = i == 1 ? "model" : "model-v" + std::to_string(i);
    bool free = true;
    std::error_code error;
    for (size_t n = 0; n < count; ++n) free = free && !fs::exists(folder / shard_name(stem, n, count), error);
    if (free) return stem;
  }
}

std::string index_text(const std::map<std::string, std::string>& places, int64_t bytes) {
  std::string map;
  for (const auto& [name, shard] : places)
    map += (map.empty() ? "\n    " : ",\n    ") + json_quote(name) + ": " + json_quote(shard);
  return "{\n  \"metadata\": {\n    \"total_size\": " + std::to_string(bytes) + "\n  },\n  \"weight_map\": {" + map +
         "\n  }\n}\n";
}

// Shards of the index that a new one replaces; none where it cannot be read.
std::set<std::string> previous_shards(const char* op, const fs::path& index) {
  std::set<std::string> shards;
  std::error_code error;
  if (!fs::exists(index, error)) return shards;
  try {
    for (const auto& [name, shard] : parse_safetensors_index(*MappedFile::open(op, index.string())))
      shards.insert(shard);
  } catch (const Error&) {
    return {};
  }
  return shards;
}

// An index may name any file: none goes but what this function, or one like it, has written.
void remove_shard(const char* op, const fs::path& folder, const std::string& shard) {
  if (!match("model*-????\?-of-?????.safetensors", shard) || shard.find('/') != std::string::npos) return;
  const std::string path = (folder / shard).string();
  std::error_code error;
  if (attempt([&] { return parse_safetensors_header(*MappedFile::open(op, path)).entries.size(); }))
    fs::remove(path, error);
}

// Files that are removed again unless all are there.
class Written {
 public:
  ~Written() {
    std::error_code error;
    for (const std::string& path : paths_) fs::remove(path, error);
  }
  void add(const std::string& path) { paths_.push_back(path); }
  void keep() { paths_.clear(); }

 private:
  std::vector<std::string> paths_;
};

}  // namespace

bool is_index(const MappedFile& file) {
  const std::string_view text = as_text(file.bytes());
  const size_t first = text.find_first_not_of(" \t\r\n");
  return !looks_like_safetensors(file.bytes()) && first != std::string_view::npos && text[first] == '{';
}

std::string model_file_in(const char* op, const std::string& folder) {
  const std::string file = file_in(folder, {index_name, single_name, torch_index_name, torch_single_name});
  if (!file.empty()) return file;
  FileContext{op, folder}.fail("this folder holds none of ", index_name, ", ", single_name, ", ", torch_index_name,
                               " and ", torch_single_name);
}

StateDict read_shards(const MappedFile& index, StateDict (*read)(const std::shared_ptr<MappedFile>&)) {
  StateDict state;
  each_shard(index, [&](const std::shared_ptr<MappedFile>& shard) {
    std::set<std::string> held;
    for (const auto& [name, x] : read(shard)) {
      if (!state.contains(name)) state.add(name, x);  // of a name in two shards the index places one: an Error, next
      held.insert(name);
    }
    return held;
  });
  return state;
}

Dict<std::string> parse_safetensors_index(const MappedFile& file) {
  Dict<std::string> places;
  bool found = false;
  const FileContext& context = file.context();
  JsonReader json(as_text(file.bytes()), context, "the index");
  json.object([&](const std::string& key) {
    if (key != "weight_map") return json.skip();
    found = true;
    json.object([&](const std::string& name) {
      const std::string shard = json.string();
      context.require(stays_inside(shard), "tensor '", name, "': its shard '", shard.substr(0, 100),
                      "' lies outside the folder of the index");
      places.add(name, shard);
    });
  });
  json.end();
  context.require(found, "not an index of safetensors: it has no weight_map");
  return places;
}

}  // namespace io

StateDict read_safetensors(const std::string& path) {
  const char* const op = "read_safetensors";
  const auto file = io::MappedFile::open(op, io::file_for(op, path));
  if (!io::is_index(*file)) return io::read_safetensors(file);
  return io::read_shards(*file, io::read_safetensors);
}

Metadata read_safetensors_metadata(const std::string& path) {
  return io::read_info("read_safetensors_metadata", path).metadata;
}
SafetensorsInfo read_safetensors_info(const std::string& path) { return io::read_info("read_safetensors_info", path); }

void write_safetensors_sharded(const std::string& folder, const StateDict& state, const ShardOptions& options) {
  const char* const op = "write_safetensors_sharded";
  require(options.max_shard_bytes > 0, ErrorKind::argument, op, folder, ": max_shard_bytes must be positive, not ",
          options.max_shard_bytes);
  std::error_code error;
  fs::create_directories(folder, error);
  require(!error && io::is_folder(folder), ErrorKind::io, op, folder, ": the folder cannot be made: ", error.message());
  const fs::path index = fs::path(folder) / io::index_name;
  std::set<std::string> previous = io::previous_shards(op, index);
  const std::vector<StateDict> shards = io::cut(state, options.max_shard_bytes, {op, folder});
  const std::string stem = io::free_stem(folder, shards.size());
  std::map<std::string, std::string> places;
  int64_t bytes = 0;
  io::Written written;
  for (size_t i = 0; i < shards.size(); ++i) {
    const std::string name = io::shard_name(stem, i, shards.size()), path = (fs::path(folder) / name).string();
    write_safetensors(path, shards[i], options.metadata);
    written.add(path);
    for (const auto& [tensor, x] : shards[i]) {
      places[tensor] = name;
      bytes += x.nbytes();
    }
    previous.erase(name);
  }
  io::AtomicFile file(op, index.string());
  file.write(io::index_text(places, bytes));
  file.commit();
  written.keep();
  for (const std::string& shard : previous) io::remove_shard(op, folder, shard);
}

}  // namespace volta
