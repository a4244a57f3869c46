// Recurrent layers on one thread: per step one product with the packed weight, and one loop over the gates. A thread takes rows
// through all of time, or a step of some rows and some units of the state.
#include <algorithm>

#include "backend/cpu/recurrent/kernels/weights.h"
#include "backend/cpu/scratch.h"
#include "backend/cpu/simd/exponential.h"

namespace volta::cpu::VOLTA_ISA {
namespace {

// Some rows of the batch on their way through time.
template <class T> class LayerPass {
 public:
  LayerPass(const RecurrentRun& run, Range rows)
      : run_(run),
        rows_(rows),
        size_(run.size),
        gates_(gates_of(run.cell) * size_),
        units_{0, run.size},
        inputs_{0, 0} {}
  LayerPass(const RecurrentRun& run, Range rows, int64_t group) : LayerPass(run, rows) {
    const Share share = share_of<T>(run, group);
    units_ = share.units, inputs_ = share.inputs;
  }

  void forward() {
    const int64_t step = whole_columns<T>(gates_), whole = whole_rows<T>(rows_.size), depth = run_.columns();
    Room room(scratch(Scratch::panels, size_t(Room::bytes<T>(whole * depth) + Room::bytes<T>(whole * step))));
    T *state = room.take<T>(whole * depth), *products = room.take<T>(whole * step);
    for (int64_t i = 0; i < run_.time; ++i) {
      const int64_t t = run_.reverse ? run_.time - 1 - i : i;
      pack_rows_of(state, depth, 0, i == 0 ? run_.h0 : run_.hidden, larger(0, run_.before(t)), size_);
      if (run_.fused_inputs) pack_rows_of(state, depth, size_, run_.x, t, run_.inputs);
      multiply<T, true>(rows_.size, step, depth, left_packed(state, depth), right_packed(weights(), depth), products,
                        step, false);
      for (int64_t r = 0; r < rows_.size; ++r) {
        look_ahead(r, t, run_.reverse ? t - 1 : t + 1);
        if (!active(r, t)) keep(r, t);
        else advance(r, t, products + r * step, size_);
      }
    }
  }

  void forward_step(int64_t i) {
    const int64_t depth = run_.columns(), wide = whole_columns<T>(units_.size), gates = gates_of(run_.cell),
                  step = gates * wide, t = run_.reverse ? run_.time - 1 - i : i;
    if (i >= 0) {
      T* products = static_cast<T*>(scratch(Scratch::panels, size_t(whole_rows<T>(rows_.size) * step) * sizeof(T)));
      const T* w = weights() + gates * units_.begin * depth;
      for (int64_t g = 0; g < gates; ++g)
        multiply<T, true>(rows_.size, wide, depth, left_packed(packed_rows(i, depth), depth),
                          right_packed(w + g * wide * depth, depth), products + g * wide, step, false);
      for (int64_t r = 0; r < rows_.size; ++r) {
        look_ahead(r, t, run_.reverse ? t - 1 : t + 1);
        if (!active(r, t)) keep(r, t);
        else advance(r, t, products + r * step, wide);
      }
    }
    if (i + 1 == run_.time) return;
    const int64_t next = run_.reverse ? t - 1 : t + 1;
    T* to = packed_rows(i + 1, depth);
    if (i < 0) pack_rows_of(to, depth, units_.begin, run_.h0, 0, units_.size, units_.begin);
    else pack_rows_of(to, depth, units_.begin, run_.hidden, t, units_.size, units_.begin);
    if (inputs_.size > 0) pack_rows_of(to, depth, size_ + inputs_.begin, run_.x, next, inputs_.size, inputs_.begin);
  }

  void backward_step(int64_t i) {
    const auto time_of = [this](int64_t k) { return run_.reverse ? k : run_.time - 1 - k; };
    const int64_t t = time_of(i), wide = whole_columns<T>(units_.size), step = wide + whole_columns<T>(inputs_.size),
                  whole = whole_rows<T>(rows_.size);
    Room room(scratch(Scratch::panels, size_t(Room::bytes<T>(whole * step) + Room::bytes<T>(rows_.size * wide))));
    T *products = room.take<T>(whole * step), *dh = room.take<T>(rows_.size * wide);
    T* const direct = static_cast<T*>(run_.direct) + rows_.begin * size_ + units_.begin;
    T* const dc = static_cast<T*>(run_.cell_gradient) + rows_.begin * size_ + units_.begin;
    if (i == 0) {
      for (int64_t j = 0; j < whole * step; ++j) products[j] = 0;
      for (int64_t r = 0; r < rows_.size; ++r)
        for (int64_t j = 0; j < units_.size; ++j) direct[r * size_ + j] = dc[r * size_ + j] = 0;
    } else {
      const Left<T> left = left_packed(packed_rows(i - 1, gates_), gates_);
      const T* w = weights() + (units_.begin + inputs_.begin) * gates_;
      multiply<T, true>(rows_.size, wide, gates_, left, right_packed(w, gates_), products, step, false);
      if (inputs_.size > 0)
        multiply<T, true>(rows_.size, step - wide, gates_, left, right_packed(w + wide * gates_, gates_),
                          products + wide, step, false);
      for (int64_t r = 0; r < rows_.size && inputs_.size > 0; ++r)
        std::copy_n(products + r * step + wide, inputs_.size, here(run_.grad_x, r, time_of(i - 1)) + inputs_.begin);
    }
    for (int64_t r = 0; r < rows_.size; ++r) {
      const T* p = products + r * step;
      T *h = dh + r * wide, *c = dc + r * size_, *d = direct + r * size_;
      if (i == run_.time) h = here(run_.grad_h0, r, 0) + units_.begin;
      for (int64_t j = 0; j < units_.size; ++j) h[j] = p[j] + d[j];
      if (i == run_.time) {
        T* const c0 = here(run_.grad_c0, r, 0);
        for (int64_t j = 0; j < units_.size && c0; ++j) c0[units_.begin + j] = c[j];
        continue;
      }
      look_ahead(r, t, run_.reverse ? t + 1 : t - 1);
      add(h, here(run_.grad_hidden, r, t));
      add(c, here(run_.grad_cells, r, t));
      if (active(r, t)) retreat(r, t, h, c, d);
      else stay(r, t, h, d);
    }
    for (int64_t g = 0; g < gates_ && i < run_.time; g += size_)
      pack_rows_of(packed_rows(i, gates_), gates_, g + units_.begin,
                   run_.grad_state.data ? run_.grad_state : run_.grad_gates, t, units_.size, g + units_.begin);
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
      multiply<T, true>(rows_.size, step, gates_, left_packed(packed, gates_), right_packed(weights(), gates_),
                        products, step, false);
      for (int64_t r = 0; r < rows_.size && run_.fused_inputs; ++r)
        std::copy_n(products + r * step + size_, run_.inputs, here(run_.grad_x, r, t));
    }
    for (int64_t r = 0; r < rows_.size; ++r) {
      T *h0 = here(run_.grad_h0, r, 0), *c0 = here(run_.grad_c0, r, 0);
      for (int64_t j = 0; j < size_; ++j) h0[j] = products[r * step + j] + direct[r * size_ + j];
      for (int64_t j = 0; j < size_ && c0; ++j) c0[j] = dc[r * size_ + j];
    }
  }

 private:
  // Numbers [from, from + n) of rows as depths from `first` on of a left operand with `depth`.
  void pack_rows_of(T* to, int64_t depth, int64_t first, const Steps& x, int64_t t, int64_t n, int64_t from = 0) const {
    for (int64_t i = 0; i < rows_.size; i += strip<T>)
      pack(PackCall<T>{to + i * depth + first * strip<T>, strip<T>, smaller(strip<T>, rows_.size - i), n,
                       here(x, i, t) + from, x.batch, 1});
  }
  // What all groups pack of these rows at a step.
  T* packed_rows(int64_t step, int64_t depth) const {
    return static_cast<T*>(run_.rows) + (step % 2 * whole_rows<T>(run_.batch) + rows_.begin) * depth;
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
    for (int64_t j = 0; j < units_.size && more; ++j) to[j] += more[units_.begin + j];
  }

  void keep(int64_t r, int64_t t) {
    const T* h = before(run_.h0, run_.hidden, r, t);
    T* to = here(run_.hidden, r, t);
    const int64_t begin = units_.begin, end = begin + units_.size;
    for (int64_t j = begin; j < end; ++j) to[j] = h[j];
    T* cell = here(run_.cells, r, t);
    if (!cell) return;
    const T* c = run_.cell == Cell::lstm ? before(run_.c0, run_.cells, r, t) : h;
    for (int64_t j = begin; j < end; ++j) cell[j] = c[j];
  }

  // The products of a gate are `apart` from those of the next.
  void advance(int64_t r, int64_t t, const T* p, int64_t apart) {
    const int64_t n = size_, q = apart, begin = units_.begin, count = units_.size;
    T *x = here(run_.gates, r, t) + begin, *h = here(run_.hidden, r, t) + begin;
    const T* share = run_.fused_inputs ? static_cast<const T*>(run_.bias) + begin : x;  // what is not in the products
    if (run_.cell == Cell::lstm) {
      const T* c = before(run_.c0, run_.cells, r, t) + begin;
      T* now = here(run_.cells, r, t) + begin;
      const T *next_x = next(run_.gates) + begin, *next_c = next(run_.cells) + begin,
              *next_h = next(run_.hidden) + begin;
      each<T>(count, [=](auto read, auto write, int64_t j) {
        prefetch(next_x + j), prefetch(next_x + n + j), prefetch(next_x + 2 * n + j), prefetch(next_x + 3 * n + j);
        prefetch(next_c + j), prefetch(next_h + j);
        const auto in = gate_sigmoid(read(share + j) + read(p + j)),
                   forget = gate_sigmoid(read(share + n + j) + read(p + q + j)),
                   fresh = gate_tanh(read(share + 2 * n + j) + read(p + 2 * q + j)),
                   out = gate_sigmoid(read(share + 3 * n + j) + read(p + 3 * q + j));
        const auto cell = forget * read(c + j) + in * fresh;
        write(x + j, in), write(x + n + j, forget), write(x + 2 * n + j, fresh), write(x + 3 * n + j, out);
        write(now + j, cell), write(h + j, out * gate_tanh(cell));
      });
    } else if (run_.cell == Cell::gru) {
      const T *old = before(run_.h0, run_.hidden, r, t) + begin, *b = static_cast<const T*>(run_.bias) + begin;
      T* of_n = here(run_.cells, r, t) + begin;
      each<T>(count, [=](auto read, auto write, int64_t j) {
        const auto reset = gate_sigmoid(read(x + j) + (read(p + j) + read(b + j))),
                   update = gate_sigmoid(read(x + n + j) + (read(p + q + j) + read(b + n + j))),
                   state = read(p + 2 * q + j) + read(b + 2 * n + j),
                   fresh = gate_tanh(read(x + 2 * n + j) + reset * state);
        write(x + j, reset), write(x + n + j, update), write(x + 2 * n + j, fresh), write(of_n + j, state);
        write(h + j, fresh + update * (read(old + j) - fresh));
      });
    } else if (run_.cell == Cell::tanh) {
      each<T>(count, [=](auto read, auto write, int64_t j) { write(h + j, gate_tanh(read(share + j) + read(p + j))); });
    } else {
      for (int64_t j = 0; j < count; ++j) h[j] = share[j] + p[j] < 0 ? T(0) : share[j] + p[j];
    }
  }

  void stay(int64_t r, int64_t t, const T* dh, T* direct) {
    T *x = here(run_.grad_gates, r, t), *s = run_.grad_state.data ? here(run_.grad_state, r, t) : x;
    for (int64_t g = units_.begin; g < gates_; g += size_)
      for (int64_t j = g; j < g + units_.size; ++j) x[j] = s[j] = 0;
    for (int64_t j = 0; j < units_.size; ++j) direct[j] = dh[j];
  }

  // Gradients of the gates from those of the state, dh, and the cell, dc, which becomes that of the cell before;
  // `direct` is what reaches the state before by another way than the product. These three begin with the first unit.
  void retreat(int64_t r, int64_t t, const T* dh, T* dc, T* direct) {
    const int64_t n = size_, begin = units_.begin, count = units_.size;
    const T *x = here(run_.gates, r, t) + begin, *h = here(run_.hidden, r, t) + begin;
    T* d = here(run_.grad_gates, r, t) + begin;
    if (run_.cell == Cell::lstm) {
      const T *c = before(run_.c0, run_.cells, r, t) + begin, *now = here(run_.cells, r, t) + begin;
      const T *next_x = next(run_.gates) + begin, *next_d = next(run_.grad_gates) + begin,
              *next_h = run_.grad_hidden.data ? next(run_.grad_hidden) + begin : next_x;
      const T* next_c = before(run_.c0, run_.cells, next_row_, next_t_) + begin;
      each<T>(count, [=](auto read, auto write, int64_t j) {
        prefetch(next_x + j), prefetch(next_x + n + j), prefetch(next_x + 2 * n + j), prefetch(next_x + 3 * n + j);
        prefetch(next_d + j), prefetch(next_d + n + j), prefetch(next_d + 2 * n + j), prefetch(next_d + 3 * n + j);
        prefetch(next_c + j), prefetch(next_h + j);
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
      const T *old = before(run_.h0, run_.hidden, r, t) + begin, *share = here(run_.cells, r, t) + begin;
      T* s = here(run_.grad_state, r, t) + begin;
      each<T>(count, [=](auto read, auto write, int64_t j) {
        const auto reset = read(x + j), update = read(x + n + j), fresh = read(x + 2 * n + j), g = read(dh + j);
        const auto dn = g * (1 - update) * (1 - fresh * fresh), dr = dn * read(share + j) * reset * (1 - reset),
                   dz = g * (read(old + j) - fresh) * update * (1 - update);
        write(d + j, dr), write(d + n + j, dz), write(d + 2 * n + j, dn);
        write(s + j, dr), write(s + n + j, dz), write(s + 2 * n + j, dn * reset);
        write(direct + j, g * update);
      });
    } else {
      const bool relu = run_.cell == Cell::relu;
      for (int64_t j = 0; j < count; ++j) {
        d[j] = relu ? (h[j] > 0 ? dh[j] : T(0)) : dh[j] * (1 - h[j] * h[j]);
        direct[j] = 0;
      }
    }
  }

  const RecurrentRun& run_;
  Range rows_;
  int64_t size_, gates_, next_row_ = 0, next_t_ = 0;
  Range units_, inputs_;  // of the state and of the input, where a group has them
};

template <class T>
constexpr RecurrentKernel kernel = {gemm_tile<T>,
                                    packed<T>,
                                    pack_weights<T>,
                                    [](const RecurrentRun& run, Range rows) { LayerPass<T>(run, rows).forward(); },
                                    [](const RecurrentRun& run, Range rows) { LayerPass<T>(run, rows).backward(); },
                                    [](const RecurrentRun& run, Range rows, int64_t group, int64_t step) {
                                      LayerPass<T>(run, rows, group).forward_step(step);
                                    },
                                    [](const RecurrentRun& run, Range rows, int64_t group, int64_t step) {
                                      LayerPass<T>(run, rows, group).backward_step(step);
                                    },
                                    weight_gradient<T>};

}  // namespace
}  // namespace volta::cpu::VOLTA_ISA

template <> volta::cpu::RecurrentKernel volta::cpu::recurrent_kernel<volta::cpu::Isa::VOLTA_ISA>(DType dtype) {
  return dtype == f64 ? VOLTA_ISA::kernel<double> : VOLTA_ISA::kernel<float>;
}
