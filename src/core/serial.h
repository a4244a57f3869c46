// SerialThread: a thread whose parallel loops run in place, so that threads of a data loader never multiply the pool's.
#pragma once

namespace volta {

// While it lives, parallel(…) of this thread runs its parts one after the other.
class SerialThread {
 public:
  SerialThread();
  ~SerialThread();
  SerialThread(const SerialThread&) = delete;
  SerialThread& operator=(const SerialThread&) = delete;

 private:
  bool before_;
};

}  // namespace volta
