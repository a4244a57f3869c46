// Which algorithm a convolution uses: the cheapest by a model of their costs. By shape and dtype alone, never by the number of
// threads: results must not depend on that. The factors were fitted by hand to the table that `build/release/bench/conv_volta`
// prints (every algorithm, one thread) on ARM64; for x86-64 they scale with the vectors' width, and the costs of Winograd's
// transforms were measured there. Fit them again when a kernel changes; a wrong choice costs time, never a result.
#include <algorithm>
#include <cmath>

#include "backend/cpu/conv/plan.h"
#include "backend/cpu/cpu.h"
#include "backend/cpu/parallel_rows.h"

namespace volta::cpu {
namespace {

// Costs are in multiply-adds of a large matrix product.
struct ConvShape {
  double rows, channels, depth;  // of one group: of results (or of the weight's), of the source, and what a pixel sums
  double pixels, tiles;          // of the batch; in tiles of 4 x 4
  double width, lanes;           // of a row of pixels; of a vector
  double groups;
  double batch, outputs, taps, kernel, phases;  // of y; taps in all and along a row; of the stride
  bool of_weight;

  explicit ConvShape(const ConvCall& call) {
    const ConvGeometry& g = call.geometry;
    const bool input = call.piece == ConvPiece::input;
    const auto count = [&](int i) { return input ? g.axes[i].input : g.axes[i].output; };
    // For the input's gradient, the pixels of one phase of the stride under the taps that reach it.
    phases = input ? double(g.axes[0].stride) * double(g.axes[1].stride) * double(g.axes[2].stride) : 1;
    groups = double(g.groups);
    of_weight = call.piece == ConvPiece::weight;
    rows = double(input ? g.in_channels : g.out_channels) / groups;
    channels = double(input ? g.out_channels : g.in_channels) / groups;
    depth = channels * double(g.taps()) / phases;
    batch = double(g.batch), outputs = double(g.outputs());
    taps = double(g.taps()), kernel = double(g.axes[2].kernel);
    pixels = double(g.batch) * double(count(0)) * double(count(1)) * double(count(2));
    tiles = double(g.batch) * double(divide_up(count(1), 4)) * double(divide_up(count(2), 4));
    width = double(input ? divide_up(g.axes[2].input, g.axes[2].stride) : g.axes[2].output);
    const Isa level = isa();
    const double vector = level == Isa::v4 || level == Isa::amx ? 64 : level == Isa::v3 ? 32 : 16;
    lanes = vector / (call.w.dtype == f64 ? 8 : 4);
  }

  double implicit_gemm() const { return groups * pixels * (depth * (rows + 8) + 10 * rows); }
  double direct() const {
    const double whole = lanes * std::ceil(width / lanes) / width;
    return groups * pixels * depth * (1.5 * rows + 1.6) * whole;
  }
  double direct_weight() const {
    const double end = width < lanes ? 10 : lanes <= 4 ? 3 : 1;  // of a line within a vector: so many vectors' work
    const double ragged = std::fmod(width, lanes) > 0 ? end * lanes / width : 0;
    return groups * pixels * depth * (1.45 * rows + 1) * (1 + ragged);
  }
  // What the passes over y, one for each phase of the stride, copy: y, and their weights, which lie `taps` apart.
  double copied() const {
    const double weight = taps < 48 ? 1 : 18;  // of several cache lines to a vector
    return phases * batch * groups * channels * (4 * outputs + weight * rows * taps / phases) * lanes;
  }
  // Where the kernel is large beside y, most taps of the passes are of zeros around it; not so of patches.
  double by_patches() const {
    return groups * batch * outputs * taps * rows * (1.2 * channels + (3 + 60 / kernel) * lanes);
  }
  // Products; the transforms of tiles, whose loads and stores are of four values whatever the vectors; those of weights.
  double winograd() const {
    const double weights = rows * channels, tile = of_weight ? 1150 + 35 * lanes : 580 + 30 * lanes;
    const double whole = 2 * tiles <= lanes ? std::ceil(tiles / 8) * 8 : std::ceil(tiles / lanes) * lanes;
    return groups * (41 * whole * weights + tile * tiles * (rows + channels) + (of_weight ? 600 : 350) * weights);
  }
};

// Two-dimensional kernels of 3 x 3, one step apart, computed in f32.
bool suits_winograd(const ConvCall& call) {
  const ConvAxis &d = call.geometry.axes[0], &h = call.geometry.axes[1], &w = call.geometry.axes[2];
  const auto fits = [](const ConvAxis& a) { return a.kernel == 3 && a.stride == 1 && a.dilation == 1; };
  return call.w.dtype != f64 && d.kernel == 1 && d.input == 1 && d.output == 1 && fits(h) && fits(w);
}

}  // namespace

ConvAlgorithm chosen_algorithm(const ConvCall& call) {
  if (call.algorithm == ConvAlgorithm::winograd && !suits_winograd(call)) return ConvAlgorithm::implicit_gemm;
  if (call.algorithm != ConvAlgorithm::automatic) return call.algorithm;
  const ConvShape p(call);
  const double direct = p.of_weight ? p.direct_weight() : p.direct(), implicit = p.implicit_gemm();
  const double winograd = suits_winograd(call) ? p.winograd() : INFINITY;
  const double patches = call.piece == ConvPiece::input ? p.by_patches() : INFINITY;
  if (patches < std::min(std::min(direct, implicit) + p.copied(), winograd)) return ConvAlgorithm::im2col;
  if (winograd < std::min(direct, implicit)) return ConvAlgorithm::winograd;
  return direct < implicit ? ConvAlgorithm::direct : ConvAlgorithm::implicit_gemm;
}

}  // namespace volta::cpu
