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
  bool ta, tb;
  std::int64_t m, n, k, lda, ldb, ldc, stride_a, stride_b, stride_c, count;
};

template <class T>
void multiply(const Problem& p, const T* a, const T* b, T* c) {
  for (std::int64_t item = 0; item < p.count; ++item, a += p.stride_a, b += p.stride_b, c += p.stride_c)
    for (std::int64_t j = 0; j < p.n; ++j)
      for (std::int64_t i = 0; i < p.m; ++i) {
        decltype(wide(T())) sum = 0;
        for (std::int64_t q = 0; q < p.k; ++q) sum += wide(a[p.ta ? i * p.lda + q : q * p.lda + i]) * wide(b[p.tb ? q * p.ldb + j : j * p.ldb + q]);
        put(c + j * p.ldc + i, sum);
      }
}

}  // namespace

cublasStatus_t cublasCreate(cublasHandle_t* handle) { return *handle = new EmulatedBlas{}, CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream) { return handle->stream = stream, CUBLAS_STATUS_SUCCESS; }

cublasStatus_t cublasGemmStridedBatchedEx_64(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, std::int64_t m, std::int64_t n,
                                             std::int64_t k, const void*, const void* a, cudaDataType type, std::int64_t lda, long long stride_a,
                                             const void* b, cudaDataType, std::int64_t ldb, long long stride_b, const void*, void* c,
                                             cudaDataType, std::int64_t ldc, long long stride_c, std::int64_t count, cublasComputeType_t, int) {
  const Problem p{op_a == CUBLAS_OP_T, op_b == CUBLAS_OP_T, m, n, k, lda, ldb, ldc, stride_a, stride_b, stride_c, count};
  auto as = [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    emulated_enqueue(handle->stream, [=] { multiply(p, static_cast<const T*>(a), static_cast<const T*>(b), static_cast<T*>(c)); });
  };
  switch (type) {
    case CUDA_R_64F: as(static_cast<double*>(nullptr)); break;
    case CUDA_R_16F: as(static_cast<Half*>(nullptr)); break;
    case CUDA_R_16BF: as(static_cast<BFloat16*>(nullptr)); break;
    default: as(static_cast<float*>(nullptr));
  }
  return CUBLAS_STATUS_SUCCESS;
}
