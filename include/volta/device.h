// Where a tensor's bytes live: Device("cpu"), Device("cuda:1").
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace volta {

enum class DeviceType : uint8_t { cpu, cuda };  // and those that were registered

struct Device {
  DeviceType type = DeviceType::cpu;
  uint8_t index = 0;

  constexpr Device() = default;
  constexpr Device(DeviceType t, int64_t i = 0) : type(t), index(uint8_t(i)) {
    if (t > DeviceType::cuda || i < 0 || i > (t == DeviceType::cpu ? 0 : 255)) check(t, i);
  }
  Device(std::string_view name);  // "cpu", "cuda" (the first GPU) or "cuda:N"; anything else is an Error
  Device(const char* name) : Device(name ? std::string_view(name) : std::string_view()) {}
  Device(std::nullptr_t) = delete;
  Device(const std::string& name) : Device(std::string_view(name)) {}

  bool is_cpu() const noexcept { return type == DeviceType::cpu; }
  bool is_cuda() const noexcept { return type == DeviceType::cuda; }
  std::string str() const;
  friend bool operator==(const Device&, const Device&) = default;

 private:
  static void check(DeviceType type, int64_t index);  // throws where there is no such device
};

namespace cuda {
bool is_available();  // a GPU and a driver are present and this build has the CUDA backend
int device_count();
void synchronize(int device = 0);  // waits for everything launched so far

struct MemoryStats {
  int64_t in_use = 0, peak = 0, cached = 0;
  int64_t transfers = 0;  // copies of tensors between host and device since the start
  int64_t reads = 0;      // single numbers that item() fetched
};
MemoryStats memory_stats(int device = 0);
void empty_cache(int device = 0);
void allow_tf32(bool on);  // f32 matmul on the tensor cores with 10-bit mantissas; off by default
}  // namespace cuda

namespace memory {
struct Stats {
  int64_t in_use = 0, peak = 0, cached = 0, limit = 0;  // the peak is exact to 64 KiB of each thread
  int64_t requests = 0, reused = 0;                     // how many allocations, and how many of them the cache served
};
Stats stats();                  // of host memory held by tensors
void set_limit(int64_t bytes);  // further allocations beyond it throw Error::Kind::memory; default: physical memory
void empty_cache();
void reset_peak();
}  // namespace memory

}  // namespace volta
