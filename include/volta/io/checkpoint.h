// Checkpoints: everything that training needs to go on as if it had not stopped, in one file.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <volta/data/loader_state.h>
#include <volta/io/safetensors.h>
#include <volta/optim/optimizer.h>
#include <volta/optim/schedule.h>
#include <volta/random.h>

namespace volta {

// save_checkpoint("run.ckpt", {.model = state_dict(net), .optimizer = opt.state_dict(), .step = 100}).
struct Checkpoint {
  StateDict model = {};
  optim::StateDict optimizer = {};
  optim::SchedulerState scheduler = {};
  Generator::State generator = {};
  data::LoaderState loader = {};  // of a DataLoader: loader.state()
  int64_t step = 0;
  Metadata values = {};                       // one's own: the name of the run, the best loss so far, …
  std::map<std::string, double> scaler = {};  // what the state_dict of a GradScaler gave
};

// The file appears whole or not at all: a process that is killed leaves the one that was there before.
void save_checkpoint(const std::string& path, const Checkpoint& checkpoint);
// Equal to the bit to what was saved: Checkpoint c = load_checkpoint("run.ckpt"). A damaged file is an Error.
[[nodiscard]] Checkpoint load_checkpoint(const std::string& path);

enum class BestIs { min, max };
constexpr std::array<std::string_view, 2> choice_names(BestIs) { return {"min", "max"}; }
struct CheckpointFolderOptions {
  Int keep_last = 3;                  // the newest; 0 keeps all
  Int keep_best = 1;                  // those of the best measures, besides
  Choice<BestIs> best = BestIs::min;  // whether a small measure (a loss) or a large one (an accuracy) is good
};

// A folder that holds the newest and the best checkpoints of a run and forgets the others:
//   CheckpointFolder folder("runs/1", {.keep_last = 2});
//   folder.save({.model = state_dict(net), .step = step}, loss);
//   if (auto last = folder.load_latest()) load_state_dict(net, last->model);
class CheckpointFolder {
 public:
  struct Item {
    std::string path;
    int64_t step = 0;
    std::optional<double> measure = {};
  };

  explicit CheckpointFolder(std::string folder, const CheckpointFolderOptions& options = {});
  std::string save(const Checkpoint& checkpoint, std::optional<double> measure = {}) const;  // gives the file's path
  std::vector<Item> list() const;             // by step; files that are damaged or no checkpoints are passed over
  std::optional<std::string> latest() const;  // the path of the newest: load_checkpoint(*folder.latest())
  std::optional<std::string> best() const;    // that of the best measure
  // The newest that is not damaged; nothing where none was saved. Where none can be read, the Error of the newest.
  std::optional<Checkpoint> load_latest() const;

 private:
  void forget(const std::string& saved) const;
  bool better(double a, double b) const;
  std::string folder_;
  int64_t keep_last_, keep_best_;
  BestIs best_;
};

}  // namespace volta
