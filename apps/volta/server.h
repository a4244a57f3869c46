// A trained model behind HTTP: predictions and completions, health, metrics, and a page to try it.
#pragma once
#include <chrono>
#include <memory>
#include <string>

#include "network.h"

namespace volta::app {

struct ServerOptions {
  std::string host = "127.0.0.1";
  int port = 8000;  // 0: any that is free
  int workers = 0;  // threads that run the model; 0: as many as the library uses
  int connections = 1024;
  int64_t max_batch = 32, max_queue = 1024, max_body = 8 << 20, max_tokens = 4096;
  std::chrono::microseconds max_wait{0};
  std::chrono::milliseconds timeout{20000};  // for a client to send its request or to take its answer
};

class Server {
 public:
  Server(std::shared_ptr<const Network> network, std::string name, const ServerOptions& options);
  ~Server();
  int bind();     // takes the port and says which; throws where it is in use
  void listen();  // answers until stop is called; then what is under way is finished
  void stop();    // from any thread

 private:
  struct State;
  std::unique_ptr<State> state_;
};

extern const char* const page_html;  // the page at /

}  // namespace volta::app
