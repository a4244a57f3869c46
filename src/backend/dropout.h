// DropoutCall: elements are zeroed or scaled, by numbers that any later call draws again.
#pragma once
#include <cmath>

#include "backend/backend.h"

namespace volta {

// out = in * (u >= p) * 1 / (1 - p), where u is the uniform f32 of the element's number, from (seed, offset) on. The
// factor is rounded to the dtype before it multiplies. Both are contiguous, of one floating dtype and not empty.
struct DropoutCall {
  Arg out, in;
  double p;
  uint64_t seed, offset;
};

// A uniform number of f32 is 24 bits of a random word: it is at least p where these are at least so many.
inline uint32_t least_kept(double p) { return uint32_t(std::ceil(double(float(p)) * 0x1p24)); }

}  // namespace volta
