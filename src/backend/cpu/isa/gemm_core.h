// The loops around the micro-kernel: blocks along n, k and m, tiles of nearly equal size, panels packed at first use.
#pragma once
#include "backend/cpu/isa/gemm_kernel.h"
#include "backend/cpu/scratch.h"

namespace volta::cpu::VOLTA_ISA {

// `total` cut into `parts` of nearly equal size.
struct Range {
  int64_t begin, size;
};
[[gnu::always_inline]] static inline Range cut(int64_t total, int64_t parts, int64_t index) {
  const int64_t begin = total * index / parts;
  return {begin, total * (index + 1) / parts - begin};
}

template <class T> static int64_t blocks_along_k(int64_t k) { return larger(1, ceil_div(k, Tile<T>::sizes.block_k)); }

// Tile `index` along n: its columns, padded to whole vectors.
struct ColumnTile {
  int64_t begin, size, padded;
};
template <class T> [[gnu::always_inline]] static inline ColumnTile column_tile(int64_t n, int64_t index) {
  const int64_t vectors = ceil_div(n, lanes<T>), tiles = ceil_div(vectors, Tile<T>::sizes.vectors);
  const Range r = cut(vectors, tiles, index);
  const int64_t begin = r.begin * lanes<T>, padded = r.size * lanes<T>;
  return {begin, smaller(padded, n - begin), padded};
}
template <class T> static int64_t column_tiles(int64_t n) {
  return ceil_div(ceil_div(n, lanes<T>), Tile<T>::sizes.vectors);
}

// C[m x n] (+)= A B on one thread. A and B are operands with panel(); C's rows are contiguous. `finish`, if any, holds
// the biases of all m rows and n columns.
template <class T, class A, class B> class Core {
 public:
  Core(const A& a, const B& b, T* c, int64_t c_step, const Finish<T>* finish)
      : a_(a), b_(b), c_(c), c_step_(c_step), finish_(finish) {}

  void run(int64_t m, int64_t n, int64_t k, bool add) {
    const int64_t k_blocks = blocks_along_k<T>(k), m_blocks = ceil_div(m, sizes.block_m);
    keep_b_ = m_blocks > 1;
    reserve(keep_b_ ? smaller(n, sizes.block_n) : sizes.vectors * lanes<T>, smaller(k, sizes.block_k));
    for (int64_t j = 0; j < n; j += sizes.block_n) {
      const Range columns = {j, smaller(sizes.block_n, n - j)};
      for (int64_t kb = 0; kb < k_blocks; ++kb) {
        depth_ = cut(k, k_blocks, kb);
        add_ = add || kb > 0;
        last_ = kb == k_blocks - 1;
        for (int64_t mb = 0; mb < m_blocks; ++mb) block(cut(m, m_blocks, mb), columns, mb == 0);
      }
    }
  }

 private:
  static constexpr TileSizes sizes = Tile<T>::sizes;
  static constexpr int64_t a_room = (sizes.block_m + sizes.rows) * (sizes.block_k + 1);

  void reserve(int64_t b_columns, int64_t depth) {
    const int64_t b_room = (b_columns + lanes<T>)*(depth + 1);
    a_buffer_ = static_cast<T*>(scratch(Scratch::panels, size_t(a_room + b_room) * sizeof(T)));
    b_buffer_ = a_buffer_ + a_room;
  }

  // Rows of C that fit the second cache. Panels of B are packed by the first such block and kept if more follow.
  void block(Range rows, Range columns, bool first) {
    const int64_t n_tiles = column_tiles<T>(columns.size);
    for (int64_t t = 0; t < n_tiles; ++t) {
      const ColumnTile tile = column_tile<T>(columns.size, t);
      const int64_t j = columns.begin + tile.begin;
      if (first) {
        T* room = b_buffer_ + (keep_b_ ? tile.begin * depth_.size : 0);
        b_views_[t] = b_.panel(room, j, tile.size, tile.padded, depth_.begin, depth_.size);
      }
      strip(rows, j, tile, b_views_[t], t == 0);
    }
  }

  // One panel of B against all panels of A of a block, which the first strip packs.
  void strip(Range rows, int64_t j, const ColumnTile& tile, View<T> b, bool first) {
    const int64_t m_tiles = ceil_div(rows.size, sizes.rows), vectors = tile.padded / lanes<T>;
    for (int64_t r = 0; r < m_tiles; ++r) {
      const Range panel = cut(rows.size, m_tiles, r);
      const int64_t i = rows.begin + panel.begin;
      if (first) {
        T* room = a_buffer_ + panel.begin * depth_.size;
        a_views_[r] = a_.panel(room, i, panel.size, panel.size, depth_.begin, depth_.size);
      }
      const auto kernel = kernel_table<T>.kernels[panel.size - 1][vectors - 1];
      T* c = c_ + i * c_step_ + j;
      if (!finish_ || !last_) {
        kernel(depth_.size, a_views_[r], b, c, c_step_, tile.size, add_, nullptr);
      } else {
        const Finish<T> here = {finish_->row_bias ? finish_->row_bias + i : nullptr,
                                finish_->column_bias ? finish_->column_bias + j : nullptr, finish_->relu};
        kernel(depth_.size, a_views_[r], b, c, c_step_, tile.size, add_, &here);
      }
    }
  }

  const A& a_;
  const B& b_;
  T* c_;
  int64_t c_step_;
  const Finish<T>* finish_;
  T *a_buffer_ = nullptr, *b_buffer_ = nullptr;
  bool keep_b_ = false, add_ = false, last_ = false;
  Range depth_ = {};
  View<T> a_views_[sizes.block_m / sizes.rows + 2], b_views_[sizes.block_n / lanes<T> + 2];
};

template <class T, class A, class B> static void core(int64_t m, int64_t n, int64_t k, const A& a, const B& b, T* c,
                                                      int64_t c_step, bool add, const Finish<T>* finish) {
  Core<T, A, B>(a, b, c, c_step, finish).run(m, n, k, add);
}

}  // namespace volta::cpu::VOLTA_ISA
