// volta bench: what this machine does per second.
#include <chrono>
#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>

#include <models/lenet.h>

#include "command.h"
#include "network.h"
#include "training.h"

namespace volta::app {
namespace {

struct Measure {
  std::string name, unit;
  double work;  // units per call
  std::function<void()> run;
};

// Calls per second: the best of five turns, each long enough to be timed.
double rate(const Measure& m, const Device& device) {
  using Clock = std::chrono::steady_clock;
  const auto turn = [&](int64_t calls) {
    const auto start = Clock::now();
    for (int64_t i = 0; i < calls; ++i) m.run();
    if (device.is_cuda()) cuda::synchronize(device.index);
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  int64_t calls = 1;
  turn(1);
  while (turn(calls) < 0.05) calls *= 2;
  double best = 0;
  for (int i = 0; i < 5; ++i) best = std::max(best, double(calls) / turn(calls));
  return best;
}

std::vector<Measure> measures(const Device& device) {
  const int64_t side = device.is_cpu() ? 1024 : 8192, n = device.is_cpu() ? 1 << 22 : 1 << 28;
  const Options on{.device = device};
  const Tensor a = randn({side, side}, on), b = randn({side, side}, on), x = randn({n}, on), y = randn({n}, on);
  auto net = std::make_shared<models::LeNet5>();
  to(*net, device);
  auto optimizer = std::make_shared<optim::AdamW>(parameters(*net));
  const Tensor images = randn({64, 1, 28, 28}, on), labels = randint(0, 10, {64}, on);
  const double flops = 2.0 * double(side) * double(side) * double(side);
  return {
      {"matmul, f32, " + std::to_string(side), "GFLOP/s", flops / 1e9, [=] { (void)matmul(a, b); }},
      {"add, f32, " + bytes_text(4.0 * double(n)), "GB/s", 12.0 * double(n) / 1e9, [=] { (void)(x + y); }},
      {"sum, f32", "GB/s", 4.0 * double(n) / 1e9, [=] { (void)x.sum(); }},
      {"softmax, rows of " + std::to_string(side), "GB/s", 8.0 * double(side) * double(side) / 1e9,
       [=] { (void)softmax(a, -1); }},
      {"LeNet-5 training", "images/s", 64,
       [=] {
         optimizer->zero_grad();
         cross_entropy((*net)(images), labels).backward();
         optimizer->step();
       }},
  };
}

}  // namespace

void add_bench(Command program, Common& common) {
  Command command = program.command("bench", "measure this machine");
  auto device = std::make_shared<std::string>("cpu");
  command.option("--device", *device, "cpu or cuda").shown();
  command.on_run([&common, device] {
    Program::check_usage([&] { check_device(*device); });
    if (common.threads > 0) set_num_threads(common.threads);
    const Device on(*device);
    for (const Measure& m : measures(on)) {
      const double value = m.work * rate(m, on);
      if (common.json)
        std::printf("%s\n",
                    nlohmann::json{{"case", m.name}, {"value", value}, {"unit", m.unit}, {"threads", get_num_threads()}}
                        .dump()
                        .c_str());
      else std::printf("%-28s %10.1f %s\n", m.name.c_str(), value, m.unit.c_str());
      std::fflush(stdout);
    }
  });
}

}  // namespace volta::app
