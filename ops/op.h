// ops/op.h - what an op is: one constant row of plain functions.
#pragma once
#include "core/impl.h"

namespace kassette {

struct OpDef;

/// An input as rule and kernel see it: shape and dtype, and the bytes as they were read at entry. `data` is null where the
/// value is not known (symbolic) or not needed (shape-only inputs).
struct InputView {
  const Body* body;
  std::byte* data;
  template <class T>
  const T* as() const {
    return reinterpret_cast<const T*>(data);
  }
  std::int64_t dim(int i) const { return body->dims[i]; }
};

/// One run of an op.
struct OpCall {
  const OpDef& op;
  const Attrs& attrs;
  const InputView* in;
  int n_in;
  Body* const*
      out;  // for kernels: shape, dtype and storage are there; for rules: null, but where the row has `anywhere`
  int n_out;
  Device device;
  const TensorSpec& spec(int i) const { return *in[i].body; }
  template <class T>
  T* out_as(int i = 0) const {
    return reinterpret_cast<T*>(out[i]->data());
  }
};

/// Shapes and dtypes of the outputs, total on unknown dims. Throws on bad input: eager and symbolic calls fail with the
/// same words.
using Rule = void (*)(const OpCall& call, TensorSpec* out);
using Kernel = void (*)(const OpCall& call);

/// An input of apply(): borrows the body of a tensor.
class In {
 public:
  In() : body_(nullptr) {}
  In(const Tensor& t) : body_(Access::impl(t) ? &Access::body(t) : nullptr) {}
  In(const Body* b) : body_(b) {}
  const Body* body() const { return body_; }

 private:
  const Body* body_;
};

/// Takes cotangents that need no memory of their own.
class Accumulator {
 public:
  /// Adds op(in...) to the cotangent of `to`: in the memory of the sum of earlier ones, or as one number that `op` repeats. Returns false, and does
  /// nothing, where neither is done.
  virtual bool accumulate(const Body& to, const OpDef& op, const Attrs& attrs, const In* in, int n_in) = 0;

 protected:
  ~Accumulator() = default;
};

/// What an adjoint sees. Inputs and outputs come as tensors on the tape; only those that the row saves have a value.
class VjpContext {
 public:
  /// `accumulator` may be null.
  VjpContext(Node* n, const Tensor* out_cotangents, Tensor* in_cotangents, const bool* wanted, Accumulator* accumulator)
      : node(*n), attrs(n->attrs), dy_(out_cotangents), din_(in_cotangents), wanted_(wanted),
        accumulator_(accumulator) {}
  Tensor in(int i) const;
  /// Input i for its shape.
  In like(int i) const { return &node.in()[i]; }
  Tensor out(int i = 0) const;
  /// Empty where nothing depends on output i.
  const Tensor& dy(int i = 0) const { return dy_[i]; }
  bool wants(int i) const { return wanted_[i]; }
  /// The engine undoes broadcasting: a cotangent may have the shape of the output.
  Tensor& din(int i) const { return din_[i]; }
  /// din(i) = op(in...), or that added to the cotangent of input i, where the accumulator takes it.
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
using Vjp = void (*)(const VjpContext& r);

/// Traits of a row.
enum OpTraits : std::uint8_t {
  kPlain = 0,
  kView = 1,          // the kernel gives the output its storage (shared or its own)
  kSource = 2,        // a random key: made anew at each replay although nothing feeds it
  kDraws = 4,         // a random draw: keeps its node always
  kEffect = 8,        // changes a variable when it is played
  kElementwise = 16,  // same-shape elementwise: a plan may fuse it
  kPrints = 32  // writes its value each time it is computed: in a symbolic scope it is recorded, whatever its input is
};
/// The dtype and the device of an output that the inputs do not tell: all of them live on the host.
struct Placement {
  DType dtype;
  Device device;
};
/// For OpDef::placement and OpDef::outputs, of ops whose attributes have a field `placement` or `n_out`.
template <class T>
Placement placement_in(const Attrs& attrs) {
  return attrs.as<T>().placement;
}
template <class T>
int outputs_in(const Attrs& attrs) {
  return static_cast<int>(attrs.as<T>().n_out);
}

/// One elementwise op's loops by float dtype, for fusion.
struct ElementwiseLoops;

/// What fusion may make of a call, beside running its loops in a chain.
enum class Pattern : std::uint8_t {
  none,
  add,    // elementwise: a + b
  relu,   // elementwise: max(x, 0)
  alias,  // input 0 itself where that has the output's shape
  sum,
  mean,   // of input 0; where the output has one element, of all there is
  slice,  // the elements of input 0 that window_of(attrs, input 0) says
  embed,  // zeros, with input 0 where window_of(attrs, output) says
};

/// A row. An op's identity is its row's address; rows are not exported. Masks: bit i for input or output i, bit 31 for
/// all from 31 on.
struct OpDef {
  const char* name;
  Rule rule;
  Kernel cpu;
  Vjp vjp = nullptr;
  std::uint32_t saves_in = 0;    // inputs whose value the adjoint reads
  std::uint32_t saves_out = 0;   // outputs whose value the adjoint reads
  std::uint32_t shape_only = 0;  // inputs of which rule and kernel read the shape alone
  std::uint32_t host = 0;        // inputs that live on the CPU whatever the device
  std::uint8_t traits = kPlain;
  std::uint8_t n_out = 1;  // 0: `outputs` tells
  bool anywhere = false;   // inputs are taken where they are, and the rule says where outputs will be
  int (*outputs)(const Attrs& attrs) = nullptr;  // where n_out is 0
  Placement (*placement)(const Attrs& attrs) =
      nullptr;  // where the output is made, of ops that only the attributes tell; else null
  const ElementwiseLoops* loops = nullptr;
  /// sum += the output of the call, in one pass over the sum and with the bits of op, then add; returns false, and does nothing,
  /// where that is not done. `sum` has the output's shape and dtype, and nobody else sees it.
  bool (*accumulate)(const OpCall& call, Body& sum) = nullptr;
  Pattern pattern = Pattern::none;
  /// The output plus `row`, which has the length of its last axis, then, if `relu`, the maximum with 0: in one pass and with the bits of
  /// each by itself; returns false, and does nothing, where that is not done. The output has its shape and gets its storage here.
  bool (*with_bias)(const OpCall& call, const Body& row, bool relu) = nullptr;
  /// For rows that repeat input 0: where that has one element, the element that all of `out` repeat.
  void (*repeated)(const OpCall& call, const TensorSpec& out, std::byte* element) = nullptr;
  mutable Kernel cuda = nullptr;  // filled in by the CUDA library before its device is visible
};
inline bool has_bit(std::uint32_t mask, int i) { return mask >> (i < 31 ? i : 31) & 1; }
inline int outputs_of(const OpDef& op, const Attrs& attrs) { return op.n_out ? op.n_out : op.outputs(attrs); }

/// Where an op makes its output if no input is on an accelerator.
inline Device placed_device(const OpDef& op, const Attrs& attrs) {
  return op.placement ? op.placement(attrs).device : cpu;
}

/// The attributes of ops that take one axis.
struct AxisAttrs {
  static constexpr const char* attrs_name = "axis";
  std::int64_t axis;
};

/// The attributes of ops that give as many tensors.
struct ListAttrs {
  static constexpr const char* attrs_name = "list";
  std::int64_t n_out;
};

/// Runs one op: checks, rule, kernel (unless symbolic), node (if anybody may differentiate or replay it). Everything that
/// happens to tensors goes through here. A call that throws changes nothing.
void apply(const OpDef& op, const Attrs& attrs, const In* in, int n_in, Tensor* out, int n_out);
Tensor apply1(const OpDef& op, const Attrs& attrs, std::initializer_list<In> in);
inline Tensor apply1(const OpDef& op, std::initializer_list<In> in) { return apply1(op, Attrs(), in); }
Tensors apply_all(const OpDef& op, const Attrs& attrs, const Tensors& in);

/// Gives an output its storage: for kernels of rows whose output shape the rule could not know, and for views.
void allocate_output(Body& out, Device device);

/// A rank-0 tensor of the CPU on an accelerator. Plain numbers are kept there: the next op with the same one does not wait for a
/// copy.
Tensor scalar_on(const Body& scalar, Device device);
/// `t`, or where it is a single number of the CPU and `device` another, that number there.
Tensor number_on(const Tensor& t, Device device);
/// Lets those numbers go.
void forget_scalars();

/// The value that reading `b` gives now: its own storage, or that of its variable. Null storage where there is none.
Value read_value(const Body& b);

/// Inside K::control_dependencies: reads of these variables stand for the values that the updates give them.
class AfterUpdates {
 public:
  virtual const Body* substitute(const Body* b) const = 0;

 protected:
  ~AfterUpdates() = default;
};

}  // namespace kassette
