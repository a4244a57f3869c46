// The connections of an HTTP server. Its threads wait for all of them together and answer whole requests only, so that clients
// that are slow, idle or silent, or do not take their answers, cost memory but hold no thread.
#pragma once
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

namespace volta::app {

struct ConnectionLimits {
  int connections = 1024, threads = 64;
  size_t max_body = 8 << 20;
  std::chrono::milliseconds timeout{20000};  // for a request to arrive, and for a client to take its answer
  std::chrono::milliseconds idle{60000};     // between requests
};

struct Answered {
  bool stays = false;  // the connection is open for more
  std::string unsent;  // what the client did not take at once
};

struct ConnectionHandlers {
  // Answers a whole request on the socket.
  std::function<Answered(std::string_view request, int socket, bool last)> answer;
  // The bytes that refuse a request; the connection ends with them.
  std::function<std::string(int status, const std::string& why)> refusal;
};

class Connections {
 public:
  Connections(const ConnectionLimits& limits, ConnectionHandlers handlers);
  ~Connections();
  Connections(const Connections&) = delete;
  Connections& operator=(const Connections&) = delete;

  int bind(const std::string& host, int port);  // says which port; throws Error where there is none to have
  void run();                                   // until stop is called; requests that have arrived are still answered
  void stop();                                  // from any thread
  int64_t count() const;
  int listener() const { return listener_; }

 private:
  struct Connection;
  void work();
  void accept_all();
  void serve(int socket);
  bool answer_arrived(int socket, Connection& connection);
  void go_on_sending(int socket, Connection& connection);
  void send_what_is_left();
  void refuse(int socket, Connection& connection, int status, const std::string& why);
  void wait_for_more(int socket, Connection& connection);
  void arm(int socket, bool first, bool to_send = false);
  void close(int socket);
  void cut_late();

  ConnectionLimits limits_;
  ConnectionHandlers handlers_;
  int epoll_ = -1, wake_ = -1, listener_ = -1;
  std::atomic<bool> stopping_{false};
  std::atomic<int64_t> buffered_{0};  // bytes of requests that are not whole
  mutable std::mutex mutex_;          // of the map, and of a connection that waits
  std::unordered_map<int, std::unique_ptr<Connection>> open_;
};

// Sends what goes without waiting and takes it off the front; false if the client is gone.
bool send_now(int socket, std::string_view& bytes);
// Sends all of it within the time, which shrinks by what was waited; false if the client is gone or took too long.
bool send_all(int socket, std::string_view bytes, std::chrono::milliseconds& time);

}  // namespace volta::app
