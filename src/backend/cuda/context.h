// One GPU's state: its stream, memory, staging buffers and what its kernels report.
#pragma once
#include <cuda_runtime_api.h>

#include <atomic>
#include <mutex>
#include <type_traits>

#include "backend/cuda/memory.h"

namespace volta::cuda {

// Turns a failed call into Error::Kind::memory or device, named after `op`.
void check(cudaError_t status, const char* op);

// Makes a device the current one of this thread for as long as it lives.
class OnDevice {
 public:
  explicit OnDevice(int index);
  ~OnDevice();
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

 private:
  int previous_ = -1;
};

// Written by kernels that meet an index out of range, in host memory the device can reach.
struct Fault {
  int raised;
  int64_t index, size;
};

class Context {
 public:
  explicit Context(int device);

  int device;
  cudaStream_t stream = nullptr;
  Memory memory;
  Fault* fault = nullptr;

  void upload(void* to, const void* from, int64_t bytes);
  void download(void* to, const void* from, int64_t bytes);
  void synchronize(const char* op);  // waits, then throws what kernels reported
  MemoryStats stats() const;

 private:
  static constexpr int slot_count = 16;
  static constexpr int64_t slot_bytes = 64 << 10;
  char* slot(int i) const { return staging_ + i * slot_bytes; }
  int next_slot();

  std::mutex staging_mutex_;
  char* staging_ = nullptr;  // pinned: copies from it need not wait
  cudaEvent_t slot_free_[slot_count] = {};
  int slot_ = 0;
  std::atomic<int64_t> transfers_{0};
};

Context& context(int device);  // made on first use; throws when there is no such GPU

// Device memory for the length of a call.
class Scratch {
 public:
  Scratch(Context& context, int64_t bytes, const char* op) : memory_(context.memory), block_(memory_.take(bytes, op)) {}
  ~Scratch() { memory_.give(block_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  void* data() const { return block_->data; }
  template <class T> T* as() const { return reinterpret_cast<T*>(block_->data); }

 private:
  Memory& memory_;
  Block* block_;
};

// Starts a kernel on the device's stream.
template <class... P> void launch(const Context& context, const char* op, void (*kernel)(P...), dim3 grid, dim3 block,
                                  const std::type_identity_t<P>&... arguments) {
  void* pointers[] = {const_cast<void*>(static_cast<const void*>(&arguments))...};
  check(cudaLaunchKernel(reinterpret_cast<const void*>(kernel), grid, block, pointers, 0, context.stream), op);
}

inline unsigned blocks_for(int64_t n, int64_t each) { return unsigned((n + each - 1) / each); }

}  // namespace volta::cuda
