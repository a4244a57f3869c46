// The entrance to the CUDA backend; without it (or without a GPU) asking for one throws. And what its settings refuse,
// which is the same in every build.
#pragma once
#include "backend/backend.h"
#include "core/check.h"

namespace volta {
Backend& cuda_backend(int index);

namespace cuda {
inline void check_timeout(double seconds) {
  require(seconds >= 0, ErrorKind::argument, "cuda::set_timeout", "a timeout of ", seconds, " seconds");
}
inline void check_memory_limit(int64_t bytes) {
  require(bytes >= 0, ErrorKind::argument, "cuda::set_memory_limit", "a limit of ", bytes, " bytes");
}
inline void check_share(double share) {
  require(share > 0 && share <= 1, ErrorKind::argument, "cuda::on_low_memory", "the share must be in (0, 1], got ",
          share);
}
}  // namespace cuda
}  // namespace volta
