// OpenAI's completions: what a request asks for, and the objects that answer it.
#pragma once
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "text_model.h"

namespace volta::app {

class Completions {
 public:
  Completions(const TextModel& model, std::string name, int64_t max_tokens)
      : model_(model), name_(std::move(name)), max_tokens_(max_tokens) {}

  struct Request {
    GenerateRequest text;
    std::string id;
    int64_t choices = 1, prompt_tokens = 0;
    bool stream = false, usage = false;
  };
  Request read(const nlohmann::json& body, int64_t number) const;  // throws Refused

  struct Answer {
    nlohmann::json body;
    int64_t tokens = 0;
  };
  // `there` says whether the client still is; without it the rest is not written.
  Answer whole(const Request& request, const std::function<bool()>& there) const;
  // Each event goes to `send`, which says whether the client is still there; returns the tokens made.
  int64_t stream(const Request& request, const std::function<bool(const std::string& event)>& send) const;

 private:
  nlohmann::json object(const Request& request) const;

  const TextModel& model_;
  std::string name_;
  int64_t max_tokens_;
};

}  // namespace volta::app
