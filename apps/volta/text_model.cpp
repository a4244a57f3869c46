#include "text_model.h"

#include <models/gpt.h>

#include <algorithm>
#include <cmath>

#include "terminal.h"

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

// Whether more bytes could make these a character.
bool unfinished(std::string_view bytes) {
  for (const char more : {'\x80', '\xbf'})
    if (utf8_length(std::string(bytes) + std::string(3, more)) > bytes.size()) return true;
  return false;
}

// Takes the whole characters from the front of the bytes; U+FFFD stands for those that can become none.
std::string take_characters(std::string& bytes) {
  std::string text;
  size_t at = 0;
  while (at < bytes.size()) {
    const std::string_view rest = std::string_view(bytes).substr(at);
    size_t n = utf8_length(rest);
    if (n > 0) {
      text += rest.substr(0, n);
    } else {
      if (unfinished(rest)) break;
      for (n = 1; unfinished(rest.substr(0, n + 1));) ++n;
      text += "\xef\xbf\xbd";
    }
    at += n;
  }
  bytes.erase(0, at);
  return text;
}

}  // namespace

TextModel::TextModel(std::shared_ptr<const Network> network) : network_(std::move(network)) {
  const Recipe& recipe = network_->recipe;
  if (const auto& tokenizer = network_->tokenizer) {
    for (int64_t i = 0; i < tokenizer->vocab_size(); ++i) pieces_.push_back(tokenizer->decode_bytes(std::vector{i}));
    end_ = tokenizer->token_to_id("<|endoftext|>");
    begin_ = std::max<int64_t>(0, end_);
    return;
  }
  if (recipe.tokens.empty())
    throw Error(Error::Kind::argument, recipe.model,
                "its recipe has no tokens: give a vocabulary with `volta convert --tokenizer FOLDER`");
  pieces_ = recipe.tokens;
  for (size_t i = 0; i < pieces_.size(); ++i) ids_.emplace(pieces_[i], int64_t(i));
}

std::vector<int64_t> TextModel::encode(const std::string& text) const {
  if (network_->tokenizer) return network_->tokenizer->encode(text);
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

const std::string& TextModel::decode(int64_t token) const { return pieces_.at(size_t(token)); }

Judged TextModel::judge(const std::string& text) const {
  const InferenceMode inference;
  const std::vector<int64_t> ids = encode(text);
  if (ids.empty()) throw Error(Error::Kind::argument, "predict", "the text is empty");
  const Tensor steps = tensor(ids);
  const int64_t n = steps.numel(), context = network_->recipe.size("context");
  double sum = 0;
  for (int64_t begin = 0; begin + 1 < n; begin += context) {
    const int64_t end = std::min(begin + context, n - 1);
    const Tensor y = network_->module(steps.slice(0, begin, end).unsqueeze(0))[0];
    sum += cross_entropy(y.to(f32), steps.slice(0, begin + 1, end + 1), {.reduction = "sum"}).item<double>();
  }
  const Tensor last = network_->module(steps.slice(0, std::max<int64_t>(0, n - context), n).unsqueeze(0))[{0, -1}];
  const Tensor p = softmax(known(last).to(f64), -1);
  if (!std::isfinite(sum) || !volta::all(isfinite(p)).item<bool>())
    throw Error(Error::Kind::argument, "predict", "the model's answer is not finite");
  const auto [best, order] = topk(p, std::min<int64_t>(3, p.numel()), -1);
  Judged judged{.tokens = n};
  if (n > 1) judged.loss = sum / double(n - 1);
  for (int64_t i = 0; i < best.numel(); ++i)
    judged.next.emplace_back(decode(order[i].item<int64_t>()), best[i].item<double>());
  return judged;
}

// Without logits for which there is no token: published models round the size of their vocabulary up.
Tensor TextModel::known(const Tensor& logits) const {
  return logits.narrow(0, 0, std::min(logits.size(0), int64_t(pieces_.size())));
}

Generated TextModel::generate(const GenerateRequest& r, const std::function<bool(const std::string&)>& emit) const {
  const InferenceMode inference;
  std::vector<int64_t> ids = r.prompt.empty() ? std::vector{begin_} : encode(r.prompt);
  Generator generator(r.seed);
  const int64_t context = network_->recipe.size("context");
  const auto* const gpt = network_->module.get_if<models::GPT>();
  std::vector<nn::KeyValueCache> caches;
  size_t cached = 0;        // of the ids
  std::string bytes, text;  // what is no whole character yet, and what is
  size_t shown = 0;
  const auto show = [&](size_t end) {
    const bool go_on = end <= shown || emit(text.substr(shown, end - shown));
    shown = std::max(shown, end);
    return go_on;
  };
  const auto finished = [&](const char* why, int64_t tokens) {
    if (!bytes.empty()) text += "\xef\xbf\xbd";
    show(text.size());
    return Generated{why, tokens};
  };
  for (int64_t i = 0; i < r.max_tokens; ++i) {
    // Past the context every position moves, and the cache would hold the wrong ones.
    const bool use_cache = gpt && int64_t(ids.size()) <= context;
    const size_t begin = use_cache ? cached : ids.size() - std::min(ids.size(), size_t(context));
    const Tensor steps = tensor(std::vector<int64_t>(ids.begin() + std::ptrdiff_t(begin), ids.end())).unsqueeze(0);
    const Tensor logits = use_cache ? (*gpt)(steps, &caches) : network_->module(steps);
    cached = ids.size();
    ids.push_back(sample(known(logits[{0, -1}]), r, generator));
    if (ids.back() == end_) return finished("stop", i + 1);
    bytes += decode(ids.back());
    text += take_characters(bytes);
    size_t stopped = std::string::npos;
    for (const std::string& stop : r.stop)
      if (!stop.empty()) stopped = std::min(stopped, text.find(stop, shown));
    if (stopped != std::string::npos) {
      show(stopped);
      return {"stop", i + 1};
    }
    if (!show(settled(text, r.stop))) return {"stop", i + 1};
  }
  return finished("length", r.max_tokens);
}

}  // namespace volta::app
