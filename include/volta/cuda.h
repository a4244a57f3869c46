// Streams and events of a GPU, and settings that few programs need; what most need is in device.h. In builds without CUDA,
// making a stream or an event throws Error::Kind::device.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <volta/device.h>
#include <volta/tensor.h>

namespace volta::cuda {

// Memory that a convolution may use beside its operands, 256 MiB unless set: set_conv_workspace(int64_t(1) << 30). The way
// in which a convolution is computed is chosen among those that do with it.
void set_conv_workspace(int64_t bytes);

// How long the host may wait for a device: set_timeout(30). A wait that takes longer throws Error::Kind::device, which
// names the op and the seconds; the device goes on, and results can be had later. 0, as at the start, or infinity: any
// time. It holds for synchronize(), item(), copies, events and streams. These are waited for without it: a copy of more
// than 64 KiB once what was queued before is done (after an error no copy touches the host's memory), memory that goes
// back to the driver (empty_cache(), running out), and a captured step that is destroyed.
void set_timeout(double seconds);

// Debug mode: set_debug(true), or VOLTA_CUDA_DEBUG=1 in the environment. The host waits behind each launch, and errors
// of a kernel, an index out of range among them, are thrown by the op that launched it; those of a captured step by its
// replay.
void set_debug(bool on);

// Memory of a device that the allocator may hold, in use or cached: set_memory_limit(int64_t(8) << 30). At it the
// caches are emptied and tried again, then Error::Kind::memory, which names it. Tensors that are beyond it already
// stay; a limit beyond the device's memory is none. What the driver and the libraries take for themselves does not
// count.
void set_memory_limit(int64_t bytes, int device = 0);

// Called once when the memory in use passes a share of what may be held (the limit, or all that the device has), and
// once more whenever it was below in between:
//   cuda::on_low_memory(0.9, [](const cuda::MemoryStats& now) { std::cerr << now.in_use << " bytes in use"; });
// It is the thread that asks for a tensor which calls, before it gets it; not while it records a step. The function may
// free tensors, empty the cache and compute; what it throws comes out of the op. There is one for a device; an empty
// one is none.
void on_low_memory(double share, std::function<void(const MemoryStats&)> call, int device = 0);

// A part of the memory that the allocator holds.
struct MemoryBlock {
  uint64_t address = 0;
  int64_t bytes = 0;
  bool in_use = false;
  uint64_t slab = 0;  // where the memory begins that was asked of the driver at once
};
// All of them, by address. Those in use add up to memory_stats().in_use, the others to cached:
//   for (const cuda::MemoryBlock& block : cuda::memory_snapshot()) std::cout << block.address << '\n';
std::vector<MemoryBlock> memory_snapshot(int device = 0);

// A contiguous copy of a tensor of the CPU, outside any graph, in memory that GPUs copy from without the host's help, up
// to several times as fast; x itself if it is there: x = cuda::pin_memory(x). It is kept for use again until empty_cache().
// A DataLoader with `.device` collates into such memory by itself.
[[nodiscard]] Tensor pin_memory(const Tensor& x);
[[nodiscard]] bool is_pinned(const Tensor& x);
// x.to(device) of a pinned, contiguous tensor without waiting: y = cuda::copy_async(x, "cuda"). What the thread's stream
// does next finds the copy done. Until it is, x must not be changed; it may go.
[[nodiscard]] Tensor copy_async(const Tensor& x, Device device = "cuda");

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
