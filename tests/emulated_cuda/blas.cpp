// tests/emulated_cuda/blas.cpp - products in column-major order, as cuBLAS and cuBLASLt define them.
#include "cublasLt.h"

#include "core/half.h"

struct EmulatedBlas {
  cudaStream_t stream;
  std::int64_t number;  // of the stream that was at that address
  void* workspace;
  std::size_t workspace_bytes;
  cublasMath_t math;
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
  const float* bias = nullptr;  // one number for each row
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
        if (p.bias) sum += p.bias[i];
        put(&to, p.add ? sum + wide(to) : sum);  // c may be NaN if it is not added to
      }
}

std::int64_t products = 0, batches = 0, heuristics = 0, tf32_products = 0, handles = 0;
cublasMath_t last_math = CUBLAS_DEFAULT_MATH;
int refused = 0;

/// Says why a product with a bias would be refused, or was not told what it needs; null if it is right. `d` is the
/// layout of the result.
const char* fault_of(const cublasLtMatmulDescOpaque_t& form, const cublasLtMatrixLayoutOpaque_t& a,
                     const cublasLtMatrixLayoutOpaque_t& b, const cublasLtMatrixLayoutOpaque_t& d) {
  if (form.compute != CUBLAS_COMPUTE_32F && form.compute != CUBLAS_COMPUTE_32F_FAST_TF32) return "a compute type";
  if (form.scale != CUDA_R_32F || form.epilogue != CUBLASLT_EPILOGUE_BIAS || !form.bias) return "no bias";
  const bool ta = form.a == CUBLAS_OP_T, tb = form.b == CUBLAS_OP_T;
  for (const cublasLtMatrixLayoutOpaque_t* each : {&a, &b, &d})
    if (each->type != CUDA_R_32F || each->rows == 0 || each->columns == 0 ||
        each->ld < static_cast<std::int64_t>(each->rows))
      return "a matrix";
  if ((ta ? a.columns : a.rows) != d.rows || (tb ? b.rows : b.columns) != d.columns ||
      (ta ? a.rows : a.columns) != (tb ? b.columns : b.rows))
    return "sizes that differ";
  // Some versions left the bias out of results with gaps between their columns (dfyz/cublaslt-bias-epilogue on GitHub).
  return d.ld == static_cast<std::int64_t>(d.rows) ? nullptr : "gaps between the columns of the result";
}
void check_fault(const char* fault) {
  if (fault) emulated_die(std::string("a product with a bias that cuBLASLt would refuse, or get wrong: ") + fault);
}
template <class T>
void read_attribute(T* to, const void* value, std::size_t bytes) {
  if (bytes != sizeof *to) emulated_die("an attribute of another size");
  std::memcpy(to, value, bytes);
}

}  // namespace

cublasStatus_t cublasCreate(cublasHandle_t* handle) {
  ++handles;
  return *handle = new EmulatedBlas{}, CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasDestroy(cublasHandle_t handle) {
  --handles;
  return delete handle, CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode) {
  return handle->math = mode, CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream) {
  *handle = {stream, emulated_stream_number(stream), nullptr, 0, handle->math};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetWorkspace(cublasHandle_t handle, void* workspace, std::size_t bytes) {
  handle->workspace = workspace;
  handle->workspace_bytes = bytes;
  return CUBLAS_STATUS_SUCCESS;
}

std::int64_t emulated_products() { return products; }
std::int64_t emulated_batches() { return batches; }
std::int64_t emulated_heuristics() { return heuristics; }
std::int64_t emulated_tf32_products() { return tf32_products; }
int emulated_math_mode() { return last_math; }
std::int64_t emulated_blas_handles() { return handles; }

cublasStatus_t cublasGemmStridedBatchedEx_64(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b,
                                             std::int64_t m, std::int64_t n, std::int64_t k, const void*, const void* a,
                                             cudaDataType type, std::int64_t lda, long long stride_a, const void* b,
                                             cudaDataType b_type, std::int64_t ldb, long long stride_b,
                                             const void* beta, void* c, cudaDataType c_type, std::int64_t ldc,
                                             long long stride_c, std::int64_t count, cublasComputeType_t compute, int) {
  ++batches;
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
  if (emulated_refuses(handle->stream)) return CUBLAS_STATUS_NOT_SUPPORTED;  // before it has called CUDA
  products += count;
  last_math = handle->math;
  if (compute == CUBLAS_COMPUTE_32F_FAST_TF32) tf32_products += count;
  if (handle->number != emulated_stream_number(handle->stream)) emulated_die("a product on a stream that is gone");
  EmulatedBlocks blocks;
  blocks.add(handle->workspace, handle->workspace_bytes, handle->stream, "a product in a workspace");
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

cublasStatus_t cublasGemmEx_64(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, std::int64_t m,
                               std::int64_t n, std::int64_t k, const void* alpha, const void* a, cudaDataType a_type,
                               std::int64_t lda, const void* b, cudaDataType b_type, std::int64_t ldb, const void* beta,
                               void* c, cudaDataType c_type, std::int64_t ldc, cublasComputeType_t compute,
                               int algorithm) {
  --batches;
  return cublasGemmStridedBatchedEx_64(handle, op_a, op_b, m, n, k, alpha, a, a_type, lda, 0, b, b_type, ldb, 0, beta,
                                       c, c_type, ldc, 0, 1, compute, algorithm);
}

// ---- cuBLASLt -------------------------------------------------------------------------------------------------------

void emulated_refuse_biases(int how) { refused = how; }

cublasStatus_t cublasLtMatmulDescInit(cublasLtMatmulDescOpaque_t* form, cublasComputeType_t compute,
                                      cudaDataType scale) {
  *form = {compute, scale, CUBLAS_OP_N, CUBLAS_OP_N, CUBLASLT_EPILOGUE_DEFAULT, nullptr};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutInit(cublasLtMatrixLayoutOpaque_t* layout, cudaDataType type, std::uint64_t rows,
                                        std::uint64_t columns, std::int64_t ld) {
  *layout = {type, rows, columns, ld};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceInit(cublasLtMatmulPreferenceOpaque_t* limits) {
  *limits = {0, 256, 256, 256, 256};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDescOpaque_t* form,
                                              cublasLtMatmulDescAttributes_t attribute, const void* value,
                                              std::size_t bytes) {
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA: read_attribute(&form->a, value, bytes); break;
    case CUBLASLT_MATMUL_DESC_TRANSB: read_attribute(&form->b, value, bytes); break;
    case CUBLASLT_MATMUL_DESC_EPILOGUE: read_attribute(&form->epilogue, value, bytes); break;
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER: read_attribute(&form->bias, value, bytes); break;
  }
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreferenceOpaque_t* limits,
                                                    cublasLtMatmulPreferenceAttributes_t attribute, const void* value,
                                                    std::size_t bytes) {
  switch (attribute) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES: read_attribute(&limits->workspace, value, bytes); break;
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES: read_attribute(&limits->a, value, bytes); break;
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES: read_attribute(&limits->b, value, bytes); break;
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES: read_attribute(&limits->d, value, bytes); break;
  }
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(
    cublasLtHandle_t handle, const cublasLtMatmulDescOpaque_t* form, const cublasLtMatrixLayoutOpaque_t* a,
    const cublasLtMatrixLayoutOpaque_t* b, const cublasLtMatrixLayoutOpaque_t* c, const cublasLtMatrixLayoutOpaque_t* d,
    const cublasLtMatmulPreferenceOpaque_t* limits, int wanted, cublasLtMatmulHeuristicResult_t* results, int* found) {
  ++heuristics;
  check_fault(!handle || wanted != 1 || !(*c == *d) ? "arguments" : fault_of(*form, *a, *b, *d));
  if (refused == 2) return CUBLAS_STATUS_NOT_SUPPORTED;
  *found = refused == 0;
  if (*found) *results = {{*form, *a, *b, *d, *limits}, limits->workspace, CUBLAS_STATUS_SUCCESS};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, const cublasLtMatmulDescOpaque_t* form, const void* alpha,
                              const void* a, const cublasLtMatrixLayoutOpaque_t* a_layout, const void* b,
                              const cublasLtMatrixLayoutOpaque_t* b_layout, const void* beta, const void* c,
                              const cublasLtMatrixLayoutOpaque_t* c_layout, void* d,
                              const cublasLtMatrixLayoutOpaque_t* d_layout, const cublasLtMatmulAlgo_t* algo,
                              void* workspace, std::size_t workspace_bytes, cudaStream_t stream) {
  check_fault(fault_of(*form, *a_layout, *b_layout, *d_layout));
  auto is = [](const void* number, float wanted) { return *static_cast<const float*>(number) == wanted; };
  if (stream != reinterpret_cast<cublasHandle_t>(handle)->stream) check_fault("a stream that has another workspace");
  if (!is(alpha, 1) || !is(beta, 0) || c != d || !(*c_layout == *d_layout)) check_fault("something to add to");
  if (form->compute != algo->form.compute || form->a != algo->form.a || form->b != algo->form.b ||
      !(*a_layout == algo->a) || !(*b_layout == algo->b) || !(*d_layout == algo->c))
    check_fault("the algorithm of another product");
  // What cudaMalloc returns is a multiple of 256 on a GPU, and of 16 here.
  auto aligned = [](const void* at, std::size_t to) {
    return reinterpret_cast<std::uintptr_t>(at) % std::min<std::size_t>(to, 16) == 0;
  };
  const cublasLtMatmulPreferenceOpaque_t& limits = algo->limits;
  if (!aligned(a, limits.a) || !aligned(b, limits.b) || !aligned(c, limits.c) || !aligned(d, limits.d) ||
      !aligned(form->bias, limits.d) || !aligned(workspace, 16))
    check_fault("an address that is less aligned than was said");
  if (workspace_bytes < limits.workspace) check_fault("too small a workspace");
  const Problem p{.ta = form->a == CUBLAS_OP_T,
                  .tb = form->b == CUBLAS_OP_T,
                  .add = false,
                  .m = static_cast<std::int64_t>(d_layout->rows),
                  .n = static_cast<std::int64_t>(d_layout->columns),
                  .k = static_cast<std::int64_t>(form->a == CUBLAS_OP_T ? a_layout->rows : a_layout->columns),
                  .lda = a_layout->ld,
                  .ldb = b_layout->ld,
                  .ldc = d_layout->ld,
                  .stride_a = 0,
                  .stride_b = 0,
                  .stride_c = 0,
                  .count = 1,
                  .bias = form->bias};
  if (emulated_refuses(stream)) return CUBLAS_STATUS_NOT_SUPPORTED;
  EmulatedBlocks blocks;
  auto add = [&](const void* from, std::size_t bytes) { blocks.add(from, bytes, stream, "a product with a bias"); };
  for (auto [from, layout] : {std::pair(a, a_layout), std::pair(b, b_layout), std::pair(c, d_layout)})
    add(from, ((layout->columns - 1) * static_cast<std::size_t>(layout->ld) + layout->rows) * sizeof(float));
  add(form->bias, d_layout->rows * sizeof(float));
  add(workspace, workspace_bytes);
  ++products;
  if (form->compute == CUBLAS_COMPUTE_32F_FAST_TF32) ++tf32_products;
  emulated_enqueue(stream, blocks, [p, a, b, d, workspace] {
    std::memset(workspace, 0xff, 64);  // it is the product's own
    multiply(p, static_cast<const float*>(a), static_cast<const float*>(b), static_cast<float*>(d));
  });
  return CUBLAS_STATUS_SUCCESS;
}
