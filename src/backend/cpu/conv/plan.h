// How the CPU convolves: passes of stride-1 correlation over an image staged with its zeros, cut into boxes of outputs; and
// the interface of the algorithms that compute one box.
#pragma once
#include <optional>
#include <vector>

#include "backend/conv.h"
#include "backend/cpu/isa.h"

namespace volta::cpu {

constexpr int conv_space = ConvGeometry::space;

// One axis of a pass. Output q under a tap reads source element start + (q + shift) * step + phases[phase] and is element
// to + q * to_step of the destination. Each phase is staged apart, so that neighbouring outputs read neighbouring values.
struct PassAxis {
  struct Tap {
    int64_t kernel, shift, phase;
  };
  int64_t count, size;  // of outputs; of source elements
  int64_t step, start, to, to_step;
  std::vector<int64_t> phases;
  std::vector<Tap> taps;  // by rising shift
  int64_t reach = 0;      // the largest shift
};

struct Pass {
  PassAxis axes[conv_space];
  int64_t phases() const { return int64_t(axes[0].phases.size() * axes[1].phases.size() * axes[2].phases.size()); }
  int64_t taps() const { return int64_t(axes[0].taps.size() * axes[1].taps.size() * axes[2].taps.size()); }
  int64_t outputs() const { return axes[0].count * axes[1].count * axes[2].count; }
  bool in_place() const;  // outputs are the source's elements, each under one tap: nothing to stage
  bool straight() const;  // outputs are all of the destination's elements, in order
};

// The forward pass and that of the weight are one pass over x. The input's gradient has one over y for each phase of the
// stride: with u = i + padding = q * stride + a, kernel element k reaches it from output q - t where k * dilation = t * stride
// + a. Phases that no tap reaches are left out, `complete` says whether there are none, and so are passes without outputs.
std::vector<Pass> passes_of(const ConvGeometry& g, ConvPiece piece, bool* complete = nullptr);

// Outputs [begin, begin + count) of each axis: consecutive in memory, because an axis is cut only where those before it are
// single.
struct Box {
  int64_t begin[conv_space], count[conv_space];
  int64_t outputs() const { return count[0] * count[1] * count[2]; }
};
// A pass cut into boxes of nearly equal size.
struct Boxes {
  int64_t parts[conv_space], tile = 1;  // image axes are cut between tiles
  int64_t count() const { return parts[0] * parts[1] * parts[2]; }
  Box box(const Pass& pass, int64_t index) const;
  Box largest(const Pass& pass) const;  // no box is larger along any axis
};
// So that a staged box of `channels` takes about `bytes`, and there are at least `least` boxes if they stay worth it.
Boxes plan_boxes(const Pass& pass, int64_t channels, int64_t element_bytes, int64_t bytes, int64_t least, int64_t tile);

// Where the values of a staged box lie: [channels, phases, extents…].
struct Staged {
  int64_t extent[conv_space];
  int64_t plane() const { return extent[0] * extent[1] * extent[2]; }
};
// Outputs along the last two axes come in whole tiles.
Staged staged_of(const Pass& pass, const Box& box, int64_t tile);

// The left operand: A(i, p) = data[i * step + places[p]]. Where `regular` has a value, A(i, p) = data[i * step + p * *regular].
template <class T> struct ConvRows {
  const T* data;
  int64_t step;
  const int64_t* places;
  std::optional<int64_t> regular;
};

// Parts have a multiple of so many rows of the left operand, but for the last: fewer would not be worth staging a box again.
constexpr int64_t least_rows = 32;
constexpr int64_t gathered_rows = 16;  // where nothing is staged again, nor weights prepared by these

// The work on one box. Its patches are the matrix P(p, j) = image[offsets[p] + place of pixel j], p < depth, j < pixels;
// pixels lie in rows of `row`, `rows` to a plane. Where `regular` has a value, it may be 0, P(p, j) = image[p *
// *regular + j].
template <class T> struct ConvPart {
  const T* image;
  const int64_t* offsets;
  int64_t depth, taps, pixels, row, rows, row_step, plane_step;  // taps: of the depth, to a channel
  std::optional<int64_t> regular;
  int64_t m;
  ConvRows<T> a;                        // m rows of weights along the depth, or of gradients along the pixels
  int64_t all_rows, first_row;          // of the group, of which this part has m from first_row on
  const T* prepared;                    // what prepare() made of all its weights, or keep() did, or null
  bool kept;                            // that keep() did, and `a` has no data
  const T* gathered;                    // what gather() made of the box, and there is no image; or null
  const T* gradients;                   // what gather_gradients() made of it, and `a` is not set; or null
  int64_t all_channels, first_channel;  // of the group, of which the depth has some: what was gathered is of all
  const T* bias;                        // one for each row, or null
  T* c;
  int64_t c_step;
  bool add;  // to what a gradient of weights holds
  int64_t chunk;
};

// An algorithm, for one compute type. Another is a file with one such function and a name in ConvAlgorithm.
template <class T> struct ConvKernels {
  void (*correlate)(const ConvPart<T>& part);        // c[m x pixels] = a P + bias
  void (*weight_gradient)(const ConvPart<T>& part);  // c[m x depth] = a P^T, or += if part.add
  int64_t tile = 1;                                  // of outputs, along both image axes
  bool in_place = true;                              // takes images that were not staged
  int64_t staged_bytes = 1 << 19;                    // of a box, so that what it works on stays in the second cache
  // The weights [m x depth] in a form of its own, for so many parts: how many values, and the values of some rows.
  int64_t (*prepared)(int64_t m, int64_t depth, const ConvRows<T>& weights, int64_t parts) = nullptr;
  void (*prepare)(int64_t m, int64_t depth, const ConvRows<T>& weights, T* to, int64_t first, int64_t count) = nullptr;
  // Likewise for weights that are kept for many calls, of so many pixels each.
  int64_t (*kept)(int64_t m, int64_t depth, int64_t pixels) = nullptr;
  void (*keep)(int64_t m, int64_t depth, const ConvRows<T>& weights, T* to, int64_t first, int64_t count) = nullptr;
  // The image of a box in a form of its own, for slices of rows to share: how many values, and those of some channels, which
  // alone the part's image holds.
  int64_t (*gathered)(const ConvPart<T>& part) = nullptr;
  void (*gather)(const ConvPart<T>& part, int64_t first, int64_t count, T* to) = nullptr;
  // Gradients of a box's outputs likewise, where they are not used as they lie.
  int64_t (*gathered_gradients)(const ConvPart<T>& part) = nullptr;
  void (*gather_gradients)(const ConvPart<T>& part, int64_t first, int64_t count, T* to) = nullptr;
};

// For algorithms that want contiguous rows: weights are prepared as such unless they are.
template <class T> int64_t copied_rows(int64_t m, int64_t depth, const ConvRows<T>& weights, int64_t parts);
template <class T>
void copy_rows(int64_t m, int64_t depth, const ConvRows<T>& weights, T* to, int64_t first, int64_t count);
template <class T> ConvRows<T> contiguous_rows(const ConvPart<T>& part) {
  if (!part.prepared) return part.a;
  return {part.prepared + part.first_row * part.depth, part.depth, nullptr, 1};
}

template <Isa, class T> ConvKernels<T> conv_direct();
template <class T> ConvKernels<T> conv_im2col();
template <Isa, class T> ConvKernels<T> conv_implicit_gemm();
template <Isa> ConvKernels<float> conv_winograd();

}  // namespace volta::cpu
