// Printing: how tensors are shown, and the small types' stream operators.
#pragma once
#include <cstdint>
#include <iosfwd>
#include <string_view>

#include <volta/device.h>
#include <volta/dtype.h>
#include <volta/error.h>

namespace volta {

struct PrintOptions {
  int precision = 4;         // digits after the point at most; common trailing zeros are left out
  int64_t threshold = 1000;  // more elements than this are summarised
  int64_t edge_items = 3;    // shown at each end of a summarised axis
  int line_width = 100;
};
PrintOptions print_options();
void set_print_options(const PrintOptions& options);

std::string_view name(Error::Kind kind);

std::ostream& operator<<(std::ostream& out, DType dtype);
std::ostream& operator<<(std::ostream& out, const Device& device);
std::ostream& operator<<(std::ostream& out, Error::Kind kind);

}  // namespace volta
