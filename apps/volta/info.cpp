// volta info: what a file of tensors holds.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "command.h"
#include "network.h"

namespace volta::app {
namespace {

struct Contents {
  std::vector<TensorInfo> tensors;
  Metadata metadata;
};

// Tensors within dictionaries and lists are named by the way to them: optimizer.state.0.exp_avg.
void collect(const TorchValue& value, const std::string& name, Contents& to) {
  using Kind = TorchValue::Kind;
  const auto inner = [&](const std::string& key) { return name.empty() ? key : name + "." + key; };
  if (value.is(Kind::tensor)) {
    const Tensor& x = value.as_tensor();
    to.tensors.push_back({name.empty() ? "(one tensor)" : name, x.dtype(), x.shape(), x.nbytes()});
  } else if (value.is(Kind::list) || value.is(Kind::tuple)) {
    for (size_t i = 0; i < value.items().size(); ++i) collect(value.items()[i], inner(std::to_string(i)), to);
  } else if (value.is(Kind::dict)) {
    for (const auto& [key, item] : value.entries())
      collect(item,
              inner(key.is(Kind::string)    ? key.as_string()
                    : key.is(Kind::integer) ? std::to_string(key.as_integer())
                                            : "?"),
              to);
  }
}

// Safetensors are asked without loading anything; other files are read. What a file is, its content says.
Contents contents(const std::string& path) {
  const auto info = attempt([&] { return read_safetensors_info(path); });
  if (info) return {info->tensors, info->metadata};
  if (path.ends_with(".safetensors") || path.ends_with(".json")) throw Error(info.error());
  if (const auto array = attempt([&] { return read_npy(path); }); array || path.ends_with(".npy")) {
    if (!array) throw Error(array.error());
    return {{{std::filesystem::path(path).stem().string(), array->dtype(), array->shape(), array->nbytes()}}, {}};
  }
  Contents found;
  if (const auto value = attempt([&] { return read_torch_value(path); })) {
    collect(*value, "", found);
    return found;
  }
  for (const auto& [name, x] : read_state(path)) found.tensors.push_back({name, x.dtype(), x.shape(), x.nbytes()});
  return found;
}

// Up to so many bytes, without the half of a character.
std::string_view beginning(std::string_view text, size_t bytes) {
  while (bytes > 0 && bytes < text.size() && (static_cast<unsigned char>(text[bytes]) & 0xc0) == 0x80) --bytes;
  return text.substr(0, bytes);
}

void print(const Contents& c, const Terminal& terminal) {
  size_t width = 4;
  int64_t elements = 0, bytes = 0;
  for (const TensorInfo& t : c.tensors) {
    width = std::max(width, printable(t.name).size());
    elements += t.shape.numel(), bytes += t.bytes;
  }
  if (terminal.json) {
    nlohmann::json tensors = nlohmann::json::array(), metadata = nlohmann::json::object();
    for (const TensorInfo& t : c.tensors)
      tensors.push_back({{"name", t.name},
                         {"dtype", std::string(name(t.dtype))},
                         {"shape", std::vector<int64_t>(t.shape.begin(), t.shape.end())},
                         {"bytes", t.bytes}});
    for (const auto& [name, text] : c.metadata) metadata[name] = text;
    std::printf("%s\n",
                nlohmann::json{{"tensors", tensors}, {"metadata", metadata}, {"elements", elements}, {"bytes", bytes}}
                    .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)
                    .c_str());
    return;
  }
  for (const TensorInfo& t : c.tensors)
    std::printf("%-*s  %-5s %s\n", int(width), printable(t.name).c_str(), std::string(name(t.dtype)).c_str(),
                t.shape.str().c_str());
  std::printf("%s\n", terminal
                          .bold(std::to_string(c.tensors.size()) + " tensors, " + with_commas(elements) +
                                " elements, " + bytes_text(double(bytes)))
                          .c_str());
  for (const auto& [name, text] : c.metadata)
    std::printf("%s %s\n", terminal.faint(printable(name) + ":").c_str(),
                (text.size() > 200 ? printable(beginning(text, 200)) + " …" : printable(text)).c_str());
}

}  // namespace

void add_info(Command program, Common& common) {
  Command command = program.command("info", "list the tensors of a file (safetensors, pt, npz)");
  auto file = std::make_shared<std::string>();
  command.option("file", *file, "the file, or a folder of safetensors").required();
  command.on_run([&common, file] { print(contents(*file), common.terminal()); });
}

}  // namespace volta::app
