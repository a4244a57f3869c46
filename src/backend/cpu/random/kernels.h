// The kernels of random numbers, specialised once per level.
#pragma once
#include <tuple>

#include "backend/cpu/isa.h"
#include "core/random_call.h"

namespace volta::cpu {

struct RandomPiece {  // consecutive elements that begin with a whole block
  uint64_t seed, counter;
  DType dtype;
  int64_t n;
  void* out;
};
template <class Formula> using Draw = void (*)(const Formula&, const RandomPiece&);
using Draws =
    std::tuple<Draw<random::Uniform<float>>, Draw<random::Uniform<double>>, Draw<random::Normal<float>>,
               Draw<random::Normal<double>>, Draw<random::Exponential<float>>, Draw<random::Exponential<double>>,
               Draw<random::Bernoulli>, Draw<random::NarrowInteger>, Draw<random::WideInteger>>;
template <Isa> const Draws& draws();

}  // namespace volta::cpu
