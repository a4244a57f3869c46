// The loops of the packed GEMM around its tiles: what runs on one thread.
#pragma once
#include "backend/cpu/gemm/kernels/pack.h"
#include "backend/cpu/gemm/plan.h"
#include "backend/cpu/scratch.h"

namespace volta::cpu::VOLTA_ISA {
namespace {

template <class T> T* buffer(Scratch purpose, int64_t count) {
  return static_cast<T*>(scratch(purpose, size_t(count) * sizeof(T)));
}

// Cut into parts of nearly equal size, the larger ones first.
struct Parts {
  int64_t count, low, higher;  // parts of low + 1, and then of low
  Parts() = default;
  Parts(int64_t total, int64_t parts) : count(parts), low(quotient(total, parts)), higher(total - low * parts) {}
  int64_t size(int64_t i) const { return low + (i < higher); }
  int64_t begin(int64_t i) const { return i * low + smaller(i, higher); }
};

// C[m x n] (+)= A B. A and B are operands with panel(); C's rows are contiguous. Blocks along n, k and m; tiles of nearly
// equal size.
template <class T, class A, class B, class Tile = PlainTile<T>> class Multiplication {
 public:
  Multiplication(const A& a, const B& b, T* c, int64_t c_step) : a_(a), b_(b), c_(c), c_step_(c_step) {}

  // Calls done(rows, columns) for each block whose sums are complete, while the caches hold it.
  template <class Done> void run(int64_t m, int64_t n, int64_t k, bool add, const Done& done) {
    const int64_t k_blocks = larger(1, ceil_div(k, s.block_k)), m_blocks = ceil_div(m, s.block_m);
    together_b_ = side_by_side(b_) && m > few_rows && k_blocks > 1;
    keep_b_ = m_blocks > 1 || together_b_;
    const int64_t depth = k_blocks == 1 ? k : ceil_div(k, k_blocks);
    const int64_t a_room = ceil_div((smaller(m, s.block_m) + unit - 1) * depth, 16) * 16;
    const int64_t b_room = (keep_b_ ? smaller(n, s.block_n) + lanes<T> : s.vectors * lanes<T>)*depth;
    a_buffer_ = buffer<Element>(Scratch::panels, a_room + b_room + lanes<T>);  // the last panel may be overrun
    b_buffer_ = a_buffer_ + a_room;
    for (int64_t j = 0; j < n; j += s.block_n) {
      for (int64_t kb = 0; kb < k_blocks; ++kb) {
        depth_ = {0, k};
        if (k_blocks > 1) depth_ = {k * kb / k_blocks, k * (kb + 1) / k_blocks - k * kb / k_blocks};
        for (int64_t mb = 0; mb < m_blocks; ++mb) {
          const Range rows = {mb * s.block_m, smaller(s.block_m, m - mb * s.block_m)},
                      columns = {j, smaller(s.block_n, n - j)};
          block(rows, columns, mb == 0, add || kb > 0);
          if (kb == k_blocks - 1) done(rows, columns);
        }
      }
    }
  }

 private:
  using Element = typename Tile::Element;
  using Panel = View<Element>;
  static constexpr TileSizes s = Tile::sizes;
  static constexpr int64_t most_strips = s.block_m / s.rows(s.vectors) + 1;
  static constexpr int64_t few_rows = 64;  // use a panel of B too seldom for it to come from the second cache
  static constexpr int64_t unit = Step<Element>::rows_together;
  static_assert(ceil_div(s.block_n, s.vectors* lanes<T>) <= Quotients::most && s.block_m <= Quotients::most);

  // Rows of C whose panels of A fit the second cache. The first such block packs panels of B, for the others too.
  [[gnu::noinline]] void block(Range rows, Range columns, bool first, bool add) {
    const int64_t vectors = ceil_div(columns.size, lanes<T>), units = ceil_div(rows.size, unit);
    const Parts tiles(vectors, ceil_div(vectors, s.vectors));
    const int64_t highest = s.rows(tiles.size(0));
    const Parts strips(units, quotient(rows.size + highest - 1, highest));
    rows_ = rows, columns_ = columns, tiles_ = tiles, strips_ = strips;
    const bool together_a = side_by_side(a_);
    if (first && together_b_) pack_together(b_, columns, tiles, lanes<T>, b_buffer_, b_views_);
    if (together_a) pack_together(a_, rows, strips, unit, a_buffer_, a_views_);
    for (int64_t t = 0, j = columns.begin, width; t < tiles.count; ++t, j += width) {
      const auto kernels = kernel_table<T, Tile>.kernels[tiles.size(t) - 1];
      const Panel b = first && !together_b_ ? pack_b(t) : b_views_[t];
      b_views_[t] = b;
      width = tiles.size(t) * lanes<T>;
      TileCall<T, Element> call = {
          depth_.size, {}, b, c_ + rows.begin * c_step_ + j, c_step_, smaller(width, columns.begin + columns.size - j),
          add};
      for (int64_t r = 0; r < strips.count; ++r) {
        const int64_t height = strip(r).size;
        const Panel a = t == 0 && !together_a ? pack_a(r) : a_views_[r];
        a_views_[r] = a;
        call.a = a;
        kernels[height - 1](call);
        call.c += height * c_step_;
      }
    }
  }

  // Rows of strip r of the block.
  Range strip(int64_t r) const {
    const int64_t begin = strips_.begin(r) * unit, whole = strips_.size(r) * unit;
    return {begin, unit == 1 ? whole : smaller(whole, rows_.size - begin)};
  }

  // Panels of the block.
  Panel pack_a(int64_t r) const {
    const auto [at, height] = strip(r);
    return a_.panel(a_buffer_ + at * depth_.size, rows_.begin + at, height, height, depth_.begin, depth_.size);
  }
  Panel pack_b(int64_t t) const {
    const int64_t at = tiles_.begin(t) * lanes<T>, width = tiles_.size(t) * lanes<T>;
    Element* room = b_buffer_ + (keep_b_ ? at * depth_.size : 0);
    return b_.panel(room, columns_.begin + at, smaller(width, columns_.size - at), width, depth_.begin, depth_.size);
  }

  // Panels that lie side by side in memory are packed together. Others are packed at their first use, which finds them in the
  // first cache.
  template <class Operand> static bool side_by_side(const Operand& x) {
    if constexpr (requires { x.side_by_side(); }) return x.side_by_side();
    else return false;
  }
  // The panels of `all`, which is cut into parts by units of `size`; the last one may reach beyond it.
  template <class Operand> [[gnu::noinline]] void pack_together(const Operand& x, Range all, const Parts& parts,
                                                                int64_t size, Element* room, Panel* views) const {
    if constexpr (requires { x.side_by_side(); }) {
      const bool ragged = parts.begin(parts.count) * size > all.size;
      for (int64_t first = 0, last; first < parts.count; first = last) {
        last = first < parts.higher ? parts.higher : parts.count;
        const int64_t begin = parts.begin(first) * size, tile = parts.size(first) * size;
        const int64_t whole = last - first - (ragged && last == parts.count);
        x.panels(room + begin * depth_.size, whole, all.begin + begin, tile, depth_.begin, depth_.size);
        for (int64_t i = first; i < last; ++i) views[i] = {room + parts.begin(i) * size * depth_.size, 1, tile};
      }
      if (!ragged) return;
      const int64_t begin = parts.begin(parts.count - 1) * size;
      const Panel last = views[parts.count - 1];
      x.panel(room + begin * depth_.size, all.begin + begin, all.size - begin, last.depth_step, depth_.begin,
              depth_.size);
    }
  }

  const A& a_;
  const B& b_;
  T* c_;
  int64_t c_step_;
  Element *a_buffer_, *b_buffer_;
  bool keep_b_, together_b_;
  Range depth_, rows_, columns_;
  Parts tiles_, strips_;  // of the block
  Panel a_views_[most_strips], b_views_[s.block_n / lanes<T> + 1];
};

// An operand that is made elsewhere.
template <class T> struct ErasedOperand {
  const PanelOperand<T>& operand;
  bool side_by_side() const { return operand.panels != nullptr; }
  void panels(T* to, int64_t count, int64_t i, int64_t tile, int64_t p, int64_t k) const {
    operand.panels(operand.self, to, count, i, tile, p, k);
  }
  View<T> panel(T* buffer, int64_t i, int64_t n, int64_t tile, int64_t p, int64_t k) const {
    const PanelView<T> v = operand.panel(operand.self, buffer, i, n, tile, p, k);
    return {v.data, v.step, v.depth_step};
  }
};

}  // namespace
}  // namespace volta::cpu::VOLTA_ISA
