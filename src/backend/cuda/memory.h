// The caching allocator of one GPU: slabs from the driver, split on demand and merged again when their parts come back.
#pragma once
#include <cstdint>
#include <mutex>
#include <set>

#include <volta/device.h>

namespace volta::cuda {

// A part of a slab. Neighbours are linked, so that free ones merge.
struct Block {
  char* data;
  int64_t bytes;
  bool small, free;
  Block *before, *after;
};

// All work of a device runs on one stream, so a block may be handed out again while kernels that use its old content
// are still queued: whatever the new owner launches comes after them. With several streams, `give` would record an
// event on the block and `take` would wait for it when it runs on another stream.
class Memory {
 public:
  explicit Memory(int device);

  Block* take(int64_t bytes, const char* op);  // throws Error::Kind::memory when the device has no more
  void give(Block* block) noexcept;
  void release_cached();
  MemoryStats stats() const;

 private:
  struct BySize {
    bool operator()(const Block* a, const Block* b) const {
      return a->bytes != b->bytes ? a->bytes < b->bytes : a->data < b->data;
    }
  };
  using Free = std::set<Block*, BySize>;

  Block* find(int64_t bytes, bool small);
  Block* grow(int64_t bytes, bool small, const char* op);
  void split(Block* block, int64_t bytes);
  void join(Block* left, Block* right) noexcept;
  void release_slabs();
  [[noreturn]] void refuse(int64_t bytes, const char* op) const;
  Free& list(bool small) noexcept { return small ? small_ : large_; }

  int device_;
  int64_t total_ = 0;  // bytes the device has
  mutable std::mutex mutex_;
  Free small_, large_;
  int64_t in_use_ = 0, peak_ = 0, reserved_ = 0;
};

}  // namespace volta::cuda
