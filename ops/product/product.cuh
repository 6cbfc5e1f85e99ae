// ops/product/product.cuh - products of float matrices by cuBLAS.
#pragma once
#include "devices/cpu/blas.h"
#include "devices/cuda/cuda.h"
#include "ops/engine/op.h"

namespace kassette::cuda {

/// `batch` products, with next_a, next_b and next_out elements from one matrix to the next. Sums are in float32, or in
/// float64 if the operands are; half types may have a float32 result.
struct BlasProduct {
  devices::GemmShape of;
  DType dtype, out_dtype;
  const std::byte *a, *b;
  std::byte* out;
  std::int64_t batch = 1, next_a = 0, next_b = 0, next_out = 0;
  bool add = false;  // to the contents of `out`
};

/// Enqueues the products. Errors name `what`.
void multiply(const char* what, CudaDevice& device, const BlasProduct& product);

/// TF32 multiplies float32 on tensor cores, with 10 of the 23 bits of the mantissa; used only if the user allows it.
cublasComputeType_t compute_type(DType dtype);

/// OpDef::cuda_with_bias of matmul: for one product of float32 matrices that need no copy. Half types are left to the
/// separate ops, which round twice. Defined in ops/product/matmul_bias.cu.
bool multiply_with_bias(const ops::OpCall& call, const TensorDesc& bias);

}  // namespace kassette::cuda
