// Whether calls are recorded for the backward pass: guards that hold for a thread while they live.
#pragma once

namespace volta {

// Modes of this thread, while the guard lives: { NoGrad off; y = model(x); }
class [[nodiscard]] GradGuard {
 public:
  [[nodiscard]] explicit GradGuard(bool record, bool inference = false);
  ~GradGuard();
  GradGuard(const GradGuard&) = delete;
  GradGuard& operator=(const GradGuard&) = delete;

 private:
  bool before_, inference_before_;
};
struct [[nodiscard]] NoGrad : GradGuard {
  [[nodiscard]] NoGrad() : GradGuard(false) {}
};
struct [[nodiscard]] EnableGrad : GradGuard {
  [[nodiscard]] EnableGrad() : GradGuard(true) {}
};
struct [[nodiscard]] InferenceMode : GradGuard {
  [[nodiscard]] InferenceMode() : GradGuard(false, true) {}
};
bool is_grad_enabled();
bool is_inference_mode();

// While it lives, a backward rule that makes a NaN throws, naming the op.
class [[nodiscard]] DetectAnomaly {
 public:
  [[nodiscard]] DetectAnomaly();
  ~DetectAnomaly();
  DetectAnomaly(const DetectAnomaly&) = delete;
  DetectAnomaly& operator=(const DetectAnomaly&) = delete;

 private:
  bool before_;
};

}  // namespace volta
