// The devices: finds the backend of one, by name too.
#include "backend/backend.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>

#include "backend/cuda/cuda.h"
#include "backend/profile.h"
#include "core/check.h"
#include "core/profile.h"
#include "core/recording.h"

namespace volta {
namespace {

constexpr int most_types = 16;
struct DeviceEntry {
  const char* name;
  Backend& (*find)(int index);
};
constinit std::array<DeviceEntry, most_types> entries = {
    {{"cpu", [](int) -> Backend& { return cpu_backend(); }}, {"cuda", cuda_backend}}};
constinit std::atomic<int> entry_count = 2;

// The largest index a device of a type can have.
int most_index(DeviceType type) { return type == DeviceType::cpu ? 0 : 255; }

}  // namespace

DeviceType register_device(const char* name, Backend& (*find)(int index)) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  const int count = entry_count.load();
  for (int i = 0; i < count; ++i)
    require(std::string_view(entries[size_t(i)].name) != name, ErrorKind::device, "register_device",
            "there is a device '", name, "' already");
  require(count < most_types, ErrorKind::device, "register_device", "there are ", count, " kinds of devices already");
  entries[size_t(count)] = {name, find};
  entry_count.store(count + 1, std::memory_order_release);
  return DeviceType(count);
}

Backend& backend(Device device) {
  if (device.is_cpu()) return *cpu_in_use.load(std::memory_order_relaxed);
  Recording::use(device);
  return profile::on() ? profiled_backend(device) : own_backend(device);
}

Backend& own_backend(Device device) {
  return device.is_cpu() ? cpu_backend() : entries[size_t(device.type)].find(device.index);
}

Device::Device(std::string_view text) {
  const auto fail = [&](const std::string& why) {
    throw Error(Error::Kind::device, "device", "'" + std::string(text) + "' " + why);
  };
  const size_t colon = text.find(':');
  const std::string_view kind = text.substr(0, colon);
  const int count = entry_count.load(std::memory_order_acquire);
  int number = 0;
  while (number < count && kind != entries[size_t(number)].name) ++number;
  if (number == count) {
    std::string known;
    for (int i = 0; i < count; ++i) known += (i > 0 ? "\", \"" : "") + std::string(entries[size_t(i)].name);
    fail("is not a device; use \"" + known + "\" or, with a number, \"cuda:N\"");
  }
  type = DeviceType(number);
  if (colon == std::string_view::npos) return;
  const std::string_view digits = text.substr(colon + 1);
  if (digits.empty()) fail("has no device number after the colon");
  int at = 0;
  for (char c : digits) {
    if (c < '0' || c > '9') fail("names no device: what follows the colon is not a number from 0 on");
    at = std::min(at * 10 + (c - '0'), 256);
  }
  if (at > most_index(type)) fail("names no device: the number is too large");
  index = uint8_t(at);
}

void Device::check(DeviceType type, int64_t index) {
  const int count = entry_count.load(std::memory_order_acquire);
  if (int(type) < count && index >= 0 && index <= most_index(type)) return;
  const std::string kind =
      int(type) < count ? entries[size_t(type)].name : "DeviceType(" + std::to_string(int(type)) + ")";
  throw Error(Error::Kind::device, "device", "there is no " + kind + ":" + std::to_string(index));
}

std::string Device::str() const {
  const std::string name = entries[size_t(type)].name;
  return is_cpu() ? name : name + ":" + std::to_string(int(index));
}

}  // namespace volta
