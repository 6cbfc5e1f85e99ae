// tests/emulated_cuda/cudnn.cpp - the part of cuDNN that devices/cuda/cudnn.cpp calls, as plain loops that add up in
// double precision. The library is its own libcudnn: KASSETTE_CUDNN names its file. It proposes several algorithms, of
// which all but one would be wrong to take, and ends the program where cuDNN would be misused.
#include "cudnn.h"

#include "core/half.h"

namespace {

using kassette::BFloat16;
using kassette::Half;

constexpr int kSuccess = 0, kNotSupported = 3000, kDataTypeNotSupported = 3003, kExecutionFailed = 5000;
constexpr std::size_t kWorkspace = 96, kTooMuch = std::size_t(1) << 40;

int refusal = 0;
std::int64_t calls = 0, tf32_calls = 0, questions = 0;

struct Handle {
  cudaStream_t stream;
};
struct Tensor {
  int type, rank, dims[5], strides[5];
  /// The elements from the first to the last.
  std::size_t span() const {
    std::size_t n = 1;
    for (int i = 0; i < rank; ++i) n += static_cast<std::size_t>((dims[i] - 1) * strides[i]);
    return n;
  }
};
struct Filter {
  int type, format, rank, dims[5];
};
/// Windows of a convolution or of pooling.
struct Windows {
  int axes, mode, type, size[3], before[3], stride[3], dilation[3] = {1, 1, 1}, groups = 1, math = 0;
};

void check(bool right, const char* what) {
  if (!right) emulated_die(std::string("a call that cuDNN would refuse, or that this library must not make: ") + what);
}
void check_alignment(const void* p) { check(reinterpret_cast<std::uintptr_t>(p) % 16 == 0, "an address"); }
template <class T>
const T& as(const void* p) {
  return *static_cast<const T*>(p);
}

/// The tensor that a filter is: (output channels, input channels, space...), or with the input channels last.
Tensor tensor_of(const Filter& f) {
  Tensor t{f.type, f.rank, {}, {}};
  std::copy_n(f.dims, f.rank, t.dims);
  int step = 1;
  auto next = [&](int axis) {
    t.strides[axis] = step;
    step *= t.dims[axis];
  };
  if (f.format == 1) next(1);
  for (int i = f.rank - 1; i > 1; --i) next(i);
  if (f.format == 0) next(1);
  next(0);
  return t;
}

/// What a convolution or pooling reads and writes, with three spatial axes. Pooling has no kernel.
struct Problem {
  Tensor x, y, w;
  Windows of;

  Problem(const Tensor& x_, const Tensor& y_, const Windows& windows, const Filter* filter)
      : x(x_), y(y_), of(windows) {
    check(x.rank == y.rank && x.rank == of.axes + 2 && x.type == y.type && x.dims[0] == y.dims[0], "tensors");
    if (filter) {
      w = tensor_of(*filter);
      check(w.type == x.type && w.rank == x.rank && w.dims[0] == y.dims[1] && w.dims[1] * of.groups == x.dims[1] &&
                y.dims[1] % of.groups == 0 && of.mode == 1 && of.type == (x.type == 1 ? 1 : 0),
            "a kernel");
      std::copy_n(w.dims + 2, of.axes, of.size);
    } else {
      check(x.dims[1] == y.dims[1], "channels");
      w = {x.type, x.rank, {1, 1, 1, 1, 1}, {}};
      std::copy_n(of.size, of.axes, w.dims + 2);
    }
    for (int i = 0; i < of.axes; ++i) {
      const int moves = x.dims[2 + i] + 2 * of.before[i] - (of.size[i] - 1) * of.dilation[i] - 1;
      check(moves >= 0 && y.dims[2 + i] == 1 + moves / of.stride[i] && of.before[i] >= 0 &&
                (filter || of.before[i] < of.size[i]),
            "sizes");
    }
    if (of.axes == 3) return;
    for (Tensor* t : {&x, &y, &w}) {  // a first axis of size 1
      std::copy_backward(t->dims + 2, t->dims + 4, t->dims + 5);
      std::copy_backward(t->strides + 2, t->strides + 4, t->strides + 5);
      t->dims[2] = 1;
      t->strides[2] = 0;
      t->rank = 5;
    }
    for (int* a : {of.size, of.before, of.stride, of.dilation}) std::copy_backward(a, a + 2, a + 3);
    of.size[0] = of.stride[0] = of.dilation[0] = 1;
    of.before[0] = 0;
  }

  /// Calls f(offset in x, in w, in y) for each product of a convolution, or each element of each window.
  template <class F>
  void each(bool pools, F f) const {
    const int per_group = w.dims[1], filters = y.dims[1] / of.groups;
    int p[3], t[3];
    for (int n = 0; n < y.dims[0]; ++n)
      for (int k = 0; k < y.dims[1]; ++k)
        for (p[0] = 0; p[0] < y.dims[2]; ++p[0])
          for (p[1] = 0; p[1] < y.dims[3]; ++p[1])
            for (p[2] = 0; p[2] < y.dims[4]; ++p[2])
              for (t[0] = 0; t[0] < w.dims[2]; ++t[0])
                for (t[1] = 0; t[1] < w.dims[3]; ++t[1])
                  for (t[2] = 0; t[2] < w.dims[4]; ++t[2])
                    for (int c = 0; c < per_group; ++c) {
                      const int channel = pools ? k : k / filters * per_group + c;
                      std::size_t in_x = at(x, n, channel), in_y = at(y, n, k), in_w = at(w, k, c);
                      bool inside = true;
                      for (int i = 0; i < 3; ++i) {
                        const int from = p[i] * of.stride[i] + t[i] * of.dilation[i] - of.before[i];
                        inside = inside && from >= 0 && from < x.dims[2 + i];
                        in_x += static_cast<std::size_t>(from * x.strides[2 + i]);
                        in_y += static_cast<std::size_t>(p[i] * y.strides[2 + i]);
                        in_w += static_cast<std::size_t>(t[i] * w.strides[2 + i]);
                      }
                      if (inside) f(in_x, in_w, in_y);
                    }
  }

 private:
  static std::size_t at(const Tensor& t, int first, int second) {
    return static_cast<std::size_t>(first * t.strides[0] + second * t.strides[1]);
  }
};

template <class T>
double get(T v) {
  if constexpr (sizeof(T) == 2) return static_cast<double>(kassette::to_float(v));
  else return static_cast<double>(v);
}
void put(Half* to, double v) { *to = kassette::to_half(static_cast<float>(v)); }
void put(BFloat16* to, double v) { *to = kassette::to_bfloat16(static_cast<float>(v)); }
void put(float* to, double v) { *to = static_cast<float>(v); }
void put(double* to, double v) { *to = v; }

std::size_t item_of(int type) { return type == 1 ? 8 : type == 0 ? 4 : 2; }
template <class F>
void with_type(int type, F f) {
  switch (type) {
    case 0: return f(static_cast<float*>(nullptr));
    case 1: return f(static_cast<double*>(nullptr));
    case 2: return f(static_cast<Half*>(nullptr));
    case 9: return f(static_cast<BFloat16*>(nullptr));
    default: check(false, "a data type");
  }
}

/// Adds to each element of the result a[i] * b[j], for the offsets that `terms` gives.
template <class Terms>
int enqueue_products(void* handle, const Tensor& of_a, const void* a, const Tensor& of_b, const void* b,
                     const Tensor& of_result, void* result, void* workspace, std::size_t bytes, Terms terms) {
  const cudaStream_t stream = static_cast<Handle*>(handle)->stream;
  check(bytes == kWorkspace && workspace, "a workspace");
  for (const void* p : {a, b, static_cast<const void*>(result)}) check_alignment(p);
  if (refusal == 4) return kNotSupported;
  if (refusal == 5 || emulated_refuses(stream)) return kExecutionFailed;
  ++calls;
  EmulatedBlocks blocks;
  auto add = [&](const void* of, std::size_t size) { blocks.add(of, size, stream, "a convolution"); };
  add(a, of_a.span() * item_of(of_a.type));
  add(b, of_b.span() * item_of(of_b.type));
  add(result, of_result.span() * item_of(of_result.type));
  add(workspace, bytes);
  with_type(of_result.type, [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    emulated_enqueue(stream, blocks, [a, b, result, workspace, terms, n = of_result.span()] {
      std::memset(workspace, 0xff, kWorkspace);  // it is the call's own
      std::vector<double> sums(n);
      terms([&](std::size_t i, std::size_t j, std::size_t to) {
        sums[to] += get(static_cast<const T*>(a)[i]) * get(static_cast<const T*>(b)[j]);
      });
      for (std::size_t i = 0; i < n; ++i) put(static_cast<T*>(result) + i, sums[i]);
    });
  });
  return kSuccess;
}

/// 1 and 0, in the type of the call.
void check_factors(int type, const void* alpha, const void* beta) {
  check(type == 1 ? as<double>(alpha) == 1 && as<double>(beta) == 0 : as<float>(alpha) == 1 && as<float>(beta) == 0,
        "factors");
}
void check_math(const Windows& w, int type) {
  check(type == 0 ? w.math == 0 || w.math == 3 : w.math == (type == 1 ? 0 : 1), "a math type");
  if (type == 0 && w.math == 0) ++tf32_calls;
}

struct Proposal {
  int algorithm, status;
  float time;
  std::size_t memory;
  int determinism, math, reserved[3];
};
/// Proposals for a call, of which only algorithm 1 without an objection is right. `forward`: a convolution itself.
int propose(const Windows& w, bool forward, int most, int* found, void* to) {
  emulated_not_captured(nullptr, emulated_context());
  ++questions;
  if (refusal == 3) return kDataTypeNotSupported;
  const int math = w.math == 3 ? 0 : w.math;
  const Proposal all[] = {{forward ? 6 : 4, kSuccess, -1, 0, 1, math, {}},  // Winograd
                          {forward ? 4 : 2, kSuccess, -1, 0, 1, math, {}},  // Fourier
                          {0, kSuccess, -1, 0, 0, math, {}},                // not deterministic
                          {1, kSuccess, -1, kWorkspace, 1, 2, {}},          // converts float32 to float16
                          {1, kNotSupported, -1, kWorkspace, 1, math, {}},  // does not run
                          {forward ? 2 : 4, kSuccess, -1, kTooMuch, 1, math, {}},
                          {1, kSuccess, -1, kWorkspace, 1, math, {}}};
  check(most >= static_cast<int>(std::size(all)), "little room for proposals");
  *found = refusal == 2 ? 0 : static_cast<int>(std::size(all));
  std::copy_n(all, *found, static_cast<Proposal*>(to));
  return kSuccess;
}
template <class T>
int create(void** to) {
  return *to = new T{}, kSuccess;
}
template <class T>
int destroy(void* of) {
  return delete static_cast<T*>(of), kSuccess;
}
Problem convolution(const void* x, const void* w, const void* windows, const void* y, int algorithm) {
  check(algorithm == 1, "an algorithm");
  const Problem p(as<Tensor>(x), as<Tensor>(y), as<Windows>(windows), &as<Filter>(w));
  check_math(p.of, p.x.type);
  return p;
}

}  // namespace

void emulated_cudnn_refuses(int how) { refusal = how; }
std::int64_t emulated_cudnn_calls() { return calls; }
std::int64_t emulated_cudnn_tf32_calls() { return tf32_calls; }
std::int64_t emulated_cudnn_questions() { return questions; }

extern "C" {
#define EXPORTED __attribute__((visibility("default")))

EXPORTED std::size_t cudnnGetVersion() { return 90600; }
EXPORTED const char* cudnnGetErrorString(int status) {
  return status == kExecutionFailed ? "CUDNN_STATUS_EXECUTION_FAILED" : "CUDNN_STATUS_NOT_SUPPORTED";
}
EXPORTED int cudnnCreate(void** handle) {
  emulated_not_captured(nullptr, emulated_context());
  return create<Handle>(handle);
}
EXPORTED int cudnnSetStream(void* handle, cudaStream_t stream) {
  return static_cast<Handle*>(handle)->stream = stream, kSuccess;
}
EXPORTED int cudnnCreateTensorDescriptor(void** of) { return create<Tensor>(of); }
EXPORTED int cudnnDestroyTensorDescriptor(void* of) { return destroy<Tensor>(of); }
EXPORTED int cudnnCreateFilterDescriptor(void** of) { return create<Filter>(of); }
EXPORTED int cudnnDestroyFilterDescriptor(void* of) { return destroy<Filter>(of); }
EXPORTED int cudnnCreateConvolutionDescriptor(void** of) { return create<Windows>(of); }
EXPORTED int cudnnDestroyConvolutionDescriptor(void* of) { return destroy<Windows>(of); }
EXPORTED int cudnnCreatePoolingDescriptor(void** of) { return create<Windows>(of); }
EXPORTED int cudnnDestroyPoolingDescriptor(void* of) { return destroy<Windows>(of); }

EXPORTED int cudnnSetTensorNdDescriptor(void* of, int type, int rank, const int* dims, const int* strides) {
  check(rank == 4 || rank == 5, "a tensor's rank");
  if (refusal == 1) return kNotSupported;
  Tensor& t = *static_cast<Tensor*>(of);
  t.type = type;
  t.rank = rank;
  for (int i = 0; i < rank; ++i) check(dims[i] > 0 && strides[i] > 0, "a tensor's size");
  std::copy_n(dims, rank, t.dims);
  std::copy_n(strides, rank, t.strides);
  return kSuccess;
}
EXPORTED int cudnnSetFilterNdDescriptor(void* of, int type, int format, int rank, const int* dims) {
  check((rank == 4 || rank == 5) && (format == 0 || format == 1), "a filter");
  Filter& f = *static_cast<Filter*>(of);
  f = {type, format, rank, {}};
  std::copy_n(dims, rank, f.dims);
  return kSuccess;
}
EXPORTED int cudnnSetConvolutionNdDescriptor(void* of, int axes, const int* before, const int* strides,
                                             const int* dilations, int mode, int type) {
  Windows& w = *static_cast<Windows*>(of);
  w.axes = axes;
  w.mode = mode;
  w.type = type;
  std::copy_n(before, axes, w.before);
  std::copy_n(strides, axes, w.stride);
  std::copy_n(dilations, axes, w.dilation);
  return kSuccess;
}
EXPORTED int cudnnSetConvolutionGroupCount(void* of, int groups) {
  return static_cast<Windows*>(of)->groups = groups, kSuccess;
}
EXPORTED int cudnnSetConvolutionMathType(void* of, int math) {
  return static_cast<Windows*>(of)->math = math, kSuccess;
}
EXPORTED int cudnnSetPoolingNdDescriptor(void* of, int mode, int nan, int axes, const int* sizes, const int* before,
                                         const int* strides) {
  check((mode == 2 || mode == 3) && nan == 1, "a way to pool");
  Windows& w = *static_cast<Windows*>(of);
  w.axes = axes;
  w.mode = mode;
  std::copy_n(sizes, axes, w.size);
  std::copy_n(before, axes, w.before);
  std::copy_n(strides, axes, w.stride);
  return kSuccess;
}

EXPORTED int cudnnGetConvolutionForwardAlgorithm_v7(void*, void* x, void* w, void* conv, void* y, int most, int* found,
                                                    void* to) {
  const Problem valid(as<Tensor>(x), as<Tensor>(y), as<Windows>(conv), &as<Filter>(w));
  return propose(valid.of, /*forward=*/true, most, found, to);
}
EXPORTED int cudnnGetConvolutionBackwardDataAlgorithm_v7(void*, void* w, void* dy, void* conv, void* dx, int most,
                                                         int* found, void* to) {
  const Problem valid(as<Tensor>(dx), as<Tensor>(dy), as<Windows>(conv), &as<Filter>(w));
  return propose(valid.of, /*forward=*/false, most, found, to);
}
EXPORTED int cudnnGetConvolutionBackwardFilterAlgorithm_v7(void*, void* x, void* dy, void* conv, void* dw, int most,
                                                           int* found, void* to) {
  const Problem valid(as<Tensor>(x), as<Tensor>(dy), as<Windows>(conv), &as<Filter>(dw));
  return propose(valid.of, /*forward=*/false, most, found, to);
}
EXPORTED int cudnnGetConvolutionForwardWorkspaceSize(void*, void*, void*, void*, void*, int algorithm,
                                                     std::size_t* bytes) {
  return *bytes = algorithm == 2 ? kTooMuch : kWorkspace, kSuccess;
}
EXPORTED int cudnnGetConvolutionBackwardDataWorkspaceSize(void*, void*, void*, void*, void*, int, std::size_t* bytes) {
  return *bytes = kWorkspace, kSuccess;
}
EXPORTED int cudnnGetConvolutionBackwardFilterWorkspaceSize(void*, void*, void*, void*, void*, int,
                                                            std::size_t* bytes) {
  return *bytes = kWorkspace, kSuccess;
}

EXPORTED int cudnnConvolutionForward(void* handle, const void* alpha, void* of_x, const void* x, void* of_w,
                                     const void* w, void* conv, int algorithm, void* workspace, std::size_t bytes,
                                     const void* beta, void* of_y, void* y) {
  const Problem p = convolution(of_x, of_w, conv, of_y, algorithm);
  check_factors(p.x.type, alpha, beta);
  return enqueue_products(handle, p.x, x, p.w, w, p.y, y, workspace, bytes, [p](auto add) {
    p.each(false, [&](std::size_t in_x, std::size_t in_w, std::size_t in_y) { add(in_x, in_w, in_y); });
  });
}
EXPORTED int cudnnConvolutionBackwardData(void* handle, const void* alpha, void* of_w, const void* w, void* of_dy,
                                          const void* dy, void* conv, int algorithm, void* workspace, std::size_t bytes,
                                          const void* beta, void* of_dx, void* dx) {
  const Problem p = convolution(of_dx, of_w, conv, of_dy, algorithm);
  check_factors(p.x.type, alpha, beta);
  return enqueue_products(handle, p.y, dy, p.w, w, p.x, dx, workspace, bytes, [p](auto add) {
    p.each(false, [&](std::size_t in_x, std::size_t in_w, std::size_t in_y) { add(in_y, in_w, in_x); });
  });
}
EXPORTED int cudnnConvolutionBackwardFilter(void* handle, const void* alpha, void* of_x, const void* x, void* of_dy,
                                            const void* dy, void* conv, int algorithm, void* workspace,
                                            std::size_t bytes, const void* beta, void* of_dw, void* dw) {
  const Problem p = convolution(of_x, of_dw, conv, of_dy, algorithm);
  check_factors(p.x.type, alpha, beta);
  return enqueue_products(handle, p.x, x, p.y, dy, p.w, dw, workspace, bytes, [p](auto add) {
    p.each(false, [&](std::size_t in_x, std::size_t in_w, std::size_t in_y) { add(in_x, in_y, in_w); });
  });
}

/// Maxima or means of windows.
EXPORTED int cudnnPoolingForward(void* handle, void* pool, const void* alpha, void* of_x, const void* x,
                                 const void* beta, void* of_y, void* y) {
  const Problem p(as<Tensor>(of_x), as<Tensor>(of_y), as<Windows>(pool), nullptr);
  check_factors(p.x.type, alpha, beta);
  const cudaStream_t stream = static_cast<Handle*>(handle)->stream;
  if (refusal == 4) return kNotSupported;
  if (refusal == 5 || emulated_refuses(stream)) return kExecutionFailed;
  ++calls;
  check_alignment(x), check_alignment(y);
  EmulatedBlocks blocks;
  blocks.add(x, p.x.span() * item_of(p.x.type), stream, "pooling");
  blocks.add(y, p.y.span() * item_of(p.y.type), stream, "pooling");
  with_type(p.x.type, [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    emulated_enqueue(stream, blocks, [p, x, y] {
      std::vector<double> made(p.y.span()), count(p.y.span());
      p.each(true, [&](std::size_t in_x, std::size_t, std::size_t in_y) {
        const double v = get(static_cast<const T*>(x)[in_x]);
        double& to = made[in_y];
        if (p.of.mode == 2) to += v;
        else if (count[in_y] == 0 || v > to || v != v) to = v;
        ++count[in_y];
      });
      for (std::size_t i = 0; i < made.size(); ++i)
        put(static_cast<T*>(y) + i, p.of.mode == 2 ? made[i] / count[i] : made[i]);
    });
  });
  return kSuccess;
}
/// The gradient of means, which reads neither them nor their elements.
EXPORTED int cudnnPoolingBackward(void* handle, void* pool, const void* alpha, void* of_y, const void* y, void* of_dy,
                                  const void* dy, void* of_x, const void* x, const void* beta, void* of_dx, void* dx) {
  const Problem p(as<Tensor>(of_dx), as<Tensor>(of_dy), as<Windows>(pool), nullptr);
  check_factors(p.x.type, alpha, beta);
  check(p.of.mode == 2 && y && x && as<Tensor>(of_y).span() == p.y.span() && as<Tensor>(of_x).span() == p.x.span(),
        "the gradient of pooling");
  const cudaStream_t stream = static_cast<Handle*>(handle)->stream;
  if (refusal == 4) return kNotSupported;
  if (refusal == 5 || emulated_refuses(stream)) return kExecutionFailed;
  ++calls;
  check_alignment(dy), check_alignment(dx);
  EmulatedBlocks blocks;
  blocks.add(dy, p.y.span() * item_of(p.y.type), stream, "pooling");
  blocks.add(dx, p.x.span() * item_of(p.x.type), stream, "pooling");
  with_type(p.x.type, [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    emulated_enqueue(stream, blocks, [p, dy, dx] {
      std::vector<double> sums(p.x.span()), count(p.y.span());
      p.each(true, [&](std::size_t, std::size_t, std::size_t in_y) { ++count[in_y]; });
      p.each(true, [&](std::size_t in_x, std::size_t, std::size_t in_y) {
        sums[in_x] += get(static_cast<const T*>(dy)[in_y]) / count[in_y];
      });
      for (std::size_t i = 0; i < sums.size(); ++i) put(static_cast<T*>(dx) + i, sums[i]);
    });
  });
  return kSuccess;
}
}
