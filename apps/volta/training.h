// What `volta train` does: a run in a folder, which can be killed and resumed.
#pragma once
#include <string>

#include "sets.h"
#include "terminal.h"

namespace volta::app {

struct TrainFlags {
  std::string model, out, optimizer = "adamw", schedule = "onecycle", device = "cpu", precision = "f32";
  SetFlags set;
  std::map<std::string, int64_t> sizes;  // of the model, in place of its own
  int64_t epochs = 20, batch = 64, workers = 1, save_every = 0, patience = 0, accumulate = 1;
  double lr = 0, weight_decay = 0.05, clip = 0;  // lr 0: as suits the optimizer
  uint64_t seed = 1;
  bool resume = false, augment = true, tensorboard = false;
};

struct TrainResult {
  std::string file;   // of the trained model; empty where an interrupt came before the first step
  Dict<double> test;  // loss and metrics on the items held out
  double seconds = 0;
  int64_t parameters = 0;
  bool interrupted = false;
};

[[noreturn]] inline void refuse_training(const std::string& why) { throw Error(Error::Kind::argument, "train", why); }

double learning_rate(const TrainFlags& flags);  // the highest
void check_words(const TrainFlags& flags);      // model, data, optimizer …: throws where a name is not known
void check_device(const std::string& name);     // only whether there could be one
// Goes on from a checkpoint of the run, if there is one. Takes the lock before it writes, unless it is taken already.
class RunLock;
TrainResult train_run(const TrainFlags& flags, std::optional<Checkpoint> last, RunLock& lock, const Terminal& terminal);

LossFunction loss_of(const Recipe& recipe);
std::vector<metrics::AnyMetric> metrics_of(const Recipe& recipe);
// Items as the network wants them; it must outlive them.
std::function<std::tuple<Tensor, Tensor>(const Tensor&, const Tensor&)> preparing(const Network& network);

}  // namespace volta::app
