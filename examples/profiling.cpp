// Shows where the time and the memory of a training step go: a table, a report and a trace; run `profiling [--short]`.
#include <models/lenet.h>

#include <unistd.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <string>
#include <string_view>

using namespace volta;

namespace {

struct Training {
  models::LeNet5 net;
  optim::AdamW optimizer{parameters(net), {.lr = 1e-3}};

  // The scopes are lines of the table and bars in the trace; without a profiler they cost nothing.
  double step(const Tensor& x, const Tensor& y) {
    const ProfileScope whole("step");
    optimizer.zero_grad();
    Tensor loss;
    {
      const ProfileScope scope("forward");
      loss = cross_entropy(net(x), y);
    }
    {
      const ProfileScope scope("backward");
      loss.backward();
    }
    const ProfileScope scope("update");
    optimizer.step();
    return loss.item<double>();
  }
};

}  // namespace

int main(int count, char** arguments) {
  int steps = 50;
  for (int i = 1; i < count; ++i)
    if (std::string_view(arguments[i]) == "--short") steps = 5;

  manual_seed(1);
  const Tensor x = rand({64, 1, 28, 28}), y = randint(0, 10, {64});
  Training training;
  training.step(x, y);  // the first step allocates what later ones use again

  Profiler profiler;
  double loss = 0;
  for (int i = 0; i < steps; ++i) loss = training.step(x, y);
  profiler.stop();

  std::cout << profiler.table({.sort_by = "self", .top = 12}) << "\n" << profiler.memory().str() << "\n";

  // The rows are there for programs too: which share of a step is the backward pass?
  double whole = 0, backward = 0;
  int64_t calls = 0;
  for (const ProfileRow& row : profiler.rows()) {
    if (row.kind != "scope") continue;
    if (row.name == "step") whole = row.total, calls = row.calls;
    if (row.name == "backward") backward = row.total;
  }
  std::printf("%lld steps of %.2f ms, %.0f%% of it backward\n", static_cast<long long>(calls),
              1e3 * whole / double(calls), 100 * backward / whole);

  // For ui.perfetto.dev or chrome://tracing; a program of one's own keeps it.
  const std::filesystem::path trace =
      std::filesystem::temp_directory_path() / ("volta_trace_" + std::to_string(::getpid()) + ".json");
  profiler.write_trace(trace.string());
  const auto bytes = std::filesystem::file_size(trace);
  std::filesystem::remove(trace);
  std::printf("a trace of %ju bytes\n", static_cast<uintmax_t>(bytes));
  return calls == steps && backward > 0 && bytes > 1000 && std::isfinite(loss) ? 0 : 1;
}
