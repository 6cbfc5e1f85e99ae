// ops/product/matmul_bias.cu - products with a bias on CUDA, by cuBLASLt, which adds the bias as it stores the sums.
#include <cublasLt.h>

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <tuple>

#include "ops/product/contraction.h"
#include "ops/product/product.cuh"

namespace kassette::cuda {
using namespace ops;
namespace {

/// The largest power of two up to 256 that divides an address.
std::uint32_t alignment_of(const void* data) {
  const auto at = reinterpret_cast<std::uintptr_t>(data);
  return static_cast<std::uint32_t>(std::min<std::uintptr_t>(256, at & (~at + 1)));
}

/// A product with a bias in the terms of cuBLASLt: descriptor, layouts, limits, algorithm. Column-major as in
/// multiply(): out^T = b^T a^T, and the bias is added to each of its columns. A relu is not asked for: cuBLASLt's is
/// max(x, 0), and its manual does not say that it keeps NaN, as ours does. The members own nothing.
class BiasedProduct {
 public:
  BiasedProduct(const char* what, CudaDevice& device, const ContractionPlan& plan, const std::byte* bias)
      : what_(what), device_(device), plan_(plan),
        // The result has new memory, which is aligned. The bias is loaded as the result is stored, and has no limit of
        // its own: its alignment goes for the result's.
        aligned_{alignment_of(plan.b), alignment_of(plan.a), alignment_of(bias)} {
    const GemmShape& p = plan.product;
    check(cublasLtMatmulDescInit(&form_, compute_, CUDA_R_32F));
    set(CUBLASLT_MATMUL_DESC_TRANSA, p.tb ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(CUBLASLT_MATMUL_DESC_TRANSB, p.ta ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
    set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
    check(cublasLtMatrixLayoutInit(&left_, CUDA_R_32F, p.tb ? p.k : p.n, p.tb ? p.n : p.k, p.ldb));
    check(cublasLtMatrixLayoutInit(&right_, CUDA_R_32F, p.ta ? p.m : p.k, p.ta ? p.k : p.m, p.lda));
    check(cublasLtMatrixLayoutInit(&result_, CUDA_R_32F, p.n, p.m, p.ldo));
  }
  BiasedProduct(const BiasedProduct&) = delete;
  BiasedProduct& operator=(const BiasedProduct&) = delete;

  /// Finds an algorithm: the one that a product of this form had before, or else the one that cuBLASLt picks, which
  /// takes about as long as a launch. Returns false if it has none for this product on this GPU.
  bool find_algorithm(cublasLtHandle_t blas) {
    const GemmShape& p = plan_.product;
    const Form form{device_.index(), compute_, p.ta, p.tb, p.m, p.n, p.k, p.lda, p.ldb, aligned_};
    static std::mutex mutex;
    static auto* known = new std::map<Form, cublasLtMatmulAlgo_t>;  // never destroyed: threads may multiply after main
    std::lock_guard<std::mutex> lock(mutex);
    if (const auto found = known->find(form); found != known->end()) return algorithm_ = found->second, true;
    if (!ask(blas)) return false;
    if (known->size() == kMaxKnown) known->clear();
    known->emplace(form, algorithm_);
    return true;
  }

  void enqueue(cublasLtHandle_t blas, std::byte* out) {
    const float scale = 1, keep = 0;
    check(cublasLtMatmul(blas, &form_, &scale, plan_.b, &left_, plan_.a, &right_, &keep, out, &result_, out, &result_,
                         &algorithm_, device_.blas_workspace(), CudaDevice::kBlasWorkspace, device_.current().handle));
    device_.launched(what_);
  }

 private:
  static constexpr std::size_t kMaxKnown = 4096;  // forms
  /// What cuBLASLt picks an algorithm by: device, compute type, transposed or not, sizes, strides, alignments.
  using Form = std::tuple<int, cublasComputeType_t, bool, bool, std::int64_t, std::int64_t, std::int64_t, std::int64_t,
                          std::int64_t, std::array<std::uint32_t, 3>>;

  bool ask(cublasLtHandle_t blas) {
    cublasLtMatmulPreferenceOpaque_t limits;
    check(cublasLtMatmulPreferenceInit(&limits));
    auto limit = [&](cublasLtMatmulPreferenceAttributes_t attribute, auto value) {
      check(cublasLtMatmulPreferenceSetAttribute(&limits, attribute, &value, sizeof value));
    };
    limit(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, std::uint64_t{CudaDevice::kBlasWorkspace});
    limit(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, aligned_[0]);
    limit(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, aligned_[1]);
    limit(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, aligned_[2]);
    int found = 0;
    cublasLtMatmulHeuristicResult_t best;
    const cublasStatus_t status =
        cublasLtMatmulAlgoGetHeuristic(blas, &form_, &left_, &right_, &result_, &result_, &limits, 1, &best, &found);
    if (status == CUBLAS_STATUS_NOT_SUPPORTED) return false;
    check(status);
    algorithm_ = best.algo;
    return found == 1 && best.state == CUBLAS_STATUS_SUCCESS;
  }
  void check(cublasStatus_t status) { device_.check(status, what_); }
  template <class T>
  void set(cublasLtMatmulDescAttributes_t attribute, T value) {
    check(cublasLtMatmulDescSetAttribute(&form_, attribute, &value, sizeof value));
  }
  const char* what_;
  CudaDevice& device_;
  const ContractionPlan& plan_;
  const std::array<std::uint32_t, 3> aligned_;  // bytes
  const cublasComputeType_t compute_ = compute_type(float32);
  cublasLtMatmulDescOpaque_t form_;
  cublasLtMatrixLayoutOpaque_t left_, right_, result_;
  cublasLtMatmulAlgo_t algorithm_;
};

}  // namespace

bool multiply_with_bias(const OpCall& call, const TensorDesc& bias) {
  TensorDesc& out = *call.out[0];
  if (out.dtype != float32) return false;
  const std::optional<ContractionPlan> plan = plan_with_bias(call, bias);
  if (!plan || plan->product.ldo != plan->product.n) return false;

  CudaDevice& device = device_of(call.device);
  DeviceGuard current(device);
  std::unique_lock<std::mutex> lock;
  // By the manual of cuBLAS its handle may stand for one of cuBLASLt.
  const auto blas = reinterpret_cast<cublasLtHandle_t>(device.blas(&lock));
  BiasedProduct product(call.op.name, device, *plan, bias.data());
  if (!product.find_algorithm(blas)) return false;
  host_services().allocate_output(out, call.device);
  product.enqueue(blas, out.data());
  return true;
}

}  // namespace kassette::cuda
