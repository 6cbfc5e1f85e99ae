// tests/emulated_cuda/blas.cpp - products in column-major order, as cuBLAS defines them.
#include "cublas_v2.h"

#include "core/half.h"

struct EmulatedBlas {
  cudaStream_t stream;
};

namespace {

using kassette::BFloat16;
using kassette::Half;

template <class T>
float wide(T v) {
  return kassette::to_float(v);
}
float wide(float v) { return v; }
double wide(double v) { return v; }
void put(Half* to, float v) { *to = kassette::to_half(v); }
void put(BFloat16* to, float v) { *to = kassette::to_bfloat16(v); }
void put(float* to, float v) { *to = v; }
void put(double* to, double v) { *to = v; }

struct Problem {
  bool ta, tb, add;
  std::int64_t m, n, k, lda, ldb, ldc, stride_a, stride_b, stride_c, count;
};

template <class T, class Out>
void multiply(const Problem& p, const T* a, const T* b, Out* c) {
  for (std::int64_t item = 0; item < p.count; ++item, a += p.stride_a, b += p.stride_b, c += p.stride_c)
    for (std::int64_t j = 0; j < p.n; ++j)
      for (std::int64_t i = 0; i < p.m; ++i) {
        Out& to = c[j * p.ldc + i];
        decltype(wide(T())) sum = 0;
        for (std::int64_t q = 0; q < p.k; ++q)
          sum += wide(a[p.ta ? i * p.lda + q : q * p.lda + i]) * wide(b[p.tb ? q * p.ldb + j : j * p.ldb + q]);
        put(&to, p.add ? sum + wide(to) : sum);  // c may be NaN if it is not added to
      }
}

std::int64_t products = 0, tf32_products = 0;

}  // namespace

cublasStatus_t cublasCreate(cublasHandle_t* handle) { return *handle = new EmulatedBlas{}, CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasDestroy(cublasHandle_t handle) { return delete handle, CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream) {
  return handle->stream = stream, CUBLAS_STATUS_SUCCESS;
}

std::int64_t emulated_products() { return products; }
std::int64_t emulated_tf32_products() { return tf32_products; }

cublasStatus_t cublasGemmStridedBatchedEx_64(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b,
                                             std::int64_t m, std::int64_t n, std::int64_t k, const void*, const void* a,
                                             cudaDataType type, std::int64_t lda, long long stride_a, const void* b,
                                             cudaDataType b_type, std::int64_t ldb, long long stride_b,
                                             const void* beta, void* c, cudaDataType c_type, std::int64_t ldc,
                                             long long stride_c, std::int64_t count, cublasComputeType_t compute, int) {
  const bool wide = type == CUDA_R_64F, half = type == CUDA_R_16F || type == CUDA_R_16BF;
  const bool add = wide ? *static_cast<const double*>(beta) != 0 : *static_cast<const float*>(beta) != 0;
  const Problem p{
      op_a == CUBLAS_OP_T, op_b == CUBLAS_OP_T, add, m, n, k, lda, ldb, ldc, stride_a, stride_b, stride_c, count};
  if (m < 1 || n < 1 || k < 1 || count < 1 || count > 65535 || lda < (p.ta ? k : m) || ldb < (p.tb ? n : k) ||
      ldc < m || b_type != type || (c_type != type && !(half && c_type == CUDA_R_32F)) ||
      (compute != (wide ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F) &&
       !(type == CUDA_R_32F && compute == CUBLAS_COMPUTE_32F_FAST_TF32))) {
    emulated_die("a product that cuBLAS would refuse, or that has nothing to do");
  }
  products += count;
  if (compute == CUBLAS_COMPUTE_32F_FAST_TF32) tf32_products += count;
  EmulatedBlocks blocks;
  auto check = [&](const void* from, bool turned, std::int64_t rows, std::int64_t columns, std::int64_t ld,
                   std::int64_t stride, cudaDataType of) {
    if (turned) std::swap(rows, columns);
    const std::int64_t elements = (count - 1) * stride + (columns - 1) * ld + rows;
    blocks.add(from,
               static_cast<std::size_t>(elements * (of == CUDA_R_64F   ? 8
                                                    : of == CUDA_R_32F ? 4
                                                                       : 2)),
               handle->stream, "a product");
  };
  check(a, p.ta, m, k, lda, stride_a, type);
  check(b, p.tb, k, n, ldb, stride_b, type);
  check(c, false, m, n, ldc, stride_c, c_type);
  auto as = [&](auto* null, auto* to) {
    using T = std::remove_pointer_t<decltype(null)>;
    emulated_enqueue(handle->stream, blocks,
                     [p, a, b, to] { multiply(p, static_cast<const T*>(a), static_cast<const T*>(b), to); });
  };
  auto halves = [&](auto* null) {
    if (c_type == CUDA_R_32F) as(null, static_cast<float*>(c));
    else as(null, static_cast<decltype(null)>(c));
  };
  switch (type) {
    case CUDA_R_64F: as(static_cast<double*>(nullptr), static_cast<double*>(c)); break;
    case CUDA_R_16F: halves(static_cast<Half*>(nullptr)); break;
    case CUDA_R_16BF: halves(static_cast<BFloat16*>(nullptr)); break;
    default: as(static_cast<float*>(nullptr), static_cast<float*>(c));
  }
  return CUBLAS_STATUS_SUCCESS;
}
