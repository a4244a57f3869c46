// The weights of recurrent layers: packed for the loop over time, and their gradients, which are products over all of it.
#pragma once
#include <algorithm>

#include "backend/cpu/gemm/kernels/panels.h"
#include "backend/cpu/gemm/kernels/tiles.h"
#include "backend/cpu/recurrent/recurrent.h"
#include "backend/cpu/scratch.h"

namespace volta::cpu::VOLTA_ISA {
namespace {

template <class T> T* at(const Steps& x, int64_t row, int64_t t) {
  return x.data ? static_cast<T*>(x.data) + t * x.time + row * x.batch : nullptr;
}
// The state of a row before the step at t.
template <class T>
const T* state_before(const RecurrentRun& run, const Steps& first, const Steps& all, int64_t row, int64_t t) {
  return run.before(t) < 0 ? at<T>(first, row, 0) : at<T>(all, row, run.before(t));
}

// Wide vectors get through a row faster than it comes from far, and no prefetcher follows from one row to the next.
template <class T> [[gnu::always_inline]] inline void prefetch(const T* x, int64_t ahead = 0) {
  const auto where = reinterpret_cast<uintptr_t>(x) + uintptr_t(ahead) * sizeof(T);  // where nothing may lie
  if constexpr (register_bytes == 64) __builtin_prefetch(reinterpret_cast<const void*>(where));
}

// A row that consists of two pieces, and how far ahead it is time to ask for a first one.
template <class T> struct Pieces {
  const T *first, *second;
  int64_t ahead;
};
// Packs `count` panels of the right operand from columns [i, i + n) of rows whose first pieces are `first` wide; next() gives one
// row after the other.
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
      for (int64_t l = 0; l < of_first; l += 64 / int(sizeof(T))) prefetch(row.first + j + l, row.ahead);
      copy(out, row.first + j, of_first);
      if (of_first < size) copy(out + of_first, row.second + (j + of_first - first), size - of_first);
      for (int64_t l = size; l < tile; ++l) out[l] = 0;
    }
  }
}

// The units of the state, and the inputs, that belong to a group: whole vectors but for the last.
struct Share {
  Range units, inputs;
};
template <class T> Share share_of(const RecurrentRun& run, int64_t group) {
  const auto cut = [&](int64_t n) {
    const int64_t vectors = ceil_div(n, lanes<T>), begin = vectors * group / run.groups * lanes<T>;
    return Range{smaller(n, begin), smaller(n, vectors * (group + 1) / run.groups * lanes<T>) - smaller(n, begin)};
  };
  return {cut(run.size), cut(run.columns() - run.size)};
}

// Numbers of the packed weights. Forward the state is multiplied by the transposed weights, backward the gates' gradient by
// the weights.
template <class T> int64_t packed(const RecurrentRun& run, bool backward) {
  const int64_t gates = gates_of(run.cell) * run.size;
  if (run.groups > 1 && !backward) return run.columns() * gates_of(run.cell) * whole_columns<T>(run.size);
  if (run.groups > 1) return gates * (whole_columns<T>(run.size) + whole_columns<T>(run.columns() - run.size));
  return backward ? gates * whole_columns<T>(run.columns()) : run.columns() * whole_columns<T>(gates);
}

// Calls f(first, count, place) for columns that are packed together, from so many columns of the packed weights on: all, or for a
// group forward those of each gate, backward those of its units and its inputs.
template <class T, class F> void each_columns(const RecurrentRun& run, bool backward, F f) {
  const int64_t gates = gates_of(run.cell);
  if (run.groups == 1) return f(0, backward ? run.columns() : gates * run.size, 0);
  for (int64_t group = 0; group < run.groups; ++group) {
    const auto [units, inputs] = share_of<T>(run, group);
    const int64_t wide = whole_columns<T>(units.size);
    if (backward) {
      f(units.begin, units.size, units.begin + inputs.begin);
      if (inputs.size > 0) f(run.size + inputs.begin, inputs.size, units.begin + inputs.begin + wide);
      continue;
    }
    for (int64_t gate = 0; gate < gates; ++gate)
      f(gate * run.size + units.begin, units.size, gates * units.begin + gate * wide);
  }
}

template <class T> void pack_weights(const RecurrentRun& run, bool backward, int64_t part, int64_t parts) {
  const int64_t gates = gates_of(run.cell) * run.size, rows = backward ? gates : run.columns(),
                inputs = run.columns() - run.size;
  const T *state = static_cast<const T*>(run.w_hh), *input = static_cast<const T*>(run.w_ih);
  const auto pack_tile = [&](T* to, int64_t i, int64_t n, int64_t width) {
    if (backward) {
      int64_t row = -1;
      return pack_pieces(to, 1, width, i, n, gates, run.size, [&] {
        ++row;
        return Pieces<T>{state + row * run.size, input + row * inputs, 8 * run.size};
      });
    }
    pack(PackCall<T>{to, width, n, run.size, state + i * run.size, run.size, 1});
    pack(PackCall<T>{to + run.size * width, width, n, inputs, input + i * inputs, inputs, 1});
  };
  int64_t tile = 0;
  each_columns<T>(run, backward, [&](int64_t first, int64_t count, int64_t place) {
    each_tile<T>(count, [&](int64_t i, int64_t width) {
      if (tile++ % parts == part)
        pack_tile(static_cast<T*>(run.packed) + (place + i) * rows, first + i, smaller(width, count - i), width);
    });
  });
}

// The right operand of the weights' gradients, from `column` on: for each step and row of the batch, the state before the step
// and, beside it, the input.
template <class T> struct Weighed {
  const RecurrentRun& run;
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

// A rectangle of these gradients.
template <class T> void weight_gradient(const RecurrentRun& run, const Rectangle& r) {
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

}  // namespace
}  // namespace volta::cpu::VOLTA_ISA
