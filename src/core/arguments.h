// Numbers given as arguments: each function gives back the value, or throws and names it.
#pragma once
#include <cmath>
#include <string>

#include <volta/error.h>

namespace volta {

inline int64_t positive(int64_t value, const char* layer, const char* what) {
  if (value > 0) return value;
  throw Error(Error::Kind::argument, layer, std::string(what) + " must be positive, not " + std::to_string(value));
}
// How many layers to make: the memory of more would not be counted before they are made.
inline int64_t layer_count(int64_t value, const char* layer, const char* what) {
  if (positive(value, layer, what) <= 65536) return value;
  throw Error(Error::Kind::argument, layer, std::string(what) + " must be at most 65536, not " + std::to_string(value));
}
inline double probability(double value, const char* layer, const char* what = "p") {
  if (value >= 0 && value <= 1) return value;
  throw Error(Error::Kind::argument, layer, std::string(what) + " must lie in [0, 1], not " + std::to_string(value));
}
inline double finite(double value, const char* layer, const char* what) {
  if (std::isfinite(value)) return value;
  throw Error(Error::Kind::argument, layer, std::string(what) + " must be finite, not " + std::to_string(value));
}
inline double not_negative(double value, const char* layer, const char* what) {
  if (std::isfinite(value) && value >= 0) return value;
  throw Error(Error::Kind::argument, layer,
              std::string(what) + " must be finite and at least 0, not " + std::to_string(value));
}
inline double above_zero(double value, const char* layer, const char* what) {
  if (std::isfinite(value) && value > 0) return value;
  throw Error(Error::Kind::argument, layer,
              std::string(what) + " must be finite and above 0, not " + std::to_string(value));
}

}  // namespace volta
