// Where the time of training steps and of inference goes with more and more threads: by op, and what the threads wait for.
//
//   profile_volta [--threads 1,2,4] [--only WORD] [--seconds S] [--json FILE]
//
// The time of all threads together (threads x wall time) is divided into shares:
//   busy    parts of parallel loops running
//   serial  one thread works outside of such loops, the others wait: inside ops and, `glue`, between them
//   few     a loop has fewer parts than there are threads
//   late    a worker had not come yet: waking it, and claiming its first part
//   tail    a thread was done and waited for the last one
// `more` is the time that any thread works, over that with the fewest threads: above 1 where things are done twice or memory is
// waited for.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <volta/volta.h>

#include "backend/profile.h"
#include "core/parallel.h"
#include "core/profile.h"
#include "core/region_watch.h"
#include "sequence.h"
#include "steps.h"

namespace {

using namespace volta;

// Figures of one step: nanoseconds, those of waiting and `busy` added up over the threads.
struct Figures {
  double calls = 0, wall = 0, regions = 0, parts = 0, inside = 0, busy = 0, few = 0, late = 0, tail = 0;

  void add(const Figures& f) {
    calls += f.calls, wall += f.wall, regions += f.regions, parts += f.parts, inside += f.inside;
    busy += f.busy, few += f.few, late += f.late, tail += f.tail;
  }
  double work() const { return wall - inside + busy; }
  void divide(double n) {
    for (double* x : {&calls, &wall, &regions, &parts, &inside, &busy, &few, &late, &tail}) *x /= n;
  }
};

Figures figures_of(const WatchedRegion& r) {
  Figures f;
  const auto wall = double(r.end - r.start);
  f.regions = 1, f.parts = double(r.parts), f.inside = wall;
  f.busy = double(r.owner_done - r.start);
  f.tail = double(r.end - r.owner_done);
  int64_t wanted = std::min<int64_t>(r.threads, r.parts) - 1;  // workers that could have had a part
  for (const WorkerStint& w : r.workers) {
    if (w.parts == 0) continue;
    --wanted;
    f.late += double(w.joined - r.start);
    f.busy += double(w.done - w.joined);
    f.tail += double(r.end - w.done);
  }
  f.late += double(std::max<int64_t>(0, wanted)) * wall;
  f.few = double(r.threads) * wall - f.busy - f.late - f.tail;
  return f;
}

// All of it is told on the thread that runs the steps.
class Watch final : public profile::Sink {
 public:
  Watch() : Sink(false) { now_ = this; }
  static void region(const WatchedRegion& r) { now_->regions_.emplace_back(r.start, figures_of(r)); }

  void ended(const profile::Event& e) override {
    if (e.kind == profile::Kind::op) {
      Call call{std::string(e.name), e.start, false, {}};
      call.figures.calls = 1, call.figures.wall = double(e.self);
      for (; !regions_.empty() && regions_.back().first >= e.start; regions_.pop_back())
        call.figures.add(regions_.back().second);
      calls_.push_back(call);
    } else if (e.kind == profile::Kind::backward) {
      for (auto c = calls_.rbegin(); c != calls_.rend() && c->start >= e.start; ++c) c->backward = true;
    }
  }
  void allocated(const profile::Allocation&) override {}

  void step_ended() {
    for (const Call& c : calls_) ops[c.name + (c.backward ? " (backward)" : "")].add(c.figures);
    for (const auto& [start, figures] : regions_) ops["(no op)"].add(figures);
    calls_.clear(), regions_.clear();
  }

  std::map<std::string, Figures> ops;

 private:
  struct Call {
    std::string name;
    int64_t start;
    bool backward;
    Figures figures;
  };
  static inline Watch* now_ = nullptr;
  std::vector<Call> calls_;
  std::vector<std::pair<int64_t, Figures>> regions_;
};

struct Measured {
  int threads;
  double best, median;  // seconds of a step that nobody watches
  double watched;       // mean, nanoseconds
  Figures all;          // of a step
  std::map<std::string, Figures> ops;
  double glue() const { return watched - all.wall; }
  double serial() const { return watched - all.inside; }
};

double since(int64_t start) { return double(profile::now() - start); }

Measured measure(const bench::Call& call, int threads, double seconds) {
  set_num_threads(threads);
  Measured m{threads, 0, 0, 0, {}, {}};
  std::vector<double> samples;
  const int64_t first = profile::now();
  do call();
  while (since(first) < 0.1e9 * seconds);
  for (const int64_t start = profile::now(); samples.size() < 3 || since(start) < 0.5e9 * seconds;) {
    const int64_t begin = profile::now();
    call();
    samples.push_back(since(begin) * 1e-9);
  }
  std::sort(samples.begin(), samples.end());
  m.best = samples.front(), m.median = samples[samples.size() / 2];
  Watch watch;
  profile::add(watch, time_backends);
  region_watch = Watch::region;
  int steps = 0;
  for (const int64_t start = profile::now(); steps < 2 || since(start) < 0.4e9 * seconds; ++steps) {
    const int64_t begin = profile::now();
    call();
    m.watched += since(begin);
    watch.step_ended();
  }
  region_watch = nullptr;
  profile::remove(watch, time_backends);
  m.watched /= steps;
  m.ops = watch.ops;
  for (auto& [name, figures] : m.ops) figures.divide(steps), m.all.add(figures);
  return m;
}

double ratio(double a, double b) { return b > 0 ? a / b : 0; }

void print_case(const std::string& name, const std::vector<Measured>& all) {
  std::printf("\n%s\n%4s %11s %11s %8s %8s %7s %8s | %7s %7s %7s %7s %7s %7s | %5s\n", name.c_str(), "thr", "best us",
              "median us", "speed-up", "regions", "parts", "watched", "busy %", "serial", "glue", "few", "late", "tail",
              "more");
  for (const Measured& m : all) {
    const double whole = m.threads * m.watched / 100, others = (m.threads - 1) / whole;
    std::printf("%4d %11.1f %11.1f %8.2f %8.0f %7.0f %8.1f | %7.1f %7.1f %7.1f %7.1f %7.1f %7.1f | %5.2f\n", m.threads,
                m.best * 1e6, m.median * 1e6, all[0].best / m.best, m.all.regions, m.all.parts, m.watched * 1e-3,
                m.all.busy / whole, (m.serial() - m.glue()) * others, m.glue() * others, m.all.few / whole,
                m.all.late / whole, m.all.tail / whole,
                ratio(m.glue() + m.all.work(), all[0].glue() + all[0].all.work()));
  }
  const Measured &first = all.front(), &last = all.back();
  std::vector<std::pair<double, std::string>> order;
  for (const auto& [op, figures] : last.ops) order.emplace_back(-figures.wall, op);
  std::sort(order.begin(), order.end());
  std::printf("  %-34s %5s", "op: us of a step, by threads", "calls");
  for (const Measured& m : all) std::printf(" %9d", m.threads);
  std::printf(" %8s | %7s %7s | with %d: %5s %6s %6s %6s %6s\n", "speed-up", "regions", "parts", last.threads, "busy %",
              "few", "late", "tail", "more");
  for (const auto& [key, op] : order) {
    const Figures& f = last.ops.at(op);
    if (f.wall < 0.004 * last.watched) continue;
    std::printf("  %-34s %5.0f", op.c_str(), f.calls);
    double base = 0, base_work = 0;
    for (const Measured& m : all) {
      const auto found = m.ops.find(op);
      const double wall = found == m.ops.end() ? 0 : found->second.wall;
      if (&m == &first && wall > 0) base = wall, base_work = found->second.work();
      std::printf(" %9.1f", wall * 1e-3);
    }
    const double whole = last.threads * f.wall / 100;
    std::printf(" %8.2f | %7.0f %7.0f | %14.1f %6.1f %6.1f %6.1f %6.2f\n", ratio(base, f.wall), f.regions, f.parts,
                ratio(f.busy, whole), ratio(f.few, whole), ratio(f.late, whole), ratio(f.tail, whole),
                ratio(f.work(), base_work));
  }
  std::fflush(stdout);
}

std::string json_of(const Figures& f) {
  std::ostringstream out;
  out << "{\"calls\": " << f.calls << ", \"wall_ns\": " << f.wall << ", \"regions\": " << f.regions
      << ", \"parts\": " << f.parts << ", \"inside_ns\": " << f.inside << ", \"busy_ns\": " << f.busy
      << ", \"few_ns\": " << f.few << ", \"late_ns\": " << f.late << ", \"tail_ns\": " << f.tail << "}";
  return out.str();
}

std::string json_of(const std::string& name, const Measured& m) {
  std::ostringstream out;
  out.precision(9);
  out << "{\"case\": \"" << name << "\", \"threads\": " << m.threads << ", \"best_s\": " << m.best
      << ", \"median_s\": " << m.median << ", \"watched_ns\": " << m.watched << ", \"all\": " << json_of(m.all)
      << ", \"ops\": {";
  const char* comma = "";
  for (const auto& [op, figures] : m.ops) {
    out << comma << "\n  \"" << op << "\": " << json_of(figures);
    comma = ",";
  }
  out << "}}";
  return out.str();
}

// A loop of as many parts as threads that do nothing, begun again at once or after the workers have had nothing to do.
void print_pool(const std::vector<int>& counts) {
  std::printf("an empty loop, us: best and median, begun so long after the one before\n%4s", "thr");
  const int pauses[] = {0, 10, 50, 1000};
  for (const int pause : pauses) std::printf(" %14d us", pause);
  std::printf("\n");
  for (const int threads : counts) {
    set_num_threads(threads);
    std::printf("%4d", threads);
    for (const int pause : pauses) {
      std::vector<double> samples;
      for (int i = 0; i < (pause > 100 ? 60 : 2000); ++i) {
        const int64_t wait = profile::now();
        if (pause >= 1000) std::this_thread::sleep_for(std::chrono::microseconds(pause));
        while (since(wait) < 1e3 * pause) {}
        const int64_t start = profile::now();
        parallel(threads, [](int64_t) {});
        samples.push_back(since(start) * 1e-3);
      }
      std::sort(samples.begin(), samples.end());
      std::printf(" %8.2f %8.2f", samples[0], samples[samples.size() / 2]);
    }
    std::printf("\n");
  }
}

// What the machine says of itself, where it does.
void print_machine() {
  const auto line_of = [](const std::string& path, const std::string& word) {
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);)
      if (line.find(word) != std::string::npos) return line;
    return std::string("-");
  };
  const std::string cpu = "/sys/devices/system/cpu/cpu0/";
  std::printf("%s\nprocessors %u, threads by default %d, siblings of cpu0 %s, cpu.max %s, load %s\n",
              line_of("/proc/cpuinfo", "model name").c_str(), std::thread::hardware_concurrency(), get_num_threads(),
              line_of(cpu + "topology/thread_siblings_list", "").c_str(), line_of("/sys/fs/cgroup/cpu.max", "").c_str(),
              line_of("/proc/loadavg", "").c_str());
}

// Single ops beside the steps.
void add_ops(std::vector<bench::Case>& cases) {
  const auto product = [](int64_t m, int64_t n, int64_t k) {
    return [=] { return [p = randn({m, k}), q = randn({k, n})] { return matmul(p, q); }; };
  };
  cases.push_back({"op/tanh_65536", [] { return [u = randn({1 << 16})] { return tanh(u); }; }});
  cases.push_back({"op/exp_65536", [] { return [u = randn({1 << 16})] { return exp(u); }; }});
  cases.push_back({"op/matmul_512", product(512, 512, 512)});
  cases.push_back({"op/matmul_2048", product(2048, 2048, 2048)});
  cases.push_back({"op/matmul_3136x64x576", product(3136, 64, 576)});
  cases.push_back({"op/conv_b8c256h14k3o256", [] {
                     return [conv = nn::Conv2d(256, 256, 3, {.padding = 1}), x = randn({8, 256, 14, 14})] {
                       const NoGrad off;
                       conv(x);
                     };
                   }});
}

struct Options {
  std::vector<int> threads;
  std::string only, json;
  double seconds = 0.5;
};

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (i + 1 == argc) throw std::invalid_argument("unknown or incomplete argument " + word);
    const std::string value = argv[++i];
    if (word == "--only") options.only = value;
    else if (word == "--json") options.json = value;
    else if (word == "--seconds") options.seconds = std::stod(value);
    else if (word == "--threads") {
      std::istringstream list(value);
      for (std::string n; std::getline(list, n, ',');) options.threads.push_back(std::stoi(n));
    } else throw std::invalid_argument("unknown argument " + word);
  }
  if (options.threads.empty())
    for (int n = 1; n <= get_num_threads(); n *= 2) options.threads.push_back(n);
  return options;
}

int run(const Options& options) {
  print_machine();
  if (options.only.empty()) print_pool(options.threads);
  manual_seed(0);
  std::vector<bench::Case> cases;
  bench::add_steps(cases);
  bench::add_sequence(cases);
  add_ops(cases);
  std::string json = "[";
  for (const bench::Case& chosen : cases) {
    const bool wanted =
        chosen.name.starts_with("step/") || chosen.name.starts_with("infer/") || chosen.name.starts_with("op/");
    if (!wanted || chosen.name.find(options.only) == std::string::npos) continue;
    const bench::Call call = chosen.prepare();
    std::vector<Measured> all;
    for (const int threads : options.threads) all.push_back(measure(call, threads, options.seconds));
    print_case(chosen.name, all);
    for (const Measured& m : all) json += (json.size() > 1 ? ",\n" : "\n") + json_of(chosen.name, m);
  }
  if (!options.json.empty() && !(std::ofstream(options.json) << json << "\n]\n")) {
    std::cerr << "cannot write " << options.json << "\n";
    return 1;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(parse(argc, argv));
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\nusage: [--threads 1,2,4] [--only WORD] [--seconds S] [--json FILE]\n";
    return 2;
  }
}
