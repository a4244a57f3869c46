// What a run keeps in its checkpoints besides weights and states, and how --resume goes on with it.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "training.h"

namespace volta::app {

// Flags that decide what is learned, by their long names, as the command line takes them; empty where not in use.
using Settings = std::vector<std::pair<std::string, std::string>>;
Settings settings_of(const TrainFlags& flags);

// Held by the one process that trains into a folder; the kernel lets go of it, however the process ends.
class RunLock {
 public:
  RunLock() = default;
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;
  void take(const std::string& run);  // throws where another process has it

 private:
  int file_ = -1;
};

std::optional<Checkpoint> last_checkpoint(const std::string& run);  // nothing where the folder has none
std::vector<std::string> passed_over(const std::string& run, const Checkpoint& last);  // newer ones, which are damaged
// `items` says how many the data have: others would be split in another way, and training items become test items.
void keep_settings(const TrainFlags& flags, const Recipe& recipe, const std::string& items, Checkpoint& to);
// The settings of a checkpoint; nothing in one of a version that did not keep them.
Settings kept_settings(const Checkpoint& from);
std::map<std::string, int64_t> kept_sizes(const Checkpoint& from);  // those that were set

// Throws where flags that were given contradict those of the run.
void check_setting(const TrainFlags& flags, const std::string& name, const std::string& now, const std::string& before);
void check_epochs(const TrainFlags& flags, const Checkpoint& last);
// Takes the normalisation of the run; throws where items, sizes, labels, columns or characters are not those of the run.
void go_on_with(const Checkpoint& last, const TrainFlags& flags, const std::string& items, Recipe& recipe);

// Rows of log.csv and log.jsonl of epochs that are trained again.
void drop_epochs(const std::string& log, int64_t from);

// Ends the training after so many epochs in which the loss on the test items was no better than before, and has the
// weights of the best one. All of it is part of a checkpoint.
class Patience final : public Callback {
 public:
  explicit Patience(int64_t epochs) : epochs_(epochs) {}
  void begin(FitState& state) override { state.stop = since_ >= epochs_; }
  void epoch_end(FitState& state) override;
  void keep(Checkpoint& to) const;
  void take(Checkpoint& from);  // what keep added is removed from the weights
  void restore(const ModelRef& model) const;

 private:
  int64_t epochs_, since_ = 0;
  std::optional<double> best_;
  StateDict weights_;
};

}  // namespace volta::app
