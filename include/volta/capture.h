// capture: records a training step on its device once and replays it, without the work of the host.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

#include <volta/given.h>

namespace volta {
namespace detail {

class Replay {
 public:
  Replay();
  ~Replay();
  Replay(Replay&&) noexcept;
  Replay& operator=(Replay&&) noexcept;
  // The first time runs the step, the second records and replays it, all others replay it.
  void run(const std::function<void()>& step);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace detail

template <class Step> class [[nodiscard]] Captured {
 public:
  using Result = std::invoke_result_t<Step&>;
  explicit Captured(Step step) : step_(std::move(step)) { static_cast<void>(detail::given(step_, "capture")); }

  Result operator()() {
    static_cast<void>(detail::given(step_, "capture"));
    if constexpr (std::is_void_v<Result>) replay_.run(std::ref(step_));
    else {
      replay_.run([this] { result_.emplace(step_()); });
      return *result_;
    }
  }

 private:
  Step step_;
  std::optional<std::conditional_t<std::is_void_v<Result>, std::monostate, Result>> result_;
  detail::Replay replay_;
};

// auto step = capture([&] { opt.zero_grad(); Tensor loss = cross_entropy(net(x), y); loss.backward(); opt.step(); return loss; });
// for (auto& [images, labels] : loader) { x.copy_(images), y.copy_(labels); step(); }
//
// The first call runs the function; the second records what it has the GPU do, and from then on a call replays that: as if
// the function ran again, with the tensors it used then (write new inputs into them), with fresh random numbers, and with the
// optimizer's present settings. Its result is the recorded one, whose elements each replay overwrites. The function's own
// host code does not run again. What needs the host in between (item(), a shape that depends on data, tensors of the CPU) is
// an Error. On the CPU every call runs the function. Optimizers and schedulers must outlive the step.
template <class Step> Captured<Step> capture(Step step) { return Captured<Step>(std::move(step)); }

}  // namespace volta
