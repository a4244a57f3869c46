// Devices by name, and the names of those that were registered.
#include <volta/device.h>

#include <algorithm>
#include <array>
#include <atomic>

#include <volta/error.h>

#include "core/device_names.h"

namespace volta {
namespace {

constinit std::array<const char*, most_device_types> names = {"cpu", "cuda"};
constinit std::atomic<int> name_count = 2;

// The largest index a device of a type can have.
int most_index(DeviceType type) { return type == DeviceType::cpu ? 0 : 255; }

}  // namespace

int device_type_count() noexcept { return name_count.load(std::memory_order_acquire); }
std::string_view device_name(DeviceType type) { return names[size_t(type)]; }
void add_device_name(const char* name) {
  const int count = name_count.load(std::memory_order_relaxed);
  names[size_t(count)] = name;
  name_count.store(count + 1, std::memory_order_release);
}

Device::Device(std::string_view text) {
  const auto fail = [&](const std::string& why) {
    throw Error(Error::Kind::device, "device", "'" + std::string(text) + "' " + why);
  };
  const size_t colon = text.find(':');
  const std::string_view kind = text.substr(0, colon);
  const int count = device_type_count();
  int number = 0;
  while (number < count && kind != names[size_t(number)]) ++number;
  if (number == count) {
    std::string known;
    for (int i = 0; i < count; ++i) known += std::string(i > 0 ? "\", \"" : "") + names[size_t(i)];
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
  const int count = device_type_count();
  if (int(type) < count && index >= 0 && index <= most_index(type)) return;
  const std::string kind = int(type) < count ? names[size_t(type)] : "DeviceType(" + std::to_string(int(type)) + ")";
  throw Error(Error::Kind::device, "device", "there is no " + kind + ":" + std::to_string(index));
}

std::string Device::str() const {
  const std::string name = names[size_t(type)];
  return is_cpu() ? name : name + ":" + std::to_string(int(index));
}

}  // namespace volta
