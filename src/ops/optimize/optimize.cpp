// optimize: a program for each kind of inputs, recorded when they are first met.
#include <volta/optimize.h>

#include <volta/autocast.h>
#include <volta/grad_mode.h>

#include "core/check.h"
#include "ops/optimize/program.h"

namespace volta::detail {
namespace {

constexpr const char* op = "optimize";
constexpr size_t most_kinds = 32;  // of inputs, whose programs are kept

void check(std::span<const Tensor> inputs) {
  for (const Tensor& x : inputs) {
    require(x.checked(op).device() == Device(), ErrorKind::device, op, "an input is on ", x.device(),
            "; this is for the CPU, on a GPU capture() does it");
    require(!is_grad_enabled() || !x.requires_grad(), ErrorKind::argument, op,
            "an input requires a gradient, and none is recorded here; call it under InferenceMode, or use detach()");
  }
}

}  // namespace

struct Programs::State {
  struct Kind {
    std::vector<std::pair<Shape, DType>> inputs;
    std::optional<DType> half;
    std::shared_ptr<const program::Program> program;
  };
  std::mutex mutex;
  std::vector<Kind> kinds;
};

Programs::Programs() : state_(std::make_unique<State>()) {}
Programs::~Programs() = default;
Programs::Programs(Programs&&) noexcept = default;
Programs& Programs::operator=(Programs&&) noexcept = default;

std::vector<Tensor> Programs::run(std::span<const Tensor> inputs, const ModelFunction& model) const {
  require(state_ != nullptr, ErrorKind::argument, op, "the optimized model was moved from");
  check(inputs);
  if (program::is_recording()) return model(inputs);  // as a part of another
  const std::optional<DType> half = is_autocast_enabled() ? std::optional(autocast_dtype()) : std::nullopt;
  const auto fits = [&](const State::Kind& k) {
    return k.half == half && std::equal(inputs.begin(), inputs.end(), k.inputs.begin(), k.inputs.end(),
                                        [](const Tensor& x, const auto& known) {
                                          return x.shape() == known.first && x.dtype() == known.second;
                                        });
  };
  std::shared_ptr<const program::Program> program;
  {
    const std::lock_guard lock(state_->mutex);
    auto found = std::find_if(state_->kinds.begin(), state_->kinds.end(), fits);
    if (found == state_->kinds.end() || !found->program->current()) {
      auto made = std::make_shared<const program::Program>(inputs, model);
      if (found == state_->kinds.end()) {
        State::Kind kind{{}, half, {}};
        for (const Tensor& x : inputs) kind.inputs.emplace_back(x.shape(), x.dtype());
        if (state_->kinds.size() == most_kinds) state_->kinds.erase(state_->kinds.begin());
        found = state_->kinds.insert(state_->kinds.end(), std::move(kind));
      }
      found->program = std::move(made);
    }
    program = found->program;
    if (state_->kinds.size() > most_kinds / 2)
      std::rotate(found, found + 1, state_->kinds.end());  // the oldest go first
  }
  return (*program)(inputs);
}

int64_t Programs::working_bytes() const {
  if (!state_) return 0;
  const std::lock_guard lock(state_->mutex);
  int64_t bytes = 0;
  for (const State::Kind& k : state_->kinds) bytes += k.program->working_bytes();
  return bytes;
}

}  // namespace volta::detail
