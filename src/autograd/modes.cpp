// The modes of a thread: recording, inference, anomaly detection.
#include "autograd/modes.h"

#include "autograd/record.h"

namespace volta {
namespace {

struct Modes {
  bool record = true, inference = false, anomaly = false;
};
thread_local constinit Modes modes;

}  // namespace

bool grad_enabled() noexcept { return modes.record; }
bool anomaly_enabled() noexcept { return modes.anomaly; }
bool is_grad_enabled() { return modes.record; }
bool is_inference_mode() { return modes.inference; }

// Inside InferenceMode an inner EnableGrad records nothing: the whole region promises not to need gradients.
GradGuard::GradGuard(bool record, bool inference) : before_(modes.record), inference_before_(modes.inference) {
  modes.inference = modes.inference || inference;
  modes.record = record && !modes.inference;
}
GradGuard::~GradGuard() {
  modes.record = before_;
  modes.inference = inference_before_;
}

DetectAnomaly::DetectAnomaly() : before_(modes.anomaly) { modes.anomaly = true; }
DetectAnomaly::~DetectAnomaly() { modes.anomaly = before_; }

}  // namespace volta
