// Devices are looked for, and their state is made, when the first tensor asks for one.
#include "backend/cuda/context.h"

#include <array>
#include <cstring>
#include <string>

#include <volta/device.h>
#include <volta/error.h>

namespace volta::cuda {

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

int Context::next_slot() {
  slot_ = (slot_ + 1) % slot_count;
  check(cudaEventSynchronize(slot_free_[slot_]), "upload");
  return slot_;
}

void Context::upload(void* to, const void* from, int64_t bytes) {
  transfers_.fetch_add(1, std::memory_order_relaxed);
  if (bytes > slot_bytes) {
    check(cudaMemcpyAsync(to, from, size_t(bytes), cudaMemcpyHostToDevice, stream), "upload");
    check(cudaStreamSynchronize(stream), "upload");
    return;
  }
  const std::lock_guard lock(staging_mutex_);
  const int i = next_slot();
  std::memcpy(slot(i), from, size_t(bytes));
  check(cudaMemcpyAsync(to, slot(i), size_t(bytes), cudaMemcpyHostToDevice, stream), "upload");
  check(cudaEventRecord(slot_free_[i], stream), "upload");
}

void Context::download(void* to, const void* from, int64_t bytes) {
  transfers_.fetch_add(1, std::memory_order_relaxed);
  if (bytes > slot_bytes) {
    check(cudaMemcpyAsync(to, from, size_t(bytes), cudaMemcpyDeviceToHost, stream), "download");
    return synchronize("download");
  }
  const std::lock_guard lock(staging_mutex_);
  const int i = next_slot();
  check(cudaMemcpyAsync(slot(i), from, size_t(bytes), cudaMemcpyDeviceToHost, stream), "download");
  synchronize("download");
  std::memcpy(to, slot(i), size_t(bytes));
}

void Context::synchronize(const char* op) {
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

Context& context(int device) {
  static std::array<std::atomic<Context*>, 256> all;
  static std::mutex mutex;
  if (device < 0 || device >= device_count())
    throw Error(
        Error::Kind::device, "device",
        "cuda:" + std::to_string(device) + " is not available: there are " + std::to_string(device_count()) + " GPUs");
  std::atomic<Context*>& place = all[size_t(device)];
  if (Context* made = place.load(std::memory_order_acquire)) return *made;
  const std::lock_guard lock(mutex);
  if (!place.load()) {
    const OnDevice current(device);
    place.store(new Context(device));  // never destroyed: tensors may outlive every static
  }
  return *place.load();
}

bool is_available() { return device_count() > 0; }

int device_count() {
  static const int count = [] {
    int n = 0;
    if (cudaGetDeviceCount(&n) == cudaSuccess) return n < 256 ? n : 256;
    cudaGetLastError();
    return 0;
  }();
  return count;
}

void synchronize(int device) {
  Context& c = context(device);
  const OnDevice current(device);
  c.synchronize("synchronize");
}

MemoryStats memory_stats(int device) { return context(device).stats(); }

void empty_cache(int device) {
  Context& c = context(device);
  const OnDevice current(device);
  c.memory.release_cached();
}

}  // namespace volta::cuda
