// ops/product.cuh - products of matrices of floats by cuBLAS.
#pragma once
#include "devices/cpu/blas.h"
#include "devices/cuda/cuda.h"

namespace kassette::cuda {

/// `batch` products, whose operands and results are so many elements apart. Sums are float32, of float64 float64; half types may have a float32 result.
struct BlasProduct {
  GemmShape of;
  DType dtype, out_dtype;
  const std::byte *a, *b;
  std::byte* out;
  std::int64_t batch = 1, next_a = 0, next_b = 0, next_out = 0;
  bool add = false;  // to what is in `out`
};

/// Enqueued.
void multiply(const char* what, CudaBackend& device, const BlasProduct& product);

}  // namespace kassette::cuda
