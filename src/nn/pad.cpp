// Padding as layers.
#include <volta/nn/pad.h>

#include <volta/ops.h>

namespace volta::nn {

Pad::Pad(const char* type, int axes, const char* mode, const Sides& sides, double value)
    : Layer(type), padding(sides.list), mode_(mode), value_(value) {
  const size_t needed = 2 * size_t(axes);
  if (padding.size() == 1) padding.assign(needed, padding[0]);
  if (padding.size() != needed)
    throw Error(Error::Kind::argument, type,
                "needs one number or " + std::to_string(needed) + ", got " + std::to_string(padding.size()));
}
Tensor Pad::operator()(const Tensor& x) const {
  return call(x, [&](const Tensor& in) { return pad(in, padding, {.mode = mode_, .value = value_}); });
}

}  // namespace volta::nn
