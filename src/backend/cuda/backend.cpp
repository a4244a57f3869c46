// The CUDA backend: every loop runs on the stream of its device.
#include <array>

#include "backend/cuda/cuda.h"
#include "backend/cuda/loops.h"
#include "core/storage.h"

namespace volta {
namespace {

struct DeviceStorage : Storage, Pooled {
  cuda::Memory* memory;
  cuda::Block* block;
};

void destroy_storage(Storage* s) noexcept {
  auto* storage = static_cast<DeviceStorage*>(s);
  storage->memory->give(storage->block);
  delete storage;
}

class CudaBackend final : public Backend {
  template <class F> auto run(F f) {
    cuda::Context& c = cuda::context(index);
    const cuda::OnDevice current(index);
    return f(c);
  }

 public:
  Ptr<Storage> allocate(int64_t bytes, int, const char* op) override {
    return run([&](cuda::Context& c) {
      auto* storage = new DeviceStorage;
      auto owner = Ptr<Storage>::adopt(storage);
      storage->destroy = [](Storage* s) noexcept { delete static_cast<DeviceStorage*>(s); };
      storage->memory = &c.memory;
      storage->block = c.memory.take(bytes, op);
      storage->destroy = destroy_storage;
      storage->device = Device(DeviceType::cuda, c.device);
      storage->data = storage->block->data;
      storage->bytes = bytes;
      return owner;
    });
  }
  void copy(const Arg& out, const Arg& in) override {
    run([&](auto& c) { cuda::copy(c, out, in); });
  }
  void map(const MapCall& call) override {
    run([&](auto& c) { cuda::map(c, call); });
  }
  void fold(const FoldCall& call) override {
    run([&](auto& c) { cuda::fold(c, call); });
  }
  void rows(const RowCall& call) override {
    run([&](auto& c) { cuda::rows(c, call); });
  }
  void scan(const ScanCall& call) override {
    run([&](auto& c) { cuda::scan(c, call); });
  }
  void gather(const GatherCall& call) override {
    run([&](auto& c) { cuda::gather(c, call); });
  }
  void scatter(const ScatterCall& call) override {
    run([&](auto& c) { cuda::scatter(c, call); });
  }
  void sort(const SortCall& call) override {
    run([&](auto& c) { cuda::sort(c, call); });
  }
  void search(const SearchCall& call) override {
    run([&](auto& c) { cuda::search(c, call); });
  }
  void random(const RandomCall& call) override {
    run([&](auto& c) { cuda::random(c, call); });
  }
  void iota(const Arg& out, Scalar start, Scalar step) override {
    run([&](auto& c) { cuda::iota(c, out, start, step); });
  }
  void matmul(const MatmulCall& call) override {
    run([&](auto& c) { cuda::matmul(c, call); });
  }
  void upload(void* device, const void* host, int64_t bytes) override {
    run([&](auto& c) { c.upload(device, host, bytes); });
  }
  void download(void* host, const void* device, int64_t bytes) override {
    run([&](auto& c) { c.download(host, device, bytes); });
  }

  int index = 0;
};

}  // namespace

Backend& cuda_backend(int index) {
  static auto* all = [] {
    auto* backends = new std::array<CudaBackend, 256>;
    for (size_t i = 0; i < backends->size(); ++i) (*backends)[i].index = int(i);
    return backends;
  }();
  cuda::context(index);
  return (*all)[size_t(index)];
}

}  // namespace volta
