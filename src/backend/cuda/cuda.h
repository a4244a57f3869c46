// The entrance to the CUDA backend; without it (or without a GPU) asking for one throws.
#pragma once
#include "backend/backend.h"

namespace volta {
Backend& cuda_backend(int index);
}
