// ops/engine/op.h - the definition of an op: one constant struct of plain functions.
#pragma once
#include "core/impl.h"

namespace kassette::ops {

struct OpDef;

/// An input of a rule or kernel: shape and dtype, and the bytes as they were read at entry. `data` is null if the value
/// is not known (symbolic) or not needed (shape-only inputs).
struct InputView {
  const TensorDesc* desc;
  std::byte* data;
  template <class T>
  const T* as() const {
    return reinterpret_cast<const T*>(data);
  }
  std::int64_t dim(int i) const { return desc->dims[i]; }
};

/// One run of an op.
struct OpCall {
  const OpDef& op;
  const Attrs& attrs;
  const InputView* in;
  int n_in;
  TensorDesc* const* out;  // kernels: with shape, dtype and storage. Rules: null, unless the op has `anywhere`
  int n_out;
  Device device;
  const TensorSpec& spec(int i) const { return *in[i].desc; }
  template <class T>
  T* out_as(int i = 0) const {
    return reinterpret_cast<T*>(out[i]->data());
  }
};

/// Computes shapes and dtypes of the outputs, also from inputs with unknown sizes or rank. Throws on bad input, so
/// eager and symbolic calls fail with the same message.
using Rule = void (*)(const OpCall& call, TensorSpec* out);
using Kernel = void (*)(const OpCall& call);

/// An input of apply(): borrows the descriptor of a tensor.
class In {
 public:
  In() : desc_(nullptr) {}
  In(const Tensor& t) : desc_(Access::impl(t) ? &Access::desc(t) : nullptr) {}
  In(const TensorDesc* b) : desc_(b) {}
  const TensorDesc* desc() const { return desc_; }

 private:
  const TensorDesc* desc_;
};

/// Accumulates the result of an op into a cotangent without a tensor in between.
class Accumulator {
 public:
  /// Adds op(in...) to the cotangent of `to`: in the memory of the sum so far, or as a splat (Note [Splats]). Returns
  /// false, and does nothing, if neither is possible.
  virtual bool accumulate(const TensorDesc& to, const OpDef& op, const Attrs& attrs, const In* in, int n_in) = 0;

 protected:
  ~Accumulator() = default;
};

/// The arguments of a vjp: inputs and outputs of the recorded op as tensors on the tape, and cotangents. Only the
/// inputs and outputs that the op saves have a value.
class VjpContext {
 public:
  /// `accumulator` may be null.
  VjpContext(Node* n, const Tensor* out_cotangents, Tensor* in_cotangents, const bool* wanted, Accumulator* accumulator)
      : node(*n), attrs(n->attrs), dy_(out_cotangents), din_(in_cotangents), wanted_(wanted),
        accumulator_(accumulator) {}
  Tensor in(int i) const;
  /// Input i; only its shape may be used.
  In like(int i) const { return &node.in()[i]; }
  Tensor out(int i = 0) const;
  /// The cotangent of output i; empty if nothing depends on that output.
  const Tensor& dy(int i = 0) const { return dy_[i]; }
  bool wants(int i) const { return wanted_[i]; }
  /// The cotangent of input i, to be set. It may have the shape of the output: the engine sums over broadcast axes.
  Tensor& din(int i) const { return din_[i]; }
  /// Adds op(in...) to the cotangent of input i if the accumulator can; otherwise sets din(i) to it.
  void accumulate(int i, const OpDef& op, const Attrs& attrs, std::initializer_list<In> in) const;
  const TensorSpec& spec(int i) const { return node.in()[i]; }
  int n_in() const { return static_cast<int>(node.n_in); }
  int n_out() const { return static_cast<int>(node.n_out); }
  Node& node;
  const Attrs& attrs;

 private:
  const Tensor* dy_;
  Tensor* din_;
  const bool* wanted_;
  Accumulator* accumulator_;
};
using Vjp = void (*)(const VjpContext& ctx);

/// Traits of an op.
enum OpTraits : std::uint8_t {
  kPlain = 0,
  kView = 1,          // the kernel gives the output its storage (shared or its own)
  kMakesKey = 2,      // makes a random key: a new one in each run of a function, although no input changes
  kDraws = 4,         // a random draw: always recorded
  kEffect = 8,        // changes a variable when it runs in a function
  kElementwise = 16,  // elementwise on inputs of one shape: may be fused
  kPrints = 32,       // prints each time it runs: recorded in a symbolic scope even if no input is symbolic
  // The output starts from input 0 and may be written over it, as a function does to update a variable. The kernel for
  // the CPU then neither allocates nor fails.
  kOverwrites = 64
};
/// Dtype and device of the output of an op whose inputs do not determine them, since they all are on the host.
struct Placement {
  DType dtype;
  Device device;
};
/// Values of OpDef::placement and OpDef::outputs for attributes with a field `placement` or `n_out`.
template <class T>
Placement placement_in(const Attrs& attrs) {
  return attrs.as<T>().placement;
}
template <class T>
int outputs_in(const Attrs& attrs) {
  return static_cast<int>(attrs.as<T>().n_out);
}

/// The loops of an elementwise op for each float dtype, used by fusion.
struct ElementwiseLoops;

/// How fusion may treat an op, apart from running its loops in a chain.
enum class Pattern : std::uint8_t {
  none,
  add,    // elementwise: a + b
  relu,   // elementwise: max(x, 0)
  alias,  // returns input 0 itself if it has the output's shape
  sum,
  mean,          // of input 0; over all elements if the output has one
  slice,         // the elements of input 0 given by column_slice_of(attrs, input 0)
  padded_slice,  // zeros, with input 0 at column_slice_of(attrs, output)
};

/// An op. Its identity is the address of this struct, which is not exported. Masks have bit i for input or output i,
/// and bit 31 for all from 31 on.
struct OpDef {
  const char* name;
  Rule rule;
  Kernel cpu;
  Vjp vjp = nullptr;
  std::uint32_t saves_in = 0;    // inputs whose value the vjp reads
  std::uint32_t saves_out = 0;   // outputs whose value the vjp reads
  std::uint32_t shape_only = 0;  // inputs of which rule and kernel read only the shape
  std::uint32_t host = 0;        // inputs that must be on the CPU, whatever the device of the op
  std::uint8_t traits = kPlain;
  std::uint8_t n_out = 1;  // 0: see `outputs`
  bool anywhere = false;   // inputs may be on any devices; the rule, or `placement`, sets the outputs' devices
  int (*outputs)(const Attrs& attrs) = nullptr;  // the number of outputs if n_out is 0
  // dtype and device of the output, if only the attributes determine them
  Placement (*placement)(const Attrs& attrs) = nullptr;
  const ElementwiseLoops* loops = nullptr;
  /// Adds the output to `sum` in one pass, with the same bits as the op followed by an addition. `sum` has the output's
  /// shape and dtype, and nothing else refers to it. Returns false, and does nothing, if it cannot.
  bool (*accumulate)(const OpCall& call, TensorDesc& sum) = nullptr;
  Pattern pattern = Pattern::none;
  /// Computes the output plus `bias`, along the last axis, and then, if `relu`, the maximum with 0, in one pass
  /// with the same bits as the separate ops. Returns false, and does nothing, if it cannot. The output has its shape
  /// and gets its storage here.
  bool (*with_bias)(const OpCall& call, const TensorDesc& bias, bool relu) = nullptr;
  /// For ops that broadcast input 0: if it has one element, writes the element that all of `out` have.
  void (*repeated)(const OpCall& call, const TensorSpec& out, std::byte* element) = nullptr;
  // The device library (devices/plugin.h) sets these before its device is visible.
  mutable Kernel cuda = nullptr;
  /// with_bias on a CUDA device, without relu. Products that another library computes may differ in the last bits from
  /// those of `cuda`.
  mutable bool (*cuda_with_bias)(const OpCall& call, const TensorDesc& bias) = nullptr;
  /// The names of the inputs in errors, as the K function calls its arguments; "tensor #" if they are a list.
  const char* inputs = "x y";
};
inline bool has_bit(std::uint32_t mask, int i) { return mask >> (i < 31 ? i : 31) & 1; }
inline int outputs_of(const OpDef& op, const Attrs& attrs) { return op.n_out ? op.n_out : op.outputs(attrs); }

/// Returns the device of an op's output where no input determines it: if there is none, if each must be on the CPU
/// (`host`), or if they may be on any devices (`anywhere`).
inline Device placed_device(const OpDef& op, const Attrs& attrs) {
  return op.placement ? op.placement(attrs).device : cpu;
}

/// The attributes of ops that take one axis.
struct AxisAttrs {
  static constexpr const char* attrs_name = "axis";
  std::int64_t axis;
};

/// The attributes of ops with n_out outputs.
struct ListAttrs {
  static constexpr const char* attrs_name = "list";
  std::int64_t n_out;
};

/// Runs one op: checks, rule, kernel (unless symbolic), and a node of the tape if the call may be differentiated or
/// become part of a function. Calls of ops go through here. A call that throws changes nothing.
void apply(const OpDef& op, const Attrs& attrs, const In* in, int n_in, Tensor* out, int n_out);
Tensor apply1(const OpDef& op, const Attrs& attrs, std::initializer_list<In> in);
inline Tensor apply1(const OpDef& op, std::initializer_list<In> in) { return apply1(op, Attrs(), in); }
Tensors apply_all(const OpDef& op, const Attrs& attrs, const Tensors& in);

/// Allocates an output: for kernels of ops whose output shape the rule could not know, and for views.
void allocate_output(TensorDesc& out, Device device);
/// Gives the output the storage of an input: for views.
void share_input(const OpCall& call, int i);
inline void share(const OpCall& call) { share_input(call, 0); }

/// Copies a rank-0 tensor of the CPU to an accelerator. Numbers are cached there, so that the next op with the same
/// number does not wait for a copy.
Tensor scalar_on(const TensorDesc& scalar, Device device);
/// Returns `t`, or a copy on `device` if `t` is a single number on the CPU and `device` is another one.
Tensor number_on(const Tensor& t, Device device);
/// Clears the cache of scalar_on().
void clear_scalar_cache();

/// The value that reading `b` gives now: its own storage, or that of its variable. Its storage is null if `b` has no
/// value.
Value read_value(const TensorDesc& b);

}  // namespace kassette::ops
