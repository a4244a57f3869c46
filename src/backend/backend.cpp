// Finds the backend of a device.
#include "backend/backend.h"

#include <array>
#include <mutex>

#include "backend/cuda/cuda.h"
#include "backend/profile.h"
#include "core/check.h"
#include "core/device_names.h"
#include "core/profile.h"
#include "core/recording.h"

namespace volta {
namespace {

using Find = Backend& (*)(int index);
constinit std::array<Find, most_device_types> finders = {[](int) -> Backend& { return cpu_backend(); }, cuda_backend};

}  // namespace

DeviceType register_device(const char* name, Backend& (*find)(int index)) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  const int count = device_type_count();
  for (int i = 0; i < count; ++i)
    require(device_name(DeviceType(i)) != name, ErrorKind::device, "register_device", "there is a device '", name,
            "' already");
  require(count < most_device_types, ErrorKind::device, "register_device", "there are ", count,
          " kinds of devices already");
  finders[size_t(count)] = find;
  add_device_name(name);
  return DeviceType(count);
}

Backend& backend(Device device) {
  if (device.is_cpu()) return *cpu_in_use.load(std::memory_order_relaxed);
  Recording::use(device);
  return profile::on() ? profiled_backend(device) : own_backend(device);
}

Backend& own_backend(Device device) {
  return device.is_cpu() ? cpu_backend() : finders[size_t(device.type)](device.index);
}

}  // namespace volta
