// A language model as a service: text in, text out token by token.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "network.h"

namespace volta::app {

struct GenerateRequest {
  std::string prompt;
  int64_t max_tokens = 100;
  double temperature = 1;  // 0: always the likeliest
  int64_t top_k = 0;       // 0: all
  double top_p = 1;        // the smallest set of tokens with this probability
  uint64_t seed = 0;
  std::vector<std::string> stop;  // texts that end the answer; they are not part of it
};

struct Generated {
  std::string why;  // it ended: "stop" or "length"
  int64_t tokens = 0;
};

// What a model makes of a text.
struct Judged {
  int64_t tokens = 0;
  std::optional<double> loss = {};                        // per token after the first
  std::vector<std::pair<std::string, double>> next = {};  // the likeliest tokens to follow
};

class TextModel {
 public:
  explicit TextModel(std::shared_ptr<const Network> network);
  // Calls `emit` with each piece of text as it is made; emit says whether to go on.
  Generated generate(const GenerateRequest& request, const std::function<bool(const std::string& piece)>& emit) const;
  std::vector<int64_t> encode(const std::string& text) const;  // throws on a character the vocabulary lacks
  const std::string& decode(int64_t token) const;              // bytes, which may end inside a character
  Judged judge(const std::string& text) const;                 // throws where the text is empty

 private:
  Tensor known(const Tensor& logits) const;
  std::shared_ptr<const Network> network_;
  std::vector<std::string> pieces_;  // what each token stands for
  std::map<std::string, int64_t> ids_;
  int64_t begin_ = 0, end_ = -1;  // the token before an empty prompt, and the one that ends a text
};

}  // namespace volta::app
