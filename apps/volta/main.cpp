// volta: trains, evaluates, converts and serves models from the shell.
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <nlohmann/json.hpp>

#include <volta/error.h>
#include <volta/threads.h>

#include "command.h"

namespace {

using namespace volta;

int report(const app::Common& common, const std::string& message, int status) {
  if (common.json)
    std::fprintf(
        stderr, "%s\n",
        nlohmann::json{{"error", message}}.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
  else std::fprintf(stderr, "volta: %s\n", app::printable(message, true).c_str());
  return status;
}

// Whoever read standard output has gone, as `head` does: nothing that anyone wants to hear of.
bool reader_gone() {
  pollfd out{STDOUT_FILENO, POLLOUT, 0};
  return poll(&out, 1, 0) == 1 && (out.revents & POLLERR) != 0;
}

}  // namespace

int main(int count, char** arguments) {
  // Else the first file that is opened would be standard output.
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(standard, F_GETFD) == -1 && open("/dev/null", O_RDWR) == -1) return app::Exit::failed;
  // A closed pipe and a file at its limit are failed writes, not deaths.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  app::Common common;
  app::Program program("volta", "Deep learning from the shell: train, evaluate, convert and serve models.",
                       VOLTA_VERSION, "Try: volta train lenet --data digits\nMore: volta COMMAND --help");
  program.root().flag("--json", common.json, "write JSON, one object per line");
  program.root().option("--threads", common.threads, "processor threads (default: all)").within(1, max_threads);
  for (auto* add :
       {app::add_train, app::add_eval, app::add_predict, app::add_generate, app::add_serve, app::add_summary,
        app::add_info, app::add_convert, app::add_plot, app::add_bench, app::add_doctor, app::add_completion})
    add(program.root(), common);
  try {
    program.run(count, arguments);
  } catch (const app::Program::UsageError& e) {
    return report(common, std::string(e.what()) + " (see volta --help)", app::Exit::usage);
  } catch (const Error& e) {
    return report(common, e.what(), app::Exit::failed);
  } catch (const std::exception& e) {
    return report(common, std::string("unexpected: ") + e.what(), app::Exit::failed);
  }
  if ((std::fflush(stdout) != 0 || std::ferror(stdout)) && !reader_gone())
    return report(common, "cannot write to standard output", app::Exit::failed);
  return common.status;
}
