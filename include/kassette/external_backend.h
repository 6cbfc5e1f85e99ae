// include/kassette/external_backend.h - external backends: how a library or a program provides K functions that run
// elsewhere.
//
// With KERAS_BACKEND=my_package.my_module, K::relu(x) calls that backend's entry "relu" with all its arguments, boxed,
// in the order of the signature. docs/backends.md shows a complete backend.
#ifndef KASSETTE_CORE_EXTERNAL_BACKEND_H
#define KASSETTE_CORE_EXTERNAL_BACKEND_H
#include <kassette/api.h>
#include <kassette/print.h>

namespace kassette {

struct ExternalBackendAccess;  // the library's way into these classes

namespace external {

/// Incremented whenever something in this header changes. A library built with another number is rejected.
inline constexpr std::uint32_t kAbi = 3;

class Value;

/// Something that can be called: what a Value of kind kCode holds. `release` is called once, when the last copy is
/// gone.
struct Code {
  Value (*run)(void* state, const Value* args, int n_args);
  void (*release)(void* state);
  void* state;
};

/// An argument or a result: nothing, a number, text (names and dtypes are text), a tensor, a list of values, or code.
/// Copies share the content. The as_... functions throw TypeError for a value of another kind.
class KASSETTE_API Value {
 public:
  enum Kind : std::uint8_t { kNone, kBool, kInt, kFloat, kText, kTensor, kList, kCode };
  Value() noexcept : kind_(kNone), int_(0) {}
  Value(NoneType) noexcept : Value() {}
  Value(bool v) noexcept : kind_(kBool), int_(v) {}
  Value(int v) noexcept : kind_(kInt), int_(v) {}
  Value(long v) noexcept : kind_(kInt), int_(v) {}
  Value(long long v) noexcept : kind_(kInt), int_(v) {}
  Value(double v) noexcept : kind_(kFloat), float_(v) {}
  Value(const void*) = delete;  // else every pointer would be a bool
  template <class N, class = decltype(Name(std::declval<const N&>()))>
  Value(const N& text) : Value(Name(text)) {}
  Value(Name text);             // None where no name was given
  Value(const Tensor& tensor);  // None for the empty Tensor
  Value(const Tensors& list);
  Value(Code code);
  static Value list(std::initializer_list<Value> items) { return list(items.begin(), static_cast<int>(items.size())); }
  static Value list(const Value* items, int n);
  Value(const Value& other) noexcept;
  Value(Value&& other) noexcept : kind_(other.kind_), int_(other.int_) { other.kind_ = kNone; }
  Value& operator=(Value other) noexcept;
  ~Value();

  Kind kind() const { return kind_; }
  bool is_none() const { return kind_ == kNone; }
  bool as_bool() const;
  std::int64_t as_int() const;
  double as_float() const;      // an int is converted
  const char* as_text() const;  // null for None
  Tensor as_tensor() const;     // the empty Tensor for None
  Tensors as_tensors() const;   // a list of tensors; for one tensor, that one
  /// The elements of a list.
  int size() const;
  const Value& operator[](int i) const;
  /// Calls code.
  Value operator()(std::initializer_list<Value> args) const;
  friend KASSETTE_API std::ostream& operator<<(std::ostream& os, const Value& value);

 private:
  Kind kind_;
  union {
    std::int64_t int_;
    double float_;
    void* object_;
  };
  friend struct kassette::ExternalBackendAccess;
};

/// One call of a K function. Arguments that the user left out have their default values. A tensor may belong to the
/// backend or to kassette. Numbers and nested lists are passed as such, C++ arrays as kassette tensors. Axes are a list
/// or None. A shape is a list of numbers, None and scalar tensors, or one tensor. Callables are code that is valid
/// during the call.
class KASSETTE_API Call {
 public:
  const char* name() const { return name_; }
  int size() const { return n_args_; }
  /// The i-th argument. Throws ValueError if i is beyond the end.
  const Value& operator[](int i) const;
  /// The result of the built-in backend for this call. Throws NotImplementedError if the built-in backend has no such
  /// function.
  Value built_in() const;
  [[deprecated("use built_in")]] Value native() const { return built_in(); }

 private:
  Call(const char* name, const Value* args, int n_args) : name_(name), args_(args), n_args_(n_args) {}
  const char* name_;
  const Value* args_;
  int n_args_;
  Value (*run_built_in_)(const void* call) = nullptr;
  const void* built_in_ = nullptr;
  friend struct kassette::ExternalBackendAccess;
};

/// A function of a backend. The name is that of the K function (switch_ with its underscore); operators are add,
/// subtract, multiply, divide, floor_divide, remainder, negative, less, less_equal, greater, greater_equal,
/// logical_and, logical_or, logical_not, and index for x[...]; kassette::matmul is matmul. The entry "*" is called for
/// every name that has no entry of its own.
struct Entry {
  const char* name;
  Value (*run)(const Call& call);
};
/// The functions that a backend provides; at least placeholder, variable and function. A library returns it from
/// `extern "C" const kassette::external::Table* kassette_external_backend()`; it must stay valid and unchanged while
/// the process runs.
struct Table {
  std::uint32_t abi;  // kAbi
  int n_entries;
  const Entry* entries;
};

/// Returns the table of a backend that a program registers.
using Factory = const Table* (*)();
/// Registers a backend of the program under a name that KERAS_BACKEND or keras.json can select. Call it before the
/// first K function. Throws ValueError for a name that kassette uses itself.
KASSETTE_API void register_backend(Name name, Factory factory);
/// Calls a function of the backend in use, even one that is not part of K. Throws NotImplementedError if the backend
/// has no function of that name.
KASSETTE_API Value call(Name name, std::initializer_list<Value> args = {});

/// How a backend's tensors are printed and released.
struct TensorKind {
  const char* backend;               // for messages
  void (*release)(void* handle);     // once, on whichever thread drops the last Tensor; must not throw
  Text (*text)(const void* handle);  // how it prints; may be null
};
/// A Tensor that stands for an object of the backend. It is opaque to the built-in backend, which refuses it with a
/// clear error. `shape` and `dtype` are what the Tensor reports; if unknown, they are Shape(nullptr, -1) and None.
/// `kind` must stay valid while the process runs.
KASSETTE_API Tensor wrap(void* handle, const TensorKind* kind, const Shape& shape, DType dtype);
/// The handle of x, or null if x is not of that kind.
KASSETTE_API void* unwrap(const Tensor& x, const TensorKind* kind);

/// While it lives, K functions and operators on this thread run in the built-in backend. The same holds inside a call
/// of a backend.
class KASSETTE_API BuiltInScope {
 public:
  BuiltInScope();
  ~BuiltInScope();
  BuiltInScope(const BuiltInScope&) = delete;
  BuiltInScope& operator=(const BuiltInScope&) = delete;

 private:
  bool old_;
};
using Native [[deprecated("use BuiltInScope")]] = BuiltInScope;

}  // namespace external
}  // namespace kassette

#endif  // KASSETTE_CORE_EXTERNAL_BACKEND_H
