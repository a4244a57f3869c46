// Convolution as a matrix product whose right operand, the patches, is packed panel by panel from the image and never
// exists as a whole.
#include "backend/cpu/conv/plan.h"
#include "backend/cpu/gemm/kernels/panels.h"
#include "backend/cpu/gemm/kernels/tiles.h"
#include "backend/cpu/scratch.h"

namespace volta::cpu::VOLTA_ISA {
namespace {

// Pixels that lie next to each other in the image: so many, and where the first is.
struct Run {
  int64_t n, place;
};

// Walks the pixels of a part in runs.
template <class T> struct Pixels {
  const ConvPart<T>* part;
  int64_t column, row, plane;
  Pixels(const ConvPart<T>& p, int64_t j)
      : part(&p), column(j % p.row), row(j / p.row % p.rows), plane(j / p.row / p.rows) {}
  Run next(int64_t most) {
    const Run run = {smaller(most, part->row - column), plane * part->plane_step + row * part->row_step + column};
    column += run.n;
    if (column == part->row) column = 0, ++row;
    if (row == part->rows) row = 0, ++plane;
    return run;
  }
};

// Whole vectors, of which the last may go beyond the n values: what comes after is written later.
template <class T> [[gnu::always_inline]] inline void copy_run(T* to, const T* from, int64_t n) {
  for (int64_t i = 0; i < n; i += lanes<T>) store<T>(to + i, load(from + i));
}

// Vectors to copy from an image to a panel, in this order: the last of a run may go beyond it, into what comes after.
struct Copies {
  static constexpr int64_t most = 12;
  int64_t count = 0, to[most], from[most];
};
template <class T, int count>
void copy_listed(T* to, const T* image, const int64_t* offsets, int64_t k, int64_t tile, const Copies& list) {
  int64_t at[count], from[count];
  for (int c = 0; c < count; ++c) at[c] = list.to[c], from[c] = list.from[c];
  for (int64_t p = 0; p < k; ++p, to += tile) {
    const T* const row = image + offsets[p];
#pragma GCC unroll 12
    for (int c = 0; c < count; ++c) store<T>(to + at[c], load(row + from[c]));
  }
}
template <class T, int count = 1>
void copy_any(T* to, const T* image, const int64_t* offsets, int64_t k, int64_t tile, const Copies& list) {
  if (list.count == count) copy_listed<T, count>(to, image, offsets, k, tile, list);
  else if constexpr (count < Copies::most) copy_any<T, count + 1>(to, image, offsets, k, tile, list);
}

// Pixels [j, j + n) of k rows of patches, `tile` from one row to the next. Images and what is written have room for a vector
// after their end.
template <class T> void copy_patches(const ConvPart<T>& part, T* to, int64_t j, int64_t n, int64_t tile,
                                     const int64_t* offsets, int64_t k) {
  Copies list;
  Pixels<T> pixels(part, j);
  for (int64_t done = 0; done < n;) {
    const Run run = pixels.next(n - done);
    for (int64_t x = 0; x < run.n && list.count <= Copies::most; x += lanes<T>, ++list.count)
      if (list.count < Copies::most) list.to[list.count] = done + x, list.from[list.count] = run.place + x;
    done += run.n;
  }
  if (list.count <= Copies::most) return copy_any<T>(to, part.image, offsets, k, tile, list);
  for (int64_t p = 0; p < k; ++p, to += tile) {
    const T* const row = part.image + offsets[p];
    pixels = Pixels<T>(part, j);
    for (int64_t done = 0; done < n;) {
      const Run run = pixels.next(n - done);
      copy_run(to + done, row + run.place, run.n);
      done += run.n;
    }
  }
}

// Patches as the right operand: a tile of pixels, along the depth.
template <class T>
PanelView<T> patches(const void* self, T* buffer, int64_t j, int64_t n, int64_t tile, int64_t p, int64_t k) {
  const ConvPart<T>& part = *static_cast<const ConvPart<T>*>(self);
  copy_patches(part, buffer, j, n, tile, part.offsets + p, k);
  return {buffer, 1, tile};
}

// Patches transposed, for the weight: a tile along the depth, pixel after pixel.
template <class T>
PanelView<T> patches_transposed(const void* self, T* buffer, int64_t i, int64_t n, int64_t tile, int64_t j, int64_t k) {
  const ConvPart<T>& part = *static_cast<const ConvPart<T>*>(self);
  constexpr int q = square<T>;
  static_assert(lanes<T> % q == 0);
  for (int64_t l = 0; l < tile; l += q) {
    const T* from[q];
    for (int s = 0; s < q; ++s) from[s] = part.image + part.offsets[i + smaller(l + s, n - 1)];
    Pixels<T> pixels(part, j);
    for (int64_t done = 0; done < k;) {
      const Run run = pixels.next(k - done);
      T* to = buffer + done * tile + l;
      int64_t x = 0;
      for (; x + q <= run.n; x += q) {
        Some<T, q> values[q];
#pragma GCC unroll 8
        for (int s = 0; s < q; ++s) values[s] = load_some<q>(from[s] + run.place + x);
        store_square<T>(values, to + x * tile, tile);
      }
      for (; x < run.n; ++x) {
        for (int s = 0; s < q; ++s) to[x * tile + s] = from[s][run.place + x];
      }
      done += run.n;
    }
  }
  return {buffer, 1, tile};
}

// to[p * tile + i] = A(i, p) of n rows and k depths. Taps that lie side by side, backwards, are transposed by squares: places
// fall within a channel and rise from one to the next, so that the first and the last of a square tell.
template <int q, class T> void pack_listed(T* to, ConvRows<T> a, int64_t n, int64_t tile, int64_t k) {
  for (int64_t at = 0; at < n; at += q) {
    const int64_t i = n < q ? 0 : smaller(at, n - q);
    const T* from = a.data + i * a.step;
    for (int64_t p = 0; p < k;) {
      const int64_t* places = a.places + p;
      T* column = to + p * tile + i;
      if (n >= q && p + q <= k && places[0] - places[q - 1] == q - 1) {
        Some<T, q> values[q];
#pragma GCC unroll 8
        for (int l = 0; l < q; ++l) values[l] = load_some<q>(from + l * a.step + places[q - 1]);
        if constexpr (q == 8) store_eight_transposed<T>(values, column + (q - 1) * tile, -tile);
        else store_transposed<T>(values, column + (q - 1) * tile, -tile);
        p += q;
      } else {
        for (int64_t l = 0; l < smaller(q, n); ++l) column[l] = from[l * a.step + places[0]];
        ++p;
      }
    }
  }
}

// Weights whose places are listed, as the left operand.
template <class T>
PanelView<T> listed(const void* self, T* buffer, int64_t i, int64_t n, int64_t tile, int64_t p, int64_t k) {
  ConvRows<T> a = *static_cast<const ConvRows<T>*>(self);
  a.data += i * a.step;
  a.places += p;
  if (n >= square<T>) pack_listed<square<T>>(buffer, a, n, tile, k);
  else pack_listed<quad<T>>(buffer, a, n, tile, k);
  return {buffer, 1, tile};
}

constexpr int64_t few_rows = 32, few_pixels = by_lane ? 0 : 256;  // too few uses to repay packing a matrix

// The patches as a matrix: from one row to the next, with room for a vector after the last.
template <class T> int64_t gathered_step(const ConvPart<T>& part) { return ceil_div(part.pixels, 16) * 16 + 16; }
template <class T> int64_t gathered(const ConvPart<T>& part) {
  return part.all_channels * part.taps * gathered_step(part) + 4 * lanes<T>;
}
// The image holds `count` channels, from `first` on of those that the part has.
template <class T> void gather(const ConvPart<T>& part, int64_t first, int64_t count, T* to) {
  const int64_t step = gathered_step(part), taps = part.taps;
  to += first * taps * step;
  for (int64_t p = 0; p < count * taps; ++p, to += step) {
    const T* from = part.image + part.offsets[p];
    Pixels<T> pixels(part, 0);
    for (int64_t i = 0; i < part.pixels;) {
      const Run run = pixels.next(part.pixels - i);
      copy_run(to + i, from + run.place, run.n);
      i += run.n;
    }
  }
}

// Weights that are kept are the right operand, by blocks of rows along the depth: rows make up the vectors, of which no lane is
// idle however few pixels there are, and no call packs them.
constexpr int64_t kept_rows = least_rows, kept_depth = 128, kept_pixels = 64;
template <class T> int64_t kept(int64_t m, int64_t depth, int64_t pixels) {
  constexpr int64_t most_pixels = 256;  // of more, the image fills vectors as well and weights are packed for all
  return pixels <= most_pixels ? ceil_div(m, kept_rows) * kept_rows * depth : 0;
}
template <class T> void keep(int64_t m, int64_t depth, const ConvRows<T>& a, T* to, int64_t first, int64_t count) {
  to += first * depth;
  for (int64_t i = first; i < first + count; i += kept_rows) {
    for (int64_t p = 0; p < depth; ++p, to += kept_rows) {
      const int64_t place = a.regular ? p * *a.regular : a.places[p];
      for (int64_t r = 0; r < kept_rows; ++r) to[r] = i + r < m ? a.data[(i + r) * a.step + place] : T(0);
    }
  }
}

// c[r][j] = sums[j][r] + bias[r] of `rows` rows and n pixels.
template <class T> void put_transposed(const T* sums, int64_t rows, int64_t n, const T* bias, T* c, int64_t c_step) {
  constexpr int q = square<T>;
  for (int64_t r = 0; r < rows; r += q) {
    if (rows < q || n < q) {
      for (int64_t i = r; i < smaller(r + q, rows); ++i)
        for (int64_t j = 0; j < n; ++j) c[i * c_step + j] = sums[j * kept_rows + i] + (bias ? bias[i] : T(0));
      continue;
    }
    const int64_t i = smaller(r, rows - q);  // the last of squares overlap
    const Some<T, q> more = bias ? load_some<q>(bias + i) : Some<T, q>{};
    for (int64_t at = 0; at < n; at += q) {
      const int64_t j = smaller(at, n - q);
      Some<T, q> values[q];
#pragma GCC unroll 8
      for (int l = 0; l < q; ++l) values[l] = load_some<q>(sums + (j + l) * kept_rows + i) + more;
      store_square<T>(values, c + i * c_step + j, c_step);
    }
  }
}

// sums[n x kept_rows] (+)= the transpose of k rows of patches times a block of weights, in tiles of nearly equal height.
template <class T> void multiply_kept(int64_t n, int64_t k, View<T> patches, const T* weights, T* sums, bool add) {
  each_tile<T>(kept_rows, [&](int64_t at, int64_t width) {
    const int64_t vectors = width / lanes<T>, tiles = ceil_div(n, sizes<T>.rows(vectors));
    const auto kernels = kernel_table<T>.kernels[vectors - 1];
    for (int64_t t = 0, j = 0, height; t < tiles; ++t, j += height) {
      height = n / tiles + (t < n % tiles);
      kernels[height - 1]({k,
                           {patches.data + j, 1, patches.depth_step},
                           {weights + at, 1, kept_rows},
                           sums + j * kept_rows + at,
                           kept_rows,
                           width,
                           add});
    }
  });
}

// The same by kept weights, for some pixels at a time.
template <class T> void correlate_kept(const ConvPart<T>& part) {
  const int64_t most = smaller(kept_pixels, part.pixels), blocks = ceil_div(part.m, kept_rows);
  const int64_t tile = most * kept_rows, room = kept_depth * most + lanes<T>;
  T* const sums = static_cast<T*>(scratch(Scratch::columns, size_t(blocks * tile + room) * sizeof(T)));
  T* const panel = sums + blocks * tile;
  const T* const weights = part.prepared + part.first_row * part.depth;
  for (int64_t j = 0; j < part.pixels; j += most) {
    const int64_t n = smaller(most, part.pixels - j);
    for (int64_t p = 0, k; p < part.depth; p += k) {
      k = smaller(kept_depth, part.depth - p);
      View<T> rows = {panel, 1, most};
      if (part.gathered) rows = {part.gathered + p * gathered_step(part) + j, 1, gathered_step(part)};
      else if (part.regular) rows = {part.image + p * *part.regular + j, 1, *part.regular};
      else copy_patches(part, panel, j, n, most, part.offsets + p, k);
      for (int64_t b = 0; b < blocks; ++b)
        multiply_kept(n, k, rows, weights + (b * part.depth + p) * kept_rows, sums + b * tile, p > 0);
    }
    for (int64_t b = 0; b < blocks; ++b) {
      const int64_t i = b * kept_rows;
      put_transposed(sums + b * tile, smaller(kept_rows, part.m - i), n, part.bias ? part.bias + i : nullptr,
                     part.c + i * part.c_step + j, part.c_step);
    }
  }
}

template <class T> void correlate(const ConvPart<T>& part) {
  if (part.kept) return correlate_kept(part);
  const ConvRows<T> rows = contiguous_rows(part);
  const bool in_place = part.pixels <= few_pixels && rows.regular == 1;
  const MatrixOperand<T, !by_lane> weights = {rows.data, rows.step, rows.regular.value_or(0), in_place};
  const PanelOperand<T> a = rows.regular ? operand(weights) : PanelOperand<T>{&rows, listed<T>};
  const MatrixOperand<T, false> pixels = {part.gathered ? part.gathered : part.image, 1,
                                          part.gathered ? gathered_step(part) : part.regular.value_or(0),
                                          part.m <= few_rows};
  const PanelOperand<T> b = part.gathered || part.regular ? operand(pixels) : PanelOperand<T>{&part, patches<T>};
  multiply_panels(PanelProduct<T>{part.m, part.pixels, part.depth, a, b, part.c, part.c_step, false, part.bias});
}

// Weights of a single tap, exchanged: where many parts pack them, a copy in order is cheaper.
template <class T> int64_t prepared(int64_t m, int64_t depth, const ConvRows<T>& weights, int64_t parts) {
  return weights.regular.value_or(1) > 1 && parts >= 16 ? m * depth : 0;
}

template <class T> void weight_gradient(const ConvPart<T>& part) {
  const MatrixOperand<T, !by_lane> gradients = {part.a.data, part.a.step, 1, false};
  MatrixOperand<T, false> pixels = {part.image, part.regular.value_or(0), 1, false};
  if (part.gathered) {
    const int64_t step = gathered_step(part);
    pixels = {part.gathered + part.first_channel * part.taps * step, step, 1, false};
  }
  const bool matrix = part.gathered || part.regular;
  const PanelOperand<T> b = matrix ? operand(pixels) : PanelOperand<T>{&part, patches_transposed<T>};
  multiply_panels(
      PanelProduct<T>{part.m, part.depth, part.pixels, operand(gradients), b, part.c, part.c_step, part.add});
}

template <class T> ConvKernels<T> kernels() {
  return {correlate<T>, weight_gradient<T>, 1,        true, 1 << 19, prepared<T>, copy_rows<T>, kept<T>,
          keep<T>,      gathered<T>,        gather<T>};
}

}  // namespace
}  // namespace volta::cpu::VOLTA_ISA

namespace volta::cpu {
template <> ConvKernels<float> conv_implicit_gemm<Isa::VOLTA_ISA, float>() { return VOLTA_ISA::kernels<float>(); }
template <> ConvKernels<double> conv_implicit_gemm<Isa::VOLTA_ISA, double>() { return VOLTA_ISA::kernels<double>(); }
}  // namespace volta::cpu
