// Settings of the CUDA backend that few programs need; those that most need are in device.h.
#pragma once
#include <cstdint>

namespace volta::cuda {

// Memory that a convolution may use beside its operands, 256 MiB unless set: set_conv_workspace(int64_t(1) << 30). The way
// in which a convolution is computed is chosen among those that do with it.
void set_conv_workspace(int64_t bytes);

}  // namespace volta::cuda
