// One GPU as a backend: its stream, its memory, and how kernels are started. Each kind of loop has a file of its own.
#pragma once
#include <cuda_runtime_api.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <tuple>

#include "backend/backend.h"

namespace volta::cuda {

inline constexpr int most_devices = 256;

// Turns a failed call into Error::Kind::memory or device, named after `op`.
void check(cudaError_t status, const char* op);

// Makes a device the current one of this thread for as long as it lives.
struct OnDevice {
  explicit OnDevice(int device) : index(device) {
    check(cudaGetDevice(&previous), "device");
    if (previous != index) check(cudaSetDevice(index), "device");
  }
  ~OnDevice() {
    if (previous != index) cudaSetDevice(previous);
  }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

  int previous = 0, index;
};

// A part of a slab of device memory. Neighbours are linked, so that free ones merge.
struct Block {
  class Memory* owner;
  char* data;
  int64_t bytes;
  bool small, free;
  Block *before, *after;
};

// Gives a block back when it goes. Device memory for the length of a call, or for the life of a tensor.
struct GiveBack {
  void operator()(Block* block) const noexcept;
};
using Room = std::unique_ptr<Block, GiveBack>;

// The caching allocator: slabs from the driver, split on demand and merged again when their parts come back.
// All work of a device runs on one stream, so a block may be handed out again while kernels that use its old content
// are still queued: whatever the new owner launches comes after them. With several streams, `give` would record an
// event on the block and `take` would wait for it when it runs on another stream.
class Memory {
 public:
  explicit Memory(int device);
  Room take(int64_t bytes, const char* op);  // throws Error::Kind::memory when the device has no more
  void give(Block* block) noexcept;
  void release_cached();
  MemoryStats stats(int64_t transfers) const;

 private:
  struct BySize {
    bool operator()(const Block* a, const Block* b) const {
      return std::tie(a->small, a->bytes, a->data) < std::tie(b->small, b->bytes, b->data);
    }
  };
  Block* grow(int64_t bytes, bool small, const char* op);
  void absorb_next(Block* block) noexcept;
  [[noreturn]] void throw_error(int64_t bytes, const char* op) const;

  int device_;
  int64_t total_ = 0;  // bytes the device has
  mutable std::recursive_mutex mutex_;
  std::set<Block*, BySize> free_;
  int64_t in_use_ = 0, peak_ = 0, reserved_ = 0;
};

// Written by kernels that meet an index out of range, in host memory the device can reach.
struct Fault {
  int raised;
  int64_t index, size;
};

class Context final : public Backend {
 public:
  explicit Context(int device);

  const int device;
  cudaStream_t stream = nullptr;
  Memory memory;
  Fault* fault = nullptr;

  IntrusivePtr<Storage> allocate(int64_t bytes, Device device, const char* op) override;
  void copy(const Arg& out, const Arg& in) override;
  void elementwise(const ElementwiseCall& call) override;
  void reduce(const ReduceCall& call) override;
  void softmax(const SoftmaxCall& call) override;
  void softmax_backward(const SoftmaxBackwardCall& call) override;
  void scan(const ScanCall& call) override;
  void gather(const GatherCall& call) override;
  void scatter(const ScatterCall& call) override;
  void sort(const SortCall& call) override;
  void search(const SearchCall& call) override;
  void random(const RandomCall& call) override;
  void iota(const Arg& out, Scalar start, Scalar step) override;
  void matmul(const MatmulCall& call) override;
  using Backend::offers;
  bool repeats_bits() const override { return false; }
  bool offers(const ConvCall& call) const override;
  bool offers(const PoolCall& call) const override;
  bool offers(const NormCall& call) const override;
  bool offers(const AttentionCall& call) const override;
  bool offers(const RecurrentCall& call) const override;
  bool offers(const UpdateCall& call) const override;
  bool offers(const CrossEntropyCall& call) const override;
  void conv(const ConvCall& call) override;
  void pool(const PoolCall& call) override;
  void norm(const NormCall& call) override;
  void norm_backward(const NormBackwardCall& call) override;
  void attention(const AttentionCall& call) override;
  void attention_backward(const AttentionBackwardCall& call) override;
  void recurrent(const RecurrentCall& call) override;
  void recurrent_backward(const RecurrentBackwardCall& call) override;
  void cross_entropy(const CrossEntropyCall& call) override;
  void cross_entropy_backward(const CrossEntropyBackwardCall& call) override;
  void update(const UpdateCall& call) override;
  void upload(void* to, const void* from, int64_t n) override {
    transfer(to, from, n, cudaMemcpyHostToDevice, "upload");
  }
  void download(void* to, const void* from, int64_t n) override {
    transfer(to, from, n, cudaMemcpyDeviceToHost, "download");
  }
  void synchronize(const char* op);  // waits, then throws what kernels reported

  std::atomic<int64_t> transfers{0};

 private:
  static constexpr int slot_count = 16;
  static constexpr int64_t slot_bytes = 64 << 10;
  void transfer(void* to, const void* from, int64_t bytes, cudaMemcpyKind kind, const char* op);

  std::mutex staging_mutex_;
  char* staging_ = nullptr;  // pinned: copies from it need not wait
  cudaEvent_t slot_free_[slot_count] = {};
  int slot_ = 0;
};

bool allows_tf32();

// Pointwise loops are compiled in parts, among which the ops are dealt out in turn.
template <int Part> void map_part(const Context& c, const ElementwiseCall& call);

}  // namespace volta::cuda
