// One GPU as a backend: its stream, its memory, and how kernels are started. Each kind of loop has a file of its own.
#pragma once
#include <cuda_runtime_api.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "backend/backend.h"

namespace volta::cuda {

struct MemoryBlock;

inline constexpr int most_devices = 256;

// Turns a failed call into Error::Kind::memory or device, named after `op`.
void check(cudaError_t status, const char* op);

// The host waits, from `since` on no longer than cuda::set_timeout allows: then Error::Kind::device, named after `op`.
using Clock = std::chrono::steady_clock;
void wait_for(cudaStream_t stream, const char* op, Clock::time_point since = Clock::now());
void wait_for(cudaEvent_t event, const char* op, Clock::time_point since = Clock::now());
bool has_timeout();
extern std::atomic<bool> debug_mode;

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

// The caching allocator of a stream: slabs from the driver, split on demand and merged again when their parts come back.
// A block may be handed out again while kernels that use its old content are still queued: whatever the new owner launches
// on the stream comes after them. Where there are other streams, a block that comes back waits for what they have queued.
class Memory {
 public:
  // Which work uses the blocks. any: the stream's, and that of other streams where there are any. one_step: a recorded
  // step's alone. others: uploads fill them on a stream of their own, and work of other streams reads them.
  enum class Users { any, one_step, others };
  Memory(class Context& context, Users users);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  Room take(int64_t bytes, const char* op);  // throws Error::Kind::memory when the device has no more
  void give(Block* block) noexcept;
  void release_cached();
  // Nothing is taken any more: it goes when the last block has come back.
  static void retire(Memory* memory);
  void add_to(MemoryStats& stats) const;
  void add_to(std::vector<MemoryBlock>& blocks) const;

 private:
  struct BySize {
    bool operator()(const Block* a, const Block* b) const {
      return std::tie(a->small, a->bytes, a->data) < std::tie(b->small, b->bytes, b->data);
    }
  };
  struct Waiting {
    Block* block;
    std::vector<cudaEvent_t> events;
  };
  Room try_take(int64_t bytes);  // null: the device has no more
  Block* grow(int64_t bytes, bool small);
  void merge(Block* block) noexcept;
  void absorb_next(Block* block) noexcept;
  void collect(bool wait) noexcept;  // blocks whose events have passed
  [[noreturn]] void throw_error(int64_t bytes, const char* op) const;

  Context& context_;
  Users users_;
  bool retired_ = false;
  mutable std::recursive_mutex mutex_;
  std::set<Block*, BySize> free_;
  std::set<Block*> slabs_;  // the first block of each, which stays while the slab does
  std::vector<Waiting> waiting_;
  int64_t in_use_ = 0, peak_ = 0, reserved_ = 0;
};

// A stream, and the memory that is handed out in the order of its work.
struct Lane {
  int device;
  cudaStream_t stream;
  Memory* memory;
};
// Where this thread's work goes; null: to the device's own lane, which threads share.
inline thread_local constinit const Lane* current_lane = nullptr;

// This thread's work on the lane's device goes there while it lives.
struct OnLane {
  explicit OnLane(const Lane& lane) : outer(std::exchange(current_lane, &lane)) {}
  ~OnLane() { current_lane = outer; }
  OnLane(const OnLane&) = delete;
  OnLane& operator=(const OnLane&) = delete;
  const Lane* outer;
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
  Fault* fault = nullptr;

  const Lane& lane() const { return current_lane && current_lane->device == device ? *current_lane : own_; }
  cudaStream_t stream() const { return lane().stream; }
  Memory& memory() const { return *lane().memory; }
  // Streams are used again and never destroyed: tensors may outlive whoever made them.
  const Lane* take_lane();
  void give_lane(const Lane* lane) noexcept;
  // Events behind all that is queued on lanes other than that of `memory`.
  std::vector<cudaEvent_t> marks_beside(const Memory& memory) noexcept;
  bool has_streams() const { return has_streams_.load(std::memory_order_relaxed); }
  MemoryStats stats() const;
  std::vector<MemoryBlock> snapshot() const;
  void release_cached();
  void set_memory_limit(int64_t bytes);
  void on_low_memory(double share, std::function<void(const MemoryStats&)> call);

  IntrusivePtr<Storage> allocate(int64_t bytes, Device device, const char* op) override;
  IntrusivePtr<Storage> host_memory(int64_t bytes, const char* op) override;
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
  bool takes_channels_last() const override { return true; }
  bool offers(const ConvCall& call) const override;
  bool offers(const PoolCall& call) const override;
  bool offers(const NormCall& call) const override;
  bool offers(const AttentionCall& call) const override;
  bool offers(const RecurrentCall& call) const override;
  bool offers(const UpdateCall& call) const override;
  bool offers(const CrossEntropyCall& call) const override;
  bool offers(const DropoutCall& call) const override;
  void conv(const ConvCall& call) override;
  void pool(const PoolCall& call) override;
  void pool_backward(const PoolBackwardCall& call) override;
  template <class Call> void run_pool(const Call& call);
  template <class Call> void resample(const Call& call);  // a pool of weighted sums
  void norm(const NormCall& call) override;
  void norm_backward(const NormBackwardCall& call) override;
  void attention(const AttentionCall& call) override;
  void attention_backward(const AttentionBackwardCall& call) override;
  void recurrent(const RecurrentCall& call) override;
  void recurrent_backward(const RecurrentBackwardCall& call) override;
  void cross_entropy(const CrossEntropyCall& call) override;
  void cross_entropy_backward(const CrossEntropyBackwardCall& call) override;
  void dropout(const DropoutCall& call) override;
  void update(const UpdateCall& call) override;
  void upload(void* to, const void* from, int64_t n) override {
    ++transfers;
    transfer(to, from, n, cudaMemcpyHostToDevice, "upload");
  }
  void download(void* to, const void* from, int64_t n) override {
    ++transfers;
    transfer(to, from, n, cudaMemcpyDeviceToHost, "download");
  }
  void read(void* to, const void* from, int64_t n) override {
    ++reads;
    transfer(to, from, n, cudaMemcpyDeviceToHost, "item");
  }
  void aside(const std::function<void()>& f) override;
  bool records() const override { return true; }
  std::unique_ptr<Recorded> record(Recording& recording, const std::function<void()>& step) override;
  void synchronize(const char* op) const;  // waits for the lane, then throws what kernels reported
  void synchronize_all() const;            // the same for all lanes
  void finish_launch(const char* op) const;

  std::atomic<int64_t> transfers{0}, reads{0};

 private:
  static constexpr int slot_count = 16;
  static constexpr int64_t slot_bytes = 64 << 10;
  void transfer(void* to, const void* from, int64_t bytes, cudaMemcpyKind kind, const char* op);
  void report_fault(const char* op) const;
  bool reserve(int64_t bytes) noexcept;  // of what may be held; false: there is no more
  // After memory was taken, when what was set may be called, or given back. No lock is held.
  void watch_memory(bool may_call) {
    if (low_memory_.watched.load(std::memory_order_relaxed)) [[unlikely]]
      compare_memory(may_call);
  }
  void compare_memory(bool may_call);

  friend class Memory;
  Lane new_lane(Memory::Users users);
  // Locked before the mutex of a memory.
  mutable std::mutex lanes_mutex_;
  std::set<Memory*> memories_;
  Lane own_;
  std::vector<std::unique_ptr<Lane>> lanes_;  // of streams, also of those that are idle
  std::vector<const Lane*> idle_lanes_;
  std::vector<std::unique_ptr<Lane>> upload_lanes_;  // those that are idle
  std::atomic<bool> has_streams_{false};

  int64_t total_ = 0;                           // bytes the device has
  std::atomic<int64_t> held_{0}, may_hold_{0};  // of them, by all memories
  struct LowMemory {
    std::atomic<bool> watched{false};
    std::mutex mutex;
    double share = 1;
    bool armed = true;
    std::function<void(const MemoryStats&)> call;
  } low_memory_;

  std::mutex staging_mutex_;
  char* staging_ = nullptr;  // pinned: copies from it need not wait
  cudaEvent_t slot_free_[slot_count] = {};
  int slot_ = 0;
};

Context& context(int device);  // throws where there is no such device

// Behind whatever was launched: debug mode waits for it, and its errors are those of `op`.
inline void after_launch(const Context& c, const char* op) {
  if (debug_mode.load(std::memory_order_relaxed)) [[unlikely]]
    c.finish_launch(op);
}

bool allows_tf32();

void release_pinned() noexcept;  // page-locked memory of the host that nobody uses

// Pointwise loops are compiled in parts, among which the ops are dealt out in turn.
template <int Part> void map_part(const Context& c, const ElementwiseCall& call);

}  // namespace volta::cuda
