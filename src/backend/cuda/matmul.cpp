// Matrix products on the GPU by cuBLASLt. It thinks in columns: a row-major C = A B is its C^T = B^T A^T, so the
// operands change places. Plans (descriptors and the library's choice of algorithm) are kept per shape.
#include "backend/cuda/matmul.h"

#include <array>
#include <memory>
#include <optional>
#include <unordered_map>

#include "backend/cuda/cublas.h"
#include "core/walk.h"

namespace volta::cuda {
namespace {

constexpr size_t workspace_bytes = size_t(32) << 20, most_plans = 4096;
constexpr int64_t most_batches = 65535;
std::atomic<bool> tf32_allowed{false};

// A matrix the library can read: rows (or columns, when `by_columns`) of contiguous elements, `ld` apart.
struct Matrix {
  void* data;
  int64_t rows, columns, ld;
  bool by_columns;
  int64_t batch_stride;
};

std::optional<Matrix> matrix_of(void* data, int64_t rows, int64_t columns, int64_t row_stride, int64_t column_stride) {
  if ((column_stride == 1 || columns == 1) && (rows == 1 || row_stride >= columns))
    return Matrix{data, rows, columns, rows == 1 ? columns : row_stride, false, 0};
  if ((row_stride == 1 || rows == 1) && (columns == 1 || column_stride >= rows))
    return Matrix{data, rows, columns, columns == 1 ? rows : column_stride, true, 0};
  return {};
}

std::optional<Matrix> matrix_of(const Arg& x) {
  const Layout& l = *x.layout;
  const int row = l.rank() - 2;
  return matrix_of(x.data, l.shape[row], l.shape[row + 1], l.strides[row], l.strides[row + 1]);
}

Matrix transposed(Matrix x) {
  std::swap(x.rows, x.columns);
  x.by_columns = !x.by_columns;
  return x;
}

struct Problem {
  Matrix a, b, out;  // out is row-major
  DType in_dtype, out_dtype;
  int64_t batches = 1;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  const void* bias = nullptr;
  bool accumulate = false;
};

cudaDataType_t type_of(DType t) {
  return t == f64 ? CUDA_R_64F : t == f32 ? CUDA_R_32F : t == f16 ? CUDA_R_16F : CUDA_R_16BF;
}

cublasComputeType_t compute_of(DType t) {
  if (t == f64) return CUBLAS_COMPUTE_64F;
  return t == f32 && tf32_allowed.load(std::memory_order_relaxed) ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}

int64_t alignment(const void* p) {
  const auto address = reinterpret_cast<uintptr_t>(p);
  const uintptr_t lowest = address & (~address + 1);
  return lowest == 0 || lowest > 256 ? 256 : int64_t(lowest);
}

using Key = std::array<int64_t, 17>;

Key key_of(const Problem& p) {
  const int64_t kinds =
      int64_t(p.a.by_columns) | int64_t(p.b.by_columns) << 1 | int64_t(p.in_dtype) << 8 | int64_t(p.out_dtype) << 16;
  return {p.a.rows,
          p.a.columns,
          p.b.columns,
          p.a.ld,
          p.b.ld,
          p.out.ld,
          p.a.batch_stride,
          p.b.batch_stride,
          p.out.batch_stride,
          p.batches,
          kinds,
          int64_t(p.epilogue),
          int64_t(compute_of(p.in_dtype)),
          alignment(p.a.data),
          alignment(p.b.data),
          alignment(p.out.data),
          int64_t(p.accumulate)};
}

struct KeyHash {
  size_t operator()(const Key& key) const {
    uint64_t h = 0xcbf29ce484222325u;
    for (const int64_t x : key) h = (h ^ uint64_t(x)) * 0x9e3779b97f4a7c15u, h ^= h >> 29;
    return size_t(h);
  }
};

struct Plan {
  cublasLtMatmulDesc_t desc = nullptr;
  cublasLtMatrixLayout_t first = nullptr, second = nullptr, out = nullptr;
  cublasLtMatmulAlgo_t algorithm{};
  size_t workspace = 0;
  bool found = false;
  Plan() = default;
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;
  ~Plan() {
    if (desc) cublas().desc_destroy(desc);
    for (cublasLtMatrixLayout_t layout : {first, second, out})
      if (layout) cublas().layout_destroy(layout);
  }
};

void set(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t attribute, const auto& value) {
  check(cublas().desc_set(desc, attribute, &value, sizeof value));
}

// Of a row-major matrix as the library sees it: its transpose, by columns.
cublasLtMatrixLayout_t make_layout(const Matrix& x, DType dtype, int64_t batches) {
  cublasLtMatrixLayout_t layout = nullptr;
  const int64_t rows = x.by_columns ? x.rows : x.columns, columns = x.by_columns ? x.columns : x.rows;
  check(cublas().layout_create(&layout, type_of(dtype), uint64_t(rows), uint64_t(columns), x.ld));
  if (batches == 1) return layout;
  const auto count = int32_t(batches);
  check(cublas().layout_set(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count));
  check(
      cublas().layout_set(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &x.batch_stride, sizeof x.batch_stride));
  return layout;
}

// One per device: the library's handle, its working memory, and the plans made so far.
class Engine {
 public:
  explicit Engine(Context& context)
      : context_(context), workspace_(context.memory.take(int64_t(workspace_bytes), "matmul")) {
    check(cublas().create(&handle_));
  }
  bool run(const Problem& p);  // false: the library has no algorithm for it

 private:
  const Plan& plan(const Problem& p);
  void choose(Plan& plan, const Problem& p);

  Context& context_;
  std::mutex mutex_;
  cublasLtHandle_t handle_ = nullptr;
  Block* workspace_;
  std::unordered_map<Key, std::unique_ptr<Plan>, KeyHash> plans_;
};

void Engine::choose(Plan& plan, const Problem& p) {
  const cublasComputeType_t compute = compute_of(p.in_dtype);
  check(cublas().desc_create(&plan.desc, compute, p.in_dtype == f64 ? CUDA_R_64F : CUDA_R_32F));
  set(plan.desc, CUBLASLT_MATMUL_DESC_TRANSA, p.b.by_columns ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(plan.desc, CUBLASLT_MATMUL_DESC_TRANSB, p.a.by_columns ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(plan.desc, CUBLASLT_MATMUL_DESC_EPILOGUE, p.epilogue);
  if (p.bias) set(plan.desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, p.bias);
  plan.first = make_layout(p.b, p.in_dtype, p.batches);
  plan.second = make_layout(p.a, p.in_dtype, p.batches);
  plan.out = make_layout(p.out, p.out_dtype, p.batches);

  cublasLtMatmulPreference_t preference = nullptr;
  check(cublas().preference_create(&preference));
  const std::unique_ptr<cublasLtMatmulPreferenceOpaque_t, cublasStatus_t (*)(cublasLtMatmulPreference_t)> owner(
      preference, cublas().preference_destroy);
  const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
    check(cublas().preference_set(preference, attribute, &value, sizeof value));
  };
  prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, uint64_t(workspace_bytes));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, uint32_t(alignment(p.b.data)));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, uint32_t(alignment(p.a.data)));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, uint32_t(alignment(p.out.data)));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, uint32_t(alignment(p.out.data)));
  cublasLtMatmulHeuristicResult_t best{};
  int count = 0;
  const cublasStatus_t status =
      cublas().heuristic(handle_, plan.desc, plan.first, plan.second, plan.out, plan.out, preference, 1, &best, &count);
  plan.found = status == CUBLAS_STATUS_SUCCESS && count > 0 && best.state == CUBLAS_STATUS_SUCCESS;
  plan.algorithm = best.algo;
  plan.workspace = best.workspaceSize;
}

const Plan& Engine::plan(const Problem& p) {
  if (plans_.size() >= most_plans) plans_.clear();
  std::unique_ptr<Plan>& plan = plans_[key_of(p)];
  if (plan) return *plan;
  auto made = std::make_unique<Plan>();
  choose(*made, p);
  plan = std::move(made);
  return *plan;
}

bool Engine::run(const Problem& p) {
  const std::lock_guard lock(mutex_);
  const Plan& made = plan(p);
  if (!made.found) return false;
  if (p.bias) set(made.desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, p.bias);
  const float one = 1, beta = p.accumulate ? 1 : 0;
  const double wide_one = 1, wide_beta = beta;
  const bool wide = p.in_dtype == f64;
  check(cublas().matmul(handle_, made.desc, wide ? static_cast<const void*>(&wide_one) : &one, p.b.data, made.first,
                        p.a.data, made.second, wide ? static_cast<const void*>(&wide_beta) : &beta, p.out.data,
                        made.out, p.out.data, made.out, &made.algorithm, workspace_->data, made.workspace,
                        context_.stream));
  return true;
}

Engine& engine(Context& c) {
  static std::array<std::atomic<Engine*>, 256> all;
  static std::mutex mutex;
  std::atomic<Engine*>& place = all[size_t(c.device)];
  if (Engine* made = place.load(std::memory_order_acquire)) return *made;
  const std::lock_guard lock(mutex);
  cublas();
  if (!place.load()) place.store(new Engine(c));
  return *place.load();
}

// An operand as the library can read it: as it is, or copied. Batch axes that only repeat are not copied.
class Readable {
 public:
  Readable(Context& c, const Arg& x) : layout_(*x.layout), arg_(x), matrix_(matrix_of(x)) {
    if (matrix_) return;
    Layout distinct = *x.layout;
    for (int i = 0; i + 2 < distinct.rank(); ++i)
      if (distinct.strides[i] == 0) distinct.shape[i] = 1;
    const Layout dense = Layout::contiguous(distinct.shape);
    copied_.emplace(c, dense.numel() * size_of(x.dtype), "matmul");
    arg_.data = copied_->data();
    layout_ = dense;
    arg_.layout = &layout_;
    Arg source = x;
    source.layout = &distinct;
    copy(c, arg_, source);
    layout_.shape = x.layout->shape;
    for (int i = 0; i + 2 < layout_.rank(); ++i)
      if (distinct.shape[i] == 1) layout_.strides[i] = 0;
    matrix_ = matrix_of(arg_);
  }
  Readable(const Readable&) = delete;
  Readable& operator=(const Readable&) = delete;
  const Matrix& matrix() const { return *matrix_; }
  const Layout& layout() const { return matrix_ && copied_ ? layout_ : *arg_.layout; }

 private:
  Layout layout_;
  Arg arg_;
  std::optional<Scratch> copied_;
  std::optional<Matrix> matrix_;
};

// The library's name for bias and activation, if it has one.
std::optional<cublasLtEpilogue_t> epilogue_of(const MatmulCall& call) {
  const bool bias = call.bias.data;
  if (call.out.dtype == f64)
    return bias || call.activation != Fused::none ? std::nullopt : std::optional(CUBLASLT_EPILOGUE_DEFAULT);
  if (bias) {
    const Layout& l = *call.bias.layout;
    const bool along = l.rank() > 0 && l.shape.back() == call.out.layout->shape.back() && l.strides.back() == 1;
    if (!along || call.bias.dtype != call.out.dtype || alignment(call.bias.data) < 16) return {};
  }
  switch (call.activation) {
    case Fused::none: return bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
    case Fused::relu: return bias ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_RELU;
    default: return {};
  }
}

char* advanced(void* data, int64_t elements, DType dtype) {
  return static_cast<char*>(data) + elements * size_of(dtype);
}

// Runs the problem over all batch axes; the innermost one is the library's, unless the matrices can be joined into one.
bool run_batches(Context& c, Problem p, Walk<3> batch) {
  Matrix &a = p.a, &b = p.b, &out = p.out;
  const int64_t* by = batch.stride[0];
  const bool joins = batch.rank == 1 && batch.size[0] > 1 && by[2] == 0 && !a.by_columns && by[1] == a.rows * a.ld &&
                     by[0] == a.rows * out.ld;
  if (joins) {
    a.rows *= batch.size[0];
    out.rows *= batch.size[0];
    batch.size[0] = 1;
  }
  const bool together = batch.size[0] > 1 && by[0] > 0 && by[1] >= 0 && by[2] >= 0;
  const int64_t step = together ? most_batches : 1;
  bool found = true, started = false;
  batch.for_rows(0, batch.rows(), [&](const int64_t* offset) {
    for (int64_t i = 0; i < batch.size[0]; i += step) {
      Problem q = p;
      q.batches = std::min(step, batch.size[0] - i);
      q.out.data = advanced(out.data, offset[0] + i * by[0], p.out_dtype);
      q.a.data = advanced(a.data, offset[1] + i * by[1], p.in_dtype);
      q.b.data = advanced(b.data, offset[2] + i * by[2], p.in_dtype);
      q.out.batch_stride = q.batches > 1 ? by[0] : 0;
      q.a.batch_stride = q.batches > 1 ? by[1] : 0;
      q.b.batch_stride = q.batches > 1 ? by[2] : 0;
      if (found && engine(c).run(q)) started = true;
      else if (started)
        throw Error(Error::Kind::device, "matmul", "cuBLASLt offers no algorithm for a part of the batch");
      else found = false;
    }
  });
  return found;
}

// The product alone into `out`, with what the epilogue adds; false when the library cannot.
bool multiply(Context& c, const MatmulCall& call, const Arg& out, cublasLtEpilogue_t epilogue, bool accumulate) {
  std::optional<Matrix> target = matrix_of(out);
  if (!target) return false;
  const Readable a(c, call.a), b(c, call.b);
  Walk<3> batch;
  for (int i = 0; i + 2 < out.layout->rank(); ++i) {
    const int64_t strides[] = {out.layout->strides[i], a.layout().strides[i], b.layout().strides[i]};
    batch.add_axis(out.layout->shape[i], strides);
  }
  batch.finish();
  Problem p{a.matrix(), b.matrix(), *target, call.a.dtype, out.dtype};
  p.epilogue = epilogue;
  p.accumulate = accumulate;
  const bool with_bias = epilogue == CUBLASLT_EPILOGUE_BIAS || epilogue == CUBLASLT_EPILOGUE_RELU_BIAS;
  p.bias = with_bias ? call.bias.data : nullptr;
  if (target->by_columns) {
    if (with_bias) return false;  // a bias per column would be one per row
    p.out = transposed(*target);
    p.a = transposed(b.matrix());
    p.b = transposed(a.matrix());
    for (int i = 0; i < batch.rank; ++i) std::swap(batch.stride[i][1], batch.stride[i][2]);
  }
  return run_batches(c, p, batch);
}

// The library's product, then a kernel for what it does not offer. Halves wait in f32, so that they round once.
bool multiply_and_finish(Context& c, const MatmulCall& call) {
  if (!is_half(call.out.dtype)) {
    if (!multiply(c, call, call.out, CUBLASLT_EPILOGUE_DEFAULT, call.accumulate)) return false;
    finish_product(c, call, call.out, false);
    return true;
  }
  const Layout dense = Layout::contiguous(call.out.layout->shape);
  const Scratch room(c, dense.numel() * 4, "matmul");
  const Arg product{room.data(), &dense, f32, {}};
  if (!multiply(c, call, product, CUBLASLT_EPILOGUE_DEFAULT, false)) return false;
  finish_product(c, call, product, call.accumulate);
  return true;
}

}  // namespace

void allow_tf32(bool on) { tf32_allowed = on; }

void matmul(Context& c, const MatmulCall& call) {
  const Layout& out = *call.out.layout;
  if (out.numel() == 0) return;
  const bool empty = call.a.layout->shape.back() == 0;
  if (empty || !is_floating(call.a.dtype) || call.a.dtype != call.b.dtype) return tiled_product(c, call);
  const std::optional<cublasLtEpilogue_t> epilogue = epilogue_of(call);
  if (epilogue && multiply(c, call, call.out, *epilogue, call.accumulate)) return;
  const bool plain = !call.bias.data && call.activation == Fused::none;
  if (!plain && multiply_and_finish(c, call)) return;
  tiled_product(c, call);
}

}  // namespace volta::cuda
