// fit: training without a loop of one's own, over the same parts that such a loop uses.
//
//   optim::AdamW optimizer(parameters(model), {.lr = 1e-3});
//   History history = fit(model, loader, optimizer, {.epochs = 5, .validation = test_loader,
//                         .metrics = {metrics::Accuracy()}, .callbacks = {callbacks::progress()}});
#pragma once
#include <concepts>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include <volta/optim/grad_scaler.h>
#include <volta/optim/schedule.h>
#include <volta/train/callbacks.h>

namespace volta {

namespace detail {
template <class R, class Self>
concept OtherRange = !std::same_as<std::remove_cvref_t<R>, Self> && requires(std::remove_reference_t<R> & r) {
  std::begin(r);
  std::end(r);
};
}  // namespace detail

// Data as fit sees it: anything that can be iterated again and again and whose items bind as (x, y): a loader, a vector of
// pairs. What has a name is referred to and must outlive the training; temporaries are kept.
class Batches {
 public:
  using Use = std::function<bool(const Tensor& x, const Tensor& y)>;  // false: enough

  Batches() = default;
  template <class R, class = std::enable_if_t<detail::OtherRange<R, Batches>>> Batches(R&& range) {
    using Range = std::remove_reference_t<R>;
    if constexpr (std::is_lvalue_reference_v<R>) refer([at = &range]() -> Range& { return *at; });
    else refer([kept = std::make_shared<Range>(std::forward<R>(range))]() -> Range& { return *kept; });
  }

  explicit operator bool() const { return bool(each_); }
  void each(const Use& use) const;
  std::optional<int64_t> size() const { return size_ ? size_() : std::nullopt; }

 private:
  template <class Get> void refer(Get get) {
    each_ = [get](const Use& use) {
      for (auto&& item : get()) {
        auto&& [x, y] = item;
        if (!use(x, y)) break;
      }
    };
    size_ = [get]() -> std::optional<int64_t> {
      if constexpr (requires { int64_t(get().size()); }) {
        if (const auto n = attempt([&] { return int64_t(get().size()); })) return *n;
      }
      return {};
    };
  }
  std::function<void(const Use&)> each_;
  std::function<std::optional<int64_t>()> size_;
};

// A scheduler as fit steps it: one with a name is referred to, so that its state can be saved; AnyScheduler is shared.
// ReduceLROnPlateau is given "val_loss" where there is validation, else "loss".
class Schedule {
 public:
  Schedule() = default;
  template <class S, class = std::enable_if_t<std::derived_from<std::remove_cvref_t<S>, optim::Scheduler>>>
  Schedule(S&& scheduler) {
    if constexpr (std::is_lvalue_reference_v<S>) step_ = [s = &scheduler](double) { s->step(); };
    else step_ = [s = std::make_shared<S>(std::forward<S>(scheduler))](double) { s->step(); };
  }
  Schedule(optim::AnyScheduler scheduler) : step_([s = std::move(scheduler)](double) { s.step(); }) {}
  Schedule(optim::ReduceLROnPlateau& scheduler)
      : step_([s = &scheduler](double loss) { s->step(loss); }), measures_(true) {}
  Schedule(optim::ReduceLROnPlateau&& scheduler)
      : step_([s = std::make_shared<optim::ReduceLROnPlateau>(std::move(scheduler))](double loss) { s->step(loss); }),
        measures_(true) {}

  explicit operator bool() const { return bool(step_); }
  bool measures() const { return measures_; }
  void step(double loss) const;

 private:
  std::function<void(double)> step_;
  bool measures_ = false;
};

using LossFunction = std::function<Tensor(const Tensor& prediction, const Tensor& target)>;
enum class ScheduleEvery { epoch, step };
constexpr std::array<std::string_view, 2> choice_names(ScheduleEvery) { return {"epoch", "step"}; }
enum class NonFinite { error, skip, ignore };
constexpr std::array<std::string_view, 3> choice_names(NonFinite) { return {"error", "skip", "ignore"}; }

struct FitOptions {
  Int epochs = 1;
  LossFunction loss = {};   // a mean over the batch; empty: cross_entropy
  Batches validation = {};  // after every epoch
  std::vector<metrics::AnyMetric> metrics = {};
  std::vector<CallbackPtr> callbacks = {};
  Schedule scheduler = {};
  Choice<ScheduleEvery> schedule_every = ScheduleEvery::epoch;
  std::optional<double> max_grad_norm = {}, clip_value = {};
  Int accumulate = 1;  // batches per step, weighted by their sizes as one large batch would be
  // What becomes of a loss that is NaN or infinite. error: an Error before the step; where reading a value waits for a
  // device, within 50 steps. skip: the batch is left out, also when only its gradients are not finite; reads every loss.
  Choice<NonFinite> non_finite = NonFinite::error;
  std::optional<Device> device = {};    // where model and batches are moved to
  std::optional<DType> autocast = {};   // bf16 or f16: model and loss run under Autocast; f16 with a GradScaler
  GradScaler* scaler = nullptr;         // the one to use, so that its state can be saved; null: fit's own, for f16
  Int start_epoch = 0, start_step = 0;  // of training that is resumed; batches of the epoch are the data's to skip
  bool catch_interrupt = false;         // Ctrl-C ends the training after the step; a second one ends the program
};

// Trains. An exception leaves parameters and optimizer as after the last whole step. The model stays in training mode.
History fit(const ModelRef& model, const Batches& data, optim::Optimizer& optimizer, const FitOptions& options = {});

struct EvaluateOptions {
  LossFunction loss = {};  // empty: cross_entropy
  std::vector<metrics::AnyMetric> metrics = {};
  std::optional<Device> device = {};
  std::optional<DType> autocast = {};  // bf16 or f16
};
// "loss" and the metrics, in eval mode and without a graph: evaluate(model, loader).at("loss"). Every layer is in its own
// mode again afterwards.
Dict<double> evaluate(const ModelRef& model, const Batches& data, const EvaluateOptions& options = {});

}  // namespace volta
