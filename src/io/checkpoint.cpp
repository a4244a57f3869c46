// Tensors are named model.<name> and optimizer.<number>.<slot>; all else is a JSON text in the metadata.
#include "io/checkpoint.h"

#include <charconv>
#include <cmath>
#include <set>

#include "io/crc32.h"
#include "io/json.h"
#include "io/safetensors.h"

namespace volta::io {
namespace {

constexpr const char *format_key = "format", *version_key = "version", *state_key = "state", *sum_key = "crc32";
constexpr const char* format_name = "volta.checkpoint";
constexpr const char* version = "1";
constexpr const char* model_prefix = "model.";
constexpr const char* optimizer_prefix = "optimizer.";
constexpr std::string_view no_sum = "00000000";

// Exact, and readable with some practice: 0.1 is "1.999999999999ap-4".
std::string exact(double value) {
  char text[64];
  const auto [end, error] = std::to_chars(text, text + sizeof text, value, std::chars_format::hex);
  return json_quote({text, size_t(end - text)});
}
double read_exact(JsonReader& json) {
  const std::string text = json.string();
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::hex);
  if (error != std::errc() || end != text.data() + text.size())
    json.fail("'" + text.substr(0, 40) + "' is not a number");
  return value;
}
// JSON readers differ about whole numbers above 2^53: these are texts.
std::string exact(uint64_t value) { return json_quote(std::to_string(value)); }
uint64_t read_unsigned(JsonReader& json) {
  const std::string text = json.string();
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    json.fail("'" + text.substr(0, 40) + "' is not a number");
  return value;
}
std::string in_hex(uint32_t sum) {
  std::string text(8, '0');
  for (size_t i = 0; i < 8; ++i) text[i] = "0123456789abcdef"[sum >> (28 - 4 * i) & 15];
  return text;
}

template <class List, class F> std::string joined(char open, char close, const List& list, F each) {
  std::string text;
  for (const auto& item : list) text += (text.empty() ? "" : ",") + each(item);
  return open + text + close;
}

std::string group_text(const optim::StateDict::GroupState& group) {
  const std::string options = joined('{', '}', group.options, [](const auto& option) {
    return json_quote(option.first) + ":" + joined('[', ']', option.second, [](double x) { return exact(x); });
  });
  return "{\"options\":" + options +
         ",\"params\":" + joined('[', ']', group.params, [](int64_t number) { return std::to_string(number); }) + "}";
}

std::string state_text(const Checkpoint& c, std::optional<double> measure) {
  const auto named = [](const auto& list, auto each) {
    return joined('{', '}', list, [&](const auto& item) { return json_quote(item.first) + ":" + each(item.second); });
  };
  std::string text = "{\"step\":" + std::to_string(c.step);
  if (measure) text += ",\"measure\":" + exact(*measure);
  text += ",\"generator\":{\"seed\":" + exact(c.generator.seed) + ",\"offset\":" + exact(c.generator.offset) + "}";
  text += ",\"loader\":{\"epoch\":" + std::to_string(c.loader.epoch) + ",\"batch\":" + std::to_string(c.loader.batch) +
          ",\"seed\":" + exact(c.loader.seed) + "}";
  text += ",\"scheduler\":" + named(c.scheduler, [](double x) { return exact(x); });
  if (!c.scaler.empty()) text += ",\"scaler\":" + named(c.scaler, [](double x) { return exact(x); });
  text += ",\"values\":" + named(c.values, [](const std::string& s) { return json_quote(s); });
  text += ",\"model\":" + joined('[', ']', c.model, [](const auto& entry) { return json_quote(entry.first); });
  text += ",\"optimizer\":{\"param_groups\":" + joined('[', ']', c.optimizer.param_groups, group_text) + ",\"state\":";
  text += joined('[', ']', c.optimizer.state, [](const auto& slots) {
    std::string names = "[" + std::to_string(slots.first);
    for (const auto& slot : slots.second) names += "," + json_quote(slot.first);
    return names + "]";
  });
  return text + "}}";
}

std::string slot_name(int64_t number, const std::string& slot) {
  return optimizer_prefix + std::to_string(number) + "." + slot;
}

StateDict all_tensors(const Checkpoint& c) {
  StateDict all;
  for (const auto& [name, x] : c.model) all.add(model_prefix + name, x);
  for (const auto& [number, slots] : c.optimizer.state)
    for (const auto& [slot, x] : slots) all.add(slot_name(number, slot), x);
  return all;
}

void check_texts(const FileContext& context, const Checkpoint& c) {
  const auto check = [&](const std::string& text) {
    require(is_utf8(text), ErrorKind::argument, context.op, context.path, ": '", text.substr(0, 40), "' is not UTF-8");
  };
  for (const auto& [key, value] : c.values) check(key), check(value);
  for (const auto& [key, value] : c.scheduler) check(key);
  for (const auto& [key, value] : c.scaler) check(key);
  for (const auto& group : c.optimizer.param_groups)
    for (const auto& [key, value] : group.options) check(key);
}

}  // namespace

// The checksum stands before the data: its place is left open, and filled when they have been written.
void write_checkpoint(const char* op, const std::string& path, const Checkpoint& checkpoint,
                      std::optional<double> measure) {
  const FileContext context{op, path};
  check_texts(context, checkpoint);
  const std::string state = state_text(checkpoint, measure);
  const SafetensorsLayout layout = lay_out_safetensors(
      context, all_tensors(checkpoint),
      {{sum_key, std::string(no_sum)}, {format_key, format_name}, {version_key, version}, {state_key, state}});
  const size_t place = layout.header.find(no_sum);
  context.about([&] {
    AtomicFile file(op, path);
    file.reserve(layout.bytes);
    file.write(layout.header);
    uint32_t sum = crc32(as_bytes(state));
    for (const auto& [entry, x] : layout.tensors) {
      const HostBytes host(x);
      sum = crc32(host.bytes, sum);
      file.write(host.bytes);
    }
    file.overwrite(int64_t(place), in_hex(sum));
    file.commit();
  });
}

namespace {

const std::string& state_of(const FileContext& context, const Metadata& metadata) {
  context.require(metadata.contains(format_key) && metadata.at(format_key) == format_name,
                  "this is a safetensors file, but not a checkpoint; load(model, path) reads weights alone");
  context.require(metadata.contains(version_key) && metadata.contains(state_key) && metadata.contains(sum_key),
                  "the checkpoint lacks a part of its metadata");
  context.require(metadata.at(version_key) == version, "the checkpoint is of version '",
                  metadata.at(version_key).substr(0, 20), "', this library reads version ", version);
  return metadata.at(state_key);
}

void check_sum(const MappedFile& file, const SafetensorsHeader& header) {
  const uint32_t sum = crc32(file.bytes().subspan(header.data_begin), crc32(as_bytes(header.metadata.at(state_key))));
  file.context().require(in_hex(sum) == header.metadata.at(sum_key),
                         "the checkpoint is damaged: its checksum is wrong");
}

class StateReader {
 public:
  StateReader(JsonReader& json, const FileContext& context, const StateDict& tensors)
      : json_(json), context_(context), tensors_(tensors) {}

  Checkpoint read() {
    Checkpoint c;
    json_.object([&](const std::string& key) {
      if (key == "step") c.step = json_.integer();
      else if (key == "generator") json_.object([&](const std::string& k) { read_generator(c.generator, k); });
      else if (key == "loader") json_.object([&](const std::string& k) { read_loader(c.loader, k); });
      else if (key == "scheduler") json_.object([&](const std::string& k) { c.scheduler[k] = read_exact(json_); });
      else if (key == "scaler") json_.object([&](const std::string& k) { c.scaler[k] = read_exact(json_); });
      else if (key == "values") json_.object([&](const std::string& k) { c.values.add(k, json_.string()); });
      else if (key == "model") json_.array([&] { read_model(c.model); });
      else if (key == "optimizer") read_optimizer(c.optimizer);
      else json_.skip();
    });
    json_.end();
    for (const auto& [name, x] : tensors_)
      context_.require(taken_.contains(name), "tensor '", name, "' belongs to no part of the checkpoint");
    return c;
  }

 private:
  Tensor take(const std::string& name) {
    context_.require(tensors_.contains(name) && taken_.insert(name).second, "tensor '", name,
                     "' is missing, or named twice");
    return tensors_.at(name);
  }
  void read_generator(Generator::State& state, const std::string& key) {
    if (key == "seed") state.seed = read_unsigned(json_);
    else if (key == "offset") state.offset = read_unsigned(json_);
    else json_.skip();
  }
  void read_loader(data::LoaderState& loader, const std::string& key) {
    if (key == "epoch") loader.epoch = json_.integer();
    else if (key == "batch") loader.batch = json_.integer();
    else if (key == "seed") loader.seed = read_unsigned(json_);
    else json_.skip();
  }
  void read_model(StateDict& model) {
    const std::string name = json_.string();
    model.add(name, take(model_prefix + name));
  }
  void read_group(optim::StateDict::GroupState& group) {
    json_.object([&](const std::string& key) {
      if (key == "params") json_.array([&] { group.params.push_back(json_.integer()); });
      else if (key == "options")
        json_.object([&](const std::string& name) {
          auto& numbers = group.options[name];
          json_.array([&] { numbers.push_back(read_exact(json_)); });
        });
      else json_.skip();
    });
  }
  void read_slots(optim::StateDict& optimizer) {
    std::optional<int64_t> number;
    json_.array([&] {
      if (!number) {
        number = json_.integer();
        optimizer.state[*number];
        return;
      }
      const std::string slot = json_.string();
      optimizer.state[*number][slot] = take(slot_name(*number, slot));
    });
  }
  void read_optimizer(optim::StateDict& optimizer) {
    json_.object([&](const std::string& key) {
      if (key == "param_groups") json_.array([&] { read_group(optimizer.param_groups.emplace_back()); });
      else if (key == "state") json_.array([&] { read_slots(optimizer); });
      else json_.skip();
    });
  }
  JsonReader& json_;
  const FileContext& context_;
  const StateDict& tensors_;
  std::set<std::string> taken_;
};

}  // namespace

Checkpoint read_checkpoint_state(const FileContext& context, const std::string& text, const StateDict& tensors) {
  JsonReader json(text, context, "the checkpoint's state");
  return StateReader(json, context, tensors).read();
}

Checkpoint read_checkpoint(const std::shared_ptr<MappedFile>& file) {
  const FileContext& context = file->context();
  const SafetensorsHeader header = parse_safetensors_header(*file);
  const std::string& text = state_of(context, header.metadata);
  check_sum(*file, header);
  return read_checkpoint_state(context, text, read_safetensors(file));
}

CheckpointSummary summarize_checkpoint(const MappedFile& file) {
  const SafetensorsHeader header = parse_safetensors_header(file);
  const std::string& text = state_of(file.context(), header.metadata);
  CheckpointSummary summary;
  JsonReader json(text, file.context(), "the checkpoint's state");
  json.object([&](const std::string& key) {
    if (key == "step") summary.step = json.integer();
    else if (key == "measure") summary.measure = read_exact(json);
    else json.skip();
  });
  return summary;
}

}  // namespace volta::io

namespace volta {

void save_checkpoint(const std::string& path, const Checkpoint& checkpoint) {
  io::write_checkpoint("save_checkpoint", path, checkpoint, {});
}

Checkpoint load_checkpoint(const std::string& path) {
  const auto file = io::MappedFile::open("load_checkpoint", path);
  return file->context().about([&] { return io::read_checkpoint(file); });
}

}  // namespace volta
