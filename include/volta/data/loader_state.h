// LoaderState: where a loader is, small enough to be saved with a checkpoint.
#pragma once
#include <cstdint>

namespace volta::data {

// `batch` batches of the epoch have been given out. Saved and restored, a loader goes on with the next.
struct LoaderState {
  int64_t epoch = 0, batch = 0;
  uint64_t seed = 0;
  friend bool operator==(const LoaderState&, const LoaderState&) = default;
};

}  // namespace volta::data
