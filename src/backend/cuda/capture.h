// Capture: a step as a CUDA graph, recorded from a stream, with arguments of kernels that change from replay to replay.
#pragma once
#include <functional>
#include <vector>

#include "backend/cuda/context.h"
#include "core/recording.h"

namespace volta::cuda {

class Capture final : public Recorded {
 public:
  Capture(Context& context, Recording& recording, const std::function<void()>& step);
  ~Capture() override;
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  static Capture* current() noexcept { return current_; }  // of this thread, while it records
  const Recording& recording() const { return recording_; }
  // Makes argument `which` of `count` of the kernel launched last, in every replay, what `value` points to then.
  void vary(int count, int which, std::function<const void*()> value);
  void replay() override;

 private:
  struct Varied {
    cudaGraphNode_t node;
    int count, which;
    std::function<const void*()> value;
  };
  void record(const std::function<void()>& step);
  void release() noexcept;

  Context& context_;
  Recording& recording_;
  Lane lane_{};
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t ready_ = nullptr;
  std::vector<Varied> varied_;
  bool fresh_ = true;  // its arguments are those of the recording
  cudaStream_t last_stream_ = nullptr;
  static inline thread_local constinit Capture* current_ = nullptr;
};

// Has replays of the kernel launched last draw random numbers of their own, unless the step's were drawn before it. Its
// argument `which` of `count` is `args`, and `place(args)` holds their seed and offset.
template <class Args, class Place> void vary_draw(int count, int which, const Args& args, Place place) {
  Capture* const capture = Capture::current();
  if (!capture) return;
  const Recording& recording = capture->recording();
  const Generator::State drawn{place(args).seed, place(args).offset};
  const auto number = recording.find_draw(drawn);
  if (!number) return;
  capture->vary(count, which, [&recording, number = *number, held = Args(args), place]() mutable {
    const Generator::State& now = recording.draws[number].now;
    place(held).seed = now.seed, place(held).offset = now.offset;
    return static_cast<const void*>(&held);
  });
}

}  // namespace volta::cuda
