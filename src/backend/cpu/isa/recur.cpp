// Recurrent layers on one thread: per step one product with the packed weight, and one loop over the gates.
#include "backend/cpu/recur.h"

#include <algorithm>

#include "backend/cpu/isa/exponential.h"
#include "backend/cpu/isa/tiles.h"
#include "backend/cpu/scratch.h"

namespace volta::cpu::VOLTA_ISA {
namespace {

// Some rows of the batch on their way through time.
template <class T> class Way {
 public:
  Way(const RecurRun& run, Range rows)
      : run_(run), rows_(rows), size_(run.size), inputs_(run.inputs), gates_(gates_of(run.cell) * run.size) {}

  void forward() {
    const int64_t step = whole_columns<T>(gates_), whole = whole_rows<T>(rows_.size), depth = size_ + inputs_;
    Room room(scratch(Scratch::panels, size_t(Room::bytes<T>(whole * depth) + Room::bytes<T>(whole * step))));
    T *state = room.take<T>(whole * depth), *products = room.take<T>(whole * step);
    for (int64_t i = 0; i < run_.time; ++i) {
      const int64_t t = run_.reverse ? run_.time - 1 - i : i, before = i == 0 ? -1 : run_.reverse ? t + 1 : t - 1;
      pack_rows_of(state, depth, 0, previous(run_.h0, run_.hidden, before, 0), size_);
      if (inputs_ > 0) pack_rows_of(state, depth, size_, at(run_.x, 0, t, inputs_), inputs_);
      multiply_weight(state, depth, products, step);
      for (int64_t r = 0; r < rows_.size; ++r) {
        if (!active(r, t)) keep(r, t, before);
        else advance(r, t, before, products + r * step);
      }
    }
  }

  void backward() {
    const int64_t step = whole_columns<T>(size_ + inputs_), whole = whole_rows<T>(rows_.size);
    const int64_t rooms[] = {whole * gates_, whole * step, rows_.size * size_, rows_.size * size_, rows_.size * size_};
    int64_t bytes = 0;
    for (const int64_t n : rooms) bytes += Room::bytes<T>(n);
    Room room(scratch(Scratch::panels, size_t(bytes)));
    T *packed = room.take<T>(rooms[0]), *products = room.take<T>(rooms[1]);
    T *direct = room.take<T>(rooms[2]), *dc = room.take<T>(rooms[3]), *dh = room.take<T>(rooms[4]);
    for (int64_t i = 0; i < rows_.size * size_; ++i) direct[i] = dc[i] = 0;
    for (int64_t i = 0; i < whole * step; ++i) products[i] = 0;
    for (int64_t i = run_.time - 1; i >= 0; --i) {
      const int64_t t = run_.reverse ? run_.time - 1 - i : i, before = i == 0 ? -1 : run_.reverse ? t + 1 : t - 1;
      for (int64_t r = 0; r < rows_.size; ++r) {
        const T *g = came(run_.grad_hidden, r, t), *gc = came(run_.grad_cells, r, t), *p = products + r * step;
        T *h = dh + r * size_, *c = dc + r * size_, *d = direct + r * size_;
        for (int64_t j = 0; j < size_; ++j) h[j] = p[j] + d[j];
        add(h, g);
        add(c, gc);
        if (active(r, t)) retreat(r, t, before, h, c, d);
        else stay(r, t, h, d);
      }
      const T* grads = static_cast<const T*>(run_.grad_state ? run_.grad_state : run_.grad_gates);
      pack_rows_of(packed, gates_, 0, grads + (t * run_.batch + rows_.begin) * gates_, gates_);
      multiply_weight(packed, gates_, products, step);
      for (int64_t r = 0; r < rows_.size && inputs_ > 0; ++r)
        std::copy_n(products + r * step + size_, inputs_, at(run_.grad_x, r, t, inputs_));
    }
    for (int64_t r = 0; r < rows_.size; ++r) {
      const int64_t at = (rows_.begin + r) * size_;
      T *h0 = static_cast<T*>(run_.grad_h0) + at, *c0 = static_cast<T*>(run_.grad_c0);
      for (int64_t j = 0; j < size_; ++j) h0[j] = products[r * step + j] + direct[r * size_ + j];
      for (int64_t j = 0; j < size_ && c0; ++j) c0[at + j] = dc[r * size_ + j];
    }
  }

 private:
  // Rows of n numbers as depths from `first` on of a left operand with `depth`.
  void pack_rows_of(T* to, int64_t depth, int64_t first, const T* rows, int64_t n) const {
    for (int64_t i = 0; i < rows_.size; i += strip<T>)
      pack(PackCall<T>{to + i * depth + first * strip<T>, strip<T>, smaller(strip<T>, rows_.size - i), n, rows + i * n,
                       n, 1});
  }
  void multiply_weight(const T* packed, int64_t depth, T* products, int64_t step) const {
    const Left<T> left = {packed, strip<T> * depth, 1, strip<T>};
    multiply(rows_.size, step, depth, left, {static_cast<const T*>(run_.packed), depth, 0}, products, step, false);
  }
  bool active(int64_t r, int64_t t) const { return !run_.lengths || t < run_.lengths[rows_.begin + r]; }
  T* at(const void* x, int64_t r, int64_t t, int64_t width) const {
    return const_cast<T*>(static_cast<const T*>(x)) + (t * run_.batch + rows_.begin + r) * width;
  }
  // The state of row r before this step; `before` is -1 at the first.
  const T* previous(const void* first, const void* all, int64_t before, int64_t r) const {
    return before < 0 ? at(first, r, 0, size_) : at(all, r, before, size_);
  }
  const T* came(const RecurRun::Incoming& g, int64_t r, int64_t t) const {
    return g.data ? static_cast<const T*>(g.data) + t * g.time + (rows_.begin + r) * g.batch : nullptr;
  }

  void add(T* to, const T* more) const {
    for (int64_t j = 0; j < size_ && more; ++j) to[j] += more[j];
  }

  void keep(int64_t r, int64_t t, int64_t before) {
    const T* h = previous(run_.h0, run_.hidden, before, r);
    T* to = at(run_.hidden, r, t, size_);
    for (int64_t j = 0; j < size_; ++j) to[j] = h[j];
    if (!run_.cells) return;
    const T* c = run_.cell == Cell::lstm ? previous(run_.c0, run_.cells, before, r) : h;
    T* cell = at(run_.cells, r, t, size_);
    for (int64_t j = 0; j < size_; ++j) cell[j] = c[j];
  }

  void advance(int64_t r, int64_t t, int64_t before, const T* p) {
    const int64_t n = size_;
    T *x = at(run_.gates, r, t, gates_), *h = at(run_.hidden, r, t, n);
    const T* share = inputs_ > 0 ? static_cast<const T*>(run_.bias) : x;  // what is not in the products
    if (run_.cell == Cell::lstm) {
      const T* c = previous(run_.c0, run_.cells, before, r);
      T* next = at(run_.cells, r, t, n);
      each<T>(n, [=](auto read, auto write, int64_t j) {
        const auto in = gate_sigmoid(read(share + j) + read(p + j)),
                   forget = gate_sigmoid(read(share + n + j) + read(p + n + j)),
                   fresh = gate_tanh(read(share + 2 * n + j) + read(p + 2 * n + j)),
                   out = gate_sigmoid(read(share + 3 * n + j) + read(p + 3 * n + j));
        const auto cell = forget * read(c + j) + in * fresh;
        write(x + j, in), write(x + n + j, forget), write(x + 2 * n + j, fresh), write(x + 3 * n + j, out);
        write(next + j, cell), write(h + j, out * gate_tanh(cell));
      });
    } else if (run_.cell == Cell::gru) {
      const T *old = previous(run_.h0, run_.hidden, before, r), *b = static_cast<const T*>(run_.bias);
      T* of_n = at(run_.cells, r, t, n);
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
    T *x = at(run_.grad_gates, r, t, gates_), *s = run_.grad_state ? at(run_.grad_state, r, t, gates_) : x;
    for (int64_t j = 0; j < gates_; ++j) x[j] = s[j] = 0;
    for (int64_t j = 0; j < size_; ++j) direct[j] = dh[j];
  }

  // Gradients of the gates from those of the state, dh, and the cell, dc, which becomes that of the cell before;
  // `direct` is what reaches the state before by another way than the product.
  void retreat(int64_t r, int64_t t, int64_t before, const T* dh, T* dc, T* direct) {
    const int64_t n = size_;
    const T *x = at(run_.gates, r, t, gates_), *h = at(run_.hidden, r, t, n);
    T* d = at(run_.grad_gates, r, t, gates_);
    if (run_.cell == Cell::lstm) {
      const T *c = previous(run_.c0, run_.cells, before, r), *now = at(run_.cells, r, t, n);
      each<T>(n, [=](auto read, auto write, int64_t j) {
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
      const T *old = previous(run_.h0, run_.hidden, before, r), *share = at(run_.cells, r, t, n);
      T* s = at(run_.grad_state, r, t, gates_);
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
  int64_t size_, inputs_, gates_;
};

template <class T> int64_t packed(int64_t rows, int64_t columns) { return rows * whole_columns<T>(columns); }

// Forward the state is multiplied by the transposed weight, backward the gates' gradient by the weight.
template <class T> void pack_weight(void* to, const void* weight, int64_t outputs, int64_t inputs, bool backward) {
  const T* w = static_cast<const T*>(weight);
  if (backward) pack_right<T>(static_cast<T*>(to), {w, inputs, 1}, outputs, inputs);
  else pack_right<T>(static_cast<T*>(to), {w, 1, inputs}, inputs, outputs);
}

template <class T> constexpr RecurKernel kernel = {
    strip<T>, packed<T>, pack_weight<T>, [](const RecurRun& run, Range rows) { Way<T>(run, rows).forward(); },
    [](const RecurRun& run, Range rows) { Way<T>(run, rows).backward(); }};

}  // namespace
}  // namespace volta::cpu::VOLTA_ISA

template <> volta::cpu::RecurKernel volta::cpu::recur_kernel<volta::cpu::Isa::VOLTA_ISA>(DType dtype) {
  return dtype == f64 ? VOLTA_ISA::kernel<double> : VOLTA_ISA::kernel<float>;
}
