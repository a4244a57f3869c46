// The driver of matrix products: normalises the call, cuts it into parts, and runs them on the thread pool.
#include "backend/cpu/gemm/gemm.h"

#include <array>
#include <cmath>
#include <string>
#include <utility>

#include "backend/cpu/gemm/plan.h"
#include "backend/cpu/scratch.h"
#include "core/parallel.h"
#include "volta/error.h"

namespace volta::cpu {
namespace {

constexpr int64_t segment_depth = 256, most_segments = 16;
constexpr size_t most_batch_axes = 16;

const GemmKernels& kernels_of(DType dtype) {
  static const GemmTable& table = for_isa([]<Isa level>() -> const GemmTable& { return gemm_table<level>(); });
  return table.kernels[size_t(dtype)];
}

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

#if defined(VOLTA_HAVE_ISA_AMX)
// Whether AMX is faster than vectors, in their multiply-adds: it multiplies whole squares, and packing takes longer.
bool suits_amx(const Shape3& s) {
  const Shape3 whole = {ceil_div(s.m, 16) * 16, ceil_div(s.n, 16) * 16, ceil_div(s.k, 32) * 32};
  return 0.08 * whole.work() + 10 * double(s.m + s.n) * double(s.k) < s.work();
}
#endif

const GemmKernels& kernels_of(const Gemm& p) {
#if defined(VOLTA_HAVE_ISA_AMX)
  if (!p.skinny && !p.fixed_order && isa() == Isa::amx && p.dtype == bf16 && suits_amx(shape_of(p)))
    return gemm_bf16<Isa::amx>();
#endif
#if defined(VOLTA_HAVE_ISA_BFLOAT)
  if (!p.skinny && isa() == Isa::bfloat && p.dtype == bf16) return gemm_bf16<Isa::bfloat>();
#endif
  return kernels_of(p.dtype);
}

// Multiply-adds below which a second thread does not pay: a few microseconds' worth.
double serial_work(const GemmKernels& kernels) {
  return kernels.tile.lanes * (kernels.tile.lanes > 4 ? 0x1p14 : 0x1p15);
}

// Part `index` of `total` cut into `parts` at multiples of `unit`; parts may be empty.
Range cut(int64_t total, int64_t unit, int64_t parts, int64_t index) {
  const int64_t units = ceil_div(total, unit), begin = std::min(total, units * index / parts * unit);
  return {begin, std::min(total, units * (index + 1) / parts * unit) - begin};
}

struct Batch {
  std::array<BatchAxis, most_batch_axes> axes;
  size_t rank = 0;
  int64_t count = 1;
};

// The product as B^T A^T = C^T.
Gemm transposed(Gemm p) {
  std::swap(p.m, p.n);
  std::swap(p.a, p.b);
  for (Matrix* x : {&p.a, &p.b}) std::swap(x->row_stride, x->column_stride);
  std::swap(p.c_row_stride, p.c_column_stride);
  p.bias_by_row = !p.bias_by_row;
  return p;
}

Gemm matrix_of(Gemm p, const Batch& batch, int64_t index) {
  const int64_t size = size_of(p.dtype), c_size = size_of(*p.c_dtype);
  for (size_t i = 0; i < batch.rank; index /= batch.axes[i++].size) {
    const BatchAxis& axis = batch.axes[i];
    const int64_t at = index % axis.size;
    p.a.data = static_cast<const char*>(p.a.data) + at * axis.a * size;
    p.b.data = static_cast<const char*>(p.b.data) + at * axis.b * size;
    p.c = static_cast<char*>(p.c) + at * axis.c * c_size;
  }
  return p;
}

// Few rows, and the other matrix contiguous in one direction.
bool is_skinny(int64_t rows, const Matrix& other) {
  return rows <= skinny_rows && (other.column_stride == 1 || other.row_stride == 1);
}

// Each matrix is cut into the parts of a grid, and k into segments, which are summed apart and then added up in order.
struct Partition {
  Grid grid;
  int64_t segments = 1;
};

// By shape alone: the order of summation may depend on these cuts.
Partition plan_skinny(const Gemm& p, int64_t batch) {
  if (batch >= 16) return {};
  const int64_t wanted = std::clamp<int64_t>(int64_t(double(p.n) * double(p.k) / (1 << 14)), 1, 32);
  const int64_t least = p.b.row_stride == 1 ? 4 : std::min<int64_t>(p.n, 2048);
  const int64_t chunks = ceil_div(p.n, std::max(least, ceil_div(p.n, wanted)));
  if (chunks > 4) return {{1, chunks}};
  const int64_t segments = std::min(std::min(wanted, most_segments) / chunks, p.k / segment_depth);
  return {{1, chunks}, std::max<int64_t>(1, segments)};
}

// A small C and a long k: by shape alone.
int64_t plan_segments(const Shape3& s, int64_t batch, double serial) {
  const int64_t blocks = ceil_div(s.m, 64) * ceil_div(s.n, 64);
  if (batch >= 8 || blocks > 4 || s.k < 4 * segment_depth || s.work() < 4 * serial) return 1;
  return std::min(most_segments / blocks, s.k / segment_depth);
}

Partition plan_of(const Gemm& p, const GemmKernels& kernels, int64_t batch) {
  if (p.skinny) return plan_skinny(p, batch);
  const Shape3 s = shape_of(p);
  const double serial = serial_work(kernels);
  if (const int64_t segments = p.fixed_order ? 1 : plan_segments(s, batch, serial); segments > 1) return {{}, segments};
  if (s.work() * double(batch) < serial) return {};
  const double threads = get_num_threads();
  if (threads == 1 || double(batch) >= 4 * threads) return {};
  const double most = std::ceil(s.work() / (serial / 2));
  const auto grid = [&](double parts) { return plan_grid(s, kernels.tile, int64_t(std::min(parts, most))); };
  if (batch > 1) return {grid(std::ceil(4 * threads / double(batch)))};
  if (threads < 4) return {grid(threads)};
  // More parts pack panels more often, but many threads are never equally fast, and the last one is waited for.
  Grid best = grid(threads);
  double least = 0;
  for (double each = 1; each <= 4 && (each - 1) * threads < most; ++each) {
    const Grid cells = grid(each * threads);
    const double cost = packed_work(s, kernels.tile, cells) *
                        std::max(std::ceil(double(cells.parts()) / threads), double(cells.parts()) / threads + 0.3);
    if (each > 1 && cost >= least) continue;
    least = cost, best = cells;
  }
  return {best};
}

template <class F> void run_parts(int64_t parts, bool serial, const F& f) {
  if (!serial) return parallel(parts, f);
  for (int64_t i = 0; i < parts; ++i) f(i);
}

void run(Gemm& p, Batch& batch) {
  p.skinny = !p.fixed_order && is_skinny(p.m, p.b);
  const bool skinny_across = !p.fixed_order && !p.skinny && is_skinny(p.n, p.a);
  if (!p.skinny && (skinny_across || (p.c_column_stride != 1 && p.c_row_stride == 1))) {
    p = transposed(p);
    p.skinny = skinny_across;
    for (size_t i = 0; i < batch.rank; ++i) std::swap(batch.axes[i].a, batch.axes[i].b);
  }
  const GemmKernels& kernels = kernels_of(p);
  const Shape3 s = shape_of(p);
  const Partition plan = plan_of(p, kernels, batch.count);
  const int64_t cells = plan.grid.parts() * plan.segments, parts = batch.count * cells;
  if (parts == 1) return kernels.part(p, {{0, s.m}, {0, s.n}}, {0, s.k}, nullptr);
  const int64_t partial_bytes = s.m * s.n * kernels.sum_bytes * plan.segments;
  char* partials = nullptr;
  if (plan.segments > 1) partials = static_cast<char*>(scratch(Scratch::partial, size_t(batch.count * partial_bytes)));
  const double work = (p.skinny ? 4 : 1) * std::max(1.0, s.work());  // a skinny product waits for memory
  const double serial = serial_work(kernels);
  const int64_t group = cells > 1 ? 1 : std::clamp<int64_t>(int64_t(2 * serial / work), 1, parts);
  run_parts(ceil_div(parts, group), work * double(batch.count) < serial, [&](int64_t first) {
    for (int64_t i = first * group; i < std::min(parts, (first + 1) * group); ++i) {
      const int64_t matrix = i / cells, segment = i % plan.segments;
      const Rectangle r = plan.grid.part(s, kernels.tile, i % cells / plan.segments);
      char* partial =
          partials ? partials + matrix * partial_bytes + segment * (partial_bytes / plan.segments) : nullptr;
      if (!r.empty()) kernels.part(matrix_of(p, batch, matrix), r, cut(s.k, 1, plan.segments, segment), partial);
    }
  });
  if (!partials) return;
  const int64_t slices = std::min<int64_t>(s.m, 16);
  run_parts(batch.count * slices, double(partial_bytes) < serial, [&](int64_t i) {
    const int64_t matrix = i / slices;
    kernels_of(*p.c_dtype)
        .finish(matrix_of(p, batch, matrix), cut(s.m, 1, slices, i % slices), partials + matrix * partial_bytes,
                plan.segments);
  });
}

[[noreturn]] void throw_error(Error::Kind kind, const std::string& message) { throw Error(kind, "gemm", message); }

void check(const Gemm& g) {
  const DType c_dtype = g.c_dtype.value_or(g.dtype);
  if (g.m < 0 || g.n < 0 || g.k < 0) throw_error(Error::Kind::shape, "negative size");
  if (c_dtype != g.dtype && !(is_half(g.dtype) && c_dtype == f32)) {
    throw_error(Error::Kind::dtype, std::string(name(g.dtype)) + " operands cannot give " + std::string(name(c_dtype)));
  }
  if (g.epilogue.activation <= Activation::relu) return;
  if (!is_floating(c_dtype))
    throw_error(Error::Kind::dtype, "this activation needs a floating dtype, not " + std::string(name(c_dtype)));
  const bool given = c_dtype == f64 ? g.epilogue.row_f64 != nullptr : g.epilogue.row_f32 != nullptr;
  if (!given) throw_error(Error::Kind::internal, "the activation's row function is missing");
}

// A batch axis along which B stays and A and C continue row after row is just more rows; likewise for columns.
bool folded(Gemm& p, const BatchAxis& axis) {
  if (axis.b == 0 && axis.a == p.m * p.a.row_stride && axis.c == p.m * p.c_row_stride) {
    p.m *= axis.size;
    return true;
  }
  const bool columns = axis.a == 0 && axis.b == p.n * p.b.column_stride && axis.c == p.n * p.c_column_stride;
  if (!columns || p.epilogue.bias) return false;
  p.n *= axis.size;
  return true;
}

// The axes that do not fold, innermost first.
Batch batch_of(Gemm& p, std::span<const BatchAxis> axes) {
  Batch batch;
  for (size_t i = axes.size(); i-- > 0;) {
    if (axes[i].size < 0) throw_error(Error::Kind::shape, "negative batch size");
    if (axes[i].size == 1 || (axes[i].size > 0 && folded(p, axes[i]))) continue;
    if (batch.rank == most_batch_axes) throw_error(Error::Kind::shape, "more than 16 batch axes");
    batch.axes[batch.rank++] = axes[i];
    batch.count *= axes[i].size;
  }
  return batch;
}

}  // namespace

Rectangle Grid::part(const Shape3& s, const GemmTile& tile, int64_t index) const {
  const int64_t row_unit = s.m >= tile.rows * rows ? tile.rows : 1;
  return {cut(s.m, row_unit, rows, index / columns), cut(s.n, tile.lanes, columns, index % columns)};
}

double packed_work(const Shape3& s, const GemmTile& tile, const Grid& grid) {
  const double height = double(ceil_div(s.m, grid.rows));
  const double width = double(ceil_div(ceil_div(s.n, tile.lanes), grid.columns) * tile.lanes);
  return height * width + double(tile.pack_a) * height + double(tile.pack_b) * width;
}

Grid plan_grid(const Shape3& s, const GemmTile& tile, int64_t parts) {
  Grid best;
  double least = 0;
  for (int64_t rows = 1; rows <= std::min(parts, s.m); ++rows) {
    const Grid grid = {rows, std::clamp<int64_t>(parts / rows, 1, ceil_div(s.n, tile.lanes))};
    const double cost = packed_work(s, tile, grid);
    if (rows > 1 && cost >= least) continue;
    least = cost;
    best = grid;
  }
  return best;
}

void gemm(Gemm&& p) {
  check(p);
  if (p.m == 0 || p.n == 0) return;
#ifdef VOLTA_HAVE_CBLAS
  if (blas_gemm(p)) return;
#endif
  p.c_dtype = p.c_dtype.value_or(p.dtype);
  const bool never_negative = traits(*p.c_dtype).kind < Kind::signed_int;
  if (never_negative && p.epilogue.activation == Activation::relu) p.epilogue.activation = Activation::none;
  Batch batch = batch_of(p, p.batch);
  if (batch.count > 0) run(p, batch);
}

}  // namespace volta::cpu
