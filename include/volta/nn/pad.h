// Padding as layers: nn::ZeroPad2d(1), nn::ReflectionPad2d({left, right, top, bottom}).
#pragma once
#include <vector>

#include <volta/nn/layer.h>

namespace volta::nn {

// One number for every side, or two per axis from the last axis on.
struct Sides {
  Sides(int64_t all) : list{all} {}
  Sides(std::initializer_list<int64_t> each) : list(each) {}
  std::vector<int64_t> list;
};

class Pad : public Layer {
 public:
  Tensor operator()(const Tensor& x) const;
  void fields(Fields&) override {}
  double flops(const Tensor&, const Tensor&) const override { return 0; }
  std::vector<int64_t> padding;

 protected:
  Pad(const char* type, int axes, const char* mode, const Sides& sides, double value = 0);

 private:
  const char* mode_;
  double value_;
};

// With a value: nn::ConstantPad2d(1, 0.5)(x).
struct ConstantPad1d : Pad {
  ConstantPad1d(const Sides& sides, double value) : Pad("ConstantPad1d", 1, "constant", sides, value) {}
};
struct ConstantPad2d : Pad {
  ConstantPad2d(const Sides& sides, double value) : Pad("ConstantPad2d", 2, "constant", sides, value) {}
};
struct ConstantPad3d : Pad {
  ConstantPad3d(const Sides& sides, double value) : Pad("ConstantPad3d", 3, "constant", sides, value) {}
};

// With zeros: nn::ZeroPad2d(1)(x).
struct ZeroPad1d : Pad {
  explicit ZeroPad1d(const Sides& sides) : Pad("ZeroPad1d", 1, "constant", sides) {}
};
struct ZeroPad2d : Pad {
  explicit ZeroPad2d(const Sides& sides) : Pad("ZeroPad2d", 2, "constant", sides) {}
};
struct ZeroPad3d : Pad {
  explicit ZeroPad3d(const Sides& sides) : Pad("ZeroPad3d", 3, "constant", sides) {}
};

// Mirrored, without the edge: nn::ReflectionPad2d(1)(x).
struct ReflectionPad1d : Pad {
  explicit ReflectionPad1d(const Sides& sides) : Pad("ReflectionPad1d", 1, "reflect", sides) {}
};
struct ReflectionPad2d : Pad {
  explicit ReflectionPad2d(const Sides& sides) : Pad("ReflectionPad2d", 2, "reflect", sides) {}
};
struct ReflectionPad3d : Pad {
  explicit ReflectionPad3d(const Sides& sides) : Pad("ReflectionPad3d", 3, "reflect", sides) {}
};

// With the edge: nn::ReplicationPad2d(1)(x).
struct ReplicationPad1d : Pad {
  explicit ReplicationPad1d(const Sides& sides) : Pad("ReplicationPad1d", 1, "replicate", sides) {}
};
struct ReplicationPad2d : Pad {
  explicit ReplicationPad2d(const Sides& sides) : Pad("ReplicationPad2d", 2, "replicate", sides) {}
};
struct ReplicationPad3d : Pad {
  explicit ReplicationPad3d(const Sides& sides) : Pad("ReplicationPad3d", 3, "replicate", sides) {}
};

// From the other end: nn::CircularPad2d(1)(x).
struct CircularPad1d : Pad {
  explicit CircularPad1d(const Sides& sides) : Pad("CircularPad1d", 1, "circular", sides) {}
};
struct CircularPad2d : Pad {
  explicit CircularPad2d(const Sides& sides) : Pad("CircularPad2d", 2, "circular", sides) {}
};
struct CircularPad3d : Pad {
  explicit CircularPad3d(const Sides& sides) : Pad("CircularPad3d", 3, "circular", sides) {}
};
}  // namespace volta::nn
