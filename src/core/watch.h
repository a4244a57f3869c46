// MemoryWatch: who is told which memory a thread makes and reads, as a checkpoint is while its function runs.
#pragma once

namespace volta {

class Tensor;
struct Storage;

class MemoryWatch {
 public:
  virtual void made(const Storage& memory) = 0;
  virtual void read(const Tensor& x) = 0;
  virtual void shown(const Tensor& x) { read(x); }  // its elements, to the host, which may also write them
  virtual void viewed(const Tensor&) {}             // a view of it was made, which may be read

 protected:
  ~MemoryWatch() = default;
};
extern thread_local constinit MemoryWatch* memory_watch;

inline void reads(const Tensor& x) {
  if (memory_watch) [[unlikely]]
    memory_watch->read(x);
}
inline void shows(const Tensor& x) {
  if (memory_watch) [[unlikely]]
    memory_watch->shown(x);
}

inline void gives_view(const Tensor& x) {
  if (memory_watch) [[unlikely]]
    memory_watch->viewed(x);
}

}  // namespace volta
