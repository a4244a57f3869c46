// Several user threads that ask one const model at a time: answers per second, by how much that is more than one user with one
// thread gets, and the most threads the process had. Prints a table: users_volta [USERS] [SECONDS] [WORD].
#include <models/lenet.h>
#include <models/mlp.h>
#include <models/resnet.h>
#include <volta/volta.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace volta;

int threads_of_process() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (word == "Threads:" && status >> word) return std::atoi(word.c_str());
  return 0;
}

struct Measured {
  double per_second;
  int threads;
};
Measured measure(int users, double seconds, const std::function<void()>& ask) {
  std::atomic<bool> over{false};
  std::atomic<long> answers{0};
  std::vector<std::thread> all;
  const auto user = [&] {
    ask();  // fills this thread's caches
    while (!over) ask(), ++answers;
  };
  for (int i = 0; i < users; ++i) all.emplace_back(user);
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds / 4));
  const auto begin = std::chrono::steady_clock::now();
  const long before = answers;
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  const Measured m = {
      double(answers - before) / std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(),
      threads_of_process() - 1};  // the thread that only waits here
  over = true;
  for (std::thread& t : all) t.join();
  return m;
}

void print_model(const std::string& name, int users, double seconds, int cores, const std::function<void()>& ask) {
  set_num_threads(1);
  const double alone = measure(1, seconds, ask).per_second;
  for (const auto& [n, threads] :
       {std::pair(1, 1), std::pair(users, 1), std::pair(1, cores), std::pair(users, cores)}) {
    set_num_threads(threads);
    const Measured m = measure(n, seconds, ask);
    std::printf("%-24s %5d %7d %12.1f %8.2f %8d\n", name.c_str(), n, threads, m.per_second, m.per_second / alone,
                m.threads);
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int users = argc > 1 ? std::atoi(argv[1]) : 8, cores = get_num_threads();
  const double seconds = argc > 2 ? std::atof(argv[2]) : 1;
  const std::string only = argc > 3 ? argv[3] : "";
  std::printf("%-24s %5s %7s %12s %8s %8s\n", "model", "users", "threads", "answers/s", "times", "in all");
  const auto compare = [&](const std::string& name, auto model, const Shape& shape) {
    if (name.find(only) == std::string::npos) return;
    eval(model);
    const Tensor x = randn(shape);
    const auto& fixed = model;
    print_model(name, users, seconds, cores, [&] {
      const InferenceMode on;
      fixed(x);
    });
    const auto fast = optimize(fixed);
    print_model("optimize(" + name + ")", users, seconds, cores, [&] { fast(x); });
  };
  compare("mlp_b1", models::mlp({.widths = {784, 128, 10}}), Shape{1, 784});
  compare("lenet_b1", models::LeNet5{}, Shape{1, 1, 28, 28});
  compare("lenet_b64", models::LeNet5{}, Shape{64, 1, 28, 28});
  compare("resnet18_b1_h224", models::resnet18({.classes = 10}), Shape{1, 3, 224, 224});
}
