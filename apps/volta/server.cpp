#include "server.h"

#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "batcher.h"
#include "completions.h"
#include "connections.h"
#include "exchange.h"
#include "inputs.h"
#include "requests.h"
#include "server_metrics.h"
#include "text_model.h"

namespace volta::app {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

// Types of media are the same in capitals.
std::string lower(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = char(c - 'A' + 'a');
  return text;
}

void reply(httplib::Response& to, int status, const json& body) {
  to.status = status;
  to.set_content(dumped(body), "application/json");
}

// What each path takes; HEAD is answered wherever GET is.
const char* allowed(const std::string& path) {
  if (path == "/v1/predict" || path == "/v1/completions") return "POST, OPTIONS";
  if (path == "/" || path == "/health" || path == "/metrics" || path == "/v1/models" ||
      (path.starts_with("/v1/models/") && path.size() > 11))
    return "GET, HEAD, OPTIONS";
  return nullptr;
}

std::string refusal(int status, const std::string& why) {
  const std::string body = dumped(error_body(Refused(status, why)));
  return "HTTP/1.1 " + std::to_string(status) +
         " Refused\r\nContent-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\nConnection: close\r\n" + (status == 503 ? "Retry-After: 1\r\n" : "") + "\r\n" + body;
}

// Every connection is an open file, and shells allow 1024 unless asked for more.
void allow_files(int64_t count) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= rlim_t(count)) return;
  limit.rlim_cur = std::min(rlim_t(count), limit.rlim_max);
  setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

struct Server::State {
  State(std::shared_ptr<const Network> n, std::string title, const ServerOptions& o)
      : network(std::move(n)), name(std::move(title)), options(o) {
    if (network->recipe.task == Task::language) {
      text = std::make_unique<TextModel>(network);
      completions = std::make_unique<Completions>(*text, name, options.max_tokens);
    } else {
      const int workers = options.workers > 0 ? options.workers : get_num_threads();
      batcher = std::make_unique<Batcher>([this](const Tensor& x) { return (*network)(network->prepared(x)); },
                                          BatchLimits{options.max_batch, options.max_queue, options.max_wait, workers},
                                          [this](int64_t size) { metrics.batch(size); });
    }
    route();
    allow_files(int64_t(options.connections) + 512);
    ConnectionLimits limits;
    limits.connections = options.connections;
    limits.max_body = size_t(options.max_body);
    limits.timeout = options.timeout;
    connections = std::make_unique<Connections>(
        limits, ConnectionHandlers{[this](std::string_view request, int socket, bool last) {
                                     Exchange exchange(request, socket, options.timeout);
                                     const bool stays = router.handle(exchange, last);
                                     return Answered{stays, exchange.unsent()};
                                   },
                                   [this](int status, const std::string& why) {
                                     metrics.refused(status);
                                     return refusal(status, why);
                                   }});
  }

  void route();
  // Every handler answers through here: errors become statuses, and all is counted.
  void answer(httplib::Response& to, const std::function<void()>& handler);
  void predict(const httplib::Request& from, httplib::Response& to);
  void complete(const httplib::Request& from, httplib::Response& to);
  void stream(const Completions::Request& request, httplib::Response& to);
  std::vector<Tensor> items_of(const httplib::Request& from) const;
  json described(const std::vector<Tensor>& outputs) const;
  json model() const;

  std::shared_ptr<const Network> network;
  std::string name;
  ServerOptions options;
  ServerMetrics metrics;
  std::unique_ptr<Batcher> batcher;
  std::unique_ptr<TextModel> text;
  std::unique_ptr<Completions> completions;
  std::atomic<int64_t> completed{0};
  Router router;
  std::unique_ptr<Connections> connections;
};

void Server::State::answer(httplib::Response& to, const std::function<void()>& handler) {
  const auto start = Clock::now();
  const auto fail = [&](const Refused& why) { reply(to, why.status, error_body(why)); };
  try {
    handler();
  } catch (const Refused& e) {
    fail(e);
  } catch (const Error& e) {
    const bool ours = e.kind() == Error::Kind::memory || e.kind() == Error::Kind::internal;
    fail({ours ? 500 : 400, e.what()});
  } catch (const Batcher::Full& e) {
    fail({503, e.what()});
    to.set_header("Retry-After", "1");
  } catch (const Batcher::Stopped& e) {
    fail({503, e.what()});
  } catch (const std::exception& e) {
    fail({500, e.what()});
  }
  metrics.answered(to.status, std::chrono::duration<double>(Clock::now() - start).count());
}

json Server::State::model() const {
  const json recipe = json::parse(network->recipe.json());
  return {{"id", name}, {"object", "model"}, {"created", 0}, {"owned_by", "volta"}, {"recipe", recipe}};
}

void Server::State::route() {
  using httplib::Request, httplib::Response;
  router.set_payload_max_length(size_t(options.max_body));
  router.set_keep_alive_max_count(std::numeric_limits<int>::max());
  router.set_pre_routing_handler([this](const Request& from, Response& to) {
    const char* const methods = allowed(from.path);
    if (!methods || (from.method != "OPTIONS" && std::string_view(methods).find(from.method) != std::string::npos))
      return httplib::Server::HandlerResponse::Unhandled;
    to.set_header("Allow", methods);
    if (from.method == "OPTIONS") to.status = 204;
    else
      reply(to, 405, error_body({405, from.path + " takes " + methods + ", not " + from.method})), metrics.refused(405);
    return httplib::Server::HandlerResponse::Handled;
  });
  router.set_error_handler([this](const Request& from, Response& to) {
    if (!to.body.empty() || to.status < 400) return;
    if (!from.path.empty() && !allowed(from.path)) to.status = 404;  // whatever the method
    const char* const why = to.status == 404   ? "there is nothing at this path; see /"
                            : to.status == 413 ? "the body is too large"
                            : to.status == 414 ? "the path is too long"
                                               : "the request cannot be understood";
    reply(to, to.status, error_body({to.status, why}));
    metrics.refused(to.status);
  });
  router.Get("/", [](const Request&, Response& to) { to.set_content(page_html, "text/html; charset=utf-8"); });
  router.Get("/health", [](const Request&, Response& to) { reply(to, 200, {{"status", "ok"}}); });
  router.Get("/metrics", [this](const Request&, Response& to) {
    to.set_content(metrics.text(batcher ? batcher->queued() : 0, connections->count()), "text/plain; version=0.0.4");
  });
  router.Get("/v1/models", [this](const Request&, Response& to) {
    reply(to, 200, {{"object", "list"}, {"data", json::array({model()})}});
  });
  router.Get("/v1/models/(.+)", [this](const Request& from, Response& to) {
    if (from.path.substr(11) == name) return reply(to, 200, model());
    metrics.refused(404);
    reply(to, 404,
          error_body({404, "there is no such model; this server has '" + name + "'", "model", "model_not_found"}));
  });
  router.Post("/v1/predict", [this](const Request& from, Response& to) { answer(to, [&] { predict(from, to); }); });
  router.Post("/v1/completions",
              [this](const Request& from, Response& to) { answer(to, [&] { complete(from, to); }); });
}

// The items of a request, each of the shape the model takes: JSON, NumPy's .npy, or an image file.
std::vector<Tensor> Server::State::items_of(const httplib::Request& from) const {
  const std::string type = lower(from.get_header_value("Content-Type"));
  const bool array = type.starts_with("application/x-npy") || type.starts_with("application/octet-stream");
  Tensor all;
  if (array) {
    all = parse_npy(from.body, "the request");
  } else if (type.rfind("image/", 0) == 0) {
    all = image_of_bytes(from.body, network->recipe);
  } else {
    all = inputs_of_json(from.body);
  }
  const Shape item = network->recipe.input();
  if (all.shape() == item) all = all.unsqueeze(0);
  if (all.dim() != item.size() + 1 || all.shape().back() != item.back() || all.numel() != all.size(0) * item.numel())
    throw Refused(
        400, "the inputs have shape " + all.shape().str() + "; the model takes " + item.str() + " or several of that");
  // What the queue could never hold would be told to come again for ever.
  if (const int64_t most = std::min(options.max_batch, options.max_queue); all.size(0) > most)
    throw Refused(413, "at most " + std::to_string(most) + " items in a request");
  if (const auto at = array ? not_finite(all) : std::nullopt)
    throw Refused(400,
                  "item " + std::to_string(*at) + " of the inputs must be finite numbers that a 32-bit float can hold",
                  "inputs");
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
  for (const Tensor& y : outputs) {
    const std::vector<float> values = y.to(f32).to_vector<float>();
    if (!std::all_of(values.begin(), values.end(), [](float v) { return std::isfinite(v); }))
      throw Refused(400, "the inputs are so large that the model's answer is not finite", "inputs");
  }
  if (lower(from.get_header_value("Accept")).rfind("application/x-npy", 0) == 0 && !outputs.empty())
    return to.status = 200, to.set_content(npy_bytes(stack(outputs)), "application/x-npy");
  reply(to, 200, {{"model", name}, {"predictions", described(outputs)}});
}

// OpenAI's completions, whole or as server-sent events.
void Server::State::complete(const httplib::Request& from, httplib::Response& to) {
  if (!completions) throw Refused(404, "this model does not write text: use /v1/predict");
  const Completions::Request request = completions->read(parsed_object(from.body), ++completed);
  if (request.stream) return stream(request, to);
  const auto there = [] { return !Exchange::current() || Exchange::current()->there(); };
  const Completions::Answer answer = completions->whole(request, there);
  metrics.tokens(answer.tokens);
  if (!there()) throw Refused(499, "the client has gone");
  reply(to, 200, answer.body);
}

void Server::State::stream(const Completions::Request& request, httplib::Response& to) {
  to.status = 200;
  to.set_header("Cache-Control", "no-store");
  to.set_chunked_content_provider("text/event-stream", [this, request](size_t, httplib::DataSink& sink) {
    const auto send = [&](const std::string& data) {
      const std::string event = "data: " + data + "\n\n";
      return (!sink.is_writable || sink.is_writable()) && sink.write(event.data(), event.size());
    };
    try {
      metrics.tokens(completions->stream(request, send));
    } catch (const std::exception& e) {
      send(dumped(error_body({500, e.what()})));
    }
    sink.done();
    return true;
  });
}

Server::Server(std::shared_ptr<const Network> network, std::string name, const ServerOptions& options)
    : state_(std::make_unique<State>(std::move(network), std::move(name), options)) {}

Server::~Server() = default;

int Server::bind() { return state_->connections->bind(state_->options.host, state_->options.port); }

void Server::listen() {
  state_->connections->run();
  if (state_->batcher) state_->batcher->stop();
}

void Server::stop() { state_->connections->stop(); }

}  // namespace volta::app
