// The driver of matrix products: normalises the call, cuts it by shape, and runs the parts on the thread pool.
#include "backend/cpu/gemm.h"

#include <array>
#include <string>
#include <utility>

#include "backend/cpu/gemm_blas.h"
#include "backend/cpu/gemm_plan.h"
#include "backend/cpu/gemm_table.h"
#include "backend/cpu/isa.h"
#include "backend/cpu/scratch.h"
#include "core/parallel.h"
#include "volta/error.h"

namespace volta::cpu {
namespace {

const GemmTable& table() {
#if defined(VOLTA_HAVE_ISA_V4)
  if (isa() == Isa::v4) return v4::gemm_table;
  if (isa() == Isa::v3) return v3::gemm_table;
#endif
  return baseline::gemm_table;
}

constexpr int64_t block_extent = 2048;      // C is worked off in blocks of at most this many rows and columns
constexpr int64_t packed_bytes = 16 << 20;  // shared packed panels of one round along k
constexpr int64_t in_place_bytes =
    32 << 10;                          // operands up to this size are read in place: they stay in the first cache
constexpr int64_t pack_columns = 128;  // columns of B packed by one part
constexpr size_t most_batch_axes = 16;

// One matrix product, normalised: biases contiguous and in the compute type, C's rows contiguous if anything is.
struct Product {
  Shape3 shape;
  Matrix a, b;
  char* c;
  int64_t c_row_stride, c_column_stride;
  bool accumulate, relu;
  const void *row_bias, *column_bias;
  RowActivation<float> row_f32;
  RowActivation<double> row_f64;
  DType dtype, c_dtype;

  int64_t element() const { return size_of(dtype); }
  int64_t c_element() const { return size_of(c_dtype); }
  int64_t sum_element() const { return size_of(traits(dtype).compute); }
  // Sums may be formed in C itself.
  bool in_place() const { return c_column_stride == 1 && c_dtype == traits(dtype).compute; }
  bool has_row_function() const { return row_f32 || row_f64; }
};

struct Batch {
  std::array<BatchAxis, most_batch_axes> axes;
  size_t rank = 0;
  int64_t count = 1;
};

const char* advance(const void* data, int64_t elements, int64_t size) {
  return static_cast<const char*>(data) + elements * size;
}

const void* bias_at(const void* bias, int64_t index, int64_t size) {
  return bias ? advance(bias, index, size) : nullptr;
}

// The product as B^T A^T = C^T.
Product transposed(Product p) {
  std::swap(p.shape.m, p.shape.n);
  const Matrix a = p.a;
  p.a = {p.b.data, p.b.column_stride, p.b.row_stride};
  p.b = {a.data, a.column_stride, a.row_stride};
  std::swap(p.c_row_stride, p.c_column_stride);
  std::swap(p.row_bias, p.column_bias);
  return p;
}
void transpose(Product& p, Batch& batch) {
  p = transposed(p);
  for (size_t i = 0; i < batch.rank; ++i) std::swap(batch.axes[i].a, batch.axes[i].b);
}

Product matrix_of(Product p, const Batch& batch, int64_t index) {
  for (size_t i = batch.rank; i-- > 0; index /= batch.axes[i].size) {
    const BatchAxis& axis = batch.axes[i];
    const int64_t at = index % axis.size;
    p.a.data = advance(p.a.data, at * axis.a, p.element());
    p.b.data = advance(p.b.data, at * axis.b, p.element());
    p.c += at * axis.c * p.c_element();
  }
  return p;
}

GemmOperand rows_of_a(const Product& p, int64_t i, int64_t depth) {
  const int64_t offset = i * p.a.row_stride + depth * p.a.column_stride;
  return {advance(p.a.data, offset, p.element()), p.a.row_stride, p.a.column_stride, false, nullptr, 0, 0};
}

GemmOperand columns_of_b(const Product& p, int64_t j, int64_t depth) {
  const int64_t offset = j * p.b.column_stride + depth * p.b.row_stride;
  return {advance(p.b.data, offset, p.element()), p.b.column_stride, p.b.row_stride, false, nullptr, 0, 0};
}

// Too few uses to repay packing, or small enough to stay in cache as it is.
bool a_in_place(const Product& p, const GemmTile& tile) {
  return p.a.row_stride == 1 && p.element() == p.sum_element() && p.shape.n <= 4 * tile.columns;
}
bool b_in_place(const Product& p, const GemmTile& tile) {
  if (p.b.column_stride != 1 || p.element() != p.sum_element()) return false;
  return p.shape.m <= 4 * tile.rows || p.shape.k * p.shape.n * p.element() <= in_place_bytes;
}

const GemmKernels& kernels_of(DType dtype) { return table().floating[size_t(dtype)]; }

template <class F> void run(int64_t parts, bool serial, const F& f) {
  if (!serial) return parallel(parts, f);
  for (int64_t i = 0; i < parts; ++i) f(i);
}

// Writes sums of a rectangle, in one or several segments, to C.
void finish(const Product& p, const Rectangle& r, void* sums, int64_t step, int64_t segments, int64_t segment_step) {
  const int64_t i = r.rows.begin, j = r.columns.begin;
  kernels_of(p.c_dtype).finish({r.rows.size, r.columns.size, sums, step, segments, segment_step,
                                p.c + (i * p.c_row_stride + j * p.c_column_stride) * p.c_element(), p.c_row_stride,
                                p.c_column_stride, p.accumulate, p.relu, bias_at(p.row_bias, i, p.sum_element()),
                                bias_at(p.column_bias, j, p.sum_element()), p.row_f32, p.row_f64});
}

void apply_row_function(const Product& p, const Rectangle& r) {
  for (int64_t i = 0; i < r.rows.size; ++i) {
    void* row = p.c + ((r.rows.begin + i) * p.c_row_stride + r.columns.begin) * p.c_element();
    if (p.row_f32) p.row_f32(static_cast<float*>(row), r.columns.size);
    if (p.row_f64) p.row_f64(static_cast<double*>(row), r.columns.size);
  }
}

void* sums_buffer(Scratch purpose, const Product& p, int64_t count) {
  return scratch(purpose, size_t(count * p.sum_element()));
}

// One rectangle over a range of k. Sums form in C where they can, else in `sums` (null: this thread's tile buffer,
// which is enough when one range covers all of k).
struct PartCall {
  Rectangle at;
  GemmOperand a, b;
  int64_t k;
  bool first, last;
  void* sums;
  int64_t sums_step;
};

void compute(const Product& p, const PartCall& call) {
  const Rectangle& r = call.at;
  const int64_t m = r.rows.size, n = r.columns.size;
  if (p.in_place()) {
    const bool ends = call.last && (p.row_bias || p.column_bias || p.relu);
    void* c = p.c + (r.rows.begin * p.c_row_stride + r.columns.begin) * p.c_element();
    kernels_of(p.dtype).part({m, n, call.k, call.a, call.b, c, p.c_row_stride, p.accumulate || !call.first, ends,
                              p.relu, bias_at(p.row_bias, r.rows.begin, p.sum_element()),
                              bias_at(p.column_bias, r.columns.begin, p.sum_element())});
    if (call.last && p.has_row_function()) apply_row_function(p, r);
    return;
  }
  void* sums = call.sums ? call.sums : sums_buffer(Scratch::tile, p, m * n);
  const int64_t step = call.sums ? call.sums_step : n;
  kernels_of(p.dtype).part({m, n, call.k, call.a, call.b, sums, step, !call.first, false, false, nullptr, nullptr});
  if (call.last) finish(p, r, sums, step, 1, 0);
}

// Every part packs what it needs itself: one region for all matrices of the batch.
void run_unshared(const Product& product, const Batch& batch, const Grid& grid) {
  const GemmTile& tile = kernels_of(product.dtype).tile;
  const bool a_direct = a_in_place(product, tile), b_direct = b_in_place(product, tile);
  const double work = product.shape.work();
  const int64_t parts = batch.count * grid.parts();
  const int64_t group = std::clamp<int64_t>(int64_t(serial_work / std::max(1.0, work)), 1, parts);
  run(ceil_div(parts, group), work * double(batch.count) < serial_work, [&](int64_t g) {
    for (int64_t index = g * group; index < std::min(parts, (g + 1) * group); ++index) {
      const Product p = matrix_of(product, batch, index / grid.parts());
      const Rectangle r = grid.part(p.shape, tile, index % grid.parts());
      if (r.empty()) continue;
      PartCall call = {
          r, rows_of_a(p, r.rows.begin, 0), columns_of_b(p, r.columns.begin, 0), p.shape.k, true, true, nullptr, 0};
      call.a.direct = a_direct;
      call.b.direct = b_direct;
      compute(p, call);
    }
  });
}

// One block of C: in rounds along k, the operands that several parts use are packed once, then the parts run.
class SharedBlock {
 public:
  SharedBlock(const Product& p, const Rectangle& block)
      : p_(p),
        kernels_(kernels_of(p.dtype)),
        block_(block),
        shape_{block.rows.size, block.columns.size, p.shape.k},
        grid_(plan_grid(shape_, kernels_.tile)) {
    a_direct_ = a_in_place(p, kernels_.tile);
    b_direct_ = b_in_place(p, kernels_.tile);
    if (grid_.columns > 1 && !a_direct_) a_extent_ = shape_.m;
    if (grid_.rows > 1 && !b_direct_) b_extent_ = ceil_div(shape_.n, kernels_.tile.lanes) * kernels_.tile.lanes;
  }

  void run() {
    const int64_t row_bytes = (a_extent_ + b_extent_) * p_.sum_element(), block_k = kernels_.tile.block_k;
    const int64_t depth = row_bytes ? std::max<int64_t>(1, packed_bytes / row_bytes / block_k) * block_k : shape_.k;
    const int64_t rounds = std::max<int64_t>(1, ceil_div(shape_.k, std::max<int64_t>(1, depth)));
    if (rounds > 1 && !p_.in_place()) sums_ = sums_buffer(Scratch::partial, p_, shape_.m * shape_.n);
    for (int64_t round = 0; round < rounds; ++round) {
      const Range range = cut(shape_.k, 1, rounds, round);
      pack(range);
      parallel(grid_.parts(), [&](int64_t i) { part(i, range, round == 0, round == rounds - 1); });
    }
  }

 private:
  void pack(Range depth) {
    if (a_extent_ + b_extent_ == 0) return;
    packed_a_ = static_cast<char*>(sums_buffer(Scratch::shared, p_, (a_extent_ + b_extent_) * depth.size));
    packed_b_ = packed_a_ + a_extent_ * depth.size * p_.sum_element();
    const int64_t blocks = std::max<int64_t>(1, ceil_div(depth.size, kernels_.tile.block_k));
    const int64_t slices = ceil_div(ceil_div(shape_.n, grid_.columns), pack_columns);
    const int64_t a_parts = a_extent_ ? grid_.rows * blocks : 0;
    const int64_t b_parts = b_extent_ ? grid_.columns * slices * blocks : 0;
    parallel(a_parts + b_parts, [&](int64_t i) {
      if (i < a_parts) pack_a(i / blocks, depth, i % blocks);
      else
        pack_b((i - a_parts) / blocks / slices, depth, (i - a_parts) % blocks, (i - a_parts) / blocks % slices, slices);
    });
  }

  void pack_a(int64_t group, Range depth, int64_t block) {
    const Range rows = grid_.part(shape_, kernels_.tile, group).rows;
    if (rows.size > 0) kernels_.pack_a({a_operand(rows, depth), rows.size, depth.size, block, 0, 1});
  }

  void pack_b(int64_t group, Range depth, int64_t block, int64_t slice, int64_t slices) {
    const Range columns = grid_.part(shape_, kernels_.tile, group * grid_.rows).columns;
    if (columns.size > 0) kernels_.pack_b({b_operand(columns, depth), columns.size, depth.size, block, slice, slices});
  }

  GemmOperand a_operand(Range rows, Range depth) const {
    GemmOperand o = rows_of_a(p_, block_.rows.begin + rows.begin, depth.begin);
    o.direct = a_direct_;
    if (a_extent_) o.packed = packed_a_, o.extent = a_extent_, o.origin = rows.begin;
    return o;
  }

  GemmOperand b_operand(Range columns, Range depth) const {
    GemmOperand o = columns_of_b(p_, block_.columns.begin + columns.begin, depth.begin);
    o.direct = b_direct_;
    if (b_extent_) o.packed = packed_b_, o.extent = b_extent_, o.origin = columns.begin;
    return o;
  }

  void part(int64_t index, Range depth, bool first, bool last) const {
    const Rectangle r = grid_.part(shape_, kernels_.tile, index);
    if (r.empty()) return;
    char* sums =
        sums_ ? static_cast<char*>(sums_) + (r.rows.begin * shape_.n + r.columns.begin) * p_.sum_element() : nullptr;
    const Rectangle in_c = {{block_.rows.begin + r.rows.begin, r.rows.size},
                            {block_.columns.begin + r.columns.begin, r.columns.size}};
    compute(p_, {in_c, a_operand(r.rows, depth), b_operand(r.columns, depth), depth.size, first, last, sums, shape_.n});
  }

  const Product& p_;
  const GemmKernels& kernels_;
  Rectangle block_;
  Shape3 shape_;
  Grid grid_;
  bool a_direct_, b_direct_;
  int64_t a_extent_ = 0, b_extent_ = 0;  // rows of A and columns of B to pack once; 0: the parts do it themselves
  char *packed_a_ = nullptr, *packed_b_ = nullptr;
  void* sums_ = nullptr;
};

void run_shared(const Product& product, const Batch& batch) {
  const GemmTile& tile = kernels_of(product.dtype).tile;
  const Grid blocks = {ceil_div(product.shape.m, block_extent), ceil_div(product.shape.n, block_extent)};
  for (int64_t index = 0; index < batch.count; ++index) {
    const Product p = matrix_of(product, batch, index);
    for (int64_t i = 0; i < blocks.parts(); ++i) SharedBlock(p, blocks.part(p.shape, tile, i)).run();
  }
}

// Adds up the segments' sums and writes C, a few rows or columns at a time.
void finish_segments(const Product& p, void* sums, int64_t segments) {
  const int64_t size = p.shape.m * p.shape.n;
  const Grid pieces = {std::min<int64_t>(p.shape.m, 16), std::clamp<int64_t>(p.shape.n / 1024, 1, 16)};
  run(pieces.parts(), double(size * segments) < serial_work / 4, [&](int64_t i) {
    const Rectangle r = {cut(p.shape.m, 1, pieces.rows, i % pieces.rows),
                         cut(p.shape.n, 1, pieces.columns, i / pieces.rows)};
    const int64_t offset = r.rows.begin * p.shape.n + r.columns.begin;
    finish(p, r, static_cast<char*>(sums) + offset * p.sum_element(), p.shape.n, segments, size);
  });
}

// Small C, long k: segments of k are summed apart and then added up in order.
void run_segments(const Product& product, const Batch& batch, const Grid& grid, int64_t segments) {
  const GemmKernels& kernels = kernels_of(product.dtype);
  const int64_t size = product.shape.m * product.shape.n;
  const bool a_direct = a_in_place(product, kernels.tile), b_direct = b_in_place(product, kernels.tile);
  for (int64_t index = 0; index < batch.count; ++index) {
    const Product p = matrix_of(product, batch, index);
    char* sums = static_cast<char*>(sums_buffer(Scratch::partial, p, size * segments));
    parallel(grid.parts() * segments, [&](int64_t i) {
      const Rectangle r = grid.part(p.shape, kernels.tile, i % grid.parts());
      const int64_t segment = i / grid.parts();
      if (r.empty()) return;
      const Range depth = cut(p.shape.k, 1, segments, segment);
      GemmOperand a = rows_of_a(p, r.rows.begin, depth.begin), b = columns_of_b(p, r.columns.begin, depth.begin);
      a.direct = a_direct;
      b.direct = b_direct;
      const int64_t offset = segment * size + r.rows.begin * p.shape.n + r.columns.begin;
      kernels.part({r.rows.size, r.columns.size, depth.size, a, b, sums + offset * p.sum_element(), p.shape.n, false,
                    false, false, nullptr, nullptr});
    });
    finish_segments(p, sums, segments);
  }
}

bool thin_applies(const Product& p) {
  if (p.shape.m > thin_rows || (p.b.column_stride != 1 && p.b.row_stride != 1)) return false;
  return p.shape.m == 1 || p.shape.k * p.shape.n * p.element() > in_place_bytes;
}

// The rows of A for thin kernels: contiguous along k and in the compute type.
struct ThinRows {
  const void* data;
  int64_t step;
};
ThinRows thin_rows_of(const Product& p) {
  if (p.a.column_stride == 1 && p.element() == p.sum_element()) return {p.a.data, p.a.row_stride};
  char* rows = static_cast<char*>(sums_buffer(Scratch::shared, p, p.shape.m * p.shape.k));
  for (int64_t i = 0; i < p.shape.m; ++i) {
    kernels_of(p.dtype).load(rows + i * p.shape.k * p.sum_element(), advance(p.a.data, i * p.a.row_stride, p.element()),
                             p.a.column_stride, p.shape.k);
  }
  return {rows, p.shape.k};
}

void run_thin_matrix(const Product& p, const ThinPlan& plan, bool serial) {
  const Shape3& s = p.shape;
  const int64_t chunks = ceil_div(s.n, plan.chunk), size = s.m * s.n;
  const ThinRows x = thin_rows_of(p);
  char* sums = plan.segments > 1 ? static_cast<char*>(sums_buffer(Scratch::partial, p, size * plan.segments)) : nullptr;
  run(chunks * plan.segments, serial, [&](int64_t i) {
    const int64_t j = i % chunks * plan.chunk, n = std::min(plan.chunk, s.n - j), segment = i / chunks;
    const Range depth = cut(s.k, 1, plan.segments, segment);
    void* y = sums ? sums + (segment * size + j) * p.sum_element() : sums_buffer(Scratch::tile, p, s.m * n);
    const int64_t y_step = sums ? s.n : n;
    kernels_of(p.dtype).thin({s.m, n, depth.size, advance(x.data, depth.begin, p.sum_element()), x.step,
                              columns_of_b(p, j, depth.begin), y, y_step});
    if (!sums) finish(p, {{0, s.m}, {j, n}}, y, y_step, 1, 0);
  });
  if (sums) finish_segments(p, sums, plan.segments);
}

void run_thin(const Product& product, const Batch& batch) {
  ThinPlan plan = plan_thin(product.shape, product.b.row_stride != 1);
  const bool small = double(product.shape.n) * double(product.shape.k) < serial_work / 4;
  if (batch.count >= 16) {
    plan = {product.shape.n, 1};
    return parallel(batch.count, [&](int64_t i) { run_thin_matrix(matrix_of(product, batch, i), plan, true); });
  }
  for (int64_t i = 0; i < batch.count; ++i) run_thin_matrix(matrix_of(product, batch, i), plan, small);
}

void run_floating(Product& p, Batch& batch) {
  if (thin_applies(p)) return run_thin(p, batch);
  if (p.shape.n <= thin_rows && thin_applies(transposed(p))) {
    transpose(p, batch);
    return run_thin(p, batch);
  }
  if (p.c_column_stride != 1 && p.c_row_stride == 1) transpose(p, batch);
  const double work = p.shape.work();
  if (work < serial_work || (batch.count >= 32 && work < shared_work * 32)) return run_unshared(p, batch, {});
  const Grid grid = plan_grid(p.shape, kernels_of(p.dtype).tile);
  const int64_t segments = batch.count >= 8 ? 1 : plan_segments(p.shape, grid);
  if (segments > 1) return run_segments(p, batch, grid, segments);
  if (work < shared_work) return run_unshared(p, batch, grid);
  run_shared(p, batch);
}

void run_integer(Product& p, Batch& batch) {
  if (p.b.column_stride != 1 && p.a.row_stride == 1) transpose(p, batch);
  const Grid grid = {std::clamp<int64_t>(p.shape.m / 32, 1, 16), std::clamp<int64_t>(p.shape.n / 256, 1, 16)};
  const int64_t parts = batch.count * grid.parts();
  run(parts, p.shape.work() * double(batch.count) < serial_work / 2, [&](int64_t index) {
    const Product q = matrix_of(p, batch, index / grid.parts());
    const int64_t part = index % grid.parts();
    const Rectangle r = {cut(q.shape.m, 4, grid.rows, part % grid.rows),
                         cut(q.shape.n, 128, grid.columns, part / grid.rows)};
    if (r.empty()) return;
    const int64_t i = r.rows.begin, j = r.columns.begin;
    table().integer[size_t(q.dtype)]({r.rows.size, r.columns.size, q.shape.k, rows_of_a(q, i, 0), columns_of_b(q, j, 0),
                                      q.c + (i * q.c_row_stride + j * q.c_column_stride) * q.c_element(),
                                      q.c_row_stride, q.c_column_stride, q.accumulate, q.relu,
                                      bias_at(q.row_bias, i, q.element()), bias_at(q.column_bias, j, q.element())});
  });
}

[[noreturn]] void refuse(Error::Kind kind, const std::string& message) { throw Error(kind, "gemm", message); }

void check(const Gemm& g) {
  const DType c_dtype = g.c_dtype.value_or(g.dtype);
  if (g.m < 0 || g.n < 0 || g.k < 0) refuse(Error::Kind::shape, "negative size");
  if (c_dtype != g.dtype && !(is_half(g.dtype) && c_dtype == f32)) {
    refuse(Error::Kind::dtype, std::string(name(g.dtype)) + " operands cannot give " + std::string(name(c_dtype)));
  }
  const Activation activation = g.epilogue.activation;
  if (activation == Activation::none || activation == Activation::relu) return;
  if (!is_floating(c_dtype))
    refuse(Error::Kind::dtype, "this activation needs a floating dtype, not " + std::string(name(c_dtype)));
  const bool given = c_dtype == f64 ? g.epilogue.row_f64 != nullptr : g.epilogue.row_f32 != nullptr;
  if (!given) refuse(Error::Kind::internal, "the activation's row function is missing");
}

// Bias values contiguous and in the compute type.
const void* prepared_bias(const Gemm& g, DType c_dtype) {
  const Epilogue& e = g.epilogue;
  if (!e.bias || (e.bias_stride == 1 && !is_half(c_dtype))) return e.bias;
  const int64_t size = size_of(c_dtype);
  char* values = static_cast<char*>(scratch(Scratch::other, size_t(g.n * size_of(traits(c_dtype).compute))));
  if (is_floating(c_dtype)) {
    kernels_of(c_dtype).load(values, e.bias, e.bias_stride, g.n);
  } else {
    for (int64_t j = 0; j < g.n; ++j) std::copy_n(advance(e.bias, j * e.bias_stride, size), size, values + j * size);
  }
  return values;
}

Product product_of(const Gemm& g) {
  const DType c_dtype = g.c_dtype.value_or(g.dtype);
  const bool by_row = g.epilogue.activation > Activation::relu;
  return {{g.m, g.n, g.k},
          g.a,
          g.b,
          static_cast<char*>(g.c),
          g.c_row_stride,
          g.c_column_stride,
          g.accumulate,
          g.epilogue.activation == Activation::relu,
          nullptr,
          prepared_bias(g, c_dtype),
          by_row && c_dtype != f64 ? g.epilogue.row_f32 : nullptr,
          by_row && c_dtype == f64 ? g.epilogue.row_f64 : nullptr,
          g.dtype,
          c_dtype};
}

// A batch axis along which B stays and A and C continue row after row is just more rows; likewise for columns.
bool folded(Product& p, const BatchAxis& axis) {
  if (axis.b == 0 && axis.a == p.shape.m * p.a.row_stride && axis.c == p.shape.m * p.c_row_stride) {
    p.shape.m *= axis.size;
    return true;
  }
  const bool columns =
      axis.a == 0 && axis.b == p.shape.n * p.b.column_stride && axis.c == p.shape.n * p.c_column_stride;
  if (!columns || p.column_bias) return false;
  p.shape.n *= axis.size;
  return true;
}

Batch batch_of(Product& p, std::span<const BatchAxis> axes) {
  Batch batch;
  for (size_t i = axes.size(); i-- > 0;) {
    if (axes[i].size < 0) refuse(Error::Kind::shape, "negative batch size");
    batch.count *= axes[i].size;
    if (axes[i].size == 1 || folded(p, axes[i])) continue;
    if (batch.rank == most_batch_axes) refuse(Error::Kind::shape, "more than 16 batch axes");
    batch.axes[batch.rank++] = axes[i];
  }
  if (batch.count == 0) return batch;
  batch.count = 1;
  std::reverse(batch.axes.begin(), batch.axes.begin() + ptrdiff_t(batch.rank));
  for (size_t i = 0; i < batch.rank; ++i) batch.count *= batch.axes[i].size;
  return batch;
}

}  // namespace

void gemm(const Gemm& g) {
  check(g);
  if (g.m == 0 || g.n == 0) return;
  if (blas_gemm(g)) return;
  Product p = product_of(g);
  Batch batch = batch_of(p, g.batch);
  if (batch.count == 0) return;
  if (is_floating(g.dtype)) run_floating(p, batch);
  else run_integer(p, batch);
}

}  // namespace volta::cpu
