// Recurrent layers on the GPU: for every step one matrix product with the state, and one kernel for the gates. The gradients
// of the weights are products over all of time.
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
};

template <class T> __device__ inline T sigmoid(T x) { return point::Sigmoid::f(x); }
template <class T> __device__ inline T hyperbolic(T x) { return point::Tanh::f(x); }

struct Place {
  uint32_t row, j;
  bool valid, lasts;
  __device__ explicit Place(const StepArgs& a) {
    const uint32_t n = blockIdx.x * threads + threadIdx.x;
    row = a.by_size.divide(n), j = n - row * a.by_size.size;
    valid = row < a.batch;
    lasts = valid && (!a.lengths || a.t < a.lengths[row]);
  }
};

template <class T> __global__ __launch_bounds__(threads) void advance(const __grid_constant__ StepArgs a) {
  const Place at(a);
  if (!at.valid) return;
  const uint32_t n = a.size, j = at.j;
  T* const h = a.hidden.row<T>(at.row);
  const T old = a.hidden_before.row<T>(at.row)[j];
  if (!at.lasts) {
    h[j] = old;
    if (a.cells.data) a.cells.row<T>(at.row)[j] = a.cell == Cell::lstm ? a.cells_before.row<T>(at.row)[j] : old;
    return;
  }
  const T* p = a.products.row<T>(at.row);
  T* const x = a.gates.row<T>(at.row);
  if (a.cell == Cell::lstm) {
    const T in = sigmoid(x[j] + p[j]), forget = sigmoid(x[n + j] + p[n + j]),
            fresh = hyperbolic(x[2 * n + j] + p[2 * n + j]), out = sigmoid(x[3 * n + j] + p[3 * n + j]);
    const T cell = forget * a.cells_before.row<T>(at.row)[j] + in * fresh;
    x[j] = in, x[n + j] = forget, x[2 * n + j] = fresh, x[3 * n + j] = out;
    a.cells.row<T>(at.row)[j] = cell;
    h[j] = out * hyperbolic(cell);
  } else if (a.cell == Cell::gru) {
    const auto* b = static_cast<const T*>(a.bias);
    const T reset = sigmoid(x[j] + (p[j] + b[j])), update = sigmoid(x[n + j] + (p[n + j] + b[n + j])),
            state = p[2 * n + j] + b[2 * n + j], fresh = hyperbolic(x[2 * n + j] + reset * state);
    x[j] = reset, x[n + j] = update, x[2 * n + j] = fresh;
    a.cells.row<T>(at.row)[j] = state;
    h[j] = fresh + update * (old - fresh);
  } else {
    const T sum = x[j] + p[j];
    h[j] = a.cell == Cell::tanh ? hyperbolic(sum) : sum < T(0) ? T(0) : sum;
  }
}

template <class T> __global__ __launch_bounds__(threads) void retreat(const __grid_constant__ StepArgs a) {
  const Place at(a);
  if (!at.valid) return;
  const uint32_t n = a.size, j = at.j, count = a.cell == Cell::lstm ? 4 : a.cell == Cell::gru ? 3 : 1;
  T &direct = a.direct.row<T>(at.row)[j], *cell_gradient = a.dc.row<T>(at.row) + j;
  T g = a.products.row<T>(at.row)[j] + direct;
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
  Pass(Context& c, const RecurrentOperands& o) : c_(c), o_(o), gates_(gates_of(o.cell) * o.size) {
    if (!o.lengths) return;
    lengths_ = c.memory().take(o.batch * int64_t(sizeof(int64_t)), op);
    c.upload(lengths_->data, o.lengths, o.batch * int64_t(sizeof(int64_t)));
  }

  void forward(const RecurrentCall& call) {
    const Room products = room(gates_);
    for (int64_t i = 0; i < o_.time; ++i) {
      StepArgs a = step(o_.reverse ? o_.time - 1 - i : i);
      a.products = rows(products, gates_), a.bias = call.bias.data;
      multiply(a.products, gates_, a.hidden_before, o_.size, 1, o_.size);
      start(&advance<float>, &advance<double>, a);
    }
  }

  void backward(const RecurrentBackwardCall& call) {
    const Room products = zeros(), direct = zeros(), dc = zeros();
    for (int64_t i = o_.time - 1; i >= 0; --i) {
      const int64_t t = o_.reverse ? o_.time - 1 - i : i;
      StepArgs a = step(t);
      a.products = rows(products, o_.size), a.direct = rows(direct, o_.size), a.dc = rows(dc, o_.size);
      a.grad_gates = rows_at(call.grad_gates, t), a.grad_state = rows_at(call.grad_state, t);
      a.grad_hidden = rows_at(call.grad_hidden, t), a.grad_cells = rows_at(call.grad_cells, t);
      start(&retreat<float>, &retreat<double>, a);
      multiply(a.products, o_.size, a.grad_state.data ? a.grad_state : a.grad_gates, gates_, o_.size, 1);
    }
    add(call.grad_h0, products, direct);
    if (call.grad_c0.data) copy(call.grad_c0, rows(dc, o_.size), {o_.batch, o_.size});
    if (call.grad_w_hh.data) weight_gradient(call);
    if (call.grad_w_ih.data) transposed_product(call.grad_w_ih, call.grad_gates.data, call.x.data, o_.inputs);
  }

 private:
  int64_t bytes() const { return size_of(o_.dtype); }
  Room room(int64_t width) const { return c_.memory().take(o_.batch * width * bytes(), op); }
  Room zeros() const {
    Room r = room(o_.size);
    check(cudaMemsetAsync(r->data, 0, size_t(o_.batch * o_.size * bytes()), c_.stream()), op);
    return r;
  }
  StepRows rows(const Room& r, int64_t width) const { return {r->data, width * bytes()}; }
  int64_t before(int64_t t) const { return o_.reverse ? (t + 1 < o_.time ? t + 1 : -1) : t - 1; }

  StepArgs step(int64_t t) const {
    StepArgs a{};
    a.batch = uint32_t(o_.batch), a.size = uint32_t(o_.size), a.by_size = Divisor(uint32_t(o_.size));
    a.cell = o_.cell, a.t = t;
    a.lengths = lengths_ ? reinterpret_cast<const int64_t*>(lengths_->data) : nullptr;
    a.gates = rows_at(o_.gates, t), a.hidden = rows_at(o_.hidden, t), a.cells = rows_at(o_.cells, t);
    const int64_t earlier = before(t);
    a.hidden_before = earlier < 0 ? rows_at(o_.h0, 0) : rows_at(o_.hidden, earlier);
    if (o_.cell == Cell::lstm) a.cells_before = earlier < 0 ? rows_at(o_.c0, 0) : rows_at(o_.cells, earlier);
    return a;
  }

  template <class F> void start(F narrow, F wide, const StepArgs& a) const {
    launch(c_, op, o_.dtype == f64 ? wide : narrow, blocks_for(o_.batch * o_.size, threads), threads, a);
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
    const Room states = c_.memory().take(o_.time * step, op);
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

  Context& c_;
  const RecurrentOperands& o_;
  int64_t gates_;
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
