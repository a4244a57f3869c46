// Finds the backend of a device, by name too.
#include "backend/backend.h"

#include <algorithm>
#include <cstring>

#include "backend/conv.h"
#include "backend/cpu/cpu.h"
#include "backend/cuda/cuda.h"
#include "core/storage.h"

namespace volta {
namespace {

class CpuBackend final : public Backend {
  IntrusivePtr<Storage> allocate(int64_t bytes, int, const char* op) override { return host_storage(bytes, op); }
  void copy(const Arg& out, const Arg& in) override { cpu::copy(out, in); }
  void elementwise(const ElementwiseCall& call) override { cpu::elementwise(call); }
  void reduce(const ReduceCall& call) override { cpu::reduce(call); }
  void softmax(const SoftmaxCall& call) override { cpu::softmax(call); }
  void scan(const ScanCall& call) override { cpu::scan(call); }
  void gather(const GatherCall& call) override { cpu::gather(call); }
  void scatter(const ScatterCall& call) override { cpu::scatter(call); }
  void sort(const SortCall& call) override { cpu::sort(call); }
  void search(const SearchCall& call) override { cpu::search(call); }
  void random(const RandomCall& call) override { cpu::fill_random(call); }
  void iota(const Arg& out, Scalar start, Scalar step) override { cpu::iota(out, start, step); }
  void matmul(const MatmulCall& call) override { cpu::matmul(call); }
  bool conv(const ConvCall& call) override { return cpu::conv(call); }
  bool norm(const NormCall& call) override { return cpu::norm(call); }
  bool pool(const PoolCall& call) override { return cpu::pool(call); }
  bool attention(const AttentionCall& call) override { return cpu::attention(call); }
  bool recurrent(const RecurrentCall& call) override { return cpu::recurrent(call); }
  void upload(void* device, const void* host, int64_t bytes) override { std::memcpy(device, host, size_t(bytes)); }
  void download(void* host, const void* device, int64_t bytes) override { std::memcpy(host, device, size_t(bytes)); }
};

}  // namespace

Backend& cpu_backend() {
  static CpuBackend* b = new CpuBackend;
  return *b;
}

Backend& backend(Device device) {
  if (device.is_cpu()) return cpu_backend();
  return cuda_backend(device.index);
}

Device::Device(std::string_view text) {
  const auto fail = [&](const char* why) {
    throw Error(Error::Kind::device, "device", "'" + std::string(text) + "' " + why);
  };
  const size_t colon = text.find(':');
  const std::string_view kind = text.substr(0, colon);
  if (kind == "cpu") type = DeviceType::cpu;
  else if (kind == "cuda") type = DeviceType::cuda;
  else fail("is not a device; use \"cpu\", \"cuda\" or \"cuda:N\"");
  if (colon == std::string_view::npos) return;
  const std::string_view digits = text.substr(colon + 1);
  if (digits.empty()) fail("has no device number after the colon");
  int number = 0;
  for (char c : digits) {
    if (c < '0' || c > '9') fail("names no device: what follows the colon is not a number from 0 on");
    number = std::min(number * 10 + (c - '0'), 256);
  }
  if (number > (type == DeviceType::cpu ? 0 : 255)) fail("names no device: the number is too large");
  index = uint8_t(number);
}

void Device::throw_error(DeviceType type, int64_t index) {
  const std::string kind = type == DeviceType::cpu    ? "cpu"
                           : type == DeviceType::cuda ? "cuda"
                                                      : "DeviceType(" + std::to_string(int(type)) + ")";
  throw Error(Error::Kind::device, "device", "there is no " + kind + ":" + std::to_string(index));
}

std::string Device::str() const { return is_cpu() ? "cpu" : "cuda:" + std::to_string(int(index)); }

#ifndef VOLTA_HAVE_CUDA  // what builds without CUDA answer when asked for a GPU
Backend& cuda_backend(int index) {
  throw Error(Error::Kind::device, "device", "cuda:" + std::to_string(index) + " is not available: built without CUDA");
}

namespace cuda {
bool is_available() { return false; }
int device_count() { return 0; }
void synchronize(int device) { cuda_backend(device); }
MemoryStats memory_stats(int device) {
  cuda_backend(device);
  return {};
}
void empty_cache(int device) { cuda_backend(device); }
void allow_tf32(bool) {}
}  // namespace cuda
#endif

}  // namespace volta
