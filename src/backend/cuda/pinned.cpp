// Page-locked memory of the host, which devices copy from without the host's help. Asking the system for it takes
// milliseconds: blocks are kept, and used again once no copy reads them any more.
#include <volta/cuda.h>

#include <algorithm>
#include <bit>
#include <map>

#include "backend/allocate.h"
#include "backend/cuda/context.h"
#include "core/check.h"
#include "core/recording.h"

namespace volta::cuda {
namespace {

struct Pinned : Storage, Pooled {
  size_t room = 0;                        // bytes that the block has
  std::vector<cudaEvent_t> readers = {};  // behind the copies from it that were not waited for
};

// Four sizes per doubling, from a page on.
size_t rounded(int64_t bytes) {
  const size_t n = std::max<size_t>(size_t(bytes), 4096), step = std::bit_floor(n) / 4;
  return (n + step - 1) / step * step;
}

class PinnedMemory {
 public:
  void* take(size_t room, const char* op) {
    if (void* kept = take_kept(room)) return kept;
    void* data = nullptr;
    cudaError_t status = cudaHostAlloc(&data, room, cudaHostAllocPortable);
    if (status == cudaErrorMemoryAllocation) {
      cudaGetLastError();
      release_cached();
      status = cudaHostAlloc(&data, room, cudaHostAllocPortable);
    }
    check(status, op);
    return data;
  }
  void give(Pinned* dead) noexcept {
    const std::lock_guard lock(mutex_);
    if (dead->readers.empty()) free_.emplace(dead->room, dead->data);
    else waiting_.push_back({dead->data, dead->room, std::move(dead->readers)});
  }
  // An event to be recorded behind a copy from the storage.
  cudaEvent_t add_reader(Pinned& storage, const char* op) {
    cudaEvent_t event = nullptr;
    check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), op);
    const std::lock_guard lock(mutex_);
    storage.readers.push_back(event);
    return event;
  }
  void release_cached() noexcept {
    std::multimap<size_t, void*> blocks;
    {
      const std::lock_guard lock(mutex_);
      collect();
      blocks.swap(free_);
    }
    for (const auto& [room, data] : blocks) cudaFreeHost(data);
  }

 private:
  struct Waiting {
    void* data;
    size_t room;
    std::vector<cudaEvent_t> readers;
  };
  static bool passed(cudaEvent_t event) {
    if (cudaEventQuery(event) == cudaErrorNotReady) return false;
    cudaEventDestroy(event);
    return true;
  }
  void* take_kept(size_t room) {
    const std::lock_guard lock(mutex_);
    if (!waiting_.empty()) collect();
    const auto found = free_.find(room);
    return found == free_.end() ? nullptr : free_.extract(found).mapped();
  }
  void collect() noexcept {
    std::erase_if(waiting_, [&](Waiting& w) {
      std::erase_if(w.readers, passed);
      if (w.readers.empty()) free_.emplace(w.room, w.data);
      return w.readers.empty();
    });
  }

  std::mutex mutex_;
  std::multimap<size_t, void*> free_;
  std::vector<Waiting> waiting_;
};

PinnedMemory& pinned_memory() {
  static auto* const memory = new PinnedMemory;  // never destroyed: tensors may outlive every static
  return *memory;
}

void destroy(Storage* dead) noexcept {
  auto* pinned = static_cast<Pinned*>(dead);
  pinned_memory().give(pinned);
  delete pinned;
}

Pinned* pinned_of(const Tensor& x) {
  Storage* storage = x.impl().storage.get();
  return storage->destroy == destroy ? static_cast<Pinned*>(storage) : nullptr;
}

}  // namespace

IntrusivePtr<Storage> Context::host_memory(int64_t bytes, const char* op) {
  const OnDevice current(device);
  auto storage = std::make_unique<Pinned>();
  storage->room = rounded(bytes);
  storage->data = pinned_memory().take(storage->room, op);
  storage->bytes = bytes;
  storage->destroy = destroy;
  return IntrusivePtr<Storage>::adopt(storage.release());
}

void release_pinned() noexcept { pinned_memory().release_cached(); }

Tensor pin_memory(const Tensor& x) {
  constexpr const char* op = "cuda::pin_memory";
  require(x.checked(op).device().is_cpu(), ErrorKind::device, op, "is for tensors of the host's memory, got one on ",
          x.device());
  if (pinned_of(x)) return x;
  const HostMemoryFor device("cuda");
  const Tensor y = allocate_host(x.shape(), x.dtype(), op);
  const auto arg = [](const Tensor& t) { return Arg{address(t), &layout(t), t.dtype(), {}}; };
  cpu_backend().copy(arg(y), arg(x));
  return y;
}

bool is_pinned(const Tensor& x) { return pinned_of(x.checked("cuda::is_pinned")) != nullptr; }

Tensor copy_async(const Tensor& x, Device device) {
  constexpr const char* op = "cuda::copy_async";
  require(x.checked(op).device().is_cpu() && device.is_cuda(), ErrorKind::device, op,
          "copies from the host's memory to a GPU, not from ", x.device(), " to ", device);
  Context& c = context(device.index);
  Pinned* source = pinned_of(x);
  require(source && x.is_contiguous(), ErrorKind::argument, op,
          "the tensor must be contiguous, in memory of cuda::pin_memory");
  Recording::refuse(op, "it needs the host");
  const Tensor y = allocate(x.shape(), x.dtype(), device, op);
  if (x.numel() == 0) return y;
  const OnDevice current(c.device);
  ++c.transfers;
  const cudaEvent_t done = pinned_memory().add_reader(*source, op);
  check(cudaMemcpyAsync(address(y), address(x), size_t(x.nbytes()), cudaMemcpyHostToDevice, c.stream()), op);
  check(cudaEventRecord(done, c.stream()), op);
  after_launch(c, op);
  return y;
}

}  // namespace volta::cuda
