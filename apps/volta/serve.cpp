// volta serve: a trained model behind HTTP until Ctrl-C.
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "command.h"
#include "requests.h"
#include "server.h"

namespace volta::app {
namespace {

// SIGINT and SIGTERM are blocked in every thread and waited for in one: no handler runs in the middle of anything. A
// Ctrl-C that is ignored from the start, as in the background of a script, stays so.
sigset_t shutdown_signals() {
  sigset_t set;
  sigemptyset(&set);
  struct sigaction before = {};
  if (sigaction(SIGINT, nullptr, &before) != 0 || before.sa_handler != SIG_IGN) sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  return set;
}

// That of the file, or of the folder.
std::string usual_name(const std::filesystem::path& file) {
  const std::string name = (file.has_filename() ? file : file.parent_path()).stem().string();
  return name.empty() ? "model" : name;
}

void serve(const std::string& file, const std::string& name, const ServerOptions& options, const Common& common) {
  const sigset_t signals = shutdown_signals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  const auto network = std::make_shared<const Network>(Network::load(file));
  Server server(network, name.empty() ? usual_name(file) : name, options);
  const int port = server.bind();
  const bool six = options.host.find(':') != std::string::npos;
  const std::string address = "http://" + (six ? "[" + options.host + "]" : options.host) + ":" + std::to_string(port);
  if (common.json) std::printf("%s\n", dumped({{"listening", address}}).c_str());
  else std::printf("serving %s at %s (Ctrl-C ends)\n", file.c_str(), address.c_str());
  std::fflush(stdout);
  std::thread waiter([&] {
    int which = 0;
    sigwait(&signals, &which);
    server.stop();
  });
  server.listen();
  pthread_kill(waiter.native_handle(), SIGTERM);  // in case listen ended by itself
  waiter.join();
  if (!common.json) std::printf("stopped\n");
}

}  // namespace

void add_serve(Command program, Common& common) {
  Command command = program.command("serve", "answer predictions (or completions) over HTTP");
  struct Flags {
    std::string file, name;
    ServerOptions options;
    int64_t wait_us = 0;
    double timeout = 20;
  };
  auto flags = std::make_shared<Flags>();
  ServerOptions& o = flags->options;
  command.option("model", flags->file, "a file that volta train saved").required();
  command.option("--name", flags->name, "what clients call the model (default: the file's name)");
  command.option("--host", o.host, "address to listen on").shown();
  command.option("--port", o.port, "port to listen on; 0 takes any").shown().within(0, 65535);
  command.option("--workers", o.workers, "threads that run the model (default: all)").within(1, 1024);
  command.option("--connections", o.connections, "clients at once").shown().within(1, 65536);
  command.option("--max-batch", o.max_batch, "requests that run together").shown().within(1, 65536);
  command.option("--max-wait", flags->wait_us, "microseconds that a batch waits for more").shown().within(0, 1000000);
  command.option("--max-queue", o.max_queue, "requests that may wait; more are answered 503")
      .shown()
      .within(1, 1 << 20);
  command.option("--max-body", o.max_body, "bytes of a request").shown().within(1, 1 << 30);
  command.option("--timeout", flags->timeout, "seconds that a client may take to send a request")
      .shown()
      .within(0.1, 3600.0);
  command.on_run([&common, flags] {
    if (common.threads > 0) set_num_threads(common.threads);
    flags->options.max_wait = std::chrono::microseconds(flags->wait_us);
    flags->options.timeout = std::chrono::milliseconds(int64_t(flags->timeout * 1000));
    serve(flags->file, flags->name, flags->options, common);
  });
}

}  // namespace volta::app
