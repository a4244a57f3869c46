// Shows a checkpoint: training that is stopped and resumed ends with the same bits as one that is not; run
// `resume [FOLDER] [--short]`.
#include <volta/volta.h>

#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <string>

using namespace volta;

namespace {

// Dropout draws random numbers in every step, so that resuming must restore the generator too.
struct Net {
  nn::Linear hidden{196, 64}, out{64, 10};
  nn::Dropout drop{0.2};
  Tensor operator()(const Tensor& x) const { return out(drop(relu(hidden(x.flatten(1))))); }
};

struct Plan {
  int64_t epochs, stop_at;
};

// Trains from the newest checkpoint in the folder, or from the beginning, up to a step or to the end.
StateDict trained(const data::LabelledImages& images, const std::string& folder, uint64_t seed, const Plan& plan) {
  manual_seed(seed);
  Net net;
  data::DataLoader loader(images, {.batch_size = 100, .shuffle = true});
  optim::AdamW optimizer(parameters(net), {.lr = 2e-3});
  optim::StepLR rate(optimizer, {.step_size = 2, .gamma = 0.5});

  const CheckpointFolder checkpoints(folder);
  Checkpoint from;
  if (const auto newest = checkpoints.load_latest()) {
    from = *newest;
    load_state_dict(net, from.model);
    optimizer.load_state_dict(from.optimizer);
    rate.load_state_dict(from.scheduler);
    default_generator().set_state(from.generator);
    loader.set_state(from.loader);
    std::printf("  resumed at step %lld; epochs done: %lld, batches of the next: %lld\n",
                static_cast<long long>(from.step), static_cast<long long>(from.loader.epoch),
                static_cast<long long>(from.loader.batch));
  }
  const auto save = [&](FitState& state) {
    checkpoints.save({.model = state_dict(net),
                      .optimizer = optimizer.state_dict(),
                      .scheduler = rate.state_dict(),
                      .generator = default_generator().state(),
                      .loader = loader.state(),
                      .step = state.step});
  };
  // As Ctrl-C would: the step is finished, a checkpoint written, and fit returns.
  const auto interrupt = [&](FitState& state) {
    if (state.step == plan.stop_at) std::raise(SIGINT);
  };
  const History history = fit(net, loader, optimizer,
                              {.epochs = plan.epochs,
                               .callbacks = {callbacks::checkpoint(save, {.every = 25, .unit = "step"}),
                                             callbacks::lambda({.step_end = interrupt})},
                               .scheduler = rate,
                               .start_epoch = from.loader.epoch,
                               .start_step = from.step,
                               .catch_interrupt = true});
  if (history.interrupted) std::printf("  interrupted\n");
  else std::printf("  ended with loss %.6f\n", history.epochs.back().values.at("loss"));
  return state_dict(net);
}

}  // namespace

int main(int count, char** arguments) try {
  std::string folder = "data/digits";
  int64_t epochs = 6;
  for (int i = 1; i < count; ++i)
    if (std::string(arguments[i]) == "--short") epochs = 3;
    else folder = arguments[i];

  const data::LabelledImages images = data::digits(folder);
  const std::filesystem::path runs =
      std::filesystem::temp_directory_path() / ("volta_resume_" + std::to_string(::getpid()));
  std::filesystem::remove_all(runs);
  const std::string whole = (runs / "whole").string(), parts = (runs / "parts").string();

  std::printf("without an interruption\n");
  const StateDict expected = trained(images, whole, 1, {epochs, -1});
  std::printf("interrupted within an epoch\n");
  trained(images, parts, 1, {epochs, 57});
  std::printf("resumed, from another seed and other first weights\n");
  const StateDict resumed = trained(images, parts, 2, {epochs, -1});
  std::filesystem::remove_all(runs);

  bool same = true;
  for (const auto& [name, value] : expected) same = same && equal(value, resumed.at(name));
  std::printf("weights equal to the bit: %s\n", same ? "yes" : "no");
  return same ? 0 : 1;
} catch (const Error& e) {
  return std::fprintf(stderr, "resume: %s\n", e.what()), 1;
}
