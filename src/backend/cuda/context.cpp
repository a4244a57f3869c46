// Devices are looked for, and their state is made, when the first tensor asks for one. Of their memory, small blocks
// come from slabs of 2 MiB, middling ones from 32 MiB, and large ones have a slab of their own.
#include "backend/cuda/context.h"

#include <array>
#include <cstring>
#include <string>

#include "backend/cuda/cuda.h"
#include "core/storage.h"

namespace volta::cuda {
namespace {

constexpr int64_t unit = 512, mib = int64_t(1) << 20, small_limit = mib, middle_limit = 10 * mib;

int64_t rounded(int64_t bytes, int64_t to) { return (bytes + to - 1) / to * to; }

int64_t slab_bytes(int64_t bytes, bool small) {
  if (small) return 2 * mib;
  return bytes <= middle_limit ? 32 * mib : rounded(bytes, 2 * mib);
}

// An exhausted device is no lasting error.
char* allocate_slab(int64_t bytes) {
  void* data = nullptr;
  if (cudaMalloc(&data, size_t(bytes)) == cudaSuccess) return static_cast<char*>(data);
  cudaGetLastError();
  return nullptr;
}

struct DeviceStorage : Storage, Pooled {
  Block* block = nullptr;
};

Context& context(int device) {
  static std::array<std::atomic<Context*>, 256> all;
  static std::mutex mutex;
  const int count = device_count();
  if (device < 0 || device >= count)
    throw Error(Error::Kind::device, "device",
                "cuda:" + std::to_string(device) + " is not available: there are " + std::to_string(count) + " GPUs");
  std::atomic<Context*>& place = all[size_t(device)];
  if (Context* made = place.load(std::memory_order_acquire)) return *made;
  const std::lock_guard lock(mutex);
  const OnDevice current(device);
  if (!place.load()) place.store(new Context(device));  // never destroyed: tensors may outlive every static
  return *place.load();
}

}  // namespace

void check(cudaError_t status, const char* op) {
  if (status == cudaSuccess) return;
  cudaGetLastError();
  const auto kind = status == cudaErrorMemoryAllocation ? Error::Kind::memory : Error::Kind::device;
  throw Error(kind, op, std::string("CUDA reports: ") + cudaGetErrorString(status));
}

OnDevice::OnDevice(int index) {
  int current = index;
  check(cudaGetDevice(&current), "device");
  if (current == index) return;
  check(cudaSetDevice(index), "device");
  previous_ = current;
}

OnDevice::~OnDevice() {
  if (previous_ >= 0) cudaSetDevice(previous_);
}

Memory::Memory(int device) : device_(device) {
  size_t available = 0, total = 0;
  check(cudaMemGetInfo(&available, &total), "device");
  total_ = int64_t(total);
}

// The best fit among the free blocks, or a part of a new slab.
Block* Memory::take(int64_t bytes, const char* op) {
  const std::lock_guard lock(mutex_);
  if (bytes > total_) refuse(bytes, op);
  const int64_t wanted = rounded(std::max<int64_t>(bytes, 1), unit);
  Block key{this, nullptr, wanted, wanted <= small_limit, true, nullptr, nullptr};
  Free& free = list(&key);
  const auto found = free.lower_bound(&key);
  Block* block = found == free.end() ? grow(wanted, key.small, op) : *found;
  if (found != free.end()) free.erase(found);
  split(block, wanted);
  block->free = false;
  in_use_ += block->bytes;
  peak_ = std::max(peak_, in_use_);
  return block;
}

Block* Memory::grow(int64_t bytes, bool small, const char* op) {
  const int64_t size = slab_bytes(bytes, small);
  char* data = allocate_slab(size);
  if (!data) {
    release_slabs();
    data = allocate_slab(size);
  }
  if (!data) refuse(bytes, op);
  reserved_ += size;
  return new Block{this, data, size, small, true, nullptr, nullptr};
}

void Memory::split(Block* block, int64_t bytes) {
  const int64_t rest = block->bytes - bytes;
  if (rest < (block->small ? unit : small_limit)) return;
  auto* other = new Block{this, block->data + bytes, rest, block->small, true, block, block->after};
  if (other->after) other->after->before = other;
  block->after = other;
  block->bytes = bytes;
  list(block).insert(other);
}

void Memory::give(Block* block) noexcept {
  const std::lock_guard lock(mutex_);
  in_use_ -= block->bytes;
  block->free = true;
  if (Block* next = block->after; next && next->free) {
    list(next).erase(next);
    join(block, next);
  }
  if (Block* previous = block->before; previous && previous->free) {
    list(previous).erase(previous);
    block = join(previous, block);
  }
  list(block).insert(block);
}

Block* Memory::join(Block* left, Block* right) noexcept {
  left->bytes += right->bytes;
  left->after = right->after;
  if (left->after) left->after->before = left;
  delete right;
  return left;
}

// Slabs no part of which is in use go back to the driver. cudaFree waits for kernels that still read them.
void Memory::release_slabs() {
  for (Free& free : free_)
    std::erase_if(free, [&](Block* block) {
      if (block->before || block->after) return false;
      cudaFree(block->data);
      reserved_ -= block->bytes;
      delete block;
      return true;
    });
}

void Memory::release_cached() {
  const std::lock_guard lock(mutex_);
  release_slabs();
}

void Memory::refuse(int64_t bytes, const char* op) const {
  throw Error(Error::Kind::memory, op,
              "cannot allocate " + std::to_string(bytes) + " bytes on cuda:" + std::to_string(device_) + ": " +
                  std::to_string(in_use_) + " in use, " + std::to_string(reserved_ - in_use_) + " cached, of " +
                  std::to_string(total_));
}

MemoryStats Memory::stats() const {
  const std::lock_guard lock(mutex_);
  return {in_use_, peak_, reserved_ - in_use_, 0};
}

Context::Context(int index) : device(index), memory(index) {
  const char* op = "device";
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), op);
  void* host = nullptr;
  check(cudaHostAlloc(&host, sizeof(Fault), cudaHostAllocMapped), op);
  fault = static_cast<Fault*>(std::memset(host, 0, sizeof(Fault)));
  check(cudaHostAlloc(&host, slot_count * slot_bytes, cudaHostAllocDefault), op);
  staging_ = static_cast<char*>(host);
  for (cudaEvent_t& event : slot_free_) check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), op);
}

Ptr<Storage> Context::allocate(int64_t bytes, int, const char* op) {
  const OnDevice current(device);
  auto* storage = new DeviceStorage;
  auto owner = Ptr<Storage>::adopt(storage);
  storage->destroy = [](Storage* s) noexcept {
    auto* dead = static_cast<DeviceStorage*>(s);
    if (dead->block) dead->block->owner->give(dead->block);
    delete dead;
  };
  Block* block = memory.take(bytes, op);
  storage->block = block;
  storage->device = Device(DeviceType::cuda, device);
  storage->data = block->data;
  storage->bytes = bytes;
  return owner;
}

// Small amounts go through pinned slots, so that uploads need not wait; whatever comes down is waited for.
void Context::transfer(void* to, const void* from, int64_t bytes, cudaMemcpyKind kind, const char* op) {
  const OnDevice current(device);
  const auto size = size_t(bytes);
  const bool up = kind == cudaMemcpyHostToDevice;
  transfers_.fetch_add(1, std::memory_order_relaxed);
  if (bytes > slot_bytes) {
    check(cudaMemcpyAsync(to, from, size, kind, stream), op);
    return up ? check(cudaStreamSynchronize(stream), op) : synchronize(op);
  }
  const std::lock_guard lock(staging_mutex_);
  slot_ = (slot_ + 1) % slot_count;
  check(cudaEventSynchronize(slot_free_[slot_]), op);
  char* slot = staging_ + slot_ * slot_bytes;
  if (up) std::memcpy(slot, from, size);
  check(cudaMemcpyAsync(up ? to : slot, up ? slot : from, size, kind, stream), op);
  if (up) return check(cudaEventRecord(slot_free_[slot_], stream), op);
  synchronize(op);
  std::memcpy(to, slot, size);
}

void Context::upload(void* to, const void* from, int64_t bytes) {
  transfer(to, from, bytes, cudaMemcpyHostToDevice, "upload");
}
void Context::download(void* to, const void* from, int64_t bytes) {
  transfer(to, from, bytes, cudaMemcpyDeviceToHost, "download");
}

void Context::synchronize(const char* op) {
  const OnDevice current(device);
  check(cudaStreamSynchronize(stream), op);
  if (std::atomic_ref(fault->raised).exchange(0) == 0) return;
  throw Error(Error::Kind::index, op,
              "an earlier gather or scatter met index " + std::to_string(fault->index) + ", out of range for size " +
                  std::to_string(fault->size));
}

MemoryStats Context::stats() const {
  MemoryStats stats = memory.stats();
  stats.transfers = transfers_.load(std::memory_order_relaxed);
  return stats;
}

bool is_available() { return device_count() > 0; }

int device_count() {
  static const int count = [] {
    int n = 0;
    if (cudaGetDeviceCount(&n) == cudaSuccess) return std::min(n, 256);
    cudaGetLastError();
    return 0;
  }();
  return count;
}

void synchronize(int device) { context(device).synchronize("synchronize"); }

MemoryStats memory_stats(int device) { return context(device).stats(); }

void empty_cache(int device) {
  Memory& memory = context(device).memory;
  const OnDevice current(device);
  memory.release_cached();
}

}  // namespace volta::cuda

volta::Backend& volta::cuda_backend(int index) { return cuda::context(index); }
