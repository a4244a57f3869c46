#include "server.h"

#include <httplib.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <random>

#include "batcher.h"
#include "inputs.h"
#include "server_metrics.h"
#include "text_model.h"

namespace volta::app {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

// What is wrong with a request, as an HTTP status and a sentence.
struct Refused : std::runtime_error {
  Refused(int s, const std::string& why) : std::runtime_error(why), status(s) {}
  int status;
};

void reply(httplib::Response& to, int status, const json& body) {
  to.status = status;
  to.set_content(body.dump(-1, ' ', false, json::error_handler_t::replace), "application/json");
}

json parsed(const std::string& body) {
  // Depth is bounded: the parser recurses for nested arrays.
  const auto shallow = [](int depth, json::parse_event_t, json&) {
    if (depth > 32) throw Refused(400, "the JSON is nested too deeply");
    return true;
  };
  try {
    json j = json::parse(body, shallow);
    if (!j.is_object()) throw Refused(400, "the body must be a JSON object");
    return j;
  } catch (const json::exception& e) {
    throw Refused(400, std::string("the body is not JSON: ") + e.what());
  }
}

void flatten(const json& j, size_t depth, Shape& shape, std::vector<float>& values) {
  if (j.is_number()) {
    if (int64_t(depth) != shape.size()) throw Refused(400, "the inputs are ragged");
    values.push_back(j.get<float>());
    return;
  }
  if (!j.is_array()) throw Refused(400, "the inputs must be arrays of numbers");
  const auto size = int64_t(j.size());
  if (int64_t(depth) == shape.size() && values.empty()) {
    if (depth == 6) throw Refused(400, "the inputs have too many axes");
    shape.push_back(size);
  } else if (int64_t(depth) >= shape.size() || shape[int(depth)] != size) {
    throw Refused(400, "the inputs are ragged");
  }
  for (const json& part : j) flatten(part, depth + 1, shape, values);
}

Tensor numbers(const json& j) {
  Shape shape;
  std::vector<float> values;
  flatten(j, 0, shape, values);
  if (shape.numel() != int64_t(values.size())) throw Refused(400, "the inputs are ragged");
  return tensor(std::span<const float>(values), shape);
}

template <class T> T field(const json& j, const char* name, T otherwise, T least, T most) {
  if (!j.contains(name) || j[name].is_null()) return otherwise;
  if (!j[name].is_number()) throw Refused(400, std::string(name) + " must be a number");
  const T value = j[name].get<T>();
  if (!(value >= least && value <= most))
    throw Refused(400,
                  std::string(name) + " must be between " + std::to_string(least) + " and " + std::to_string(most));
  return value;
}

std::string text_field(const json& j, const char* name, const std::string& otherwise) {
  if (!j.contains(name) || j[name].is_null()) return otherwise;
  if (j[name].is_string()) return j[name].get<std::string>();
  if (j[name].is_array() && j[name].size() == 1 && j[name][0].is_string()) return j[name][0].get<std::string>();
  throw Refused(400, std::string(name) + " must be a string");
}

std::vector<std::string> stops(const json& j) {
  if (!j.contains("stop") || j["stop"].is_null()) return {};
  std::vector<std::string> list;
  const json all = j["stop"].is_string() ? json::array({j["stop"]}) : j["stop"];
  if (!all.is_array() || all.size() > 4) throw Refused(400, "stop must be a string or up to four of them");
  for (const json& one : all) {
    if (!one.is_string() || one.get<std::string>().empty())
      throw Refused(400, "stop must hold strings that are not empty");
    list.push_back(one);
  }
  return list;
}

}  // namespace

struct Server::State {
  State(std::shared_ptr<const Network> n, std::string title, const ServerOptions& o)
      : network(std::move(n)), name(std::move(title)), options(o) {
    if (network->recipe.task == Task::language) {
      text = std::make_unique<TextModel>(network);
    } else {
      const int workers = options.workers > 0 ? options.workers : get_num_threads();
      batcher = std::make_unique<Batcher>([this](const Tensor& x) { return (*network)(network->prepared(x)); },
                                          BatchLimits{options.max_batch, options.max_queue, options.max_wait, workers},
                                          [this](int64_t size) { metrics.batch(size); });
    }
    route();
  }

  void route();
  // Every handler answers through here: errors become statuses, and all is counted.
  void answer(httplib::Response& to, const std::function<void()>& handler);
  void predict(const httplib::Request& from, httplib::Response& to);
  void complete(const httplib::Request& from, httplib::Response& to);
  std::vector<Tensor> items_of(const httplib::Request& from) const;
  json described(const std::vector<Tensor>& outputs) const;

  std::shared_ptr<const Network> network;
  std::string name;
  ServerOptions options;
  ServerMetrics metrics;
  std::unique_ptr<Batcher> batcher;
  std::unique_ptr<TextModel> text;
  httplib::Server http;
  std::atomic<int64_t> completions{0};
};

void Server::State::answer(httplib::Response& to, const std::function<void()>& handler) {
  const auto start = Clock::now();
  const auto fail = [&](int status, const std::string& why) {
    reply(to, status,
          {{"error", {{"message", why}, {"type", status < 500 ? "invalid_request_error" : "server_error"}}}});
  };
  try {
    handler();
  } catch (const Refused& e) {
    fail(e.status, e.what());
  } catch (const Error& e) {
    fail(e.kind() == Error::Kind::memory || e.kind() == Error::Kind::internal ? 500 : 400, e.what());
  } catch (const Batcher::Full& e) {
    fail(503, e.what());
    to.set_header("Retry-After", "1");
  } catch (const Batcher::Stopped& e) {
    fail(503, e.what());
  } catch (const std::exception& e) {
    fail(500, e.what());
  }
  metrics.answered(to.status, std::chrono::duration<double>(Clock::now() - start).count());
}

void Server::State::route() {
  http.set_payload_max_length(size_t(options.max_body));
  http.set_read_timeout(options.read_timeout.count(), 0);
  http.set_write_timeout(options.read_timeout.count(), 0);
  http.set_keep_alive_max_count(std::numeric_limits<int>::max());
  http.set_keep_alive_timeout(5);
  http.set_tcp_nodelay(true);
  // Not SO_REUSEPORT, which is the default: a second server would take half of the requests instead of being refused.
  http.set_socket_options([](socket_t socket) {
    const int yes = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  });
  http.new_task_queue = [this] { return new httplib::ThreadPool(size_t(options.connections)); };
  http.set_error_handler([](const httplib::Request&, httplib::Response& to) {
    if (!to.body.empty()) return;
    const char* why = to.status == 404   ? "there is nothing at this path; see /"
                      : to.status == 413 ? "the body is too large"
                                         : "the request cannot be answered";
    reply(to, to.status, {{"error", {{"message", why}, {"type", "invalid_request_error"}}}});
  });
  http.Get("/", [](const httplib::Request&, httplib::Response& to) {
    to.set_content(page_html, "text/html; charset=utf-8");
  });
  http.Get("/health", [](const httplib::Request&, httplib::Response& to) { reply(to, 200, {{"status", "ok"}}); });
  http.Get("/metrics", [this](const httplib::Request&, httplib::Response& to) {
    to.set_content(metrics.text(batcher ? batcher->queued() : 0), "text/plain; version=0.0.4");
  });
  http.Get("/v1/models", [this](const httplib::Request&, httplib::Response& to) {
    const json recipe = json::parse(network->recipe.json());
    reply(to, 200,
          {{"object", "list"},
           {"data", {{{"id", name}, {"object", "model"}, {"created", 0}, {"owned_by", "volta"}, {"recipe", recipe}}}}});
  });
  http.Post("/v1/predict",
            [this](const httplib::Request& from, httplib::Response& to) { answer(to, [&] { predict(from, to); }); });
  http.Post("/v1/completions",
            [this](const httplib::Request& from, httplib::Response& to) { answer(to, [&] { complete(from, to); }); });
}

// The items of a request, each of the shape the model takes: JSON, NumPy's .npy, or an image file.
std::vector<Tensor> Server::State::items_of(const httplib::Request& from) const {
  const std::string type = from.get_header_value("Content-Type");
  Tensor all;
  if (type.rfind("application/x-npy", 0) == 0 || type.rfind("application/octet-stream", 0) == 0) {
    all = parse_npy(from.body, "the request");
  } else if (type.rfind("image/", 0) == 0) {
    all = image_of_bytes(from.body, network->recipe);
  } else {
    const json body = parsed(from.body);
    if (!body.contains("inputs")) throw Refused(400, "the body lacks 'inputs'");
    all = numbers(body["inputs"]);
  }
  const Shape item = network->recipe.input();
  if (all.shape() == item) all = all.unsqueeze(0);
  if (all.dim() != item.size() + 1 || all.shape().back() != item.back() || all.numel() != all.size(0) * item.numel())
    throw Refused(
        400, "the inputs have shape " + all.shape().str() + "; the model takes " + item.str() + " or several of that");
  if (all.size(0) > options.max_batch)
    throw Refused(413, "at most " + std::to_string(options.max_batch) + " items in a request");
  std::vector<Tensor> items;
  for (int64_t i = 0; i < all.size(0); ++i) items.push_back(all[i]);
  return items;
}

json Server::State::described(const std::vector<Tensor>& outputs) const {
  json list = json::array();
  const Recipe& recipe = network->recipe;
  for (const Tensor& y : outputs) {
    const std::vector<float> values = y.to(f32).to_vector<float>();
    json one = {{"output", values}};
    if (recipe.task == Task::classify) {
      const Tensor p = softmax(y.to(f32), -1);
      const int64_t best = p.argmax(-1).item<int64_t>();
      one["probabilities"] = p.to_vector<float>();
      one["class"] = best;
      if (size_t(best) < recipe.labels.size()) one["label"] = recipe.labels[size_t(best)];
    }
    list.push_back(std::move(one));
  }
  return list;
}

void Server::State::predict(const httplib::Request& from, httplib::Response& to) {
  if (!batcher) throw Refused(404, "this is a language model: use /v1/completions");
  const std::vector<Tensor> outputs = (*batcher)(items_of(from));
  if (from.get_header_value("Accept").rfind("application/x-npy", 0) == 0 && !outputs.empty())
    return to.status = 200, to.set_content(npy_bytes(stack(outputs)), "application/x-npy");
  reply(to, 200, {{"model", name}, {"predictions", described(outputs)}});
}

// OpenAI's completions, whole or as server-sent events.
void Server::State::complete(const httplib::Request& from, httplib::Response& to) {
  if (!text) throw Refused(404, "this model does not write text: use /v1/predict");
  const json body = parsed(from.body);
  if (field<int64_t>(body, "n", 1, 1, 1) != 1) throw Refused(400, "n must be 1");
  auto request = std::make_shared<GenerateRequest>();
  request->prompt = text_field(body, "prompt", "");
  request->max_tokens = field<int64_t>(body, "max_tokens", 16, 0, options.max_tokens);
  request->temperature = field<double>(body, "temperature", 1, 0, 100);
  request->top_p = field<double>(body, "top_p", 1, 1e-6, 1);
  request->top_k = field<int64_t>(body, "top_k", 0, 0, 1 << 20);
  request->seed =
      body.contains("seed") ? uint64_t(field<int64_t>(body, "seed", 0, 0, INT64_MAX)) : std::random_device()();
  request->stop = stops(body);
  const auto prompt_tokens = int64_t(text->encode(request->prompt).size());
  const std::string id = "cmpl-" + std::to_string(++completions);
  const auto chunk = [this, id](const std::string& piece, const json& why) -> json {
    return {{"id", id},
            {"object", "text_completion"},
            {"created", std::time(nullptr)},
            {"model", name},
            {"choices", {{{"index", 0}, {"text", piece}, {"logprobs", nullptr}, {"finish_reason", why}}}}};
  };
  if (!body.value("stream", false)) {
    std::string all;
    int64_t tokens = 0;
    const std::string why =
        text->generate(*request, [&](const std::string& piece) { return all += piece, ++tokens, true; });
    metrics.tokens(tokens);
    json whole = chunk(all, why);
    whole["usage"] = {
        {"prompt_tokens", prompt_tokens}, {"completion_tokens", tokens}, {"total_tokens", prompt_tokens + tokens}};
    return reply(to, 200, whole);
  }
  to.status = 200;
  to.set_chunked_content_provider("text/event-stream", [this, request, chunk](size_t, httplib::DataSink& sink) {
    const auto send = [&](const std::string& data) {
      const std::string event = "data: " + data + "\n\n";
      return sink.is_writable() && sink.write(event.data(), event.size());
    };
    const auto emit = [&](const std::string& piece) {
      return metrics.tokens(1), send(chunk(piece, nullptr).dump(-1, ' ', false, json::error_handler_t::replace));
    };
    const std::string why = text->generate(*request, emit);
    if (send(chunk("", why).dump())) send("[DONE]");
    sink.done();
    return true;
  });
}

Server::Server(std::shared_ptr<const Network> network, std::string name, const ServerOptions& options)
    : state_(std::make_unique<State>(std::move(network), std::move(name), options)) {}

Server::~Server() = default;

int Server::bind() {
  const ServerOptions& o = state_->options;
  const int port = o.port == 0 ? state_->http.bind_to_any_port(o.host) : o.port;
  if (o.port != 0 && !state_->http.bind_to_port(o.host, o.port))
    throw Error(Error::Kind::io, "serve",
                "cannot listen on " + o.host + ":" + std::to_string(o.port) +
                    ": the port is in use or not allowed; choose another with --port");
  if (port < 0) throw Error(Error::Kind::io, "serve", "cannot listen on " + o.host);
  return port;
}

void Server::listen() {
  state_->http.listen_after_bind();
  if (state_->batcher) state_->batcher->stop();
}

void Server::stop() { state_->http.stop(); }

}  // namespace volta::app
