// DropoutCall: elements are zeroed or scaled, by numbers that any later call draws again.
#pragma once
#include "backend/backend.h"

namespace volta {

// out = in * (u >= p) * 1 / (1 - p), where u is the uniform f32 of the element's number, from (seed, offset) on. The
// factor is rounded to the dtype before it multiplies. Both are contiguous, of one floating dtype and not empty.
struct DropoutCall {
  Arg out, in;
  double p;
  uint64_t seed, offset;
};

}  // namespace volta
