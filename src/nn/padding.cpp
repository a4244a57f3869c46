// Padding as layers.
#include <volta/nn/padding.h>

#include <volta/ops.h>

namespace volta::nn {
namespace {

Lambda::Function padded(const char* layer, int axes, const char* mode, const Sides& sides, double value = 0) {
  const size_t needed = 2 * size_t(axes);
  std::vector<int64_t> list = sides.list;
  if (list.size() == 1) list.assign(needed, list[0]);
  if (list.size() != needed)
    throw Error(Error::Kind::argument, layer,
                "needs one number or " + std::to_string(needed) + ", got " + std::to_string(list.size()));
  return [=](const Tensor& x) { return pad(x, list, {.mode = mode, .value = value}); };
}

}  // namespace

// One line per layer reads best.
// clang-format off
ConstantPad1d::ConstantPad1d(const Sides& sides, double value) : Lambda("ConstantPad1d", padded("ConstantPad1d", 1, "constant", sides, value), 0) {}
ConstantPad2d::ConstantPad2d(const Sides& sides, double value) : Lambda("ConstantPad2d", padded("ConstantPad2d", 2, "constant", sides, value), 0) {}
ConstantPad3d::ConstantPad3d(const Sides& sides, double value) : Lambda("ConstantPad3d", padded("ConstantPad3d", 3, "constant", sides, value), 0) {}
ZeroPad1d::ZeroPad1d(const Sides& sides) : Lambda("ZeroPad1d", padded("ZeroPad1d", 1, "constant", sides), 0) {}
ZeroPad2d::ZeroPad2d(const Sides& sides) : Lambda("ZeroPad2d", padded("ZeroPad2d", 2, "constant", sides), 0) {}
ZeroPad3d::ZeroPad3d(const Sides& sides) : Lambda("ZeroPad3d", padded("ZeroPad3d", 3, "constant", sides), 0) {}
ReflectionPad1d::ReflectionPad1d(const Sides& sides) : Lambda("ReflectionPad1d", padded("ReflectionPad1d", 1, "reflect", sides), 0) {}
ReflectionPad2d::ReflectionPad2d(const Sides& sides) : Lambda("ReflectionPad2d", padded("ReflectionPad2d", 2, "reflect", sides), 0) {}
ReflectionPad3d::ReflectionPad3d(const Sides& sides) : Lambda("ReflectionPad3d", padded("ReflectionPad3d", 3, "reflect", sides), 0) {}
ReplicationPad1d::ReplicationPad1d(const Sides& sides) : Lambda("ReplicationPad1d", padded("ReplicationPad1d", 1, "replicate", sides), 0) {}
ReplicationPad2d::ReplicationPad2d(const Sides& sides) : Lambda("ReplicationPad2d", padded("ReplicationPad2d", 2, "replicate", sides), 0) {}
ReplicationPad3d::ReplicationPad3d(const Sides& sides) : Lambda("ReplicationPad3d", padded("ReplicationPad3d", 3, "replicate", sides), 0) {}
CircularPad1d::CircularPad1d(const Sides& sides) : Lambda("CircularPad1d", padded("CircularPad1d", 1, "circular", sides), 0) {}
CircularPad2d::CircularPad2d(const Sides& sides) : Lambda("CircularPad2d", padded("CircularPad2d", 2, "circular", sides), 0) {}
CircularPad3d::CircularPad3d(const Sides& sides) : Lambda("CircularPad3d", padded("CircularPad3d", 3, "circular", sides), 0) {}
// clang-format on

}  // namespace volta::nn
