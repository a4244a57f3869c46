// Small blocks come from slabs of 2 MiB, middling ones from 32 MiB, large ones have a slab of their own.
#include "backend/cuda/memory.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <string>

#include <volta/error.h>

#include "backend/cuda/context.h"

namespace volta::cuda {
namespace {

constexpr int64_t unit = 512, mib = int64_t(1) << 20;
constexpr int64_t small_limit = mib, small_slab = 2 * mib;
constexpr int64_t middle_limit = 10 * mib, middle_slab = 32 * mib;

int64_t rounded(int64_t bytes, int64_t to) { return (bytes + to - 1) / to * to; }

int64_t slab_bytes(int64_t bytes, bool small) {
  if (small) return small_slab;
  return bytes <= middle_limit ? middle_slab : rounded(bytes, 2 * mib);
}

}  // namespace

Memory::Memory(int device) : device_(device) {
  size_t available = 0, total = 0;
  check(cudaMemGetInfo(&available, &total), "device");
  total_ = int64_t(total);
}

Block* Memory::take(int64_t bytes, const char* op) {
  const std::lock_guard lock(mutex_);
  if (bytes > total_) refuse(bytes, op);
  const int64_t wanted = rounded(std::max<int64_t>(bytes, 1), unit);
  const bool small = wanted <= small_limit;
  Block* block = find(wanted, small);
  if (!block) block = grow(wanted, small, op);
  split(block, wanted);
  block->free = false;
  in_use_ += block->bytes;
  peak_ = std::max(peak_, in_use_);
  return block;
}

// The best fit.
Block* Memory::find(int64_t bytes, bool small) {
  Free& free = list(small);
  Block key{nullptr, bytes, small, true, nullptr, nullptr};
  const auto found = free.lower_bound(&key);
  if (found == free.end()) return nullptr;
  Block* block = *found;
  free.erase(found);
  return block;
}

Block* Memory::grow(int64_t bytes, bool small, const char* op) {
  const int64_t size = slab_bytes(bytes, small);
  void* data = nullptr;
  if (cudaMalloc(&data, size_t(size)) != cudaSuccess) {
    cudaGetLastError();  // an exhausted device is no lasting error
    release_slabs();
    if (cudaMalloc(&data, size_t(size)) != cudaSuccess) {
      cudaGetLastError();
      refuse(bytes, op);
    }
  }
  reserved_ += size;
  return new Block{static_cast<char*>(data), size, small, true, nullptr, nullptr};
}

void Memory::split(Block* block, int64_t bytes) {
  const int64_t rest = block->bytes - bytes;
  if (rest < (block->small ? unit : small_limit)) return;
  auto* other = new Block{block->data + bytes, rest, block->small, true, block, block->after};
  if (other->after) other->after->before = other;
  block->after = other;
  block->bytes = bytes;
  list(block->small).insert(other);
}

void Memory::give(Block* block) noexcept {
  const std::lock_guard lock(mutex_);
  in_use_ -= block->bytes;
  block->free = true;
  if (Block* next = block->after; next && next->free) {
    list(block->small).erase(next);
    join(block, next);
  }
  if (Block* previous = block->before; previous && previous->free) {
    list(block->small).erase(previous);
    join(previous, block);
    block = previous;
  }
  list(block->small).insert(block);
}

void Memory::join(Block* left, Block* right) noexcept {
  left->bytes += right->bytes;
  left->after = right->after;
  if (left->after) left->after->before = left;
  delete right;
}

// Slabs no part of which is in use go back to the driver. cudaFree waits for kernels that still read them.
void Memory::release_slabs() {
  for (Free* free : {&small_, &large_})
    for (auto i = free->begin(); i != free->end();) {
      Block* block = *i;
      if (block->before || block->after) {
        ++i;
        continue;
      }
      cudaFree(block->data);
      reserved_ -= block->bytes;
      i = free->erase(i);
      delete block;
    }
}

void Memory::release_cached() {
  const std::lock_guard lock(mutex_);
  release_slabs();
}

MemoryStats Memory::stats() const {
  const std::lock_guard lock(mutex_);
  return {in_use_, peak_, reserved_ - in_use_, 0};
}

void Memory::refuse(int64_t bytes, const char* op) const {
  throw Error(Error::Kind::memory, op,
              "cannot allocate " + std::to_string(bytes) + " bytes on cuda:" + std::to_string(device_) + ": " +
                  std::to_string(in_use_) + " in use, " + std::to_string(reserved_ - in_use_) + " cached, of " +
                  std::to_string(total_));
}

}  // namespace volta::cuda
