// ops/product/matmul.cu - products on CUDA: floats by cuBLAS, integers by a plain kernel.
#include "ops/product/contraction.h"
#include "ops/elementwise/elementwise.cuh"
#include "ops/shape/moving.cuh"
#include "ops/product/product.cuh"
#include "ops/product/zero_terms.h"

namespace kassette::cuda {
namespace {

class DeviceRearranger final : public Rearranger {
 public:
  DeviceRearranger(const char* what, CudaDevice& device) : what_(what), device_(device) {}
  ~DeviceRearranger() {
    for (int i = 0; i < n_; ++i) device_.release(copies_[i].data, copies_[i].bytes);
  }
  const std::byte* copy(const Strided& layout, const std::byte* from, std::int64_t count, int item) override {
    Copy c{device_.allocate(count * item), count * item};
    copies_[n_++] = c;
    copy_strided(what_, device_, layout, from, c.data, item);
    return static_cast<const std::byte*>(c.data);
  }

 private:
  struct Copy {
    void* data;
    std::int64_t bytes;
  };
  const char* what_;
  CudaDevice& device_;
  Copy copies_[8];
  int n_ = 0;
};

cudaDataType type_of(DType dtype) {
  return dtype == float64 ? CUDA_R_64F : dtype == float16 ? CUDA_R_16F : dtype == bfloat16 ? CUDA_R_16BF : CUDA_R_32F;
}

/// The innermost batch axis goes to cuBLAS; the others are a loop.
void multiply_floats(const OpCall& call, CudaDevice& device, const ContractionPlan& plan) {
  const BatchStrides& r = plan.batch;
  const DType dtype = call.out[0]->dtype;
  const std::int64_t item = dtype.size(), batch = r.rank ? r.dims[r.rank - 1] : 1;
  auto last = [&](const std::int64_t* strides) { return r.rank ? strides[r.rank - 1] : 0; };
  for (std::int64_t outer = 0; outer < r.count / batch; ++outer) {
    const BatchStrides::Offsets first = r.offsets(outer, r.rank - 1);
    multiply(call.op.name, device,
             {.of = plan.product,
              .dtype = dtype,
              .out_dtype = dtype,
              .a = plan.a + first.a * item,
              .b = plan.b + first.b * item,
              .out = call.out[0]->data() + first.out * item,
              .batch = batch,
              .next_a = last(r.a),
              .next_b = last(r.b),
              .next_out = last(r.out)});
  }
}

template <class T>
__global__ void multiply_each(GemmShape p, BatchStrides r, const T* a, const T* b, T* out) {
  using U = std::make_unsigned_t<std::conditional_t<(sizeof(T) < 4), int, T>>;
  const std::int64_t ai = p.ta ? 1 : p.lda, ak = p.ta ? p.lda : 1, bk = p.tb ? 1 : p.ldb, bj = p.tb ? p.ldb : 1;
  const std::int64_t step = std::int64_t(gridDim.x) * blockDim.x, n = r.count * p.m * p.n;
  for (std::int64_t at = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x; at < n; at += step) {
    std::int64_t j = at % p.n, i = at / p.n % p.m, rest = at / p.n / p.m, oa = i * ai, ob = j * bj, oo = i * p.ldo + j;
    for (int d = r.rank - 1; d >= 0; --d) {
      std::int64_t c = rest % r.dims[d];
      rest /= r.dims[d];
      oa += c * r.a[d];
      ob += c * r.b[d];
      oo += c * r.out[d];
    }
    U sum = 0;
    for (std::int64_t k = 0; k < p.k; ++k) sum += static_cast<U>(a[oa + k * ak]) * static_cast<U>(b[ob + k * bk]);
    out[oo] = static_cast<T>(sum);
  }
}

/// Computes the elements of `out` that are NaN again, without the terms whose cotangent is 0.
template <class T>
__global__ void replace_nans_each(ContractionTerms terms, std::int64_t n, const T* a, const T* b, T* out) {
  const std::int64_t step = std::int64_t(gridDim.x) * blockDim.x;
  for (std::int64_t i = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step)
    if (const Wide<T> v = load(out + i); v != v)
      store(out + i, static_cast<Wide<T>>(terms.element(
                         a, b, i, [](const T* x, std::int64_t at) { return static_cast<double>(load(x + at)); })));
}
/// Lets zeros of a cotangent among the factors count as zeros (Note [Zero cotangents]).
void respect_zeros(const OpCall& call, CudaDevice& device) {
  if (call.attrs.as<ContractionForm>().origin.cotangent == Cotangent::neither) return;
  const ContractionTerms terms(call);
  const std::int64_t n = call.out[0]->numel();
  for_dtype<Domain::floats>(call.out[0]->dtype, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    launch(call.op.name, device, blocks_for(n), replace_nans_each<T>, terms, n, call.in[0].as<T>(), call.in[1].as<T>(),
           call.out_as<T>());
  });
}

void run(const OpCall& call) {
  const TensorDesc& out = *call.out[0];
  if (out.numel() == 0) return;
  CudaDevice& device = device_of(call.device);
  if (call.spec(0).numel() == 0) return device.zero(out.data(), out.bytes(), call.op.name);  // empty sums
  DeviceRearranger to_order(call.op.name, device);
  ContractionPlan plan = plan_contraction(call, call.in[0].data, call.in[1].data, out.dtype.size(), to_order);
  if (out.dtype.is_float()) {
    multiply_floats(call, device, plan);
    return respect_zeros(call, device);
  }
  for_dtype<Domain::integers>(out.dtype, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    launch(call.op.name, device, blocks_for(out.numel()), multiply_each<T>, plan.product, plan.batch,
           reinterpret_cast<const T*>(plan.a), reinterpret_cast<const T*>(plan.b), call.out_as<T>());
  });
}

const PluginKernel kernels[] = {{"matmul", run, multiply_with_bias}};

}  // namespace

cublasComputeType_t compute_type(DType dtype) {
  if (dtype == float64) return CUBLAS_COMPUTE_64F;
  const bool tf32 = dtype == float32 && host_services().allow_tf32->load(std::memory_order_relaxed);
  return tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}

// cuBLAS puts the products of a call on one axis of a grid, and some versions failed beyond its limit of 65,535
// (PyTorch's issue 45724).
constexpr std::int64_t kMaxProducts = 63 << 10;

// cuBLAS is column-major: it gets the transposed product, out^T = b^T a^T.
void multiply(const char* what, CudaDevice& device, const BlasProduct& product) {
  const GemmShape& p = product.of;
  const bool wide = product.dtype == float64;
  const float scale = 1, keep = product.add ? 1 : 0;
  const double wide_scale = scale, wide_keep = keep;
  const void *alpha = wide ? static_cast<const void*>(&wide_scale) : &scale,
             *beta = wide ? static_cast<const void*>(&wide_keep) : &keep;
  const cudaDataType type = type_of(product.dtype);
  DeviceGuard current(device);
  std::unique_lock<std::mutex> lock;
  cublasHandle_t blas = device.blas(&lock);
  const cublasOperation_t left = p.tb ? CUBLAS_OP_T : CUBLAS_OP_N, right = p.ta ? CUBLAS_OP_T : CUBLAS_OP_N;
  const cublasComputeType_t compute = compute_type(product.dtype);
  const std::int64_t item = product.dtype.size(), out_item = product.out_dtype.size();
  if (product.batch == 1) {  // of batches cuBLAS may not divide k among multiprocessors
    device.check(
        cublasGemmEx_64(blas, left, right, p.n, p.m, p.k, alpha, product.b, type, p.ldb, product.a, type, p.lda, beta,
                        product.out, type_of(product.out_dtype), p.ldo, compute, CUBLAS_GEMM_DEFAULT),
        what);
    return device.launched(what);
  }
  for (std::int64_t first = 0; first < product.batch; first += kMaxProducts)
    device.check(cublasGemmStridedBatchedEx_64(
                     blas, left, right, p.n, p.m, p.k, alpha, product.b + first * product.next_b * item, type, p.ldb,
                     product.next_b, product.a + first * product.next_a * item, type, p.lda, product.next_a, beta,
                     product.out + first * product.next_out * out_item, type_of(product.out_dtype), p.ldo,
                     product.next_out, std::min(kMaxProducts, product.batch - first), compute, CUBLAS_GEMM_DEFAULT),
                 what);
  device.launched(what);
}

Kernels matmul_kernels() { return {kernels, 1}; }

}  // namespace kassette::cuda
