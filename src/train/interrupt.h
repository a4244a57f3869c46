// Interrupt: Ctrl-C as something to ask for, while it lives.
#pragma once
#include <cstdint>

namespace volta {

// Handles SIGINT from the first of them to the last; then the handler from before is back. A second Ctrl-C does what it
// did before.
class Interrupt {
 public:
  explicit Interrupt(bool on);
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;
  bool asked() const;

 private:
  bool on_;
  int64_t before_ = 0;
};

}  // namespace volta
