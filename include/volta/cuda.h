// Streams and events of a GPU, and settings that few programs need; what most need is in device.h. In builds without CUDA,
// making a stream or an event throws Error::Kind::device.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace volta::cuda {

// Memory that a convolution may use beside its operands, 256 MiB unless set: set_conv_workspace(int64_t(1) << 30). The way
// in which a convolution is computed is chosen among those that do with it.
void set_conv_workspace(int64_t bytes);

// What computing on a GPU rests on: the driver, the GPUs, cuBLASLt and cuDNN, in this order. Asking loads the libraries,
// which other programs do when they first need one. Builds without CUDA have none of them.
struct Component {
  std::string name;
  std::string found;    // names and versions; empty: nothing
  std::string missing;  // why
};
std::vector<Component> components();

// A point in the work of a stream:
//   cuda::Event begin, end;
//   begin.record();
//   Tensor y = x.matmul(x);
//   end.record();
//   end.synchronize();
//   double milliseconds = begin.elapsed_time(end);
class Event {
 public:
  explicit Event(int device = 0);
  ~Event();
  Event(Event&&) noexcept;
  Event& operator=(Event&&) noexcept;
  void record();                                // behind what this thread's stream has to do so far
  void wait() const;                            // what this thread's stream does from now on comes after it
  bool query() const;                           // whether it has been passed
  void synchronize() const;                     // the host waits until it has
  double elapsed_time(const Event& end) const;  // milliseconds; both must have been passed

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Work that the GPU may do beside that of other streams. What one stream makes and another uses needs an event in between:
//   cuda::Stream side;
//   cuda::Event made;
//   { cuda::OnStream on(side); y = x.matmul(x); made.record(); }
//   made.wait();  // then use y
class Stream {
 public:
  explicit Stream(int device = 0);
  ~Stream();
  Stream(Stream&&) noexcept;
  Stream& operator=(Stream&&) noexcept;
  bool query() const;        // whether its work is done
  void synchronize() const;  // the host waits until it is

 private:
  friend class OnStream;
  struct State;
  std::unique_ptr<State> state_;
};

// This thread's work on the stream's device goes to the stream while the guard lives. Threads without a guard share the
// stream of the device.
class [[nodiscard]] OnStream {
 public:
  explicit OnStream(const Stream& stream);
  ~OnStream();
  OnStream(const OnStream&) = delete;
  OnStream& operator=(const OnStream&) = delete;

 private:
  const void* outer_;
};

}  // namespace volta::cuda
