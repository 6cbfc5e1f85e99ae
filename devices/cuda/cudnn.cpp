// devices/cuda/cudnn.cpp - finding and calling cuDNN: Note [cuDNN] in cudnn.h.
#include "devices/cuda/cudnn.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include <kassette/error.h>

// The file names of versions 9 and 8.
#ifndef KASSETTE_CUDNN_FILES
#define KASSETTE_CUDNN_FILES "libcudnn.so.9", "libcudnn.so.8"
#endif

namespace kassette::cuda {
namespace {

// ---- what cuDNN declares --------------------------------------------------------------------------------------------
// Handles and descriptors are pointers to what only cuDNN knows; statuses and choices are enums of the size of int.
constexpr int kSuccess = 0, kDeterministic = 1, kCrossCorrelation = 1, kPropagateNan = 1;
constexpr int kDefaultMath = 0, kTensorMath = 1, kConvertingMath = 2, kFmaMath = 3;  // kDefaultMath: TF32 too
constexpr int kMaxPooling = 3, kMeanWithoutPadding = 2;                              // the deterministic maximum
constexpr std::uintptr_t kAlignment = 16;  // bytes: of the vectors that kernels may load
/// CUDNN_STATUS_NOT_SUPPORTED: 9 in version 8, 3000 and its refinements in version 9.
bool is_refusal(int status) { return status == 9 || status / 1000 == 3; }

/// cudnnConvolutionFwdAlgoPerf_t, and the same for both gradients.
struct Proposal {
  int algorithm, status;
  float time;
  std::size_t memory;
  int determinism, math, reserved[3];
};
static_assert(sizeof(Proposal) == 48 && alignof(Proposal) == 8);

// clang-format off
#define KASSETTE_CUDNN_FUNCTIONS(F)                                                                                    \
  F(std::size_t, cudnnGetVersion, ())                                                                                  \
  F(const char*, cudnnGetErrorString, (int status))                                                                    \
  F(int, cudnnCreate, (void** handle))                                                                                 \
  F(int, cudnnSetStream, (void* handle, cudaStream_t stream))                                                          \
  F(int, cudnnCreateTensorDescriptor, (void** of))                                                                     \
  F(int, cudnnDestroyTensorDescriptor, (void* of))                                                                     \
  F(int, cudnnSetTensorNdDescriptor, (void* of, int type, int rank, const int* dims, const int* strides))              \
  F(int, cudnnCreateFilterDescriptor, (void** of))                                                                     \
  F(int, cudnnDestroyFilterDescriptor, (void* of))                                                                     \
  F(int, cudnnSetFilterNdDescriptor, (void* of, int type, int format, int rank, const int* dims))                      \
  F(int, cudnnCreateConvolutionDescriptor, (void** of))                                                                \
  F(int, cudnnDestroyConvolutionDescriptor, (void* of))                                                                \
  F(int, cudnnSetConvolutionNdDescriptor, (void* of, int axes, const int* before, const int* strides,                  \
                                           const int* dilations, int mode, int type))                                  \
  F(int, cudnnSetConvolutionGroupCount, (void* of, int groups))                                                        \
  F(int, cudnnSetConvolutionMathType, (void* of, int math))                                                            \
  F(int, cudnnCreatePoolingDescriptor, (void** of))                                                                    \
  F(int, cudnnDestroyPoolingDescriptor, (void* of))                                                                    \
  F(int, cudnnSetPoolingNdDescriptor, (void* of, int mode, int nan, int axes, const int* sizes, const int* before,     \
                                       const int* strides))                                                            \
  F(int, cudnnGetConvolutionForwardAlgorithm_v7, (void* handle, void* x, void* w, void* conv, void* y, int most,       \
                                                  int* found, Proposal* proposals))                                    \
  F(int, cudnnGetConvolutionBackwardDataAlgorithm_v7, (void* handle, void* w, void* dy, void* conv, void* dx,          \
                                                       int most, int* found, Proposal* proposals))                     \
  F(int, cudnnGetConvolutionBackwardFilterAlgorithm_v7, (void* handle, void* x, void* dy, void* conv, void* dw,        \
                                                         int most, int* found, Proposal* proposals))                   \
  F(int, cudnnGetConvolutionForwardWorkspaceSize, (void* handle, void* x, void* w, void* conv, void* y, int algorithm, \
                                                   std::size_t* bytes))                                                \
  F(int, cudnnGetConvolutionBackwardDataWorkspaceSize, (void* handle, void* w, void* dy, void* conv, void* dx,         \
                                                        int algorithm, std::size_t* bytes))                            \
  F(int, cudnnGetConvolutionBackwardFilterWorkspaceSize, (void* handle, void* x, void* dy, void* conv, void* dw,       \
                                                          int algorithm, std::size_t* bytes))                          \
  F(int, cudnnConvolutionForward, (void* handle, const void* alpha, void* of_x, const void* x, void* of_w,             \
                                   const void* w, void* conv, int algorithm, void* workspace, std::size_t bytes,       \
                                   const void* beta, void* of_y, void* y))                                             \
  F(int, cudnnConvolutionBackwardData, (void* handle, const void* alpha, void* of_w, const void* w, void* of_dy,       \
                                        const void* dy, void* conv, int algorithm, void* workspace, std::size_t bytes, \
                                        const void* beta, void* of_dx, void* dx))                                      \
  F(int, cudnnConvolutionBackwardFilter, (void* handle, const void* alpha, void* of_x, const void* x, void* of_dy,     \
                                          const void* dy, void* conv, int algorithm, void* workspace,                  \
                                          std::size_t bytes, const void* beta, void* of_dw, void* dw))                 \
  F(int, cudnnPoolingForward, (void* handle, void* pool, const void* alpha, void* of_x, const void* x,                 \
                               const void* beta, void* of_y, void* y))                                                 \
  F(int, cudnnPoolingBackward, (void* handle, void* pool, const void* alpha, void* of_y, const void* y, void* of_dy,   \
                                const void* dy, void* of_x, const void* x, const void* beta, void* of_dx, void* dx))
// clang-format on

struct Functions {
#define KASSETTE_DECLARE(result, name, arguments) result(*name) arguments;
  KASSETTE_CUDNN_FUNCTIONS(KASSETTE_DECLARE)
#undef KASSETTE_DECLARE
};

// ---- finding it -----------------------------------------------------------------------------------------------------

struct Library {
  bool found = false;
  Functions functions = {};
  std::string why;  // there is none
};

/// Looks the functions up; returns the name of one that is missing, or null.
const char* look_up(void* library, Functions& to) {
#define KASSETTE_LOOK_UP(result, name, arguments) \
  to.name = reinterpret_cast<result(*) arguments>(dlsym(library, #name)); \
  if (!to.name) return #name;
  KASSETTE_CUDNN_FUNCTIONS(KASSETTE_LOOK_UP)
#undef KASSETTE_LOOK_UP
  return nullptr;
}

/// KASSETTE_CUDNN=0 or 1 is the setting with which a program begins; anything else is the library's file.
Library load() {
  Library made;
  const char* set = std::getenv("KASSETTE_CUDNN");
  const bool named = set && *set && std::strcmp(set, "0") != 0 && std::strcmp(set, "1") != 0;
  const std::vector<const char*> files = named ? std::vector<const char*>{set} : std::vector{KASSETTE_CUDNN_FILES};
  made.why = "it is not installed";
  for (const char* file : files) {
    void* library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    const char* missing = library ? look_up(library, made.functions) : nullptr;
    if (library && !missing) {
      made.found = true;
      return made;
    }
    const char* error = library ? nullptr : dlerror();
    if (error && !named && !std::strncmp(error, file, std::strlen(file))) continue;  // there is no such file
    made.why = missing ? std::string(file) + " lacks " + missing : std::string(error ? error : "it does not load");
    host_services().warn(("cuDNN is not used: " + made.why).c_str());
  }
  return made;
}
const Library& library() {
  static const Library* loaded = new Library(load());  // never destroyed, as the devices
  return *loaded;
}
const Functions& api() { return library().functions; }

// ---- describing a call to it ----------------------------------------------------------------------------------------

template <int (*Functions::*kCreate)(void**), int (*Functions::*kDestroy)(void*)>
class Descriptor {
 public:
  Descriptor() : of_(nullptr), status_((api().*kCreate)(&of_)) {}
  ~Descriptor() {
    if (of_) (api().*kDestroy)(of_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  operator void*() const { return of_; }
  int status() const { return status_; }

 private:
  void* of_;
  int status_;
};

int type_of(DType dtype) { return dtype == float64 ? 1 : dtype == float16 ? 2 : dtype == bfloat16 ? 9 : 0; }
bool is_convolution(CudnnOp op) { return op <= CudnnOp::kernel_gradient; }

/// The sizes of a call in the order of cuDNN: batch, channels, spatial axes. Of these there are at least two.
class Described {
 public:
  Described(CudnnOp op, const CudnnWindows& w, int math) : status_(kSuccess) {
    const int first = w.in[0] == 1 && w.out[0] == 1 && w.size[0] == 1 && w.stride[0] == 1 ? 1 : 0;
    axes_ = 3 - first;
    for (int i = 0; i < axes_; ++i) {
      size_[i] = narrow(w.size[first + i]);
      stride_[i] = narrow(w.stride[first + i]);
      dilation_[i] = narrow(w.dilation[first + i]);
      before_[i] = narrow(w.before[first + i]);
    }
    const int type = type_of(w.dtype);
    set_tensor(x, w, w.c_in, w.in + first);
    set_tensor(y, w, w.c_out, w.out + first);
    if (is_convolution(op)) {
      int dims[5] = {narrow(w.c_out), narrow(w.c_in / w.groups), size_[0], size_[1], size_[2]};
      keep(kernel.status());
      keep(api().cudnnSetFilterNdDescriptor(kernel, type, w.channels_first ? 0 : 1, axes_ + 2, dims));
      keep(window.status());
      // Half types are added up in float32.
      keep(api().cudnnSetConvolutionNdDescriptor(window, axes_, before_, stride_, dilation_, kCrossCorrelation,
                                                 type_of(w.dtype == float64 ? float64 : float32)));
      keep(api().cudnnSetConvolutionGroupCount(window, narrow(w.groups)));
      keep(api().cudnnSetConvolutionMathType(window, math));
    } else {
      keep(pool.status());
      keep(api().cudnnSetPoolingNdDescriptor(pool, op == CudnnOp::max_pool ? kMaxPooling : kMeanWithoutPadding,
                                             kPropagateNan, axes_, size_, before_, stride_));
    }
  }
  /// The first status that is not kSuccess.
  int status() const { return status_; }

  Descriptor<&Functions::cudnnCreateTensorDescriptor, &Functions::cudnnDestroyTensorDescriptor> x, y;
  Descriptor<&Functions::cudnnCreateFilterDescriptor, &Functions::cudnnDestroyFilterDescriptor> kernel;
  Descriptor<&Functions::cudnnCreateConvolutionDescriptor, &Functions::cudnnDestroyConvolutionDescriptor> window;
  Descriptor<&Functions::cudnnCreatePoolingDescriptor, &Functions::cudnnDestroyPoolingDescriptor> pool;

 private:
  static int narrow(std::int64_t n) { return static_cast<int>(n); }  // see is_describable()
  void keep(int status) {
    if (status_ == kSuccess) status_ = status;
  }
  template <class D>
  void set_tensor(const D& tensor, const CudnnWindows& w, std::int64_t channels, const std::int64_t* space) {
    int dims[5] = {narrow(w.batch), narrow(channels)}, strides[5];
    for (int i = 0; i < axes_; ++i) dims[2 + i] = narrow(space[i]);
    int step = 1;
    auto next = [&](int axis) {
      strides[axis] = step;
      step *= dims[axis];
    };
    if (!w.channels_first) next(1);
    for (int i = axes_ + 1; i > 1; --i) next(i);
    if (w.channels_first) next(1);
    next(0);
    keep(tensor.status());
    keep(api().cudnnSetTensorNdDescriptor(tensor, type_of(w.dtype), axes_ + 2, dims, strides));
  }

  int status_, axes_;
  int size_[3], stride_[3], dilation_[3], before_[3];
};

/// Whether cuDNN has a description for these windows: as many of them as there are with the same zeros on both sides,
/// and no more elements than an int counts.
bool is_describable(const CudnnWindows& w) {
  constexpr std::int64_t kMost = std::numeric_limits<int>::max();
  std::int64_t n_in = w.batch * w.c_in, n_out = w.batch * w.c_out, n_kernel = w.c_in / w.groups * w.c_out;
  for (int d = 0; d < 3; ++d) {
    const std::int64_t moves = w.in[d] + 2 * w.before[d] - (w.size[d] - 1) * w.dilation[d] - 1;
    if (moves < 0 || moves / w.stride[d] + 1 != w.out[d]) return false;
    n_in *= w.in[d];
    n_out *= w.out[d];
    n_kernel *= w.size[d];
    if (std::max({n_in, n_out, n_kernel, w.stride[d], w.dilation[d], w.before[d]}) > kMost) return false;
  }
  return true;
}

/// Whether an algorithm adds up products of the operands: of convolution GEMM, explicit and in two implicit forms, and
/// DIRECT; of its gradients ALGO_0, which is not deterministic, and ALGO_1.
bool adds_products(CudnnOp op, int algorithm) { return algorithm <= (op == CudnnOp::convolution ? 3 : 1); }

// ---- handles and plans ----------------------------------------------------------------------------------------------

struct Handle {
  std::mutex mutex;  // held while a call is enqueued
  void* of = nullptr;
};
/// What has been made so far. A stream's handle is never destroyed, as the stream.
struct State {
  std::mutex mutex;
  std::map<DeviceStream*, Handle> handles;  // by the stream on which work is launched
  std::map<CudnnCall::Key, CudnnPlan> plans;
  static constexpr std::size_t kMostPlans = 4096;  // a program with more shapes than that forgets them all
};
State& state() {
  static State* made = new State;
  return *made;
}

/// What to ask for: tensor cores for half types, and for float32 only if TF32 is allowed.
int wanted_math(DType dtype) {
  if (dtype.size() == 2) return kTensorMath;
  const bool tf32 = host_services().allow_tf32->load(std::memory_order_relaxed);
  return dtype == float32 && !tf32 ? kFmaMath : kDefaultMath;
}

/// The handle of the current stream, made at first use. Hold the lock while enqueuing. The device is current.
Handle& handle_of(CudaDevice& device, std::unique_lock<std::mutex>* lock) {
  DeviceStream& base = device.launched_on(device.current());
  std::unique_lock<std::mutex> all(state().mutex);
  Handle& handle = state().handles[&base];
  all.unlock();
  *lock = std::unique_lock<std::mutex>(handle.mutex);
  return handle;
}

void remember(const CudnnCall::Key& key, const CudnnPlan& plan) {
  std::lock_guard<std::mutex> lock(state().mutex);
  if (state().plans.size() >= State::kMostPlans) state().plans.clear();
  state().plans[key] = plan;
}
bool recall(const CudnnCall::Key& key, CudnnPlan& plan) {
  std::lock_guard<std::mutex> lock(state().mutex);
  const auto found = state().plans.find(key);
  if (found == state().plans.end()) return false;
  plan = found->second;
  return true;
}

int propose(void* handle, CudnnOp op, const Described& d, int most, int* found, Proposal* proposals) {
  switch (op) {
    case CudnnOp::convolution:
      return api().cudnnGetConvolutionForwardAlgorithm_v7(handle, d.x, d.kernel, d.window, d.y, most, found, proposals);
    case CudnnOp::input_gradient:
      return api().cudnnGetConvolutionBackwardDataAlgorithm_v7(handle, d.kernel, d.y, d.window, d.x, most, found,
                                                               proposals);
    default:
      return api().cudnnGetConvolutionBackwardFilterAlgorithm_v7(handle, d.x, d.y, d.window, d.kernel, most, found,
                                                                 proposals);
  }
}
int workspace_of(void* handle, CudnnOp op, const Described& d, int algorithm, std::size_t* bytes) {
  switch (op) {
    case CudnnOp::convolution:
      return api().cudnnGetConvolutionForwardWorkspaceSize(handle, d.x, d.kernel, d.window, d.y, algorithm, bytes);
    case CudnnOp::input_gradient:
      return api().cudnnGetConvolutionBackwardDataWorkspaceSize(handle, d.kernel, d.y, d.window, d.x, algorithm, bytes);
    default:
      return api().cudnnGetConvolutionBackwardFilterWorkspaceSize(handle, d.x, d.y, d.window, d.kernel, algorithm,
                                                                  bytes);
  }
}

}  // namespace

CudnnCall::CudnnCall(const char* what, CudaDevice& device, CudnnOp op, const CudnnWindows& windows,
                     std::int64_t most_workspace)
    : what_(what), device_(device), op_(op), windows_(windows), most_workspace_(most_workspace),
      math_(wanted_math(windows.dtype)) {
  if (!host_services().allow_cudnn->load(std::memory_order_relaxed) || !is_describable(windows)) return;
  if (!library().found || recall(key(), plan_)) return;
  device.stream();  // ends a capture
  DeviceGuard now(device);
  find_plan();
  remember(key(), plan_);
}

CudnnCall::Key CudnnCall::key() const {
  const CudnnWindows& w = windows_;
  Key key = {device_.index(),
             static_cast<int>(op_),
             math_,
             w.dtype.code(),
             w.channels_first,
             most_workspace_,
             w.batch,
             w.c_in,
             w.c_out,
             w.groups};
  std::size_t at = 10;
  for (const auto* sizes : {&w.in, &w.out, &w.size, &w.stride, &w.dilation, &w.before})
    for (std::int64_t n : *sizes) key[at++] = n;
  return key;
}

/// The device is current, and there is no capture.
void CudnnCall::find_plan() {
  std::unique_lock<std::mutex> lock;
  Handle& handle = handle_of(device_, &lock);
  if (!handle.of) check(api().cudnnCreate(&handle.of));
  const Described described(op_, windows_, math_);
  constexpr int kMost = 16;  // more than there are algorithms
  Proposal proposals[kMost];
  int found = 0, status = described.status();
  if (status == kSuccess && is_convolution(op_)) status = propose(handle.of, op_, described, kMost, &found, proposals);
  if (is_refusal(status)) return;
  check(status);
  plan_.takes = !is_convolution(op_);
  for (int i = 0; i < found && !plan_.takes; ++i) {
    const Proposal& p = proposals[i];
    if (p.status != kSuccess || p.determinism != kDeterministic || !adds_products(op_, p.algorithm)) continue;
    // A proposal may have another math than was asked for.
    const int math = math_ == kFmaMath ? kFmaMath : p.math;
    std::size_t bytes = 0;
    if (math == kConvertingMath || api().cudnnSetConvolutionMathType(described.window, math) != kSuccess ||
        workspace_of(handle.of, op_, described, p.algorithm, &bytes) != kSuccess)
      continue;
    if (bytes <= static_cast<std::size_t>(most_workspace_)) plan_ = {true, p.algorithm, math, bytes};
  }
}

bool CudnnCall::run(const void* a, const void* b, void* out) {
  for (const void* p : {a, b, static_cast<const void*>(out)})
    if (reinterpret_cast<std::uintptr_t>(p) % kAlignment != 0) return false;
  const DeviceScratch workspace(device_, static_cast<std::int64_t>(plan_.workspace));
  DeviceGuard now(device_);
  std::unique_lock<std::mutex> lock;
  Handle* handle = &handle_of(device_, &lock);
  if (!handle->of) {  // a plan was found on another stream
    lock.unlock();
    device_.stream();  // ends a capture
    handle = &handle_of(device_, &lock);
    if (!handle->of) check(api().cudnnCreate(&handle->of));
  }
  check(api().cudnnSetStream(handle->of, device_.current().handle));
  const int status = enqueue(handle->of, a, b, out, workspace.get());
  if (is_refusal(status)) {
    plan_ = {};
    remember(key(), plan_);
    return false;
  }
  check(status);
  device_.launched(what_);
  return true;
}

int CudnnCall::enqueue(void* handle, const void* a, const void* b, void* out, void* workspace) {
  const Described d(op_, windows_, plan_.math);
  if (d.status() != kSuccess) return d.status();
  // The factors of the result and of what it replaces, which is not read if its factor is 0.
  const double one = 1, zero = 0;
  const float one_narrow = 1, zero_narrow = 0;
  const bool wide = windows_.dtype == float64;
  const void *by = wide ? static_cast<const void*>(&one) : &one_narrow,
             *keep = wide ? static_cast<const void*>(&zero) : &zero_narrow;
  switch (op_) {
    case CudnnOp::convolution:
      return api().cudnnConvolutionForward(handle, by, d.x, a, d.kernel, b, d.window, plan_.algorithm, workspace,
                                           plan_.workspace, keep, d.y, out);
    case CudnnOp::input_gradient:
      return api().cudnnConvolutionBackwardData(handle, by, d.kernel, b, d.y, a, d.window, plan_.algorithm, workspace,
                                                plan_.workspace, keep, d.x, out);
    case CudnnOp::kernel_gradient:
      return api().cudnnConvolutionBackwardFilter(handle, by, d.x, a, d.y, b, d.window, plan_.algorithm, workspace,
                                                  plan_.workspace, keep, d.kernel, out);
    case CudnnOp::mean_pool_gradient:
      // Means and their elements, for which any memory of these sizes will do, are an argument for maxima's sake.
      return api().cudnnPoolingBackward(handle, d.pool, by, d.y, a, d.y, a, d.x, out, keep, d.x, out);
    default: return api().cudnnPoolingForward(handle, d.pool, by, d.x, a, keep, d.y, out);
  }
}

void CudnnCall::check(int status) {
  if (status == kSuccess) return;
  const RelaxedCapture allowed;
  // It may have met the error of an earlier kernel.
  const cudaError_t error = cudaStreamQuery(device_.launched_on(device_.current()).handle);
  if (error != cudaSuccess && error != cudaErrorNotReady) device_.check(error, what_);
  throw DeviceError(what_, "", (std::string("cuDNN says: ") + api().cudnnGetErrorString(status)).c_str(), "",
                    "with KASSETTE_CUDNN=0 our own kernels compute it");
}

void describe_cudnn(char* words, int room) {
  const auto bytes = static_cast<std::size_t>(room);
  if (!host_services().allow_cudnn->load()) {
    std::snprintf(words, bytes, "none: switched off by KASSETTE_CUDNN or set_allow_cudnn");
  } else if (!library().found) {
    std::snprintf(words, bytes, "none: %s", library().why.c_str());
  } else {  // 90600 is 9.6.0, and 8907 is 8.9.7
    const auto version = static_cast<int>(api().cudnnGetVersion()), major = version >= 10000 ? 10000 : 1000;
    std::snprintf(words, bytes, "%d.%d.%d", version / major, version % major / 100, version % 100);
  }
}

}  // namespace kassette::cuda
