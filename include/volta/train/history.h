// History: what fit measured in each epoch.
#pragma once
#include <iosfwd>
#include <string>
#include <vector>

#include <volta/nn/dict.h>

namespace volta {

struct EpochRecord {
  int64_t epoch = 0;    // from 0
  int64_t step = 0;     // steps of the optimizer since the beginning of training
  int64_t skipped = 0;  // batches left out by .non_finite = "skip"
  // "loss", the metrics by name, "val_loss" and "val_…" where there is validation, "lr" and "seconds".
  Dict<double> values = {};
};

// history.epochs.back().values.at("val_loss"); std::cout << history prints a table.
struct History {
  std::vector<EpochRecord> epochs = {};
  bool interrupted = false;                                   // by Ctrl-C
  bool stopped = false;                                       // by a callback, before the last epoch
  std::vector<double> values(const std::string& name) const;  // of each epoch: history.values("loss")
  std::string str() const;
  friend std::ostream& operator<<(std::ostream& out, const History& history);
};

}  // namespace volta
