// The callback that writes TensorBoard's event files.
#include <volta/train/callbacks.h>
#include <volta/train/summary_writer.h>

#include "core/check.h"

namespace volta::callbacks {
namespace {

// Points are placed by the optimizer's steps; those of an epoch at its last.
class TensorBoard final : public Callback {
 public:
  TensorBoard(const std::string& folder, const TensorBoardOptions& options) : writer_(folder), o_(options) {
    require(o_.every >= 0, ErrorKind::argument, "tensorboard", "every is not negative, got ", o_.every);
  }

  void step_end(FitState& state) override {
    if (o_.every == 0 || state.step % o_.every != 0) return;
    writer_.add_scalar("step/loss", state.loss(), state.step);
    writer_.add_scalar("step/lr", state.optimizer.lr(), state.step);
  }

  void epoch_end(FitState& state) override {
    writer_.add_scalars("epoch", state.history.epochs.back().values, state.step);
    if (o_.histograms) {
      for (const auto& [name, p] : named_parameters(state.model)) {
        if (p.numel() == 0) continue;
        writer_.add_histogram("parameters/" + name, p, state.step);
        if (p.grad()) writer_.add_histogram("gradients/" + name, *p.grad(), state.step);
      }
    }
    writer_.flush();
  }

  void end(FitState&) override { writer_.flush(); }

 private:
  SummaryWriter writer_;
  TensorBoardOptions o_;
};

}  // namespace

CallbackPtr tensorboard(const std::string& folder, const TensorBoardOptions& options) {
  return std::make_shared<TensorBoard>(folder, options);
}

}  // namespace volta::callbacks
