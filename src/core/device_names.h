// The names of the kinds of devices, by DeviceType.
#pragma once
#include <string_view>

#include <volta/device.h>

namespace volta {

inline constexpr int most_device_types = 16;

int device_type_count() noexcept;
std::string_view device_name(DeviceType type);
void add_device_name(const char* name);  // of the next type; there is room for it, and one thread at a time adds

}  // namespace volta
