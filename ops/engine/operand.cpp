// ops/engine/operand.cpp - conversion of operands (numbers, nested lists, containers) to tensors.
#include "ops/engine/operand.h"

#include <atomic>

#include "core/convert.h"
#include "core/rank.h"
#include "ops/elementwise/cast.h"
#include "ops/engine/dispatch.h"
#include "ops/engine/error_attribution.h"
#include "ops/shape/shaping.h"

namespace kassette::ops {
namespace {

std::atomic<std::uint8_t> floatx_code{DType::kNone};  // not yet read from the configuration

const Operand* items(const Operand& x) { return static_cast<const Operand*>(Access::pointer(x)); }

bool holds_tensor(const Operand& x) {
  if (is_tensor_operand(x) || Access::kind(x) == Scalar::kShaped) return true;
  if (Access::kind(x) != Scalar::kList) return false;
  for (std::size_t i = 0; i < Access::count(x); ++i)
    if (holds_tensor(items(x)[i])) return true;
  return false;
}

/// Sets rank and dims to those of a nested list, looking only at its first elements.
void measure(const Operand& x, TensorSpec& s, const At& where) {
  const Operand* o = &x;
  for (;;) {
    Scalar::Kind kind = Access::kind(*o);
    if (kind != Scalar::kList && kind != Scalar::kArray) return;
    std::int64_t n = static_cast<std::int64_t>(Access::count(*o));
    int level = s.rank;
    s.rank = checked_rank(where.function, level + 1, "a nested list");
    s.dims[level] = n;
    if (kind == Scalar::kArray || n == 0) return;
    o = items(*o);
  }
}

/// Writes one number as `dtype`. Fractions concern floats only.
void write_number(void* to, DType dtype, const Scalar& x, const At& where, Fractions fractions) {
  if (fractions == Fractions::reject || Access::kind(x) != Scalar::kFloat) {
    write_scalar(to, dtype, x, where);
    return;
  }
  double v = Access::float_value(x);
  convert(to, dtype, &v, float64, 1);
}

/// Writes the numbers of an operand to memory one after another, and checks that lists are not ragged.
struct Writer {
  std::byte* at;
  DType dtype;
  const TensorSpec& spec;
  const At& where;
  Fractions fractions;

  void write(const Operand& x, int depth) {
    Scalar::Kind kind = Access::kind(x);
    bool nested = kind == Scalar::kList || kind == Scalar::kArray;
    if (nested != (depth < spec.rank)) ragged(depth);
    if (!nested) {
      write_number(at, dtype, x, where, fractions);
      at += dtype.size();
      return;
    }
    std::int64_t n = static_cast<std::int64_t>(Access::count(x));
    if (n != spec.dims[depth]) ragged(depth);
    if (kind == Scalar::kArray) {
      if (depth + 1 != spec.rank) ragged(depth);
      write_elements(static_cast<const std::byte*>(Access::pointer(x)), Access::dtype(x), n);
      return;
    }
    if (dtype == float32 && depth + 1 == spec.rank && write_floats(items(x), n)) return;
    for (std::int64_t i = 0; i < n; ++i) write(items(x)[i], depth + 1);
  }
  /// The most frequent kind of list, ints and floats to float32, without a dispatch for each number. False if there are
  /// others.
  bool write_floats(const Operand* item, std::int64_t n) {
    auto* to = reinterpret_cast<float*>(at);
    for (std::int64_t i = 0; i < n; ++i) {
      Scalar::Kind kind = Access::kind(item[i]);
      if (kind == Scalar::kInt) to[i] = static_cast<float>(Access::int_value(item[i]));
      else if (kind == Scalar::kFloat) to[i] = static_cast<float>(Access::float_value(item[i]));
      else return false;
    }
    at += n * 4;
    return true;
  }
  void write_elements(const std::byte* p, DType from, std::int64_t n) {
    if (from == uint64 && dtype == int64)
      for (std::int64_t i = 0; i < n; ++i)
        if (std::uint64_t v = reinterpret_cast<const std::uint64_t*>(p)[i]; v > INT64_MAX)
          write_scalar(at + i * dtype.size(), dtype, Scalar(v), where);  // which throws
    // element by element, so that a fraction is refused
    if (from.is_float() && dtype.is_integer() && fractions == Fractions::reject)
      for (std::int64_t i = 0; i < n; ++i) {
        double v;
        convert(&v, float64, p + i * from.size(), from, 1);
        write_scalar(at + i * dtype.size(), dtype, Scalar(v), where);
      }
    else cast_elements(at, dtype, p, from, n);
    at += n * dtype.size();
  }
  [[noreturn]] void ragged(int depth) {
    fail<ValueError>(where, *where.argument ? "is a ragged list: along axis " : "a nested list is ragged: along axis ",
                     depth, " the sizes differ from ", spec, " of its first elements");
  }
};

/// Copies an array, with a conversion to `dtype`: the tensor that ArrayOf makes may share the memory of the user's
/// array.
Tensor shaped_array(const Operand& x, DType dtype, const At& where, Fractions fractions) {
  Tensor array = attribute_errors(where.function, [&] { return Access::make_array(x); });
  const TensorDesc& b = Access::desc(array);
  TensorSpec spec = b;
  spec.dtype = dtype;
  Tensor t = empty_tensor(spec, where.function);
  Writer{Access::desc(t).data(), dtype, spec, where, fractions}.write_elements(b.data(), b.dtype, b.numel());
  return t;
}

Tensor stack_list(const Operand& x, DType dtype, const At& where, Fractions fractions) {
  Tensors parts;
  std::int64_t n = static_cast<std::int64_t>(Access::count(x));
  DType like = dtype;
  for (std::int64_t i = 0; i < n; ++i) {
    if (!is_tensor_operand(items(x)[i])) continue;
    if (!tensor_of(items(x)[i]).defined())
      fail<ValueError>(where, *where.argument ? "holds " : "a list holds ", kEmptyTensor);
    if (!like.given()) like = Access::desc(tensor_of(items(x)[i])).dtype;
  }
  for (std::int64_t i = 0; i < n; ++i) parts.push_back(as_tensor(items(x)[i], like, where, fractions));
  return attribute_errors(where.function, [&] { return stack(parts, 0); });
}

}  // namespace

DType default_float() {
  std::uint8_t code = floatx_code.load(std::memory_order_relaxed);
  if (__builtin_expect(code == DType::kNone, 0)) {
    load_configuration();
    code = floatx_code.load(std::memory_order_relaxed);
  }
  return DType(static_cast<DType::Code>(code));
}
void set_default_float(DType dtype) { floatx_code.store(dtype.code(), std::memory_order_relaxed); }

Tensor empty_tensor(const TensorSpec& spec, const char* what, Device device) {
  TensorImpl* impl = TensorImpl::make();
  Tensor t = Access::adopt(impl);
  impl->desc.set(spec);
  impl->desc.device = device;
  try {
    impl->desc.storage = Storage::allocate(spec.checked_bytes(what), device);
  } catch (const MemoryError&) {
    rethrow_for(what);
  }
  return t;
}

Tensor scalar_tensor(const Scalar& value, DType dtype, const At& where) {
  TensorSpec spec(dtype, {});
  Tensor t = empty_tensor(spec);
  write_scalar(Access::desc(t).data(), dtype, value, where);
  return t;
}

Tensor as_tensor(const Operand& x, DType dtype, const At& where, Fractions fractions) {
  Scalar::Kind kind = Access::kind(x);
  if (kind == Scalar::kTensor) return tensor_of(x);
  if (kind == Scalar::kShaped) return shaped_array(x, dtype.given() ? dtype : default_float(), where, fractions);
  if (kind > Scalar::kFloat && holds_tensor(x)) return stack_list(x, dtype, where, fractions);
  TensorSpec spec;
  if (kind > Scalar::kFloat) measure(x, spec, where);
  spec.dtype = dtype.given() ? dtype : default_float();
  Tensor t = empty_tensor(spec);
  if (kind > Scalar::kFloat) Writer{Access::desc(t).data(), spec.dtype, spec, where, fractions}.write(x, 0);
  else write_number(Access::desc(t).data(), spec.dtype, x, where, fractions);
  return t;
}

DType dtype_for_numbers(const Operand& a, const Operand& b) {
  for (const Operand* o : {&a, &b})
    if (is_tensor_operand(*o) && tensor_of(*o).defined()) return Access::desc(tensor_of(*o)).dtype;
  return DType();
}

}  // namespace kassette::ops

namespace kassette {
using namespace ops;

Tensors::Tensors(std::initializer_list<Operand> items) : Tensors() {
  reserve(static_cast<std::int64_t>(items.size()));
  for (const Operand& item : items) push_back(item.is_none() ? Tensor() : as_tensor(item, DType(), "Tensors"));
}

}  // namespace kassette
