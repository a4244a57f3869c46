// Convolution by algorithm: GFLOP/s of its three pieces on one thread, in processor time so that a busy machine does not
// disturb, and the working memory of all three beyond tensors. Prints a table: conv_volta [SECONDS] [WORD].
#include <sys/wait.h>
#include <unistd.h>
#include <volta/volta.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <sstream>
#include <string>

#include "resident.h"

namespace {

using namespace volta;

struct Row {
  std::int64_t batch, channels, side, kernel, outputs, stride = 1, groups = 1;
  std::string name() const {
    std::ostringstream text;
    text << "b" << batch << "c" << channels << "h" << side << "k" << kernel << "o" << outputs;
    if (stride > 1) text << "s" << stride;
    if (groups > 1) text << "g" << groups;
    return text.str();
  }
};

constexpr Row rows[] = {{1, 1, 28, 5, 6},        {16, 1, 28, 5, 6},         {16, 6, 14, 5, 16},
                        {4, 3, 64, 3, 16},       {1, 3, 224, 7, 64, 2},     {1, 16, 56, 3, 16},
                        {1, 32, 56, 3, 32},      {1, 64, 56, 1, 64},        {1, 64, 56, 3, 64},
                        {8, 64, 28, 3, 64},      {4, 128, 28, 3, 128},      {4, 256, 14, 3, 256},
                        {4, 256, 14, 1, 256},    {2, 512, 7, 3, 512},       {2, 64, 56, 5, 64},
                        {4, 128, 28, 3, 128, 2}, {2, 96, 56, 3, 96, 1, 96}, {2, 64, 28, 3, 64, 1, 8}};

double best_seconds(const std::function<void()>& call, double seconds) {
  const auto now = [] { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; };
  double best = 1e9;
  for (double spent = 0; spent < seconds;) {
    const double start = now();
    int count = 0;
    do call(), ++count;
    while (now() - start < 2e-3);  // the clock's own steps stay small beside a sample
    const double sample = now() - start;
    spent += sample;
    best = std::min(best, sample / count);
  }
  return best;
}

void print_row(const Row& row, ConvAlgorithm algorithm, double seconds) {
  set_num_threads(1);
  const ConvOptions options{
      .stride = row.stride, .padding = row.kernel / 2, .groups = row.groups, .algorithm = algorithm};
  const Tensor x = randn({row.batch, row.channels, row.side, row.side}, {.requires_grad = true});
  const Tensor w = randn({row.outputs, row.channels / row.groups, row.kernel, row.kernel}, {.requires_grad = true});
  const Tensor by_x = conv2d(x, w.detach(), {}, options), by_w = conv2d(x.detach(), w, {}, options);
  const Tensor g = randn(by_x.shape());
  const double work = 2e-9 * static_cast<double>(g.numel() * w.select(0, 0).numel());
  const auto run = [&](ConvPiece piece) {
    const NoGrad off;
    if (piece == ConvPiece::forward) conv2d(x, w, {}, options);
    else
      (void)grad(piece == ConvPiece::input ? by_x : by_w, piece == ConvPiece::input ? x : w,
                 {.grad_outputs = {g}, .retain_graph = true});
  };
  double rate[3];
  for (const ConvPiece piece : {ConvPiece::forward, ConvPiece::input, ConvPiece::weight})
    rate[static_cast<int>(piece)] = work / best_seconds([&] { run(piece); }, seconds);
  const auto used = [&](ConvPiece piece) { return name(conv_algorithm(x, w, options, piece)); };
  const double tensors = static_cast<double>(memory::stats().peak) / 1048576;
  std::printf("%-22s %-14s %8.1f %8.1f %8.1f %9.1f", row.name().c_str(), name(algorithm), rate[0], rate[1], rate[2],
              static_cast<double>(bench::peak_resident_kib()) / 1024 - tensors);
  if (algorithm == ConvAlgorithm::automatic)
    std::printf("  %s, %s, %s", used(ConvPiece::forward), used(ConvPiece::input), used(ConvPiece::weight));
  std::printf("\n");
}

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 0.1;
  const std::string only = argc > 2 ? argv[2] : "";
  std::printf("%-22s %-14s %8s %8s %8s %9s\n", "case", "algorithm", "forward", "input", "weight", "MiB");
  for (const Row& row : rows) {
    if (row.name().find(only) == std::string::npos) continue;
    for (const ConvAlgorithm algorithm : {ConvAlgorithm::direct, ConvAlgorithm::im2col, ConvAlgorithm::implicit_gemm,
                                          ConvAlgorithm::winograd, ConvAlgorithm::automatic}) {
      if (algorithm == ConvAlgorithm::winograd && (row.kernel != 3 || row.stride != 1)) continue;
      std::fflush(stdout);
      const pid_t child = fork();  // its peak memory is this row's alone
      if (child == 0) {
        print_row(row, algorithm, seconds);
        std::fflush(stdout);
        std::_Exit(0);
      }
      waitpid(child, nullptr, 0);
    }
  }
}
