// tests/emulated_cuda/cublas_v2.h - the cuBLAS functions that ops/product/product.cuh calls, as plain loops.
#pragma once
#include "cuda_runtime.h"

enum cublasStatus_t { CUBLAS_STATUS_SUCCESS = 0, CUBLAS_STATUS_NOT_SUPPORTED = 15 };
enum cublasOperation_t { CUBLAS_OP_N, CUBLAS_OP_T };
enum cudaDataType { CUDA_R_32F, CUDA_R_64F, CUDA_R_16F, CUDA_R_16BF };
enum cublasComputeType_t { CUBLAS_COMPUTE_32F, CUBLAS_COMPUTE_64F, CUBLAS_COMPUTE_32F_FAST_TF32 };
enum cublasMath_t { CUBLAS_DEFAULT_MATH = 0, CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION = 16 };
enum { CUBLAS_GEMM_DEFAULT };
using cublasHandle_t = struct EmulatedBlas*;

inline const char* cublasGetStatusString(cublasStatus_t) { return "no error"; }
cublasStatus_t cublasCreate(cublasHandle_t* handle);
cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream);
/// The workspace is used until the stream is set again; products without one are refused here, as their bits may
/// differ.
cublasStatus_t cublasSetWorkspace(cublasHandle_t handle, void* workspace, std::size_t bytes);
cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode);
cublasStatus_t cublasDestroy(cublasHandle_t handle);
cublasStatus_t cublasGemmStridedBatchedEx_64(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b,
                                             std::int64_t m, std::int64_t n, std::int64_t k, const void* alpha,
                                             const void* a, cudaDataType a_type, std::int64_t lda, long long stride_a,
                                             const void* b, cudaDataType b_type, std::int64_t ldb, long long stride_b,
                                             const void* beta, void* c, cudaDataType c_type, std::int64_t ldc,
                                             long long stride_c, std::int64_t count, cublasComputeType_t compute,
                                             int algorithm);
cublasStatus_t cublasGemmEx_64(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, std::int64_t m,
                               std::int64_t n, std::int64_t k, const void* alpha, const void* a, cudaDataType a_type,
                               std::int64_t lda, const void* b, cudaDataType b_type, std::int64_t ldb, const void* beta,
                               void* c, cudaDataType c_type, std::int64_t ldc, cublasComputeType_t compute,
                               int algorithm);

// Counters, exported for tests: emulated() in tests/devices/devices.h finds them.
/// The number of matrix products so far.
extern "C" __attribute__((visibility("default"))) std::int64_t emulated_products();
/// The number of calls that were for a batch of products.
extern "C" __attribute__((visibility("default"))) std::int64_t emulated_batches();
/// How often cuBLASLt was asked for an algorithm.
extern "C" __attribute__((visibility("default"))) std::int64_t emulated_heuristics();
/// The number of products with TF32 allowed; they are computed in float32 all the same.
extern "C" __attribute__((visibility("default"))) std::int64_t emulated_tf32_products();
/// The math mode of the handle of the last product.
extern "C" __attribute__((visibility("default"))) int emulated_math_mode();
/// The number of handles that were created and not destroyed.
extern "C" __attribute__((visibility("default"))) std::int64_t emulated_blas_handles();
