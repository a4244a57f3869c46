// UpdateBatch: steps of update rules, gathered over all parameters so that a device runs those alike in one call.
#pragma once
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include <volta/tensor.h>
#include <volta/update_rule.h>

#include "backend/update.h"
#include "math/update.h"

namespace volta {
class Recording;
}
namespace volta::optim {

// An average that began with 0 is divided by it.
inline double bias_correction(double beta, int64_t step) { return 1 - std::pow(beta, double(step)); }

class UpdateBatch {
 public:
  // Nothing is read or changed before run. States have the shape of p and its compute dtype.
  void add(const UpdateRule& rule, std::initializer_list<double> constants, const Tensor& p, const Tensor& g,
           std::initializer_list<Tensor> states);
  // `skipped` less `before` (0-d; before may be undefined): how many of the steps that the last one's constants count were
  // not taken.
  void count(const Tensor& skipped, const Tensor& before) {
    steps_.back().skipped = skipped, steps_.back().skipped_before = before;
  }
  // The steps before `end` that no earlier slot has share a slot of a recording's constants.
  struct Slot {
    size_t end;
    int number;
  };
  using Slots = std::vector<Slot>;
  // Where `skip` is given, a 0-d boolean tensor, its device decides whether anything changes. Returns the slots where the
  // step is being recorded.
  Slots run(const Tensor& skip = {});
  // In place of run where a recorded step is about to be replayed: its constants are those of the steps added now.
  void renew(Recording& recording, const Slots& slots);
  void clear() { steps_.clear(); }

 private:
  struct Step {
    const UpdateRule* rule;
    std::array<double, UpdateRule::max_constants> constants;
    Tensor parameter;
    Tensor copy, g;  // copy: of a parameter that is not contiguous
    std::array<Tensor, UpdateRule::max_states> states;
    Tensor skipped, skipped_before;  // undefined: the host knows how many were taken
    const Tensor& x() const { return copy.defined() ? copy : parameter; }
    bool alike(const Step& other) const;
    bool has_constants_of(const Step& other) const;
    void composed(const Tensor& skip) const;
    void finish() const;
  };
  std::vector<Step> steps_;
  std::vector<UpdateTensor> tensors_;  // kept for its memory
};

}  // namespace volta::optim
