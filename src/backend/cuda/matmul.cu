// Matrix products on the GPU by cuBLASLt. It thinks in columns: a row-major C = A B is its C^T = B^T A^T, so the
// operands change places. Plans (descriptors and the library's choice of algorithm) are kept per form of product.
// Kernels of our own follow where it has no epilogue, and take its place for integers.
#include <cublasLt.h>

#include <map>
#include <optional>

#include "backend/cuda/element.h"
#include "backend/cuda/library.h"
#include "math/activation.h"
#include "math/unary.h"

namespace volta::cuda {
namespace {

template <class T> __device__ T activate(T x, Fused activation) {
  if constexpr (std::is_floating_point_v<T>) {
    switch (activation) {
      case Fused::gelu: return point::Gelu::f(x);
      case Fused::gelu_tanh: return point::GeluTanh::f(x);
      case Fused::silu: return point::Silu::f(x);
      case Fused::tanh: return point::Tanh::f(x);
      case Fused::sigmoid: return point::Sigmoid::f(x);
      default: break;
    }
  }
  return activation == Fused::relu ? scalar::max(x, T(0)) : x;
}

// What is added to a sum of type C before the activation.
struct Ending {
  DType out, bias;
  Fused activation;
  bool accumulate;
  explicit Ending(const MatmulCall& call)
      : out(call.out.dtype), bias(call.bias.dtype), activation(call.activation), accumulate(call.accumulate) {}
  template <class C> __device__ C added(const char* to, const char* bias_at) const {
    const C old = accumulate ? cuda::load<C>(to, out) : C(0);
    return bias_at ? C(old + cuda::load<C>(bias_at, bias)) : old;
  }
};

template <class T> struct Finish {  // out, product, bias
  Ending ending;
  DType product;
  __device__ T load(char* const* p) const { return cuda::load<T>(p[1], product) + ending.added<T>(p[0], p[2]); }
  __device__ void store(char* const* p, T x) const { cuda::store(p[0], ending.out, activate(x, ending.activation)); }
};

// Halves are summed in float; integers wrap around, as unsigned numbers do; truth values combine as any(a and b).
template <class T> using SumOf = std::conditional_t<
    is_half_type<T>, float,
    std::conditional_t<std::is_integral_v<T>, std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>, T>>;

template <class T> struct DotProduct {  // out, a, b, bias
  Ending ending;
  int64_t k, step_a, step_b;
  __device__ int load(char* const*) const { return 0; }
  __device__ void store(char* const* p, int) const {
    using C = SumOf<T>;
    C sum = 0;
#pragma unroll 4
    for (int64_t i = 0; i < k; ++i) {
      const C x = read<C, T>(p[1] + i * step_a), y = read<C, T>(p[2] + i * step_b);
      if constexpr (std::is_same_v<T, bool>) sum |= x & y;
      else sum += x * y;
    }
    sum += ending.added<C>(p[0], p[3]);
    if constexpr (std::is_integral_v<T>) cuda::store(p[0], ending.out, activate(convert<T>(sum), ending.activation));
    else cuda::store(p[0], ending.out, activate(sum, ending.activation));
  }
};

constexpr size_t workspace_bytes = size_t(32) << 20, most_plans = 4096;
constexpr int64_t most_batches = 65535;
std::atomic<bool> tf32_allowed{false};

}  // namespace

const Library& cublas_library() {
  static const Library library("libcublasLt.so." + std::to_string(CUBLAS_VER_MAJOR));
  return library;
}

namespace {

struct CublasLt {
  decltype(&cublasLtCreate) create = cublas_library().symbol("cublasLtCreate", "matmul");
  decltype(&cublasLtMatmul) matmul = cublas_library().symbol("cublasLtMatmul", "matmul");
  decltype(&cublasLtMatmulAlgoGetHeuristic) heuristic =
      cublas_library().symbol("cublasLtMatmulAlgoGetHeuristic", "matmul");
  decltype(&cublasLtMatmulDescInit_internal) desc_init =
      cublas_library().symbol("cublasLtMatmulDescInit_internal", "matmul");
  decltype(&cublasLtMatmulDescSetAttribute) desc_set =
      cublas_library().symbol("cublasLtMatmulDescSetAttribute", "matmul");
  decltype(&cublasLtMatrixLayoutInit_internal) layout_init =
      cublas_library().symbol("cublasLtMatrixLayoutInit_internal", "matmul");
  decltype(&cublasLtMatrixLayoutSetAttribute) layout_set =
      cublas_library().symbol("cublasLtMatrixLayoutSetAttribute", "matmul");
  decltype(&cublasLtMatmulPreferenceInit_internal) preference_init =
      cublas_library().symbol("cublasLtMatmulPreferenceInit_internal", "matmul");
  decltype(&cublasLtMatmulPreferenceSetAttribute) preference_set =
      cublas_library().symbol("cublasLtMatmulPreferenceSetAttribute", "matmul");
  decltype(&cublasLtGetStatusString) status_string = cublas_library().symbol("cublasLtGetStatusString", "matmul");
};

const CublasLt& cublas() {
  static const CublasLt lt;
  return lt;
}

void check(cublasStatus_t status) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw_error(status == CUBLAS_STATUS_ALLOC_FAILED ? ErrorKind::memory : ErrorKind::device, "matmul",
              "cuBLASLt reports: ", cublas().status_string(status));
}

void set(const auto& setter, auto& object, auto attribute, const auto& value) {
  check(setter(&object, attribute, &value, sizeof value));
}

// A matrix the library can read: `lines` rows (or columns, when `by_columns`) of `length` contiguous elements, `ld` apart.
struct Matrix {
  int64_t length, lines, ld;
  bool by_columns;
  int64_t batch_stride = 0, alignment = 0;
  auto operator<=>(const Matrix&) const = default;
};

// The matrix in the last two axes, if cuBLAS can read it in place.
std::optional<Matrix> matrix_of(const Layout& x) {
  const int row = x.rank() - 2;
  const int64_t rows = x.shape[row], columns = x.shape[row + 1], down = x.strides[row], right = x.strides[row + 1];
  if ((right == 1 || columns == 1) && (rows == 1 || down >= columns))
    return Matrix{columns, rows, rows == 1 ? columns : down, false};
  if ((down == 1 || rows == 1) && (columns == 1 || right >= rows))
    return Matrix{rows, columns, columns == 1 ? rows : right, true};
  return {};
}

// What the library's choice depends on.
struct Form {
  std::array<Matrix, 3> matrix;  // out (row-major), a, b
  DType in_dtype, out_dtype;
  cublasLtEpilogue_t epilogue;
  int64_t batches;
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
  auto operator<=>(const Form&) const = default;
};

struct GemmShape : Form {
  std::array<void*, 3> data;
  const void* bias;
};

cudaDataType_t type_of(DType t) {
  return t == f64 ? CUDA_R_64F : t == f32 ? CUDA_R_32F : t == f16 ? CUDA_R_16F : CUDA_R_16BF;
}

cublasComputeType_t compute_of(DType t) {
  if (t == f64) return CUBLAS_COMPUTE_64F;
  return t == f32 && allows_tf32() ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}

int64_t alignment(const void* p) {
  const auto address = reinterpret_cast<uintptr_t>(p);
  return address % 256 == 0 ? 256 : int64_t(address & (~address + 1));
}

struct CublasPlan {
  cublasLtMatmulDescOpaque_t desc;
  cublasLtMatrixLayoutOpaque_t layout[3];  // of out, a, b
  cublasLtMatmulHeuristicResult_t choice{};
  bool found = false;

  CublasPlan(cublasLtHandle_t handle, const GemmShape& p) {
    const CublasLt& lt = cublas();
    const auto& [out, a, b] = p.matrix;
    check(lt.desc_init(&desc, sizeof desc, p.compute, p.in_dtype == f64 ? CUDA_R_64F : CUDA_R_32F));
    set(lt.desc_set, desc, CUBLASLT_MATMUL_DESC_TRANSA, b.by_columns ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(lt.desc_set, desc, CUBLASLT_MATMUL_DESC_TRANSB, a.by_columns ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(lt.desc_set, desc, CUBLASLT_MATMUL_DESC_EPILOGUE, p.epilogue);
    if (p.bias) set(lt.desc_set, desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, p.bias);
    for (size_t k = 0; k < 3; ++k) {
      const Matrix& x = p.matrix[k];
      const cudaDataType_t type = type_of(k == 0 ? p.out_dtype : p.in_dtype);
      check(lt.layout_init(&layout[k], sizeof layout[k], type, uint64_t(x.length), uint64_t(x.lines), x.ld));
      set(lt.layout_set, layout[k], CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, int32_t(p.batches));
      set(lt.layout_set, layout[k], CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, x.batch_stride);
    }
    cublasLtMatmulPreferenceOpaque_t wish;
    check(lt.preference_init(&wish, sizeof wish));
    set(lt.preference_set, wish, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, uint64_t(workspace_bytes));
    set(lt.preference_set, wish, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, uint32_t(b.alignment));
    set(lt.preference_set, wish, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, uint32_t(a.alignment));
    set(lt.preference_set, wish, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, uint32_t(out.alignment));
    set(lt.preference_set, wish, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, uint32_t(out.alignment));
    int count = 0;
    const cublasStatus_t status =
        lt.heuristic(handle, &desc, &layout[2], &layout[1], &layout[0], &layout[0], &wish, 1, &choice, &count);
    found = status == CUBLAS_STATUS_SUCCESS && count > 0 && choice.state == CUBLAS_STATUS_SUCCESS;
  }
};

// One per device: the library's handle, and the plans made so far.
struct Engine {
  std::mutex mutex;
  cublasLtHandle_t handle = nullptr;
  std::map<Form, CublasPlan> plans;
};

// False: the library has no algorithm for it.
bool run(Context& c, GemmShape& p) {
  p.compute = compute_of(p.in_dtype);
  for (size_t k = 0; k < 3; ++k) p.matrix[k].alignment = alignment(p.data[k]);
  static Engine* const engines = new Engine[most_devices];  // never destroyed, as contexts are not
  Engine& e = engines[c.device];
  const std::lock_guard lock(e.mutex);
  if (!e.handle) check(cublas().create(&e.handle));
  auto known = e.plans.find(p);
  if (known == e.plans.end()) {
    if (e.plans.size() >= most_plans) e.plans.clear();
    known = e.plans.try_emplace(p, e.handle, p).first;
  }
  CublasPlan& plan = known->second;
  if (!plan.found) return false;
  if (p.bias) set(cublas().desc_set, plan.desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, p.bias);
  const Room workspace = c.memory().take(int64_t(plan.choice.workspaceSize), "matmul");
  const float narrow[] = {1, 0};
  const double wide[] = {1, 0};
  const auto factor = [&](int i) { return p.in_dtype == f64 ? static_cast<const void*>(wide + i) : narrow + i; };
  auto& [out, a, b] = plan.layout;
  check(cublas().matmul(e.handle, &plan.desc, factor(0), p.data[2], &b, p.data[1], &a, factor(1), p.data[0], &out,
                        p.data[0], &out, &plan.choice.algo, workspace->data, plan.choice.workspaceSize, c.stream()));
  after_launch(c, "matmul");
  return true;
}

// An operand as the library can read it: as it is, or copied. Batch axes that only repeat are not copied.
struct Readable {
  void* data;
  Layout layout;
  std::optional<Matrix> matrix;
  Room copied;

  Readable(Context& c, const Arg& x) : data(x.data), layout(*x.layout), matrix(matrix_of(layout)) {
    if (matrix) return;
    Layout distinct = layout;
    for (int i = 0; i + 2 < layout.rank(); ++i)
      if (layout.strides[i] == 0) distinct.shape[i] = 1;
    const Layout dense = Layout::contiguous(distinct.shape);
    copied = c.memory().take(dense.numel() * size_of(x.dtype), "matmul");
    data = copied->data;
    c.copy({data, &dense, x.dtype, {}}, {x.data, &distinct, x.dtype, {}});
    layout = views::expand(dense, layout.shape, "matmul");
    matrix = matrix_of(layout);
  }
};

// The library's name for bias and activation, if it has one.
std::optional<cublasLtEpilogue_t> epilogue_of(const MatmulCall& call) {
  const bool bias = call.bias.data, relu = call.activation == Fused::relu;
  if (call.accumulate) return {};
  if (!bias && call.activation == Fused::none) return CUBLASLT_EPILOGUE_DEFAULT;
  if (call.out.dtype == f64 || (call.activation != Fused::none && !relu)) return {};
  if (!bias) return CUBLASLT_EPILOGUE_RELU;
  const Layout& l = *call.bias.layout;
  const bool along = l.rank() > 0 && l.shape.back() == call.out.layout->shape.back() && l.strides.back() == 1;
  if (!along || call.bias.dtype != call.out.dtype || alignment(call.bias.data) < 16) return {};
  return relu ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_BIAS;
}

// The product alone into `out`, with what the epilogue adds; false when the library cannot. Of the batch axes the
// innermost one is the library's.
bool multiply(Context& c, const MatmulCall& call, const Arg& out, cublasLtEpilogue_t epilogue) {
  const std::optional<Matrix> target = matrix_of(*out.layout);
  if (!target || target->by_columns) return false;
  const Readable a(c, call.a), b(c, call.b);
  StridedLoop<3> batch;
  for (int i = 0; i + 2 < out.layout->rank(); ++i) {
    const int64_t strides[] = {out.layout->strides[i], a.layout.strides[i], b.layout.strides[i]};
    batch.add_axis(out.layout->shape[i], strides);
  }
  batch.finish();
  const int64_t* by = batch.stride[0];
  const bool together = by[0] > 0 && by[1] >= 0 && by[2] >= 0, bias = epilogue & CUBLASLT_EPILOGUE_BIAS;
  const int64_t step = together ? most_batches : 1,
                size[] = {size_of(out.dtype), size_of(call.a.dtype), size_of(call.b.dtype)};
  bool found = true;
  batch.for_rows(0, batch.rows(), [&](const int64_t* offset) {
    for (int64_t i = 0; i < batch.size[0]; i += step) {
      GemmShape p{
          {{*target, *a.matrix, *b.matrix}, call.a.dtype, out.dtype, epilogue, std::min(step, batch.size[0] - i)},
          {out.data, a.data, b.data},
          bias ? call.bias.data : nullptr};
      for (size_t k = 0; k < 3; ++k) {
        p.data[k] = static_cast<char*>(p.data[k]) + (offset[k] + i * by[k]) * size[k];
        p.matrix[k].batch_stride = p.batches > 1 ? by[k] : 0;
      }
      found = found && run(c, p);
    }
  });
  return found;
}

// The library's product, then a kernel for what it does not offer. Halves wait in f32, so that they round once.
bool multiply_and_finish(Context& c, const MatmulCall& call) {
  const bool half = is_half(call.out.dtype), apart = half || call.accumulate;
  const Layout dense = Layout::contiguous(call.out.layout->shape);
  const DType wide = half ? f32 : call.out.dtype;
  const Room room = c.memory().take(apart ? dense.numel() * size_of(wide) : 0, "matmul");
  const Arg product = apart ? Arg{room->data, &dense, wide, {}} : call.out;
  if (!multiply(c, call, product, CUBLASLT_EPILOGUE_DEFAULT)) return false;
  const Operands<3> x(dense.shape, {&call.out, &product, &call.bias});
  const Ending ending(call);
  if (wide == f64) each(c, "matmul", x, Finish<double>{ending, wide});
  else each(c, "matmul", x, Finish<float>{ending, wide});
  return true;
}

// Takes any dtypes and strides; not fast.
void plain_product(Context& c, const MatmulCall& call) {
  const int last = call.a.layout->rank() - 1;
  const Held a(call.a, last), b(call.b, last - 1);  // both stand still along the inner axis
  const Operands<4> x(call.out.layout->shape, {&call.out, &a, &b, &call.bias});
  visit(a.dtype, [&]<class T>(TypeTag<T>) {
    each(c, "matmul", x, DotProduct<T>{Ending(call), a.size, a.step, b.step});
  });
}

}  // namespace

void allow_tf32(bool on) { tf32_allowed = on; }
bool allows_tf32() { return tf32_allowed.load(std::memory_order_relaxed); }

void Context::matmul(const MatmulCall& call) {
  const OnDevice current(device);
  if (call.out.layout->numel() == 0) return;
  const bool empty = call.a.layout->shape.back() == 0;
  if (empty || !is_floating(call.a.dtype) || call.a.dtype != call.b.dtype) return plain_product(*this, call);
  const std::optional<cublasLtEpilogue_t> epilogue = epilogue_of(call);
  if (epilogue && multiply(*this, call, call.out, *epilogue)) return;
  if (!multiply_and_finish(*this, call)) plain_product(*this, call);
}

}  // namespace volta::cuda
