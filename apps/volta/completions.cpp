#include "completions.h"

#include <ctime>
#include <random>

#include "requests.h"

namespace volta::app {
namespace {

using nlohmann::json;

std::string prompt_of(const json& body) {
  const auto at = body.find("prompt");
  if (at == body.end() || at->is_null()) return "";
  const json& one = at->is_array() && at->size() == 1 ? (*at)[0] : *at;
  if (!one.is_string())
    throw Refused(400, "prompt must be one text; lists of texts or tokens are not supported", "prompt");
  return one.get<std::string>();
}

std::vector<std::string> stops_of(const json& body) {
  const auto at = body.find("stop");
  if (at == body.end() || at->is_null()) return {};
  const json all = at->is_string() ? json::array({*at}) : *at;
  if (!all.is_array() || all.size() > 4) throw Refused(400, "stop must be a string or up to four of them", "stop");
  std::vector<std::string> list;
  for (const json& one : all) {
    if (!one.is_string() || one.get<std::string>().empty())
      throw Refused(400, "stop must hold strings that are not empty", "stop");
    list.push_back(one);
  }
  return list;
}

// What would change the answer is refused rather than passed over.
void refuse_unsupported(const json& body) {
  const auto without_effect = [](const std::string& name, const json& value) {
    if (value.is_null() || value == false || value == 0) return true;
    if (name == "best_of") return value == 1;
    return value.is_string() ? value.get<std::string>().empty() : value.is_object() && value.empty();
  };
  for (const char* name :
       {"logprobs", "echo", "suffix", "best_of", "frequency_penalty", "presence_penalty", "logit_bias"})
    if (const auto at = body.find(name); at != body.end() && !without_effect(name, *at))
      throw Refused(400, std::string(name) + " is not supported", name);
}

json choice(int64_t index, const std::string& text, const json& why) {
  return {{"index", index}, {"text", text}, {"logprobs", nullptr}, {"finish_reason", why}};
}

json usage_of(int64_t prompt, int64_t completion) {
  return {{"prompt_tokens", prompt}, {"completion_tokens", completion}, {"total_tokens", prompt + completion}};
}

}  // namespace

Completions::Request Completions::read(const json& body, int64_t number) const {
  if (const auto at = body.find("model"); at != body.end() && !at->is_null() && *at != name_)
    throw Refused(404, "there is no model " + dumped(*at).substr(0, 100) + "; this server has '" + name_ + "'", "model",
                  "model_not_found");
  refuse_unsupported(body);
  Request r;
  r.id = "cmpl-" + std::to_string(number);
  r.choices = whole_field(body, "n", 1, 1, 16);
  r.stream = flag_field(body, "stream", false);
  if (const auto at = body.find("stream_options"); at != body.end() && !at->is_null()) {
    if (!at->is_object() || !r.stream) throw Refused(400, "stream_options needs stream", "stream_options");
    r.usage = flag_field(*at, "include_usage", false);
  }
  r.text.prompt = prompt_of(body);
  r.text.max_tokens = whole_field(body, "max_tokens", 16, 0, max_tokens_);
  r.text.temperature = number_field(body, "temperature", 1, 0, 2);
  r.text.top_p = number_field(body, "top_p", 1, 1e-6, 1);
  r.text.top_k = whole_field(body, "top_k", 0, 0, 1 << 20);
  const int64_t seed = whole_field(body, "seed", -1, INT64_MIN, INT64_MAX);
  r.text.seed = body.contains("seed") && !body["seed"].is_null() ? uint64_t(seed) : std::random_device()();
  r.text.stop = stops_of(body);
  r.prompt_tokens = int64_t(model_.encode(r.text.prompt).size());
  return r;
}

json Completions::object(const Request& r) const {
  return {{"id", r.id},
          {"object", "text_completion"},
          {"created", std::time(nullptr)},
          {"model", name_},
          {"choices", json::array()}};
}

Completions::Answer Completions::whole(const Request& r, const std::function<bool()>& there) const {
  Answer answer{object(r)};
  for (int64_t i = 0; i < r.choices && there(); ++i) {
    GenerateRequest one = r.text;
    one.seed += uint64_t(i);
    std::string all;
    const Generated made = model_.generate(one, [&](const std::string& piece) { return all += piece, there(); });
    answer.tokens += made.tokens;
    answer.body["choices"].push_back(choice(i, all, made.why));
  }
  answer.body["usage"] = usage_of(r.prompt_tokens, answer.tokens);
  return answer;
}

int64_t Completions::stream(const Request& r, const std::function<bool(const std::string& event)>& send) const {
  int64_t tokens = 0;
  bool there = true;
  const auto send_choice = [&](int64_t index, const std::string& text, const json& why) {
    json event = object(r);
    event["choices"].push_back(choice(index, text, why));
    if (r.usage) event["usage"] = nullptr;
    return there = there && send(dumped(event));
  };
  for (int64_t i = 0; i < r.choices && there; ++i) {
    GenerateRequest one = r.text;
    one.seed += uint64_t(i);
    const Generated made =
        model_.generate(one, [&](const std::string& piece) { return send_choice(i, piece, nullptr); });
    tokens += made.tokens;
    send_choice(i, "", made.why);
  }
  if (r.usage && there) {
    json event = object(r);
    event["usage"] = usage_of(r.prompt_tokens, tokens);
    there = send(dumped(event));
  }
  if (there) send("[DONE]");
  return tokens;
}

}  // namespace volta::app
