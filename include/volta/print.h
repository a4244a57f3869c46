// Printing: how tensors are shown. std::cout << x works without this header's settings.
#pragma once
#include <cstdint>
#include <string>

namespace volta {

struct PrintOptions {
  int precision = 4;
  int64_t threshold = 1000;  // more elements than this are summarised
  int64_t edge_items = 3;    // shown at each end of a summarised axis
  int line_width = 100;
};
PrintOptions print_options();
void set_print_options(const PrintOptions& options);

}  // namespace volta
