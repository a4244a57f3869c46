#include "text_model.h"

#include <models/gpt.h>

#include <algorithm>
#include <cmath>

namespace volta::app {
namespace {

// Bytes of the UTF-8 character that begins with this one.
size_t character_length(unsigned char first) { return first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4; }

int64_t sample(Tensor logits, const GenerateRequest& r, Generator& generator) {
  if (r.temperature == 0) return logits.argmax(-1).item<int64_t>();
  logits = logits.to(f64);
  logits = (logits - logits.max()) / r.temperature;  // the largest stays 0 however small the temperature is
  if (r.top_k > 0 && r.top_k < logits.numel()) {
    const Tensor least = topk(logits, r.top_k, -1).values[-1];
    logits = logits.masked_fill(logits < least, -INFINITY);
  }
  Tensor p = softmax(logits, -1);
  if (r.top_p < 1) {
    const auto [sorted, order] = sort(p, -1, true);
    // A token stays while those before it do not make up top_p yet: the first one always.
    const Tensor before = cumsum(sorted, -1) - sorted;
    p = zeros_like(p).scatter(0, order, sorted.masked_fill(before >= r.top_p, 0));
  }
  return multinomial(p, 1, false, &generator).item<int64_t>();
}

// What may be shown of a text while a stop text could still be under way at its end.
size_t settled(const std::string& text, const std::vector<std::string>& stops) {
  size_t keep = 0;
  for (const std::string& stop : stops)
    for (size_t n = std::min(stop.size(), text.size()); n > keep; --n)
      if (text.compare(text.size() - n, n, stop, 0, n) == 0) keep = n;
  return text.size() - keep;
}

}  // namespace

TextModel::TextModel(std::shared_ptr<const Network> network) : network_(std::move(network)) {
  const std::vector<std::string>& tokens = network_->recipe.tokens;
  if (tokens.empty()) throw Error(Error::Kind::argument, network_->recipe.model, "its recipe has no tokens");
  for (size_t i = 0; i < tokens.size(); ++i) ids_.emplace(tokens[i], int64_t(i));
}

std::vector<int64_t> TextModel::encode(const std::string& text) const {
  std::vector<int64_t> ids;
  for (size_t at = 0; at < text.size();) {
    const std::string one = text.substr(at, character_length(static_cast<unsigned char>(text[at])));
    const auto found = ids_.find(one);
    if (found == ids_.end())
      throw Error(Error::Kind::argument, "encode",
                  "the model's vocabulary has no '" + one + "' (at byte " + std::to_string(at) + ")");
    ids.push_back(found->second);
    at += one.size();
  }
  return ids;
}

std::string TextModel::decode(int64_t token) const { return network_->recipe.tokens.at(size_t(token)); }

Generated TextModel::generate(const GenerateRequest& r, const std::function<bool(const std::string&)>& emit) const {
  const InferenceMode inference;
  std::vector<int64_t> ids = encode(r.prompt.empty() ? network_->recipe.tokens.at(0) : r.prompt);
  Generator generator(r.seed);
  const int64_t context = network_->recipe.size("context");
  const auto* const gpt = network_->module.get_if<models::GPT>();
  std::vector<nn::KeyValueCache> caches;
  size_t cached = 0;  // of the ids
  std::string text;
  size_t shown = 0;
  const auto show = [&](size_t end) {
    const bool go_on = end <= shown || emit(text.substr(shown, end - shown));
    shown = std::max(shown, end);
    return go_on;
  };
  for (int64_t i = 0; i < r.max_tokens; ++i) {
    // Past the context every position moves, and the cache would hold the wrong ones.
    const bool use_cache = gpt && int64_t(ids.size()) <= context;
    const size_t begin = use_cache ? cached : ids.size() - std::min(ids.size(), size_t(context));
    const Tensor steps = tensor(std::vector<int64_t>(ids.begin() + std::ptrdiff_t(begin), ids.end())).unsqueeze(0);
    const Tensor logits = use_cache ? (*gpt)(steps, &caches) : network_->module(steps);
    cached = ids.size();
    ids.push_back(sample(logits[{0, -1}], r, generator));
    text += decode(ids.back());
    size_t stopped = std::string::npos;
    for (const std::string& stop : r.stop)
      if (!stop.empty()) stopped = std::min(stopped, text.find(stop, shown));
    if (stopped != std::string::npos) {
      show(stopped);
      return {"stop", i + 1};
    }
    if (!show(settled(text, r.stop))) return {"stop", i + 1};
  }
  show(text.size());
  return {"length", r.max_tokens};
}

}  // namespace volta::app
