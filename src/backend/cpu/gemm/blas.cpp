// f32 and f64 products through cblas, when the build has one.
#ifdef VOLTA_HAVE_CBLAS
#include <cblas.h>

#include <limits>

#include "backend/cpu/gemm/plan.h"

namespace volta::cpu {
namespace {

constexpr int64_t blas_limit = std::numeric_limits<int>::max();

struct BlasMatrix {
  bool usable;
  CBLAS_TRANSPOSE transpose;
  int leading;
};

BlasMatrix blas_matrix(const Matrix& x, int64_t rows, int64_t columns) {
  const auto fits = [](int64_t stride, int64_t extent) {
    return stride >= std::max<int64_t>(1, extent) && stride <= blas_limit;
  };
  if (x.column_stride == 1 && fits(x.row_stride, columns)) return {true, CblasNoTrans, int(x.row_stride)};
  if (x.row_stride == 1 && fits(x.column_stride, rows)) return {true, CblasTrans, int(x.column_stride)};
  return {false, CblasNoTrans, 0};
}

}  // namespace

bool blas_gemm(const Gemm& g) {
  const bool plain = !g.epilogue.bias && g.epilogue.activation == Activation::none && g.batch.empty();
  if (!plain || (g.dtype != f32 && g.dtype != f64) || g.k == 0 || std::max({g.m, g.n, g.k}) > blas_limit) return false;
  const BlasMatrix a = blas_matrix(g.a, g.m, g.k), b = blas_matrix(g.b, g.k, g.n);
  const BlasMatrix c = blas_matrix({g.c, g.c_row_stride, g.c_column_stride}, g.m, g.n);
  if (!a.usable || !b.usable || !c.usable || c.transpose == CblasTrans) return false;
  const auto call = [&]<class T>(auto function, T one) {
    function(CblasRowMajor, a.transpose, b.transpose, int(g.m), int(g.n), int(g.k), one,
             static_cast<const T*>(g.a.data), a.leading, static_cast<const T*>(g.b.data), b.leading,
             g.accumulate ? one : T(0), static_cast<T*>(g.c), c.leading);
  };
  if (g.dtype == f32) call(cblas_sgemm, 1.0f);
  else call(cblas_dgemm, 1.0);
  return true;
}

}  // namespace volta::cpu
#endif
