// Shows a forecast: an LSTM learns a noisy sine and continues it on its own; run `time_series [--short]`.
#include <volta/volta.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

using namespace volta;

namespace {

struct Forecaster {
  nn::LSTM lstm{1, 32, {.batch_first = true}};
  nn::Linear out{32, 1};

  struct Output {
    Tensor next, h, c;
  };
  // For each step of x [batch, time, 1] a forecast of the next; the states go into the following call.
  Output operator()(const Tensor& x, const nn::LSTMInput& state = {}) const {
    const auto [y, h, c] = lstm(x, state);
    return {out(y), h, c};
  }
};

// Feeds the network its own forecasts.
Tensor continued(const Forecaster& net, const Tensor& past, int64_t steps) {
  const NoGrad off;
  auto [next, h, c] = net(past);
  std::vector<Tensor> values = {next.slice(1, -1, {})};
  while (int64_t(values.size()) < steps) {
    auto step = net(values.back(), {h, c});
    values.push_back(step.next);
    h = step.h, c = step.c;
  }
  return cat(values, 1).flatten();
}

void draw(const Tensor& truth, const Tensor& forecast) {
  for (int64_t t = 0; t < truth.size(0); t += 3) {
    std::string line(41, ' ');
    const auto column = [](const Tensor& x) {
      return size_t(std::lround(20 + 16 * std::clamp(x.item<double>(), -1.2, 1.2)));
    };
    line[column(truth[t])] = '.';
    line[column(forecast[t])] = '*';
    std::printf("%3lld %s\n", static_cast<long long>(t), line.c_str());
  }
}

}  // namespace

int main(int count, char** arguments) {
  int steps = 400;
  for (int i = 1; i < count; ++i)
    if (std::string_view(arguments[i]) == "--short") steps = 120;

  manual_seed(1);
  const int64_t length = 1000, window = 60, ahead = 60;
  const double noise = 0.1;
  const Tensor clean = sin(arange(0, length + ahead).to(f32) * 0.2);
  const Tensor seen = clean.slice(0, 0, length) + noise * randn({length});
  // Every window of the series, and the same moved on by one.
  const Tensor windows = seen.unfold(0, window + 1, 1).unsqueeze(-1);
  const Tensor x = windows.slice(1, 0, window), y = windows.slice(1, 1, window + 1);

  Forecaster net;
  optim::Adam optimizer(parameters(net), {.lr = 1e-2});
  double loss = 0;
  for (int step = 1; step <= steps; ++step) {
    const Tensor some = randint(0, x.size(0), {32});
    optimizer.zero_grad();
    const Tensor error = mse_loss(net(x[some]).next, y[some]);
    error.backward();
    nn::clip_grad_norm_(parameters(net), 1.0);
    optimizer.step();
    loss = error.item<double>();
    if (step % (steps / 4) == 0)
      std::printf("step %3d  error %.4f (the noise alone: %.4f)\n", step, loss, noise * noise);
  }

  const Tensor truth = clean.slice(0, length, length + ahead);
  const Tensor forecast = continued(net, seen.slice(0, length - window, length).view({1, window, 1}), ahead);
  draw(truth, forecast);
  const double error = mse_loss(forecast, truth).item<double>();
  const double variance = truth.var().item<double>();
  std::printf("%lld steps ahead: mean squared error %.4f, of a constant %.4f\n", static_cast<long long>(ahead), error,
              variance);
  return error < variance / 4 ? 0 : 1;
}
