// Recurrent layers on the GPU: for every step one kernel, which multiplies the state and goes on to the gates; where there is
// much to multiply, the library's product and a kernel for the gates. The gradients of the weights are products over all of
// time.
#include "backend/recurrent.h"

#include "backend/cuda/element.h"
#include "math/activation.h"
#include "math/unary.h"

namespace volta::cuda {
namespace {

constexpr const char* op = "recurrent";

// Rows of the batch at one step; null where there is none.
struct StepRows {
  char* data = nullptr;
  int64_t stride = 0;  // of rows, in bytes
  template <class T> __device__ T* row(uint32_t r) const { return reinterpret_cast<T*>(data + r * stride); }
};

struct StepArgs {
  uint32_t batch, size;
  Divisor by_size;
  Cell cell;
  int64_t t;
  const int64_t* lengths;  // on the device; null: all rows last
  StepRows products;       // [gates * size] forward; [size] backward: the state's gradient from the step after
  StepRows gates, hidden, cells, hidden_before, cells_before;
  StepRows grad_gates, grad_state, grad_hidden, grad_cells;
  const void* bias;
  StepRows direct, dc;  // what reaches the state before by another way than the product; of the cell
  StepRows multiplied;  // where the kernel multiplies: the state before, or the gates' gradients of the step after
  uint32_t depth;       // of that product
  const void* weight;   // w_hh
};

template <class T> __device__ inline T sigmoid(T x) { return point::Sigmoid::f(x); }
template <class T> __device__ inline T hyperbolic(T x) { return point::Tanh::f(x); }

struct Place {
  uint32_t row, j;
  bool valid, lasts;
  __device__ Place(const StepArgs& a, uint32_t r, uint32_t column) : row(r), j(column) {
    valid = row < a.batch && j < a.size;
    lasts = valid && (!a.lengths || a.t < a.lengths[row]);
  }
  __device__ static Place of_thread(const StepArgs& a) {
    const uint32_t n = blockIdx.x * threads + threadIdx.x, row = a.by_size.divide(n);
    return {a, row, n - row * a.by_size.size};
  }
};

// The gates of one element of the state, and the state; p: the products of the gates.
template <class T> __device__ void advance(const StepArgs& a, const Place& at, const T (&p)[4]) {
  const uint32_t n = a.size, j = at.j;
  T* const h = a.hidden.row<T>(at.row);
  const T old = a.hidden_before.row<T>(at.row)[j];
  if (!at.lasts) {
    h[j] = old;
    if (a.cells.data) a.cells.row<T>(at.row)[j] = a.cell == Cell::lstm ? a.cells_before.row<T>(at.row)[j] : old;
    return;
  }
  T* const x = a.gates.row<T>(at.row);
  if (a.cell == Cell::lstm) {
    const T in = sigmoid(x[j] + p[0]), forget = sigmoid(x[n + j] + p[1]), fresh = hyperbolic(x[2 * n + j] + p[2]),
            out = sigmoid(x[3 * n + j] + p[3]);
    const T cell = forget * a.cells_before.row<T>(at.row)[j] + in * fresh;
    x[j] = in, x[n + j] = forget, x[2 * n + j] = fresh, x[3 * n + j] = out;
    a.cells.row<T>(at.row)[j] = cell;
    h[j] = out * hyperbolic(cell);
  } else if (a.cell == Cell::gru) {
    const auto* b = static_cast<const T*>(a.bias);
    const T reset = sigmoid(x[j] + (p[0] + b[j])), update = sigmoid(x[n + j] + (p[1] + b[n + j])),
            state = p[2] + b[2 * n + j], fresh = hyperbolic(x[2 * n + j] + reset * state);
    x[j] = reset, x[n + j] = update, x[2 * n + j] = fresh;
    a.cells.row<T>(at.row)[j] = state;
    h[j] = fresh + update * (old - fresh);
  } else {
    const T sum = x[j] + p[0];
    h[j] = a.cell == Cell::tanh ? hyperbolic(sum) : sum < T(0) ? T(0) : sum;
  }
}

// The gradients of the gates of one element; product: what reaches the state through the step after.
template <class T> __device__ void retreat(const StepArgs& a, const Place& at, T product) {
  const uint32_t n = a.size, j = at.j, count = a.cell == Cell::lstm ? 4 : a.cell == Cell::gru ? 3 : 1;
  T &direct = a.direct.row<T>(at.row)[j], *cell_gradient = a.dc.row<T>(at.row) + j;
  T g = product + direct;
  if (a.grad_hidden.data) g += a.grad_hidden.row<T>(at.row)[j];
  if (a.grad_cells.data) *cell_gradient += a.grad_cells.row<T>(at.row)[j];
  T *const d = a.grad_gates.row<T>(at.row), *const s = a.grad_state.data ? a.grad_state.row<T>(at.row) : d;
  if (!at.lasts) {
    for (uint32_t k = 0; k < count; ++k) d[k * n + j] = s[k * n + j] = T(0);
    direct = g;
    return;
  }
  const T* x = a.gates.row<T>(at.row);
  direct = T(0);
  if (a.cell == Cell::lstm) {
    const T in = x[j], forget = x[n + j], fresh = x[2 * n + j], out = x[3 * n + j];
    const T squashed = hyperbolic(a.cells.row<T>(at.row)[j]),
            cell = *cell_gradient + g * out * (1 - squashed * squashed);
    d[j] = cell * fresh * in * (1 - in);
    d[n + j] = cell * a.cells_before.row<T>(at.row)[j] * forget * (1 - forget);
    d[2 * n + j] = cell * in * (1 - fresh * fresh);
    d[3 * n + j] = g * squashed * out * (1 - out);
    *cell_gradient = cell * forget;
  } else if (a.cell == Cell::gru) {
    const T reset = x[j], update = x[n + j], fresh = x[2 * n + j], old = a.hidden_before.row<T>(at.row)[j];
    const T dn = g * (1 - update) * (1 - fresh * fresh), dr = dn * a.cells.row<T>(at.row)[j] * reset * (1 - reset),
            dz = g * (old - fresh) * update * (1 - update);
    d[j] = s[j] = dr, d[n + j] = s[n + j] = dz, d[2 * n + j] = dn, s[2 * n + j] = dn * reset;
    direct = g * update;
  } else {
    const T h = a.hidden.row<T>(at.row)[j];
    d[j] = a.cell == Cell::tanh ? g * (1 - h * h) : h > T(0) ? g : T(0);
  }
}

// Where the products have been made.
template <class T, bool Back>
__global__ __launch_bounds__(threads) void step_gates(const __grid_constant__ StepArgs a) {
  const Place at = Place::of_thread(a);
  if (!at.valid) return;
  const T* from = a.products.row<T>(at.row) + at.j;
  if constexpr (Back) return retreat(a, at, *from);
  T p[4] = {};
  for (int g = 0; g < gates_of(a.cell); ++g) p[g] = from[g * int(a.size)];
  advance(a, at, p);
}

// A block has so many rows of the batch and elements of the state; `splits` of its warps share the depth of a product, in
// turns of `turn`, and the sums of theirs are added in order.
constexpr int block_rows = 32, block_units = 4, splits = 4, turn = 64,
              room = turn + 4;  // in steps of four, no two rows meet in a bank
template <class T, int G> constexpr int step_bytes = splits*(block_rows + G * block_units) * room* int(sizeof(T));

template <class T, int G, bool Back>
__global__ __launch_bounds__(block_rows* block_units* splits) void step_products(const __grid_constant__ StepArgs a) {
  constexpr int sums = Back ? 1 : G, columns = sums * block_units, members = block_rows * block_units;
  extern __shared__ __align__(16) char shared[];
  const int me = int(threadIdx.x), split = int(threadIdx.y), r = me / block_units, unit = me % block_units;
  T* const rows = reinterpret_cast<T*>(shared) + split * (block_rows + columns) * room;
  T* const weights = rows + block_rows * room;
  const uint32_t first_row = blockIdx.y * block_rows, first_unit = blockIdx.x * block_units, depth = a.depth;
  const auto* w = static_cast<const T*>(a.weight);
  T p[4] = {};
  for (uint32_t base = 0; base < depth; base += splits * turn) {
    const uint32_t begin = base + uint32_t(split * turn);
    for (int i = me; i < block_rows * turn; i += members) {
      const uint32_t row = first_row + i / turn, k = begin + i % turn;
      rows[i / turn * room + i % turn] = row < a.batch && k < depth ? a.multiplied.row<T>(row)[k] : T(0);
    }
    for (int i = me; i < columns * turn; i += members) {
      // Forward, a row of the weight for each gate of each element; backward, a column of it.
      const int column = Back ? i % block_units : i / turn, step = Back ? i / block_units : i % turn;
      const uint32_t j = first_unit + column % block_units, k = begin + step;
      const int64_t at = Back ? int64_t(k) * a.size + j : (int64_t(column / block_units) * a.size + j) * a.size + k;
      weights[column * room + step] = j < a.size && k < depth ? w[at] : T(0);
    }
    __syncthreads();
#pragma unroll 4
    for (int k = 0; k < turn; k += 4) {
      const auto x = *reinterpret_cast<const Pack<T, 4>*>(rows + r * room + k);
      unroll<sums>([&](int g) {
        const auto y = *reinterpret_cast<const Pack<T, 4>*>(weights + (g * block_units + unit) * room + k);
        unroll<4>([&](int e) { p[g] += x.v[e] * y.v[e]; });
      });
    }
    __syncthreads();
  }
  T* const parts = reinterpret_cast<T*>(shared);  // [splits, sums, members]
  unroll<sums>([&](int g) { parts[(split * sums + g) * members + me] = p[g]; });
  __syncthreads();
  if (split != 0) return;
  for (int other = 1; other < splits; ++other)
    unroll<sums>([&](int g) { p[g] += parts[(other * sums + g) * members + me]; });
  const Place at(a, first_row + r, first_unit + unit);
  if (!at.valid) return;
  if constexpr (Back) retreat(a, at, p[0]);
  else advance(a, at, p);
}

template <class T> struct Sum {  // out, and the two
  __device__ T load(char* const* p) const { return *reinterpret_cast<T*>(p[1]) + *reinterpret_cast<T*>(p[2]); }
  __device__ void store(char* const* p, T x) const { *reinterpret_cast<T*>(p[0]) = x; }
};

// The rows of step t of [time, batch, …], or of [batch, …].
StepRows rows_at(const Arg& x, int64_t t) {
  if (!x.data) return {};
  const auto& strides = x.layout->strides;
  const bool steps = strides.size() == 3;
  const int64_t size = size_of(x.dtype);
  return {static_cast<char*>(x.data) + (steps ? t * strides[0] * size : 0), strides[steps ? 1 : 0] * size};
}

// One pass over time, in either direction.
class Pass {
 public:
  Pass(Context& c, const RecurrentOperands& o)
      : c_(c),
        o_(o),
        gates_(gates_of(o.cell) * o.size),
        alone_(double(o.batch) * double(gates_) * double(o.size) <= few && o.batch <= 65535 * block_rows) {
    if (!o.lengths) return;
    lengths_ = c.memory.take(o.batch * int64_t(sizeof(int64_t)), op);
    c.upload(lengths_->data, o.lengths, o.batch * int64_t(sizeof(int64_t)));
  }

  void forward(const RecurrentCall& call) {
    const Room products = alone_ ? room_for(0) : room_for(gates_);
    for (int64_t i = 0; i < o_.time; ++i) {
      StepArgs a = step(o_.reverse ? o_.time - 1 - i : i);
      a.products = rows(products, gates_), a.bias = call.bias.data;
      a.multiplied = a.hidden_before, a.depth = uint32_t(o_.size);
      if (!alone_) multiply(a.products, gates_, a.hidden_before, o_.size, 1, o_.size);
      start<false>(a);
    }
  }

  void backward(const RecurrentBackwardCall& call) {
    const Room products = zeros(), direct = zeros(), dc = zeros();
    StepRows after;  // the gates' gradients of the step that was last
    for (int64_t i = o_.time - 1; i >= 0; --i) {
      const int64_t t = o_.reverse ? o_.time - 1 - i : i;
      StepArgs a = step(t);
      a.products = rows(products, o_.size), a.direct = rows(direct, o_.size), a.dc = rows(dc, o_.size);
      a.grad_gates = rows_at(call.grad_gates, t), a.grad_state = rows_at(call.grad_state, t);
      a.grad_hidden = rows_at(call.grad_hidden, t), a.grad_cells = rows_at(call.grad_cells, t);
      a.multiplied = after, a.depth = after.data ? uint32_t(gates_) : 0;
      start<true>(a);
      after = a.grad_state.data ? a.grad_state : a.grad_gates;
      if (!alone_ || i == 0) multiply(a.products, o_.size, after, gates_, o_.size, 1);
    }
    add(call.grad_h0, products, direct);
    if (call.grad_c0.data) copy(call.grad_c0, rows(dc, o_.size), {o_.batch, o_.size});
    if (call.grad_w_hh.data) weight_gradient(call);
    if (call.grad_w_ih.data) transposed_product(call.grad_w_ih, call.grad_gates.data, call.x.data, o_.inputs);
  }

 private:
  int64_t bytes() const { return size_of(o_.dtype); }
  Room room_for(int64_t width) const { return c_.memory.take(o_.batch * width * bytes(), op); }
  Room zeros() const {
    Room r = room_for(o_.size);
    check(cudaMemsetAsync(r->data, 0, size_t(o_.batch * o_.size * bytes()), c_.stream), op);
    return r;
  }
  StepRows rows(const Room& r, int64_t width) const { return {r->data, width * bytes()}; }
  int64_t before(int64_t t) const { return o_.reverse ? (t + 1 < o_.time ? t + 1 : -1) : t - 1; }

  StepArgs step(int64_t t) const {
    StepArgs a{};
    a.batch = uint32_t(o_.batch), a.size = uint32_t(o_.size), a.by_size = Divisor(uint32_t(o_.size));
    a.cell = o_.cell, a.t = t, a.weight = o_.w_hh.data;
    a.lengths = lengths_ ? reinterpret_cast<const int64_t*>(lengths_->data) : nullptr;
    a.gates = rows_at(o_.gates, t), a.hidden = rows_at(o_.hidden, t), a.cells = rows_at(o_.cells, t);
    const int64_t earlier = before(t);
    a.hidden_before = earlier < 0 ? rows_at(o_.h0, 0) : rows_at(o_.hidden, earlier);
    if (o_.cell == Cell::lstm) a.cells_before = earlier < 0 ? rows_at(o_.c0, 0) : rows_at(o_.cells, earlier);
    return a;
  }

  template <bool Back> void start(const StepArgs& a) const {
    if (o_.dtype == f64) start_typed<double, Back>(a);
    else start_typed<float, Back>(a);
  }
  template <class T, bool Back> void start_typed(const StepArgs& a) const {
    if (!alone_) return launch(c_, op, &step_gates<T, Back>, blocks_for(o_.batch * o_.size, threads), threads, a);
    if (o_.cell == Cell::lstm) start_products<T, 4, Back>(a);
    else if (o_.cell == Cell::gru) start_products<T, 3, Back>(a);
    else start_products<T, 1, Back>(a);
  }
  template <class T, int G, bool Back> void start_products(const StepArgs& a) const {
    const auto function = reinterpret_cast<const void*>(&step_products<T, G, Back>);
    constexpr int size = step_bytes < T, Back ? 1 : G > ;
    if (size > 48 << 10) check(cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize, size), op);
    const dim3 grid(blocks_for(o_.size, block_units), blocks_for(o_.batch, block_rows));
    void* pointers[] = {const_cast<StepArgs*>(&a)};
    check(cudaLaunchKernel(function, grid, dim3(block_rows * block_units, splits), pointers, size_t(size), c_.stream),
          op);
  }

  // out [batch, width] = in [batch, depth] times w_hh, of which an element lies at depth * down + column * right.
  void multiply(const StepRows& out, int64_t width, const StepRows& in, int64_t depth, int64_t down,
                int64_t right) const {
    const Layout to = Layout::contiguous({o_.batch, width});
    Layout from = Layout::contiguous({o_.batch, depth}), weight = Layout::contiguous({depth, width});
    from.strides[0] = in.stride / bytes();
    weight.strides[0] = down, weight.strides[1] = right;
    c_.matmul(
        {{out.data, &to, o_.dtype, {}}, {in.data, &from, o_.dtype, {}}, {o_.w_hh.data, &weight, o_.dtype, {}}, {}});
  }

  void copy(const Arg& to, const StepRows& from, const Shape& shape) const {
    Layout in = Layout::contiguous(shape);
    in.strides[0] = from.stride / bytes();
    c_.copy(to, {from.data, &in, o_.dtype, {}});
  }
  void add(const Arg& to, const Room& a, const Room& b) const {
    const Layout dense = Layout::contiguous({o_.batch, o_.size});
    const Arg x{a->data, &dense, o_.dtype, {}}, y{b->data, &dense, o_.dtype, {}};
    const Operands<3> all(dense.shape, {&to, &x, &y});
    if (o_.dtype == f64) each(c_, op, all, Sum<double>{});
    else each(c_, op, all, Sum<float>{});
  }

  // grad [gates * size, width] = gradients of the gates, transposed, times rows [time * batch, width].
  void transposed_product(const Arg& grad, void* gates, const void* rows, int64_t width) const {
    const Layout to = Layout::contiguous({gates_, width}), right = Layout::contiguous({o_.time * o_.batch, width});
    Layout left = Layout::contiguous({gates_, o_.time * o_.batch});
    left.strides[0] = 1, left.strides[1] = gates_;
    c_.matmul({{grad.data, &to, o_.dtype, {}},
               {gates, &left, o_.dtype, {}},
               {const_cast<void*>(rows), &right, o_.dtype, {}},
               {}});
  }

  // The states before each step, brought together: h0, and the others one step on.
  void weight_gradient(const RecurrentBackwardCall& call) const {
    const int64_t step = o_.batch * o_.size * bytes();
    const Room states = c_.memory.take(o_.time * step, op);
    const Layout one = Layout::contiguous({o_.batch, o_.size});
    c_.copy({states->data + (o_.reverse ? (o_.time - 1) * step : 0), &one, o_.dtype, {}}, o_.h0);
    if (o_.time > 1) {
      Layout from = *o_.hidden.layout;
      from.shape[0] = o_.time - 1;
      const Layout to = Layout::contiguous(from.shape);
      char* first = static_cast<char*>(o_.hidden.data) + (o_.reverse ? from.strides[0] * bytes() : 0);
      c_.copy({states->data + (o_.reverse ? 0 : step), &to, o_.dtype, {}}, {first, &from, o_.dtype, {}});
    }
    const Arg& gates = call.grad_state.data ? call.grad_state : call.grad_gates;
    transposed_product(call.grad_w_hh, gates.data, states->data, o_.size);
  }

  // Products of up to so many multiply-adds a step are faster without the library.
  static constexpr double few = 3.4e7;
  Context& c_;
  const RecurrentOperands& o_;
  int64_t gates_;
  bool alone_;
  Room lengths_;
};

}  // namespace

bool Context::offers(const RecurrentCall& call) const {
  return !is_half(call.dtype) && call.batch * call.size < chunk_limit;
}

void Context::recurrent(const RecurrentCall& call) {
  const OnDevice current(device);
  Pass(*this, call).forward(call);
}

void Context::recurrent_backward(const RecurrentBackwardCall& call) {
  const OnDevice current(device);
  Pass(*this, call).backward(call);
}

}  // namespace volta::cuda
