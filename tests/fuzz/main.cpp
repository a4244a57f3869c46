// volta_fuzz --calls N --seed S: that many calls, each drawn from the seed and its number, in a child process that is
// started again behind a call which crashed it or took longer than two seconds. Every finding is printed with what
// repeats it: --seed S --first NUMBER --calls 1. Ends with status 1 when there was one.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <map>
#include <thread>

#include "source.h"

namespace volta::fuzz {
namespace {

using Clock = std::chrono::steady_clock;

struct Settings {
  uint64_t seed = 1;
  int64_t first = 0, calls = 10000;
  double seconds = 1e9, limit = 2;
  std::string only, skip;  // skip: names between commas
  bool list = false, verbose = false;
};

// What the child tells its parent: the call at hand, and findings that did not end the child.
struct Board {
  std::atomic<int64_t> call{-1};
  std::atomic<double> began{0};
  std::atomic<int64_t> results{0};
  char name[128] = "", story[8192] = "", finding[1024] = "";
  std::atomic<int64_t> found{-1};  // the call of the finding, until the parent has read it
};

// Seconds of all cores that a process has used; a busy machine makes no call slow by this clock.
double used_by(pid_t id) {
  clockid_t clock;
  timespec t{};
  if (clock_getcpuclockid(id, &clock) != 0 || clock_gettime(clock, &t) != 0) return 0;
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

double now() { return std::chrono::duration<double>(Clock::now().time_since_epoch()).count(); }

std::vector<const Call*> chosen(const Settings& settings) {
  std::vector<const Call*> list;
  for (const Call& c : all_calls())
    if ((settings.only.empty() || c.name == settings.only) &&
        ("," + settings.skip + ",").find("," + c.name + ",") == std::string::npos)
      list.push_back(&c);
  return list;
}

// Runs calls until the last, or until one has something to tell; the parent starts another child behind it.
void child(Board& board, const Settings& settings, int64_t from) {
  memory::set_limit(int64_t(48) << 20);
  const std::vector<const Call*> calls = chosen(settings);
  for (int64_t i = from; i < settings.first + settings.calls; ++i) {
    Source source(settings.seed, uint64_t(i));
    const Call& call = *calls[source.bits() % calls.size()];
    std::snprintf(board.name, sizeof board.name, "%s", call.name.c_str());
    board.story[0] = 0;
    source.tell(board.story, sizeof board.story);
    board.began = now();
    board.call = i;
    if (settings.verbose) std::printf("%lld %s\n", static_cast<long long>(i), call.name.c_str()), std::fflush(stdout);
    manual_seed(uint64_t(i));
    bool result = false;
    const std::string wrong = run(call, source, &result);
    board.results += result;
    if (wrong.empty()) continue;
    std::snprintf(board.finding, sizeof board.finding, "%s", wrong.c_str());
    board.found = i;
    _exit(0);
  }
  board.call = settings.first + settings.calls;
  _exit(0);
}

struct Finding {
  int64_t call;
  std::string name, what, story;
};

// Runs a child from a call on; says with which call it ended, and what was found. Threads that wait for others of a busy
// machine use time as well, so a slow call is a finding only if it is slow `again`, by itself.
int64_t supervise(Board& board, const Settings& settings, int64_t from, double end, std::vector<Finding>& findings,
                  bool again = false) {
  board.call = from - 1, board.found = -1, board.began = now();
  const pid_t id = fork();
  if (id == 0) child(board, settings, from);
  int status = 0;
  bool slow = false, over = false;
  int64_t seen = -1;
  double used = 0;
  while (waitpid(id, &status, WNOHANG) == 0) {
    if (board.call != seen) seen = board.call, used = used_by(id);
    const double taken = now() - board.began;
    const bool busy = used_by(id) - used > settings.limit;
    slow = seen >= from && taken > settings.limit && (busy || taken > 10 * settings.limit);
    over = now() > end;
    if (slow || over) {
      kill(id, SIGKILL);
      waitpid(id, &status, 0);
      break;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  if (over && !slow) return settings.first + settings.calls;
  const int64_t last = board.call;
  if (slow && !again) {
    Settings once = settings;
    once.first = last, once.calls = 1;
    supervise(board, once, last, end, findings, true);
    return last + 1;
  }
  std::string what;
  if (board.found >= 0) what = board.finding;
  else if (slow) what = "took longer than " + std::to_string(settings.limit) + " s";
  else if (WIFSIGNALED(status)) what = std::string("crashed: ") + strsignal(WTERMSIG(status));
  else if (WEXITSTATUS(status) != 0) what = "ended with status " + std::to_string(WEXITSTATUS(status));
  if (!what.empty()) {
    findings.push_back({last, board.name, what, board.story});
    const Finding& f = findings.back();
    std::printf("call %lld, %s: %s\n  drew %s\n", static_cast<long long>(f.call), f.name.c_str(), f.what.c_str(),
                f.story.c_str());
    std::fflush(stdout);
  }
  return last + 1;
}

int main_with(const Settings& settings) {
  if (settings.list) {
    for (const Call& c : all_calls()) std::printf("%s\n", c.name.c_str());
    return 0;
  }
  if (chosen(settings).empty()) {
    std::fprintf(stderr, "no call is named %s\n", settings.only.c_str());
    return 2;
  }
  void* shared = mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return 2;
  Board& board = *new (shared) Board;
  std::vector<Finding> findings;
  const double begin = now(), end = begin + settings.seconds;
  int64_t at = settings.first, last = settings.first + settings.calls;
  while (at < last && now() < end) at = std::max(at + 1, supervise(board, settings, at, end, findings));
  std::map<std::string, std::pair<int, int64_t>> kinds;  // how often, and one that repeats it
  for (const Finding& f : findings) ++kinds.try_emplace(f.name + ": " + f.what, 0, f.call).first->second.first;
  const int64_t done = std::min<int64_t>(board.call, last) - settings.first;
  std::printf("%lld calls in %.1f s, %lld with a result, seed %llu: %zu findings of %zu kinds\n",
              static_cast<long long>(std::max<int64_t>(done, 0)), now() - begin, static_cast<long long>(board.results),
              static_cast<unsigned long long>(settings.seed), findings.size(), kinds.size());
  for (const auto& [kind, count] : kinds)
    std::printf("  %d x %s (--seed %llu --first %lld --calls 1)\n", count.first, kind.c_str(),
                static_cast<unsigned long long>(settings.seed), static_cast<long long>(count.second));
  return findings.empty() ? 0 : 1;
}

}  // namespace
}  // namespace volta::fuzz

int main(int count, char** words) {
  volta::fuzz::Settings s;
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i], value = i + 1 < count ? words[i + 1] : "";
    if (word == "--list") s.list = true;
    else if (word == "--verbose") s.verbose = true;
    else if (word == "--calls") s.calls = std::atoll(value.c_str()), ++i;
    else if (word == "--seed") s.seed = std::strtoull(value.c_str(), nullptr, 10), ++i;
    else if (word == "--first") s.first = std::atoll(value.c_str()), ++i;
    else if (word == "--seconds") s.seconds = std::atof(value.c_str()), ++i;
    else if (word == "--limit") s.limit = std::atof(value.c_str()), ++i;
    else if (word == "--only") s.only = value, ++i;
    else if (word == "--skip") s.skip = value, ++i;
    else {
      std::fprintf(stderr,
                   "usage: volta_fuzz [--calls N] [--seed S] [--first N] [--only NAME] [--skip NAME,NAME] [--seconds "
                   "T] [--limit T] "
                   "[--list] [--verbose]\n");
      return 2;
    }
  }
  return volta::fuzz::main_with(s);
}
