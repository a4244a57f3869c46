// A log of the random streams that one thread drew from, so that a computation can be repeated with the same numbers
// whatever other threads draw in between.
#pragma once
#include <vector>

#include <volta/random.h>

#include "core/check.h"

namespace volta {

using Draws = std::vector<Generator::State>;

// While it lives, this thread's draws are appended to `draws`, or taken from there in the same order. Scopes nest.
class DrawScope {
 public:
  enum class Use { log, repeat };
  DrawScope(Draws& draws, Use use) : draws_(draws), use_(use), outer_(std::exchange(current, this)) {}
  ~DrawScope() { current = outer_; }
  DrawScope(const DrawScope&) = delete;
  DrawScope& operator=(const DrawScope&) = delete;

  static DrawScope* innermost() noexcept { return current; }

  // `fresh` draws from the generator itself.
  template <class Fresh> Generator::State draw(Fresh fresh) {
    if (use_ == Use::repeat) {
      require(next_ < draws_.size(), ErrorKind::autograd, "checkpoint",
              "the function drew more random numbers when it ran again than the first time");
      return draws_[next_++];
    }
    const Generator::State state = outer_ ? outer_->draw(fresh) : fresh();
    draws_.push_back(state);
    return state;
  }

 private:
  Draws& draws_;
  Use use_;
  size_t next_ = 0;
  DrawScope* outer_;
  static inline thread_local constinit DrawScope* current = nullptr;
};

}  // namespace volta
