// A language model as a service: text in, text out token by token.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
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

class TextModel {
 public:
  explicit TextModel(std::shared_ptr<const Network> network);
  // Calls `emit` with each piece of text as it is made; emit says whether to go on.
  Generated generate(const GenerateRequest& request, const std::function<bool(const std::string& piece)>& emit) const;
  std::vector<int64_t> encode(const std::string& text) const;  // throws on a character the vocabulary lacks
  std::string decode(int64_t token) const;

 private:
  std::shared_ptr<const Network> network_;
  std::map<std::string, int64_t> ids_;
};

}  // namespace volta::app
