// Checks the layers share.
#pragma once
#include <string>

#include <volta/error.h>

namespace volta::nn {

inline int64_t positive(int64_t value, const char* layer, const char* what) {
  if (value > 0) return value;
  throw Error(Error::Kind::argument, layer, std::string(what) + " must be positive, not " + std::to_string(value));
}
inline double probability(double value, const char* layer) {
  if (value >= 0 && value <= 1) return value;
  throw Error(Error::Kind::argument, layer, "p must lie in [0, 1], not " + std::to_string(value));
}

}  // namespace volta::nn
