// summary: a table of a model's layers, filled in by running it once.
#include <algorithm>
#include <cstdio>
#include <map>
#include <set>

#include <volta/autograd.h>
#include <volta/create.h>
#include <volta/nn/model.h>

#include "core/check.h"

namespace volta {
namespace {

struct Entry {
  std::string path, type;
  int64_t parameters = 0, trainable = 0, bytes = 0;  // its own, not those of parts inside it
  bool is_layer = false, has_inner = false, seen = false;
};

// The structs and layers of a model with the parameters each holds itself.
struct Parts final : nn::Visitor {
  void enter(const nn::Module& m) override {
    if (!open.empty()) list[open.back()].has_inner |= m.layer != nullptr;
    if (m.layer) of_layer[m.layer] = list.size();
    open.push_back(list.size());
    const std::string path = m.path.str();
    list.push_back(
        {.path = path.empty() ? "(model)" : path, .type = std::string(m.type_name), .is_layer = m.layer != nullptr});
  }
  void leave(const nn::Module&) override { open.pop_back(); }
  void parameter(const nn::Path& path, nn::Parameter& x) override {
    if (!counted.insert(x.impl_pointer()).second) return;
    if (open.empty()) {
      open.push_back(list.size());
      list.push_back({.path = path.str(), .type = "Parameter"});
    }
    Entry& p = list[open.back()];
    p.parameters += x.numel();
    p.trainable += x.requires_grad() ? x.numel() : 0;
    p.bytes += x.nbytes();
  }
  std::vector<Entry> list;
  std::vector<size_t> open;
  std::map<const nn::Layer*, size_t> of_layer;
  std::set<const TensorImpl*> counted;
};

std::string scaled(double value, double step, const char* const* units) {
  int unit = 0;
  for (; value >= step && unit < 4; ++unit) value /= step;
  char text[32];
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f%s" : "%.1f%s", value, units[unit]);
  return text;
}
std::string amount(double n) {
  static const char* const units[] = {"", " K", " M", " G", " T"};
  return scaled(n, 1000, units);
}
std::string size_text(int64_t bytes) {
  static const char* const units[] = {" B", " KiB", " MiB", " GiB", " TiB"};
  return scaled(double(bytes), 1024, units);
}

using Row = std::vector<std::string>;

std::string table(const std::vector<Row>& rows, const std::vector<std::string>& totals) {
  std::vector<size_t> width(rows[0].size());
  for (const Row& row : rows)
    for (size_t i = 0; i < row.size(); ++i) width[i] = std::max(width[i], row[i].size());
  size_t line = 0;
  for (const size_t w : width) line += w + 2;
  const std::string rule = std::string(line - 2, '-') + "\n";
  std::string text;
  for (const Row& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string gap(width[i] - row[i].size(), ' ');
      text += (i ? "  " : "") + (i < 3 ? row[i] + gap : gap + row[i]);
    }
    text += "\n" + (&row == &rows[0] ? rule : "");
  }
  text += rule;
  for (const std::string& t : totals) text += t + "\n";
  return text;
}

// Layers in the order they ran, then what holds parameters but did not run as a layer.
std::string describe(const ModelRef& model, const std::function<void()>& forward) {
  Parts parts;
  model.walk(parts);
  std::vector<Row> rows{{"layer", "type", "output", "parameters", "FLOPs", "memory"}};
  double flops = 0;
  int64_t activations = 0;
  {
    const nn::Watch watch([&](const nn::Layer& layer, const Tensor& x, const Tensor& y) {
      const auto found = parts.of_layer.find(&layer);
      if (found == parts.of_layer.end()) return;
      Entry& p = parts.list[found->second];
      if (p.has_inner && p.parameters == 0) return;
      const double work = layer.flops(x, y);
      rows.push_back({p.path, p.type, y.shape().str(), p.seen ? "(again)" : std::to_string(p.parameters), amount(work),
                      size_text(y.nbytes())});
      p.seen = true;
      flops += work;
      activations += y.nbytes();
    });
    const NoGrad off;
    forward();
  }
  Entry all;
  for (const Entry& p : parts.list) {
    all.parameters += p.parameters, all.trainable += p.trainable, all.bytes += p.bytes;
    if (!p.seen && p.parameters) rows.push_back({p.path, p.type, "-", std::to_string(p.parameters), "-", "-"});
  }
  return table(rows, {"parameters  " + std::to_string(all.parameters) + " (" + std::to_string(all.trainable) +
                          " trainable), " + size_text(all.bytes),
                      "FLOPs       " + amount(flops), "activations " + size_text(activations)});
}

}  // namespace

std::string summary(const ModelRef& model, const std::function<void()>& forward) {
  require_function(forward, "summary");
  std::map<nn::Layer*, bool> were_training;
  apply(model, [&](const nn::Module& m) {
    if (m.layer) were_training[m.layer] = m.layer->training;
  });
  const auto restore = [&] {
    for (const auto& [layer, mode] : were_training) layer->training = mode;
  };
  eval(model);
  try {
    std::string text = describe(model, forward);
    restore();
    return text;
  } catch (...) {
    restore();
    throw;
  }
}

std::string summary(const ModelRef& model, const Tensor& input) {
  if (!model.callable())
    throw Error(Error::Kind::argument, "summary",
                "the model takes more than one tensor: summary(net, [&] { net(…); })");
  return summary(model, [&] { model(input); });
}
std::string summary(const ModelRef& model, const Shape& input, DType dtype) {
  const std::vector<Tensor> list = parameters(model);
  const Device device = list.empty() ? Device() : list[0].device();
  return summary(model, is_floating(dtype) ? randn(input, {.dtype = dtype, .device = device})
                                           : zeros(input, {.dtype = dtype, .device = device}));
}

}  // namespace volta
