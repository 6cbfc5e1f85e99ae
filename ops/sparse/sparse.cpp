// ops/sparse/sparse.cpp - construction, conversion and concatenation of sparse tensors. Products are in sparse_dot.cpp.
#include "ops/sparse/sparse.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/convert.h"
#include "core/rank.h"
#include "core/text.h"
#include "devices/cpu/threads.h"
#include "ops/elementwise/cast.h"
#include "ops/engine/expr.h"
#include "ops/engine/operand.h"
#include "ops/sparse/sparse_index.h"
#include "ops/shape/strided.h"

namespace kassette::ops {
namespace {

constexpr std::int64_t kGrain = 1 << 14;  // entries or elements

/// The dense shape in input i, as far as it is known.
TensorSpec dense_shape(const OpCall& call, int i) {
  TensorSpec s;
  dims_from(call, i, &s, "dense_shape");
  return s;
}

// ---- checked indices: Note [Index storage] --------------------------------------------------------------------------

/// Inputs: indices, dense shape.
void coo_rule(const OpCall& call, TensorSpec* out) {
  const TensorSpec& in = call.spec(0);
  TensorSpec shape = dense_shape(call, 1);
  check_rank({"sparse_coo", "indices"}, in, 2, ": (entries, axes)");
  const std::int64_t axes = in.dim(1);
  if (differ(axes, shape.rank))
    fail<ValueError>({"sparse_coo", "indices"}, "of shape ", in, " for the dense shape ", shape, ", which has ",
                     int(shape.rank), shape.rank == 1 ? " axis" : " axes");
  out->dtype = int64;
  out->rank = 2;
  out->dims[0] = in.dim(0);
  out->dims[1] = shape.rank >= 0 ? shape.rank : axes;
}
void coo_kernel(const OpCall& call) {
  TensorDesc& out = *call.out[0];
  Ref<Storage> memory = Storage::allocate(out.bytes(), cpu);
  cast_elements(memory->data, int64, call.in[0].data, call.spec(0).dtype, out.numel());
  out.storage = SparseIndex::own("sparse_coo", std::move(memory), 0, out.dims[0], dense_shape(call, 1));
  out.offset = 0;
}

/// Input: a dense tensor. Output: the indices of its nonzero elements, in row-major order.
void nonzero_rule(const OpCall& call, TensorSpec* out) {
  const TensorSpec& x = call.spec(0);
  if (x.rank == 0)
    fail<ValueError>({"to_sparse", "x"}, "is a scalar", kExpected, "a sparse tensor has at least one axis");
  out->dtype = int64;
  out->rank = 2;
  out->dims[0] = kUnknown;
  out->dims[1] = x.rank;
}
void nonzero_kernel(const OpCall& call) {
  const TensorSpec& x = call.spec(0);
  TensorDesc& out = *call.out[0];
  std::vector<std::int64_t> found;
  dispatch(x.dtype, [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    const T* p = call.in[0].as<T>();
    for (std::int64_t i = 0, n = x.numel(); i < n; ++i)
      if (convert_one<bool>(p[i])) found.push_back(i);
  });
  out.dims[0] = static_cast<std::int64_t>(found.size());
  Ref<Storage> memory = Storage::allocate(out.bytes(), cpu);
  auto* at = static_cast<std::int64_t*>(memory->data);
  for (std::int64_t i : found) {
    for (int axis = x.rank - 1; axis >= 0; --axis) {
      at[axis] = i % x.dims[axis];
      i /= x.dims[axis];
    }
    at += x.rank;
  }
  out.storage = SparseIndex::own("to_sparse", std::move(memory), 0, out.dims[0], x);
  out.offset = 0;
}

// ---- conversion to dense, and reading at entries --------------------------------------------------------------------

void check_entries(const OpCall& call, int indices, int values) {
  const TensorSpec &i = call.spec(indices), &v = call.spec(values);
  check_rank({call.op.name, "values"}, v, 1, ": (entries,)");
  if (i.rank >= 0 && v.rank >= 0 && differ(i.dims[0], v.dims[0]))
    fail<ValueError>({call.op.name}, i.dims[0], " indices and ", v.dims[0], " values", kExpected,
                     "there must be one of each for an entry");
}

/// Inputs: indices, values, dense shape.
void to_dense_rule(const OpCall& call, TensorSpec* out) {
  check_entries(call, 0, 1);
  out->set(dense_shape(call, 2));
  out->dtype = call.spec(1).dtype;
}

template <class T>
void add_to(T& to, T v) {
  if constexpr (std::is_same_v<T, bool>) to = to || v;
  else to = static_cast<T>(to + v);
}

/// Adds entries [begin, end) to the elements of `to`.
template <class T>
void scatter(const SparseIndex& index, const T* values, T* to, std::int64_t begin, std::int64_t end) {
  for (std::int64_t k = begin; k < end; ++k) add_to(to[index.element(k)], values[k]);
}

/// For half types: sums the entries of an element in float32, so that the result is rounded once.
template <class T>
void scatter_half(const SparseElements& e, const T* values, T* to) {
  for (std::int64_t i = 0; i < e.n; ++i) {
    float sum = 0;
    for (std::int64_t k = e.starts[i]; k < e.starts[i + 1]; ++k) sum += to_float(values[e.order[k]]);
    to[e.elements[i]] = convert_one<T>(sum);
  }
}

void to_dense_kernel(const OpCall& call) {
  TensorDesc& out = *call.out[0];
  zero_bytes(out.data(), out.bytes());
  std::unique_ptr<SparseIndex> made;
  const SparseIndex& index = SparseIndex::owner_of("to_dense", *call.in[0].desc, out, made);
  dispatch(out.dtype, [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    const T* values = call.in[1].as<T>();
    T* to = call.out_as<T>();
    if constexpr (kIsHalf<T>) {
      scatter_half(index.elements(), values, to);
    } else if (!index.rising()) {
      scatter(index, values, to, 0, index.count());
    } else {
      // Each thread takes whole lines of axis 0, so that no two threads add to the same element.
      auto line_start = [&](std::int64_t k) {
        while (k > 0 && k < index.count() && *index.at(k) == *index.at(k - 1)) ++k;
        return k;
      };
      devices::parallel_for(index.count(), kGrain, [&](std::int64_t begin, std::int64_t end) {
        scatter(index, values, to, line_start(begin), line_start(end));
      });
    }
  });
}

void to_dense_gradient(const VjpContext& ctx) {
  if (ctx.wants(1)) ctx.din(1) = apply1(sparse_gather_op, {ctx.in(0), ctx.in(2), ctx.dy()});
}

/// Inputs: indices, dense shape, a dense tensor of that shape.
void gather_rule(const OpCall& call, TensorSpec* out) {
  const TensorSpec &i = call.spec(0), &x = call.spec(2);
  TensorSpec shape = dense_shape(call, 1);
  if (!x.compatible(shape))
    fail<ValueError>({call.op.name}, "a tensor of shape ", x, " for entries of the dense shape ", shape);
  out->dtype = x.dtype;
  out->rank = 1;
  out->dims[0] = i.dim(0);
}
void gather_kernel(const OpCall& call) {
  std::unique_ptr<SparseIndex> made;
  const SparseIndex& index = SparseIndex::owner_of("sparse_gather", *call.in[0].desc, call.spec(2), made);
  dispatch(call.out[0]->dtype, [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    const T* from = call.in[2].as<T>();
    T* to = call.out_as<T>();
    devices::parallel_for(index.count(), kGrain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t k = begin; k < end; ++k) to[k] = from[index.element(k)];
    });
  });
}
void gather_gradient(const VjpContext& ctx) {
  ctx.din(2) = apply1(sparse_to_dense_op, {ctx.in(0), ctx.dy(), ctx.in(1)});
}

// ---- joining --------------------------------------------------------------------------------------------------------

/// Inputs: indices and dense shape of each part. Outputs: indices and dense shape of the result. The axis is not
/// negative.
void concatenate_rule(const OpCall& call, TensorSpec* out) {
  auto axis = static_cast<int>(call.attrs.as<AxisAttrs>().axis);
  TensorSpec whole;
  std::int64_t count = 0;
  for (int k = 0; k < call.n_in; k += 2) {
    TensorSpec s = dense_shape(call, k + 1);
    const std::int64_t n = call.spec(k).dim(0);
    count = sum_of_sizes(count, n);
    if (k == 0) {
      whole.set(s);
      continue;
    }
    if (!whole.merge(s, axis))
      fail<ValueError>({call.op.name}, "tensor 0 has shape ", dense_shape(call, 1), ", tensor ", k / 2, " has ", s,
                       kExpected, "they must be equal elsewhere than along axis ", axis);
    whole.dims[axis] = sum_of_sizes(whole.dim(axis), s.dim(axis));
  }
  out[0] = TensorSpec(int64, {count, whole.rank});
  out[1] = TensorSpec(int64, {whole.rank});
}
void concatenate_kernel(const OpCall& call) {
  auto axis = static_cast<int>(call.attrs.as<AxisAttrs>().axis);
  TensorDesc &indices = *call.out[0], &shape = *call.out[1];
  Ref<Storage> memory = Storage::allocate(indices.bytes(), cpu);
  auto* to = static_cast<std::int64_t*>(memory->data);
  TensorSpec whole = dense_shape(call, 1);
  whole.dims[axis] = 0;
  for (int k = 0; k < call.n_in; k += 2) {
    const auto* from = call.in[k].as<std::int64_t>();
    std::int64_t n = call.spec(k).numel();
    std::memcpy(to, from, static_cast<std::size_t>(n) * sizeof *to);
    for (std::int64_t i = axis; i < n; i += whole.rank) to[i] += whole.dims[axis];
    to += n;
    whole.dims[axis] += dense_shape(call, k + 1).dims[axis];
  }
  indices.storage = SparseIndex::own(call.op.name, std::move(memory), 0, indices.dims[0], whole);
  indices.offset = 0;
  allocate_output(shape, cpu);
  std::copy_n(whole.dims, whole.rank, reinterpret_cast<std::int64_t*>(shape.data()));
}

// ---- handles --------------------------------------------------------------------------------------------------------

/// Makes a handle from checked indices. Its static shape is the dense shape as far as that is known.
Tensor handle(const char* what, const Tensor& indices, const Tensor& values, const Tensor& shape) {
  InputView a{&Access::desc(shape), Access::desc(shape).storage ? Access::desc(shape).data() : nullptr};
  OpCall call{sparse_coo_op, Attrs{}, &a, 1, nullptr, 0, cpu};
  TensorSpec spec = dense_shape(call, 0);
  spec.dtype = values.dtype();
  std::int64_t n = 1;
  for (int i = 0; i < spec.rank; ++i)
    if (__builtin_mul_overflow(n, std::max<std::int64_t>(spec.dims[i], 1), &n) || n > (std::int64_t(1) << 60))
      fail<ValueError>({what, "dense_shape"}, spec, " has more than 2^60 elements");
  return make_sparse(indices, values, shape, spec);
}

}  // namespace

constinit const OpDef sparse_coo_op{
    .name = "sparse_coo", .rule = coo_rule, .cpu = coo_kernel, .host = 3, .traits = kView};
constinit const OpDef sparse_nonzero_op{
    .name = "to_sparse", .rule = nonzero_rule, .cpu = nonzero_kernel, .traits = kView};
constinit const OpDef sparse_to_dense_op{.name = "sparse_to_dense",
                                         .rule = to_dense_rule,
                                         .cpu = to_dense_kernel,
                                         .vjp = to_dense_gradient,
                                         .saves_in = 0b101,
                                         .host = 0b101};
constinit const OpDef sparse_gather_op{.name = "sparse_gather",
                                       .rule = gather_rule,
                                       .cpu = gather_kernel,
                                       .vjp = gather_gradient,
                                       .saves_in = 0b011,
                                       .host = 0b011};
constinit const OpDef sparse_concatenate_op{.name = "sparse_concatenate",
                                            .rule = concatenate_rule,
                                            .cpu = concatenate_kernel,
                                            .host = ~0u,
                                            .traits = kView,
                                            .n_out = 2};

Tensor sparse_coo(const Tensor& indices, const Tensor& values, const Tensor& shape) {
  const TensorDesc& v = Access::desc(values);
  check_rank({"sparse_coo", "values"}, v, 1, ": (entries,)");
  const TensorDesc& i = Access::desc(indices);
  if (!i.dtype.is_integer())
    fail<TypeError>({"sparse_coo", "indices"}, "are ", i.dtype, kExpected, "they must be integers", kRemedy,
                    "cast them (K::cast)");
  if (v.rank == 1 && i.rank == 2 && differ(v.dims[0], i.dims[0]))
    fail<ValueError>({"sparse_coo"}, i.dims[0], " indices and ", v.dims[0], " values", kExpected,
                     "there must be one of each for an entry");
  return handle("sparse_coo", apply1(sparse_coo_op, {indices.to(cpu), shape}), values, shape);
}

Tensor to_sparse(const Tensor& x) { return to_sparse(x, x); }
Tensor to_sparse(const Tensor& x, const Tensor& mask) {
  // A mask on a CUDA device is cast to bool first, so that only a byte per element is copied to the host.
  Tensor seen = mask.device() == cpu ? mask : cast(mask, bool_).to(cpu), indices = apply1(sparse_nonzero_op, {seen}),
         shape = shape_of(x, int64);
  return handle("to_sparse", indices, apply1(sparse_gather_op, {indices, shape, x}), shape);
}

Tensor to_dense(const Tensor& x) {
  return apply1(sparse_to_dense_op, {&sparse_part(Access::desc(x), kIndices), &sparse_part(Access::desc(x), kValues),
                                     &sparse_part(Access::desc(x), kDenseShape)});
}

Tensor with_known_dims(const TensorSpec& known, const Tensor& shape) {
  if (!shape.symbolic() || known.rank < 0) return shape;
  Dims dims = None;
  dims.size_ = known.rank;
  std::vector<Tensor> unknown(known.rank);
  for (int i = 0; i < known.rank; ++i) {
    Tensor& size = unknown[i];
    if (known.dims[i] < 0) size = shape[i];
    dims.dims_[i] = known.dims[i] < 0 ? Dim(size) : Dim(known.dims[i]);
  }
  return dims_tensor(dims, "sparse_coo", "dense_shape");
}

Tensor sparse_concatenate(const Tensors& parts, int axis) {
  Tensors indices_and_shapes, values;
  indices_and_shapes.reserve(2 * parts.size());
  values.reserve(parts.size());
  TensorSpec known = Access::desc(parts[0]);
  int at = place_axis("concatenate", axis, known);
  for (const Tensor& t : parts) {
    const TensorDesc& b = Access::desc(t);
    indices_and_shapes.push_back(sparse_part(t, kIndices));
    indices_and_shapes.push_back(sparse_part(t, kDenseShape));
    values.push_back(sparse_part(t, kValues));
    if (&t == parts.begin()) continue;
    for (int i = 0; i < known.rank && b.rank == known.rank; ++i)
      if (i == at) known.dims[i] = sum_of_sizes(known.dims[i], b.dims[i]);
      else known.dims[i] = std::max(known.dims[i], b.dims[i]);
  }
  Tensors whole = apply_all(sparse_concatenate_op, AxisAttrs{at}, indices_and_shapes);
  return handle("concatenate", whole[0], concatenate(values, 0), with_known_dims(known, whole[1]));
}

Tensor sparse_transpose(const Tensor& x) {
  const TensorDesc& b = Access::desc(x);
  TensorSpec known = b;
  std::reverse(known.dims, known.dims + std::max<int>(known.rank, 0));
  Tensor shape = with_known_dims(known, reverse(sparse_part(x, kDenseShape), 0));
  return sparse_coo(reverse(sparse_part(x, kIndices), 1), sparse_part(x, kValues), shape);
}

}  // namespace kassette::ops
