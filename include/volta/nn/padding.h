// Padding as layers: nn::ZeroPad2d(1)(x), nn::ReflectionPad1d({2, 1})(x).
#pragma once
#include <vector>

#include <volta/nn/lambda.h>

namespace volta::nn {

// How much to pad: one number for every side, or two per axis from the last axis on.
struct Sides {
  Sides(volta::detail::Whole auto all) : list{Int(all)} {}
  Sides(std::initializer_list<Int> each) : list(Ints(each)) {}
  std::vector<int64_t> list;
};

// clang-format off
struct ConstantPad1d : Lambda { ConstantPad1d(const Sides& sides, double value); };  // a value
struct ConstantPad2d : Lambda { ConstantPad2d(const Sides& sides, double value); };
struct ConstantPad3d : Lambda { ConstantPad3d(const Sides& sides, double value); };
struct ZeroPad1d : Lambda { explicit ZeroPad1d(const Sides& sides); };  // zeros
struct ZeroPad2d : Lambda { explicit ZeroPad2d(const Sides& sides); };
struct ZeroPad3d : Lambda { explicit ZeroPad3d(const Sides& sides); };
struct ReflectionPad1d : Lambda { explicit ReflectionPad1d(const Sides& sides); };  // the mirror image, without the edge
struct ReflectionPad2d : Lambda { explicit ReflectionPad2d(const Sides& sides); };
struct ReflectionPad3d : Lambda { explicit ReflectionPad3d(const Sides& sides); };
struct ReplicationPad1d : Lambda { explicit ReplicationPad1d(const Sides& sides); };  // the edge
struct ReplicationPad2d : Lambda { explicit ReplicationPad2d(const Sides& sides); };
struct ReplicationPad3d : Lambda { explicit ReplicationPad3d(const Sides& sides); };
struct CircularPad1d : Lambda { explicit CircularPad1d(const Sides& sides); };  // the other end
struct CircularPad2d : Lambda { explicit CircularPad2d(const Sides& sides); };
struct CircularPad3d : Lambda { explicit CircularPad3d(const Sides& sides); };
// clang-format on

}  // namespace volta::nn
