// ops/engine/dims.cpp - conversion of shape arguments to tensors, and of tensors to shapes.
#include "ops/engine/dims.h"

#include <algorithm>
#include <ostream>

#include "core/convert.h"
#include "core/rank.h"
#include "core/sparse.h"
#include "ops/engine/error_attribution.h"
#include "ops/engine/operand.h"
#include "ops/shape/shaping.h"

namespace kassette::ops {
namespace {

std::int64_t element(const std::byte* p, DType dtype, std::int64_t i) {
  if (dtype == int64) return reinterpret_cast<const std::int64_t*>(p)[i];
  if (dtype == int32) return reinterpret_cast<const std::int32_t*>(p)[i];
  std::int64_t v;
  convert(&v, int64, p + i * dtype.size(), dtype, 1);
  return dtype == uint64 && v < 0 ? INT64_MAX : v;  // too large in any case
}

/// Reads the values of an integer tensor of rank 0 or 1. Returns false if there are more than kMaxRank.
bool read_values(const TensorSpec& s, const std::byte* data, DimValues& v) {
  std::int64_t n = s.rank == 0 ? 1 : s.dims[0];
  if (!is_rank(n)) return false;
  v.rank = static_cast<int>(n);
  for (int i = 0; i < v.rank; ++i) v.at[i] = element(data, s.dtype, i);
  return true;
}

void append(DimValues& v, const DimValues& more) {
  if (v.rank < 0 || more.rank < 0 || !is_rank(v.rank + more.rank)) {
    v.rank = -1;
    return;
  }
  for (int i = 0; i < more.rank; ++i) {
    if (more.is_unknown(i)) v.unknown = static_cast<std::uint8_t>(v.unknown | 1u << v.rank);
    v.at[v.rank++] = more.at[i];
  }
}

/// Finds the values of an integer tensor of rank 0 or 1, as far as they are known; if it has no value yet, from the ops
/// on the tape.
DimValues peek(const TensorDesc& b, int depth) {
  DimValues v;
  if (b.storage && b.device == cpu && (b.rank == 0 || b.rank == 1) && b.dtype.is_integer() &&
      read_values(b, b.data(), v))
    return v;
  const OpDef* op = b.node ? b.node->op : nullptr;
  if (op && depth < 4) {
    const Node& n = *b.node;
    if (op == &shape_op) {
      const TensorSpec& x = n.in()[0];
      v.rank = x.rank;
      for (int i = 0; i < v.rank; ++i) {
        v.at[i] = x.dims[i];
        if (x.dims[i] < 0) v.unknown = static_cast<std::uint8_t>(v.unknown | 1u << i);
      }
      return v;
    }
    if (op == &index_op) {
      DimValues from = peek(n.in()[0], depth + 1);
      if (from.rank >= 0 && index_dims(n.attrs, from, v)) return v;
    } else if (op == &pack_op || ((op == &stack_op || op == &concatenate_op) && b.rank == 1)) {
      v.rank = 0;
      for (std::uint32_t i = 0; i < n.n_in; ++i) append(v, peek(n.in()[i], depth + 1));
      if (v.rank >= 0) return v;
    }
  }
  v = DimValues();
  if (b.rank == 0) v.rank = 1;
  if (b.rank == 1 && is_rank(b.dims[0])) v.rank = static_cast<int>(b.dims[0]);
  if (v.rank > 0) v.unknown = static_cast<std::uint8_t>((1u << v.rank) - 1);
  return v;
}

struct ShapeAttrs {
  static constexpr const char* attrs_name = "shape";
  DType dtype;
};
void shape_rule(const OpCall& call, TensorSpec* out) {
  out->dtype = call.attrs.as<ShapeAttrs>().dtype;
  out->rank = 1;
  out->dims[0] = call.spec(0).rank;
}
std::int32_t checked(const char* op, std::int64_t n) {
  if (n > INT32_MAX) fail<ValueError>({op}, n, " does not fit int32");
  return static_cast<std::int32_t>(n);
}
void shape_kernel(const OpCall& call) {
  const TensorSpec& x = call.spec(0);
  for (int i = 0; i < x.rank; ++i)
    if (call.out[0]->dtype == int64) call.out_as<std::int64_t>()[i] = x.dims[i];
    else call.out_as<std::int32_t>()[i] = checked("shape", x.dims[i]);
}
void size_rule(const OpCall&, TensorSpec* out) {
  out->dtype = int32;
  out->rank = 0;
}
void size_kernel(const OpCall& call) { *call.out_as<std::int32_t>() = checked("size", call.spec(0).numel()); }

/// Throws if a tensor cannot be one size of a shape.
void check_size(const At& at, const TensorSpec& s) {
  if (!s.dtype.is_integer()) fail<TypeError>(at, "holds a tensor of ", s.dtype, kExpected, "sizes must be integers");
  if (s.rank > 0) fail<ValueError>(at, "holds a tensor of shape ", s, kExpected, "sizes must be scalars");
}
struct PackAttrs {
  static constexpr const char* attrs_name = "pack";
  const char* argument;  // a literal: the argument whose sizes are packed
};
void pack_rule(const OpCall& call, TensorSpec* out) {
  for (int i = 0; i < call.n_in; ++i) {
    const TensorSpec& s = call.spec(i);
    check_size({call.op.name, call.attrs.as<PackAttrs>().argument}, s);
  }
  out->dtype = int64;
  out->rank = 1;
  out->dims[0] = call.n_in;
}
void pack_kernel(const OpCall& call) {
  for (int i = 0; i < call.n_in; ++i) call.out_as<std::int64_t>()[i] = element(call.in[i].data, call.spec(i).dtype, 0);
}

/// Throws if a tensor that holds a whole shape has more than one axis.
void check_one_axis(const At& at, const TensorSpec& s) {
  if (s.rank > 1) fail<ValueError>(at, "is a tensor of shape ", s, kExpected, "it must have one axis");
}

Tensor on_host(const Tensor& t) { return t.device() == cpu ? t : t.to(cpu); }

Tensor packed(const Dims& dims, const At& at) {
  Tensors sizes;
  sizes.reserve(dims.size_);
  for (int i = 0; i < dims.size_; ++i) {
    const Dim& d = dims.dims_[i];
    if (!d.tensor_) {
      sizes.push_back(scalar_tensor(Scalar(d.value_ == Dim::kNoneDim ? std::int64_t(-1) : d.value_), int64, at));
      continue;
    }
    if (!d.tensor_->defined()) fail<ValueError>(at, "holds ", kEmptyTensor);
    const TensorDesc& b = Access::desc(*d.tensor_);
    check_size(at, b);
    sizes.push_back(on_host(*d.tensor_));
  }
  return apply_all(pack_op, PackAttrs{at.argument}, sizes)[0];
}

}  // namespace

// The host knows a tensor's shape, whichever device its elements are on: so the inputs are declared as host operands.
constinit const OpDef shape_op{.name = "shape", .rule = shape_rule, .cpu = shape_kernel, .shape_only = 1, .host = 1};
constinit const OpDef size_op{.name = "size", .rule = size_rule, .cpu = size_kernel, .shape_only = 1, .host = 1};
/// Packs scalars to a 1-D tensor of sizes.
constinit const OpDef pack_op{.name = "pack", .rule = pack_rule, .cpu = pack_kernel, .host = ~0u};

Tensor shape_of(const Tensor& x, DType dtype) { return apply1(shape_op, ShapeAttrs{dtype}, {x}); }
Tensor size_of(const Tensor& x) { return apply1(size_op, {x}); }

Tensor dims_tensor(const Dims& dims, const char* what, const char* name) {
  const At at{what, name};
  if (dims.whole_) {
    const Tensor& t = *dims.whole_;
    if (!t.defined()) fail_empty(at);
    refuse_sparse(at, t);
    const TensorDesc& b = Access::desc(t);
    if (!b.dtype.is_integer()) fail<TypeError>(at, "is a tensor of ", b.dtype, kExpected, "it must be of integers");
    if (b.rank == 0) return attribute_errors(what, [&] { return packed({t}, at); });
    check_one_axis(at, b);
    return on_host(t);
  }
  if (dims.size_ < 0) fail<ValueError>(at, "is None", kExpected, "its rank must be known here");
  check_length(at, dims);
  for (int i = 0; i < dims.size_; ++i)
    if (dims.dims_[i].tensor_) return attribute_errors(what, [&] { return packed(dims, at); });
  Tensor t = empty_tensor(TensorSpec(int64, {dims.size_}));
  std::int64_t* sizes = mutable_data<std::int64_t>(t);
  for (int i = 0; i < dims.size_; ++i) {
    std::int64_t n = dims.dims_[i].value_;
    sizes[i] = n == Dim::kNoneDim ? -1 : n;
  }
  return t;
}

std::ostream& operator<<(std::ostream& os, const DimValues& dims) {
  if (dims.rank < 0) return os << "(...)";
  std::string s = "(";
  for (int i = 0; i < dims.rank; ++i)
    s += (i ? ", " : "") + (dims.is_unknown(i) ? std::string("None") : std::to_string(dims.at[i]));
  return os << s + (dims.rank == 1 ? ",)" : ")");
}

namespace {

void check_count(const char* what, const DimValues& v, const TensorSpec& dims) {
  if (v.rank < 0) (void)checked_rank(what, dims.dims[0]);
}
void to_shape(const At& at, const DimValues& v, TensorSpec* out) {
  out->rank = static_cast<std::int8_t>(v.rank);
  for (int k = 0; k < v.rank; ++k) {
    if (!v.is_unknown(k) && v.at[k] < 0)
      fail<ValueError>(at, v, kExpected, "sizes must be known and not negative (None is shown as -1)", kRemedy,
                       "use K::shape(x)[i] for an unknown one");
    out->dims[k] = v.is_unknown(k) ? kUnknown : v.at[k];
  }
}

}  // namespace

TensorSpec shape_from(const Tensor& dims, DType dtype, const char* what, const char* name) {
  const TensorDesc& b = Access::desc(dims);
  Value value = concrete_value(b, what);
  DimValues v;
  read_values(b, static_cast<const std::byte*>(value.storage->data) + value.offset, v);
  check_count(what, v, b);
  TensorSpec shape;
  shape.dtype = dtype;
  to_shape({what, name}, v, &shape);
  return shape;
}

DimValues read_dims(const OpCall& call, int i, const char* name) {
  const InputView& a = call.in[i];
  check_one_axis({call.op.name, name}, *a.desc);
  if (!a.data && !(a.desc->known() && a.desc->numel() == 0)) return peek(*a.desc, 0);
  DimValues v;
  read_values(*a.desc, a.data, v);
  check_count(call.op.name, v, *a.desc);
  return v;
}

void dims_from(const OpCall& call, int i, TensorSpec* out, const char* name) {
  to_shape({call.op.name, name}, read_dims(call, i, name), out);
}

bool repeats_rows(const TensorSpec& a, const TensorSpec& b) {
  int first = 0;
  while (first < a.rank && a.dims[first] == 1) ++first;
  const int rank = a.rank - first;
  return rank < b.rank && std::equal(a.dims + first, a.dims + a.rank, b.dims + b.rank - rank);
}

}  // namespace kassette::ops
