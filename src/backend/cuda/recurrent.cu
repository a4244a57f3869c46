// Recurrent layers on the GPU: for every step one matrix product with the state, and one kernel for the gates; where the
// product is small, one kernel for both. The gradients of the weights are products over all of time.
#include "backend/recurrent.h"

#include <cuda_pipeline.h>

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

// One unit of one row of the batch.
struct RowUnit {
  uint32_t row, j;
  __device__ bool lasts(const StepArgs& a) const { return !a.lengths || a.t < a.lengths[row]; }
};
__device__ inline RowUnit place_of(const StepArgs& a) {
  const uint32_t n = blockIdx.x * threads + threadIdx.x, row = a.by_size.divide(n);
  return {row, n - row * a.by_size.size};
}

// A step forward; p: the products of the gates' weights with the state.
template <class T> __device__ void advance_unit(const StepArgs& a, const RowUnit& at, const T* p) {
  const uint32_t n = a.size, j = at.j;
  T* const h = a.hidden.row<T>(at.row);
  const T old = a.hidden_before.row<T>(at.row)[j];
  if (!at.lasts(a)) {
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

__device__ inline uint32_t gate_count(Cell cell) { return cell == Cell::lstm ? 4 : cell == Cell::gru ? 3 : 1; }

// A step back; product: what the gates of the step after give to the state's gradient.
template <class T> __device__ void retreat_unit(const StepArgs& a, const RowUnit& at, T product) {
  const uint32_t n = a.size, j = at.j, count = gate_count(a.cell);
  T &direct = a.direct.row<T>(at.row)[j], *cell_gradient = a.dc.row<T>(at.row) + j;
  T g = product + direct;
  if (a.grad_hidden.data) g += a.grad_hidden.row<T>(at.row)[j];
  if (a.grad_cells.data) *cell_gradient += a.grad_cells.row<T>(at.row)[j];
  T *const d = a.grad_gates.row<T>(at.row), *const s = a.grad_state.data ? a.grad_state.row<T>(at.row) : d;
  if (!at.lasts(a)) {
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

template <class T> __global__ __launch_bounds__(threads) void advance(const __grid_constant__ StepArgs a) {
  const RowUnit at = place_of(a);
  if (at.row >= a.batch) return;
  T p[4];
  for (uint32_t k = 0; k < gate_count(a.cell); ++k) p[k] = a.products.row<T>(at.row)[k * a.size + at.j];
  advance_unit(a, at, p);
}
template <class T> __global__ __launch_bounds__(threads) void retreat(const __grid_constant__ StepArgs a) {
  const RowUnit at = place_of(a);
  if (at.row < a.batch) retreat_unit(a, at, a.products.row<T>(at.row)[at.j]);
}

// A step whose product is made on the way: rows of the state [batch, depth] times rows of the weight [columns * size, depth].
struct FusedArgs : StepArgs {
  StepRows state;
  const float* weight;
  int depth;  // a multiple of 4; 0: there is no product
};

// A block takes 16 rows of the batch and 8 units. Its parts of both factors come by stages of 128 along the depth, of which
// each warp multiplies an eighth; a thread has 4 rows and one unit, of which it needs Columns products.
constexpr int fused_rows = 16, fused_units = 8, stage_depth = 128, stages = 4, stage_row = stage_depth + 4;
template <int Columns> constexpr int stage_floats = (fused_rows + fused_units * Columns) * stage_row;
template <int Columns> constexpr int fused_bytes = stages* stage_floats<Columns>* int(sizeof(float));

template <int Columns, bool Back>
__global__ __launch_bounds__(threads) void fused_step(const __grid_constant__ FusedArgs a) {
  extern __shared__ float staged[];
  constexpr int all_rows = fused_rows + fused_units * Columns, warps = threads / 32, each = stage_depth / warps;
  const uint32_t row0 = blockIdx.y * fused_rows, unit0 = blockIdx.x * fused_units;
  const int chunks = (a.depth + stage_depth - 1) / stage_depth;
  const auto fetch = [&](int chunk) {
    float* to = staged + chunk % stages * stage_floats<Columns>;
    for (int i = int(threadIdx.x); i < all_rows * (stage_depth / 4); i += threads) {
      const int r = i / (stage_depth / 4), d = i % (stage_depth / 4) * 4, at = chunk * stage_depth + d;
      const uint32_t column = uint32_t(r - fused_rows), unit = unit0 + column % fused_units;
      const bool is_state = r < fused_rows, valid = at < a.depth && (is_state ? row0 + r < a.batch : unit < a.size);
      const float* from = a.weight;  // what is not there is zero
      if (valid && is_state) from = a.state.row<float>(row0 + r) + at;
      else if (valid) from += (int64_t(column / fused_units) * a.size + unit) * a.depth + at;
      __pipeline_memcpy_async(to + r * stage_row + d, from, 16, valid ? 0 : 16);
    }
  };
  for (int k = 0; k < stages; ++k) {
    if (k < chunks) fetch(k);
    __pipeline_commit();
  }
  const int warp = int(threadIdx.x) / 32, lane = int(threadIdx.x) % 32, group = lane / fused_units;
  float sum[4][Columns] = {};
  for (int k = 0; k < chunks; ++k) {
    __pipeline_wait_prior(stages - 1);
    __syncthreads();
    const float* from = staged + k % stages * stage_floats<Columns> + warp * each;
    unroll<each / 4>([&](int step) {
      float4 x[4], w[Columns];
      unroll<4>([&](int i) { x[i] = *reinterpret_cast<const float4*>(from + (i * 4 + group) * stage_row + 4 * step); });
      unroll<Columns>([&](int g) {
        const int r = fused_rows + g * fused_units + lane % fused_units;
        w[g] = *reinterpret_cast<const float4*>(from + r * stage_row + 4 * step);
      });
      unroll<4>([&](int i) {
        unroll<Columns>(
            [&](int g) { sum[i][g] += x[i].x * w[g].x + x[i].y * w[g].y + x[i].z * w[g].z + x[i].w * w[g].w; });
      });
    });
    __syncthreads();
    if (k + stages < chunks) fetch(k + stages);
    __pipeline_commit();
  }
  __pipeline_wait_prior(0);
  __syncthreads();
  unroll<4>(
      [&](int i) { unroll<Columns>([&](int g) { staged[((warp * 4 + i) * Columns + g) * 32 + lane] = sum[i][g]; }); });
  __syncthreads();
  if (warp >= 4) return;
  const RowUnit at{row0 + uint32_t(warp * 4 + group), unit0 + uint32_t(lane % fused_units)};
  if (at.row >= a.batch || at.j >= a.size) return;
  float product[Columns] = {};
  for (int other = 0; other < warps; ++other)
    unroll<Columns>([&](int g) { product[g] += staged[((other * 4 + warp) * Columns + g) * 32 + lane]; });
  if constexpr (Back) retreat_unit(a, at, product[0]);
  else advance_unit(a, at, product);
}

constexpr int64_t most_grid_rows = 65535;  // blocks along the second axis of a grid
constexpr double small_product = 6e7;      // multiplications, below which a step is fused

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
    const bool is_fused = can_fuse(o_.h0) && can_fuse(o_.hidden);
    const Fused kernel = is_fused ? fused<false>() : Fused();
    const Room products = room(is_fused ? 0 : gates_);
    for (int64_t i = 0; i < o_.time; ++i) {
      StepArgs a = step(o_.reverse ? o_.time - 1 - i : i);
      a.bias = call.bias.data;
      if (is_fused) {
        start(kernel, {a, a.hidden_before, static_cast<const float*>(o_.w_hh.data), int(o_.size)});
        continue;
      }
      a.products = rows(products, gates_);
      multiply(a.products, gates_, a.hidden_before, o_.size, 1, o_.size);
      start(&advance<float>, &advance<double>, a);
    }
  }

  void backward(const RecurrentBackwardCall& call) {
    const Room products = zeros(), direct = zeros(), dc = zeros();
    const Arg& into = into_state(call);
    const bool is_fused = can_fuse(into);
    const Fused kernel = is_fused ? fused<true>() : Fused();
    const Room turned = is_fused ? turned_weight() : Room();
    StepRows after;  // the gradients of the gates of the step after
    for (int64_t i = o_.time - 1; i >= 0; --i) {
      const int64_t t = o_.reverse ? o_.time - 1 - i : i;
      StepArgs a = step(t);
      a.products = rows(products, o_.size), a.direct = rows(direct, o_.size), a.dc = rows(dc, o_.size);
      a.grad_gates = rows_at(call.grad_gates, t), a.grad_state = rows_at(call.grad_state, t);
      a.grad_hidden = rows_at(call.grad_hidden, t), a.grad_cells = rows_at(call.grad_cells, t);
      if (is_fused) {
        start(kernel, {a, after, reinterpret_cast<const float*>(turned->data), after.data ? int(gates_) : 0});
        after = rows_at(into, t);
        if (i > 0) continue;
      } else {
        start(&retreat<float>, &retreat<double>, a);
      }
      multiply(a.products, o_.size, rows_at(into, t), gates_, o_.size, 1);
    }
    add(call.grad_h0, products, direct);
    if (call.grad_c0.data) copy(call.grad_c0, rows(dc, o_.size), {o_.batch, o_.size});
    if (call.grad_w_hh.data) weight_gradient(call);
    if (call.grad_w_ih.data) transposed_product(call.grad_w_ih, call.grad_gates.data, call.x.data, o_.inputs);
  }

 private:
  int64_t bytes() const { return size_of(o_.dtype); }
  // The gradients of the gates as they meet w_hh.
  static const Arg& into_state(const RecurrentBackwardCall& call) {
    return call.grad_state.data ? call.grad_state : call.grad_gates;
  }
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

  // Whether steps, whose products have the rows x, can be fused: those rows are read by 16 bytes.
  bool can_fuse(const Arg& x) const {
    const StepRows first = rows_at(x, 0);
    const auto low = reinterpret_cast<uintptr_t>(first.data) | reinterpret_cast<uintptr_t>(o_.w_hh.data) |
                     uintptr_t(first.stride) | uintptr_t(x.layout->strides[0] * bytes());
    return o_.dtype == f32 && o_.size % 4 == 0 && low % 16 == 0 && gates_ < chunk_limit &&
           o_.batch <= fused_rows * most_grid_rows &&
           double(o_.batch) * double(gates_) * double(o_.size) <= small_product;
  }
  // The kernel of fused steps, ready to be started.
  struct Fused {
    void (*kernel)(FusedArgs) = nullptr;
    int shared = 0;
  };
  template <bool Back> Fused fused() const {
    const Fused f = Back || gates_of(o_.cell) == 1 ? Fused{&fused_step<1, Back>, fused_bytes<1>}
                    : o_.cell == Cell::gru         ? Fused{&fused_step<3, false>, fused_bytes<3>}
                                                   : Fused{&fused_step<4, false>, fused_bytes<4>};
    check(cudaFuncSetAttribute(f.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, f.shared), op);
    return f;
  }
  void start(const Fused& f, const FusedArgs& a) const {
    const dim3 grid(blocks_for(o_.size, fused_units), blocks_for(o_.batch, fused_rows));
    launch_with(f.shared, c_, op, f.kernel, grid, threads, a);
  }
  // w_hh with its axes swapped: [size, gates * size].
  Room turned_weight() const {
    Room r = c_.memory().take(gates_ * o_.size * bytes(), op);
    const Layout to = Layout::contiguous({o_.size, gates_});
    Layout from = to;
    from.strides[0] = 1, from.strides[1] = o_.size;
    c_.copy({r->data, &to, o_.dtype, {}}, {o_.w_hh.data, &from, o_.dtype, {}});
    return r;
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
    transposed_product(call.grad_w_hh, into_state(call).data, states->data, o_.size);
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
