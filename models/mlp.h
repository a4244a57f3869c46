// Multi-layer perceptron: linear layers with an activation between them.
#pragma once
#include <volta/volta.h>

#include <vector>

namespace volta::models {

struct MLPConfig {
  std::vector<int64_t> widths = {784, 128, 10};  // input, hidden…, output
  nn::AnyModule activation = nn::ReLU();
  double dropout = 0;
};

// auto net = models::mlp({.widths = {784, 512, 256, 10}}); names as in nn.Sequential: 0.weight, 2.weight …
inline nn::Sequential mlp(const MLPConfig& config = {}) {
  if (config.widths.size() < 2) throw Error(Error::Kind::argument, "mlp", "needs the widths of an input and an output");
  nn::Sequential net;
  for (size_t i = 0; i + 1 < config.widths.size(); ++i) {
    if (i > 0) net.add(config.activation);
    if (i > 0 && config.dropout > 0) net.add(nn::Dropout(config.dropout));
    net.add(nn::Linear(config.widths[i], config.widths[i + 1]));
  }
  return net;
}

}  // namespace volta::models
