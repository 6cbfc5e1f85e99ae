// devices/cuda/cudnn.h - convolution and pooling by cuDNN, which is loaded at first use where it is installed.
#pragma once
#include <array>

#include "devices/cuda/cuda.h"

// Note [cuDNN]
// Versions 9 and 8 are found by dlopen, and the few functions that are called are declared in cudnn.cpp: a build needs
// no cuDNN, and neither does a program. They are those of the older interface, which both versions have.
//   Meaning     cuDNN computes what it defines as our kernels do: the same zeros on both sides of an axis, a maximum or
//               a mean without its padding. It does not know zeros of which there are more behind an axis than before
//               it ("same" with an even window, or a stride and an even size), and "causal". Where our ops promise
//               more, they have our kernels: which of equal maxima takes the gradient, and normalisation, whose mean
//               is kept to twice the precision and whose zero cotangents stay zero beside an infinity.
//   Algorithms  Of those that cuDNN proposes, without measuring, the first that is deterministic, that adds up the
//               products themselves, and that fits the workspace. Fourier and Winograd transforms are left out: an
//               infinity or NaN would spoil results that do not read it. So results depend on neither time nor memory
//               in use.
//   Plans       The choice is remembered by the description of the call. It is made outside of a capture, as is a
//               handle: both may call CUDA in ways that disturb one (Note [Graphs]).
//   Streams     A stream has a handle of its own, which it shares with the one that is captured in its place.
//   Refusals    What cuDNN does not support is left to our kernels, now and in later calls.

namespace kassette::cuda {

/// Windows that slide over images, for convolution and pooling. There are three spatial axes; unused ones are first,
/// and have size 1.
struct CudnnWindows {
  DType dtype;
  bool channels_first;
  std::int64_t batch, c_in, c_out, groups;  // each group of output channels reads a group of input channels
  std::int64_t in[3] = {}, out[3] = {};     // sizes of the images, and numbers of windows
  std::int64_t size[3] = {}, stride[3] = {}, dilation[3] = {};
  std::int64_t before[3] = {};  // zeros before the first element
};

enum class CudnnOp : int { convolution, input_gradient, kernel_gradient, max_pool, mean_pool, mean_pool_gradient };

/// How cuDNN computes a call. Pooling has neither algorithm nor workspace.
struct CudnnPlan {
  bool takes = false;  // false: our kernels compute it
  int algorithm = 0, math = 0;
  std::size_t workspace = 0;  // bytes
};

/// A call of an op that cuDNN may compute.
class CudnnCall {
 public:
  /// `what` is the op that errors name. A plan needs no more than `most_workspace` bytes beside operands and result.
  CudnnCall(const char* what, CudaDevice& device, CudnnOp op, const CudnnWindows& windows,
            std::int64_t most_workspace = 0);
  /// Whether cuDNN is installed and allowed, and computes this.
  explicit operator bool() const { return plan_.takes; }
  /// Enqueues the call. Returns false if cuDNN refuses it after all, or an operand is not aligned to 16 bytes; then
  /// nothing has been enqueued. The operands are x and kernel; dy and kernel; x and dy; x; x; dy. Kernels have the
  /// order (output channels, input channels of a group, taps) or, if channels are last, (output channels, taps, input
  /// channels of a group).
  bool run(const void* a, const void* b, void* out);

  /// A call's description: device, op, math, dtype, format, most bytes, and sizes.
  using Key = std::array<std::int64_t, 6 + 4 + 6 * 3>;

 private:
  Key key() const;
  void find_plan();
  int enqueue(void* handle, const void* a, const void* b, void* out, void* workspace);
  void check(int status);

  const char* what_;
  CudaDevice& device_;
  CudnnOp op_;
  CudnnWindows windows_;
  std::int64_t most_workspace_;
  int math_;
  CudnnPlan plan_;
};

/// Writes the version, "9.6.0", or "none: " and why. A device has to be open.
void describe_cudnn(char* words, int room);

}  // namespace kassette::cuda
