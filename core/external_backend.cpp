// core/external_backend.cpp - boxed values for external backends, and tensors that belong to the backends.
#include <kassette/external_backend.h>

#include <cstring>
#include <new>
#include <ostream>
#include <string>
#include <vector>

#include "core/external_backend_access.h"
#include "core/text.h"

namespace kassette {
namespace external {
namespace {

/// The object that a Value points to.
struct Object {
  std::atomic<std::int32_t> count{1};
};
struct TextObject : Object {
  std::string text;
};
struct TensorObject : Object {
  Tensor tensor;
};
struct ListObject : Object {
  std::vector<Value> items;
};
struct CodeObject : Object {
  explicit CodeObject(Code c) : code(c) {}
  ~CodeObject() {
    if (code.release) code.release(code.state);
  }
  Code code;
};

template <class T>
T* as(void* object) {
  return static_cast<T*>(static_cast<Object*>(object));
}

const char* kind_name(Value::Kind kind) {
  constexpr const char* kNames[] = {"None", "a bool", "an int", "a float", "text", "a tensor", "a list", "code"};
  return kNames[kind];
}
[[noreturn]] void fail_kind(Value::Kind kind, const char* wanted) {
  fail<TypeError>({"external"}, kind_name(kind), kExpected, "it must be ", wanted);
}

}  // namespace

Value::Value(Name text) : Value() {
  if (!text.given()) return;
  std::string copy = string_of(text);  // may throw
  auto* object = new TextObject;
  object->text = std::move(copy);
  object_ = static_cast<Object*>(object);
  kind_ = kText;
}
Value::Value(const Tensor& tensor) : Value() {
  if (!tensor.defined()) return;
  auto* object = new TensorObject;
  object->tensor = tensor;
  object_ = static_cast<Object*>(object);
  kind_ = kTensor;
}
Value::Value(const Tensors& list) : Value() {
  auto* object = new ListObject;
  object->items.assign(list.begin(), list.end());
  object_ = static_cast<Object*>(object);
  kind_ = kList;
}
Value::Value(Code code) : Value() {
  object_ = static_cast<Object*>(new CodeObject(code));
  kind_ = kCode;
}
Value Value::list(const Value* items, int n) {
  Value v;
  auto* object = new ListObject;
  object->items.assign(items, items + n);
  v.object_ = static_cast<Object*>(object);
  v.kind_ = kList;
  return v;
}
Value::Value(const Value& other) noexcept : kind_(other.kind_), int_(other.int_) {
  if (kind_ >= kText) as<Object>(object_)->count.fetch_add(1, std::memory_order_relaxed);
}
Value& Value::operator=(Value other) noexcept {
  std::swap(kind_, other.kind_);
  std::swap(int_, other.int_);
  return *this;
}
Value::~Value() {
  if (kind_ < kText || as<Object>(object_)->count.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  switch (kind_) {
    case kText: delete as<TextObject>(object_); break;
    case kTensor: delete as<TensorObject>(object_); break;
    case kList: delete as<ListObject>(object_); break;
    default: delete as<CodeObject>(object_);
  }
}

bool Value::as_bool() const {
  if (kind_ != kBool && kind_ != kInt) fail_kind(kind_, "a bool");
  return int_ != 0;
}
std::int64_t Value::as_int() const {
  if (kind_ != kBool && kind_ != kInt) fail_kind(kind_, "an int");
  return int_;
}
double Value::as_float() const {
  if (kind_ == kFloat) return float_;
  if (kind_ != kBool && kind_ != kInt) fail_kind(kind_, "a float");
  return static_cast<double>(int_);
}
const char* Value::as_text() const {
  if (kind_ == kNone) return nullptr;
  if (kind_ != kText) fail_kind(kind_, "text");
  return as<TextObject>(object_)->text.c_str();
}
Tensor Value::as_tensor() const {
  if (kind_ == kNone) return Tensor();
  if (kind_ != kTensor) fail_kind(kind_, "a tensor");
  return as<TensorObject>(object_)->tensor;
}
Tensors Value::as_tensors() const {
  if (kind_ == kTensor) return Tensors(as_tensor());
  if (kind_ != kList) fail_kind(kind_, "a list of tensors");
  Tensors out;
  for (const Value& v : as<ListObject>(object_)->items) out.push_back(v.as_tensor());
  return out;
}
int Value::size() const {
  if (kind_ != kList) fail_kind(kind_, "a list");
  return static_cast<int>(as<ListObject>(object_)->items.size());
}
const Value& Value::operator[](int i) const {
  int n = size();
  if (i < 0 || i >= n) fail<ValueError>({"external"}, "element ", i, " of a list of ", n);
  return as<ListObject>(object_)->items[i];
}
Value Value::operator()(std::initializer_list<Value> args) const {
  if (kind_ != kCode) fail_kind(kind_, "code");
  Value held(*this);  // the callee may drop the last other copy
  const Code& code = as<CodeObject>(object_)->code;
  return code.run(code.state, args.begin(), static_cast<int>(args.size()));
}

std::ostream& operator<<(std::ostream& os, const Value& value) {
  switch (value.kind_) {
    case Value::kNone: return os << "None";
    case Value::kBool: return os << (value.int_ ? "True" : "False");
    case Value::kInt: return os << text(value.int_);
    case Value::kFloat: return os << text(value.float_);
    case Value::kText: return os << text('\'', value.as_text(), '\'');
    case Value::kTensor: return os << value.as_tensor();
    case Value::kCode: return os << "<code>";
    default: break;
  }
  std::string list = "[";
  for (int i = 0; i < value.size(); ++i) list += text(i ? ", " : "", value[i]);
  return os << list + ']';
}

const Value& Call::operator[](int i) const {
  if (i < 0 || i >= n_args_) fail<ValueError>({name_}, "argument ", i, " of ", n_args_);
  return args_[i];
}
Value Call::built_in() const {
  if (!built_in_) fail<NotImplementedError>({name_}, "not a function of the built-in backend");
  BuiltInScope scope;
  try {
    return run_built_in_(built_in_);
  } catch (...) {
    ExternalBackendAccess::let_pass();
    throw;
  }
}

BuiltInScope::BuiltInScope() : old_(context().in_external_call) { context().in_external_call = true; }
BuiltInScope::~BuiltInScope() { context().in_external_call = old_; }

// ---- tensors of external backends -----------------------------------------------------------------------------------

namespace {

struct Handle final : Extra {
  Handle(void* h, const TensorKind* k) : handle(h), kind(k) {}
  ~Handle() override { kind->release(handle); }
  void* handle;
  const TensorKind* kind;
};

const Handle& handle_of(const TensorDesc& b) { return static_cast<const Handle&>(*b.node->cell->handle); }

}  // namespace

// To the built-in backend a foreign tensor is a leaf without a value, with a flag by which ops refuse it.
Tensor wrap(void* handle, const TensorKind* kind, const Shape& shape, DType dtype) {
  Ref<Extra> held;
  try {
    held = Ref<Extra>::adopt(new Handle(handle, kind));
  } catch (...) {
    kind->release(handle);
    throw;
  }
  TensorSpec spec(dtype, {});
  spec.rank = static_cast<std::int8_t>(shape.rank());
  for (int i = 0; i < shape.size(); ++i) spec.dims[i] = shape.begin()[i];
  Tensor t = make_leaf(Leaf::placeholder, spec, cpu, {}, Name());
  TensorDesc& b = Access::desc(t);
  b.flags |= kForeign;
  b.node->cell->handle = std::move(held);
  return t;
}
void* unwrap(const Tensor& x, const TensorKind* kind) {
  if (!is_foreign(x)) return nullptr;
  const Handle& h = handle_of(Access::desc(x));
  return h.kind == kind ? h.handle : nullptr;
}

}  // namespace external

void ExternalBackendAccess::fail_kind(const external::Value& value, const char* expected) {
  external::fail_kind(value.kind(), expected);
}
const external::Code* ExternalBackendAccess::code(const external::Value& value) {
  return value.kind_ == external::Value::kCode ? &external::as<external::CodeObject>(value.object_)->code : nullptr;
}

const char* foreign_backend(const TensorDesc& b) { return external::handle_of(b).kind->backend; }

void fail_foreign(const char* what, const TensorDesc& b) {
  fail<ValueError>({what}, "a tensor ", b.shape(), " of the backend '", foreign_backend(b),
                   "' is opaque to the built-in backend", kRemedy, "use that backend's get_value or eval");
}

std::string foreign_text(const TensorDesc& b) {
  const external::TensorKind& kind = *external::handle_of(b).kind;
  return text(kind.text ? kind.text(external::handle_of(b).handle) : Text("Tensor"), ' ', b.shape(), ' ', b.dtype, ' ',
              kind.backend);
}

// ---- exceptions that only pass through a backend --------------------------------------------------------------------

void ExternalBackendAccess::let_pass() {
  if (auto* active = static_cast<ActiveCall*>(context().external_call)) active->passing = std::current_exception();
}

}  // namespace kassette
