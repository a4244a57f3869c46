// UpdateBatch: steps of update rules, gathered over all parameters so that a device runs those alike in one call.
#pragma once
#include <array>
#include <cmath>
#include <vector>

#include <volta/tensor.h>
#include <volta/update_rule.h>

#include "backend/update.h"
#include "math/update.h"

namespace volta::optim {

// An average that began with 0 is divided by it.
inline double bias_correction(double beta, int64_t step) { return 1 - std::pow(beta, double(step)); }

class UpdateBatch {
 public:
  // Nothing is read or changed before run. States have the shape of p and its compute dtype.
  void add(const UpdateRule& rule, std::initializer_list<double> constants, const Tensor& p, const Tensor& g,
           std::initializer_list<Tensor> states);
  void run();
  void clear() { steps_.clear(); }

 private:
  struct Step {
    const UpdateRule* rule;
    std::array<double, UpdateRule::max_constants> constants;
    Tensor parameter;
    Tensor copy, g;  // copy: of a parameter that is not contiguous
    std::array<Tensor, UpdateRule::max_states> states;
    const Tensor& x() const { return copy.defined() ? copy : parameter; }
    bool alike(const Step& other) const;
    void composed() const;
    void finish() const;
  };
  std::vector<Step> steps_;
  std::vector<UpdateTensor> tensors_;  // kept for its memory
};

}  // namespace volta::optim
