// Recurrent layers on one thread: per step one product with the packed weight, and one loop over the gates.
#include "backend/cpu/recur.h"

#include <algorithm>

#include "backend/cpu/isa/exponential.h"
#include "backend/cpu/isa/panels.h"
#include "backend/cpu/isa/tiles.h"
#include "backend/cpu/scratch.h"

namespace volta::cpu::VOLTA_ISA {
namespace {

template <class T> T* at(const Steps& x, int64_t row, int64_t t) {
  return x.data ? static_cast<T*>(x.data) + t * x.time + row * x.batch : nullptr;
}
// The state of a row before the step at t.
template <class T>
const T* state_before(const RecurRun& run, const Steps& first, const Steps& all, int64_t row, int64_t t) {
  return run.before(t) < 0 ? at<T>(first, row, 0) : at<T>(all, row, run.before(t));
}

// Wide vectors get through a row faster than it comes from far, and no prefetcher follows from one row to the next.
#ifndef VOLTA_DEPTH
#define VOLTA_DEPTH 1000000
#endif
constexpr int64_t depth_at_once = VOLTA_DEPTH;
template <class T> [[gnu::always_inline]] inline void ask(const T* x, int64_t ahead = 0) {
  const auto where = reinterpret_cast<uintptr_t>(x) + uintptr_t(ahead) * sizeof(T);  // where nothing may lie
  if constexpr (register_bytes == 64) __builtin_prefetch(reinterpret_cast<const void*>(where));
}

// Some rows of the batch on their way through time.
template <class T> class Way {
 public:
  Way(const RecurRun& run, Range rows) : run_(run), rows_(rows), size_(run.size), gates_(gates_of(run.cell) * size_) {}

  void forward() {
    const int64_t step = whole_columns<T>(gates_), whole = whole_rows<T>(rows_.size), depth = run_.columns();
    Room room(scratch(Scratch::panels, size_t(Room::bytes<T>(whole * depth) + Room::bytes<T>(whole * step))));
    T *state = room.take<T>(whole * depth), *products = room.take<T>(whole * step);
    for (int64_t i = 0; i < run_.time; ++i) {
      const int64_t t = run_.reverse ? run_.time - 1 - i : i;
      pack_rows_of(state, depth, 0, i == 0 ? run_.h0 : run_.hidden, larger(0, run_.before(t)), size_);
      if (run_.takes_inputs) pack_rows_of(state, depth, size_, run_.x, t, run_.inputs);
      multiply(rows_.size, step, depth, left_packed(state, depth), {weights(), depth, 0}, products, step, false,
               depth_at_once);
      for (int64_t r = 0; r < rows_.size; ++r) {
        look_ahead(r, t, run_.reverse ? t - 1 : t + 1);
        if (!active(r, t)) keep(r, t);
        else advance(r, t, products + r * step);
      }
    }
  }

  void backward() {
    const int64_t step = whole_columns<T>(run_.columns()), whole = whole_rows<T>(rows_.size);
    const int64_t rooms[] = {whole * gates_, whole * step, rows_.size * size_, rows_.size * size_, rows_.size * size_};
    int64_t bytes = 0;
    for (const int64_t n : rooms) bytes += Room::bytes<T>(n);
    Room room(scratch(Scratch::panels, size_t(bytes)));
    T *packed = room.take<T>(rooms[0]), *products = room.take<T>(rooms[1]);
    T *direct = room.take<T>(rooms[2]), *dc = room.take<T>(rooms[3]), *dh = room.take<T>(rooms[4]);
    for (int64_t i = 0; i < rows_.size * size_; ++i) direct[i] = dc[i] = 0;
    for (int64_t i = 0; i < whole * step; ++i) products[i] = 0;
    for (int64_t i = run_.time - 1; i >= 0; --i) {
      const int64_t t = run_.reverse ? run_.time - 1 - i : i;
      for (int64_t r = 0; r < rows_.size; ++r) {
        look_ahead(r, t, run_.reverse ? t + 1 : t - 1);
        const T* p = products + r * step;
        T *h = dh + r * size_, *c = dc + r * size_, *d = direct + r * size_;
        for (int64_t j = 0; j < size_; ++j) h[j] = p[j] + d[j];
        add(h, here(run_.grad_hidden, r, t));
        add(c, here(run_.grad_cells, r, t));
        if (active(r, t)) retreat(r, t, h, c, d);
        else stay(r, t, h, d);
      }
      pack_rows_of(packed, gates_, 0, run_.grad_state.data ? run_.grad_state : run_.grad_gates, t, gates_);
      multiply(rows_.size, step, gates_, left_packed(packed, gates_), {weights(), gates_, 0}, products, step, false,
               depth_at_once);
      for (int64_t r = 0; r < rows_.size && run_.takes_inputs; ++r)
        std::copy_n(products + r * step + size_, run_.inputs, here(run_.grad_x, r, t));
    }
    for (int64_t r = 0; r < rows_.size; ++r) {
      T *h0 = here(run_.grad_h0, r, 0), *c0 = here(run_.grad_c0, r, 0);
      for (int64_t j = 0; j < size_; ++j) h0[j] = products[r * step + j] + direct[r * size_ + j];
      for (int64_t j = 0; j < size_ && c0; ++j) c0[j] = dc[r * size_ + j];
    }
  }

 private:
  // Rows of n numbers as depths from `first` on of a left operand with `depth`.
  void pack_rows_of(T* to, int64_t depth, int64_t first, const Steps& x, int64_t t, int64_t n) const {
    for (int64_t i = 0; i < rows_.size; i += strip<T>)
      pack(PackCall<T>{to + i * depth + first * strip<T>, strip<T>, smaller(strip<T>, rows_.size - i), n, here(x, i, t),
                       x.batch, 1});
  }
  static Left<T> left_packed(const T* rows, int64_t depth) { return {rows, strip<T> * depth, 1, strip<T>}; }
  const T* weights() const { return static_cast<const T*>(run_.packed); }
  bool active(int64_t r, int64_t t) const { return !run_.lengths || t < run_.lengths[rows_.begin + r]; }
  T* here(const Steps& x, int64_t r, int64_t t) const { return at<T>(x, rows_.begin + r, t); }
  const T* before(const Steps& first, const Steps& all, int64_t r, int64_t t) const {
    return state_before<T>(run_, first, all, rows_.begin + r, t);
  }

  // Which row comes after this one, if any.
  void look_ahead(int64_t r, int64_t t, int64_t next) {
    const bool ends = r + 1 == rows_.size;
    next_row_ = ends ? 0 : r + 1, next_t_ = !ends ? t : next < 0 || next == run_.time ? t : next;
  }
  const T* next(const Steps& x) const { return here(x, next_row_, next_t_); }

  void add(T* to, const T* more) const {
    for (int64_t j = 0; j < size_ && more; ++j) to[j] += more[j];
  }

  void keep(int64_t r, int64_t t) {
    const T* h = before(run_.h0, run_.hidden, r, t);
    T* to = here(run_.hidden, r, t);
    for (int64_t j = 0; j < size_; ++j) to[j] = h[j];
    T* cell = here(run_.cells, r, t);
    if (!cell) return;
    const T* c = run_.cell == Cell::lstm ? before(run_.c0, run_.cells, r, t) : h;
    for (int64_t j = 0; j < size_; ++j) cell[j] = c[j];
  }

  void advance(int64_t r, int64_t t, const T* p) {
    const int64_t n = size_;
    T *x = here(run_.gates, r, t), *h = here(run_.hidden, r, t);
    const T* share = run_.takes_inputs ? static_cast<const T*>(run_.bias) : x;  // what is not in the products
    if (run_.cell == Cell::lstm) {
      const T* c = before(run_.c0, run_.cells, r, t);
      T* now = here(run_.cells, r, t);
      const T *next_x = next(run_.gates), *next_c = next(run_.cells), *next_h = next(run_.hidden);
      each<T>(n, [=](auto read, auto write, int64_t j) {
        ask(next_x + j), ask(next_x + n + j), ask(next_x + 2 * n + j), ask(next_x + 3 * n + j);
        ask(next_c + j), ask(next_h + j);
        const auto in = gate_sigmoid(read(share + j) + read(p + j)),
                   forget = gate_sigmoid(read(share + n + j) + read(p + n + j)),
                   fresh = gate_tanh(read(share + 2 * n + j) + read(p + 2 * n + j)),
                   out = gate_sigmoid(read(share + 3 * n + j) + read(p + 3 * n + j));
        const auto cell = forget * read(c + j) + in * fresh;
        write(x + j, in), write(x + n + j, forget), write(x + 2 * n + j, fresh), write(x + 3 * n + j, out);
        write(now + j, cell), write(h + j, out * gate_tanh(cell));
      });
    } else if (run_.cell == Cell::gru) {
      const T *old = before(run_.h0, run_.hidden, r, t), *b = static_cast<const T*>(run_.bias);
      T* of_n = here(run_.cells, r, t);
      each<T>(n, [=](auto read, auto write, int64_t j) {
        const auto reset = gate_sigmoid(read(x + j) + (read(p + j) + read(b + j))),
                   update = gate_sigmoid(read(x + n + j) + (read(p + n + j) + read(b + n + j))),
                   state = read(p + 2 * n + j) + read(b + 2 * n + j),
                   fresh = gate_tanh(read(x + 2 * n + j) + reset * state);
        write(x + j, reset), write(x + n + j, update), write(x + 2 * n + j, fresh), write(of_n + j, state);
        write(h + j, fresh + update * (read(old + j) - fresh));
      });
    } else if (run_.cell == Cell::tanh) {
      each<T>(n, [=](auto read, auto write, int64_t j) { write(h + j, gate_tanh(read(share + j) + read(p + j))); });
    } else {
      for (int64_t j = 0; j < n; ++j) h[j] = share[j] + p[j] < 0 ? T(0) : share[j] + p[j];
    }
  }

  void stay(int64_t r, int64_t t, const T* dh, T* direct) {
    T *x = here(run_.grad_gates, r, t), *s = run_.grad_state.data ? here(run_.grad_state, r, t) : x;
    for (int64_t j = 0; j < gates_; ++j) x[j] = s[j] = 0;
    for (int64_t j = 0; j < size_; ++j) direct[j] = dh[j];
  }

  // Gradients of the gates from those of the state, dh, and the cell, dc, which becomes that of the cell before;
  // `direct` is what reaches the state before by another way than the product.
  void retreat(int64_t r, int64_t t, const T* dh, T* dc, T* direct) {
    const int64_t n = size_;
    const T *x = here(run_.gates, r, t), *h = here(run_.hidden, r, t);
    T* d = here(run_.grad_gates, r, t);
    if (run_.cell == Cell::lstm) {
      const T *c = before(run_.c0, run_.cells, r, t), *now = here(run_.cells, r, t);
      const T *next_x = next(run_.gates), *next_d = next(run_.grad_gates),
              *next_h = run_.grad_hidden.data ? next(run_.grad_hidden) : next_x;
      const T* next_c = before(run_.c0, run_.cells, next_row_, next_t_);
      each<T>(n, [=](auto read, auto write, int64_t j) {
        ask(next_x + j), ask(next_x + n + j), ask(next_x + 2 * n + j), ask(next_x + 3 * n + j);
        ask(next_d + j), ask(next_d + n + j), ask(next_d + 2 * n + j), ask(next_d + 3 * n + j);
        ask(next_c + j), ask(next_h + j);
        const auto in = read(x + j), forget = read(x + n + j), fresh = read(x + 2 * n + j), out = read(x + 3 * n + j);
        const auto squashed = gate_tanh(read(now + j)), g = read(dh + j);
        const auto cell = read(dc + j) + g * out * (1 - squashed * squashed);
        write(d + j, cell * fresh * in * (1 - in));
        write(d + n + j, cell * read(c + j) * forget * (1 - forget));
        write(d + 2 * n + j, cell * in * (1 - fresh * fresh));
        write(d + 3 * n + j, g * squashed * out * (1 - out));
        write(dc + j, cell * forget);
        write(direct + j, std::remove_const_t<decltype(g)>{});
      });
    } else if (run_.cell == Cell::gru) {
      const T *old = before(run_.h0, run_.hidden, r, t), *share = here(run_.cells, r, t);
      T* s = here(run_.grad_state, r, t);
      each<T>(n, [=](auto read, auto write, int64_t j) {
        const auto reset = read(x + j), update = read(x + n + j), fresh = read(x + 2 * n + j), g = read(dh + j);
        const auto dn = g * (1 - update) * (1 - fresh * fresh), dr = dn * read(share + j) * reset * (1 - reset),
                   dz = g * (read(old + j) - fresh) * update * (1 - update);
        write(d + j, dr), write(d + n + j, dz), write(d + 2 * n + j, dn);
        write(s + j, dr), write(s + n + j, dz), write(s + 2 * n + j, dn * reset);
        write(direct + j, g * update);
      });
    } else {
      const bool relu = run_.cell == Cell::relu;
      for (int64_t j = 0; j < n; ++j) {
        d[j] = relu ? (h[j] > 0 ? dh[j] : T(0)) : dh[j] * (1 - h[j] * h[j]);
        direct[j] = 0;
      }
    }
  }

  const RecurRun& run_;
  Range rows_;
  int64_t size_, gates_, next_row_ = 0, next_t_ = 0;
};

// Packs `count` panels of the right operand from columns [i, i + n) of rows that consist of two pieces, the first `first` wide;
// next() gives the pieces of one row after the other, and where later ones of the first kind lie.
template <class T> struct Pieces {
  const T *first, *second;
  int64_t ahead;
};
template <class T, class Next>
void pack_pieces(T* to, int64_t count, int64_t tile, int64_t i, int64_t n, int64_t k, int64_t first, Next next) {
  const auto copy = [](T * out, const T* in, int64_t size) __attribute__((always_inline)) {
    each<T>(size, [=](auto read, auto write, int64_t j) { write(out + j, read(in + j)); });
  };
  for (int64_t p = 0; p < k; ++p) {
    const Pieces<T> row = next();
    for (int64_t at = 0; at < count * tile; at += tile) {
      T* const out = to + at * k + p * tile;
      const int64_t j = i + at, size = smaller(tile, n - at), of_first = std::clamp<int64_t>(first - j, 0, size);
      for (int64_t l = 0; l < of_first; l += 64 / int(sizeof(T))) ask(row.first + j + l, row.ahead);
      copy(out, row.first + j, of_first);
      if (of_first < size) copy(out + of_first, row.second + (j + of_first - first), size - of_first);
      for (int64_t l = size; l < tile; ++l) out[l] = 0;
    }
  }
}

// Numbers of the packed weights: forward the state is multiplied by the transposed weights, backward the gates' gradient by
// the weights.
template <class T> int64_t packed(const RecurRun& run, bool backward) {
  const int64_t gates = gates_of(run.cell) * run.size;
  return backward ? gates * whole_columns<T>(run.columns()) : run.columns() * whole_columns<T>(gates);
}

template <class T> void pack_weights(const RecurRun& run, bool backward, int64_t part, int64_t parts) {
  const int64_t gates = gates_of(run.cell) * run.size, rows = backward ? gates : run.columns(),
                columns = backward ? run.columns() : gates, inputs = run.columns() - run.size;
  const T *state = static_cast<const T*>(run.w_hh), *input = static_cast<const T*>(run.w_ih);
  int64_t tile = 0;
  each_tile<T>(columns, [&](int64_t i, int64_t width) {
    if (tile++ % parts != part) return;
    T* to = static_cast<T*>(run.packed) + i * rows;
    const int64_t n = smaller(width, columns - i);
    if (backward) {
      int64_t row = -1;
      return pack_pieces(to, 1, width, i, n, gates, run.size, [&] {
        ++row;
        return Pieces<T>{state + row * run.size, input + row * inputs, 8 * run.size};
      });
    }
    pack(PackCall<T>{to, width, n, run.size, state + i * run.size, run.size, 1});
    pack(PackCall<T>{to + run.size * width, width, n, inputs, input + i * inputs, inputs, 1});
  });
}

// Of the gradients of the weights, side by side, the columns from `column` on: what is multiplied with the gates' gradients, at
// each step and row of the batch the state before it, and beside that the input.
template <class T> struct Weighed {
  const RecurRun& run;
  int64_t column;

  static void pack(const void* self, T* to, int64_t count, int64_t i, int64_t n, int64_t tile, int64_t p, int64_t k) {
    const auto& [run, column] = *static_cast<const Weighed*>(self);
    int64_t t = p / run.batch, row = p % run.batch - 1;
    pack_pieces(to, count, tile, column + i, n, k, run.size, [&, &run = run] {
      if (++row == run.batch) row = 0, ++t;
      const T* state = state_before<T>(run, run.h0, run.hidden, row, t);
      return Pieces<T>{state, at<T>(run.x, row, t), 4 * run.hidden.batch};
    });
  }
  static PanelView<T> panel(const void* self, T* to, int64_t i, int64_t n, int64_t tile, int64_t p, int64_t k) {
    pack(self, to, 1, i, n, tile, p, k);
    return {to, 1, tile};
  }
  static void panels(const void* self, T* to, int64_t count, int64_t i, int64_t tile, int64_t p, int64_t k) {
    pack(self, to, count, i, count * tile, tile, p, k);
  }
};

template <class T> void weigh(const RecurRun& run, const Rectangle& r) {
  const int64_t m = r.rows.size, n = r.columns.size, gates = gates_of(run.cell) * run.size;
  const bool of_state = r.columns.begin < run.size && run.grad_state.data;
  const T* grads = static_cast<const T*>(of_state ? run.grad_state.data : run.grad_gates.data);
  const MatrixOperand<T, !by_lane> a = {grads + r.rows.begin, 1, gates, false};
  const Weighed<T> b = {run, r.columns.begin};
  T* sums = static_cast<T*>(scratch(Scratch::tile, size_t(m * n) * sizeof(T)));
  multiply_panels(PanelProduct<T>{m, n, run.time * run.batch, operand(a), {&b, b.panel, b.panels}, sums, n, false});
  const auto hand_out = [&](void* grad, int64_t first, int64_t width) {  // columns of both that belong to one weight
    const int64_t begin = larger(first, r.columns.begin), end = smaller(first + width, r.columns.begin + n);
    if (!grad) return;
    for (int64_t i = 0; i < m && begin < end; ++i)
      std::copy(sums + i * n + begin - r.columns.begin, sums + i * n + end - r.columns.begin,
                static_cast<T*>(grad) + (r.rows.begin + i) * width + begin - first);
  };
  hand_out(run.grad_w_hh, 0, run.size);
  hand_out(run.grad_w_ih, run.size, run.inputs);
}

template <class T>
constexpr RecurKernel kernel = {{strip<T>, sizes<T>.vectors* lanes<T>, lanes<T>, by_lane ? 6 : 16, by_lane ? 4 : 10},
                                packed<T>,
                                pack_weights<T>,
                                [](const RecurRun& run, Range rows) { Way<T>(run, rows).forward(); },
                                [](const RecurRun& run, Range rows) { Way<T>(run, rows).backward(); },
                                weigh<T>};

}  // namespace
}  // namespace volta::cpu::VOLTA_ISA

template <> volta::cpu::RecurKernel volta::cpu::recur_kernel<volta::cpu::Isa::VOLTA_ISA>(DType dtype) {
  return dtype == f64 ? VOLTA_ISA::kernel<double> : VOLTA_ISA::kernel<float>;
}
