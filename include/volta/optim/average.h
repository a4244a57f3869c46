// Clipping of gradients, and averages of weights over the course of training.
#pragma once
#include <optional>
#include <vector>

#include <volta/tensor.h>

namespace volta {

namespace nn {

struct ClipNormOptions {
  double norm_type = 2;  // up to infinity
  bool error_if_nonfinite = false;
};
// Scales all gradients so that their joint norm is at most max_norm; returns what it was:
// Tensor norm = nn::clip_grad_norm_(parameters(model), 1.0);
Tensor clip_grad_norm_(const std::vector<Tensor>& params, double max_norm, const ClipNormOptions& options = {});
// Holds every element of the gradients within [-limit, limit]: nn::clip_grad_value_(parameters(model), 0.5);
void clip_grad_value_(const std::vector<Tensor>& params, double limit);

}  // namespace nn

namespace optim {

// A running average of weights, the same tensors in the same order as those it watches.
class Average {
 public:
  Average(const Average& other);  // the copy averages on alone, of the same parameters
  Average(Average&&) noexcept = default;
  Average& operator=(Average other) noexcept;
  ~Average() = default;

  void update();  // ema.update(): after every step
  const std::vector<Tensor>& averages() const { return averages_; }
  int64_t updates() const { return updates_; }
  void copy_to(const std::vector<Tensor>& params) const;            // ema.copy_to(parameters(other))
  void load(const std::vector<Tensor>& averages, int64_t updates);  // ema.load(saved.averages(), saved.updates())

  // While it lives the model has the averaged weights: { auto averaged = ema.swap(); evaluate(model); }
  class [[nodiscard]] Swap {
   public:
    [[nodiscard]] explicit Swap(const Average& average);
    ~Swap();
    Swap(const Swap&) = delete;
    Swap& operator=(const Swap&) = delete;

   private:
    const Average& average_;
    std::vector<Tensor> kept_;
  };
  [[nodiscard]] Swap swap() const { return Swap(*this); }

 protected:
  Average(std::vector<Tensor> params, std::optional<double> decay);

 private:
  std::vector<Tensor> params_, averages_;
  std::optional<double> decay_;
  int64_t updates_ = 0;
};

// Exponential moving average, beginning with the first weights it sees: optim::EMA ema(parameters(model), 0.999);
class EMA : public Average {
 public:
  explicit EMA(std::vector<Tensor> params, double decay = 0.999) : Average(std::move(params), decay) {}
};

// Stochastic weight averaging, every update counting the same: optim::SWA swa(parameters(model)); swa.update();
class SWA : public Average {
 public:
  explicit SWA(std::vector<Tensor> params) : Average(std::move(params), {}) {}
};

}  // namespace optim
}  // namespace volta
