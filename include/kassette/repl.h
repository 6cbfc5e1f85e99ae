// include/kassette/repl.h - values shown at a prompt: `kassette repl`, cling, clang-repl. Opt-in: <kassette/repl.h>.
#ifndef KASSETTE_REPL_H
#define KASSETTE_REPL_H
#include <iosfwd>
#include <type_traits>
#include <utility>
#ifdef __CLING__
#include <string>
#endif

#include <kassette/backend.h>
#include <kassette/inspect.h>
#include <kassette/interrupt.h>
#include <kassette/runtime.h>

namespace kassette {

class NamedTensors;  // <kassette/io.h>
class Profile;       // <kassette/profile.h>
namespace distributed {
class World;  // <kassette/distributed.h>
}
namespace testing {
struct Comparison;  // <kassette/testing.h>
}
namespace external {
class Value;  // <kassette/external_backend.h>
}

/// The functions that a prompt calls to show the value of a line. They are compiled in the library, so that a prompt
/// does not have to compile them.
namespace repl {

// Each writes the value and a newline to standard output; if `inside` is given, it gets the text instead, as an element
// of something else and without a newline.
KASSETTE_API void show(const Tensor& value, std::ostream* inside = nullptr);
KASSETTE_API void show(const Tensors& value, std::ostream* inside = nullptr);
KASSETTE_API void show(const NamedTensors& value, std::ostream* inside = nullptr);
KASSETTE_API void show(const Shape& value, std::ostream* inside = nullptr);
KASSETTE_API void show(Extent value, std::ostream* inside = nullptr);
KASSETTE_API void show(DType value, std::ostream* inside = nullptr);
KASSETTE_API void show(Device value, std::ostream* inside = nullptr);
KASSETTE_API void show(NoneType value, std::ostream* inside = nullptr);
KASSETTE_API void show(Half value, std::ostream* inside = nullptr);
KASSETTE_API void show(BFloat16 value, std::ostream* inside = nullptr);
/// A Text without quotes: mostly it is the printed form of an array.
KASSETTE_API void show(const Text& value, std::ostream* inside = nullptr);
KASSETTE_API void show(const PrintOptions& value, std::ostream* inside = nullptr);
KASSETTE_API void show(const KeptObject& value, std::ostream* inside = nullptr);
KASSETTE_API void show(const MemoryStats& value, std::ostream* inside = nullptr);
KASSETTE_API void show(const Description& value, std::ostream* inside = nullptr);
KASSETTE_API void show(const MemoryReport& value, std::ostream* inside = nullptr);
KASSETTE_API void show(const Picture& value, std::ostream* inside = nullptr);
KASSETTE_API void show(const Profile& value, std::ostream* inside = nullptr);
KASSETTE_API void show(const Drawing& value, std::ostream* inside = nullptr);
KASSETTE_API void show(const Timing& value, std::ostream* inside = nullptr);
KASSETTE_API void show(const Function& value, std::ostream* inside = nullptr);
KASSETTE_API void show(const distributed::World& value, std::ostream* inside = nullptr);
KASSETTE_API void show(const backend::Step& value, std::ostream* inside = nullptr);
KASSETTE_API void show(const backend::RnnResult& value, std::ostream* inside = nullptr);
KASSETTE_API void show(const backend::NormalizedBatch& value, std::ostream* inside = nullptr);
KASSETTE_API void show(const backend::CtcDecoded& value, std::ostream* inside = nullptr);
KASSETTE_API void show(const backend::SparseParts& value, std::ostream* inside = nullptr);
KASSETTE_API void show(const testing::Comparison& value, std::ostream* inside = nullptr);
KASSETTE_API void show(const external::Value& value, std::ostream* inside = nullptr);

/// Numbers with as many digits as are needed to read them back, and text in quotes.
KASSETTE_API void show(bool value, std::ostream* inside = nullptr);
KASSETTE_API void show(char value, std::ostream* inside = nullptr);
KASSETTE_API void show(signed char value, std::ostream* inside = nullptr);
KASSETTE_API void show(unsigned char value, std::ostream* inside = nullptr);
KASSETTE_API void show(short value, std::ostream* inside = nullptr);
KASSETTE_API void show(unsigned short value, std::ostream* inside = nullptr);
KASSETTE_API void show(int value, std::ostream* inside = nullptr);
KASSETTE_API void show(unsigned value, std::ostream* inside = nullptr);
KASSETTE_API void show(long value, std::ostream* inside = nullptr);
KASSETTE_API void show(unsigned long value, std::ostream* inside = nullptr);
KASSETTE_API void show(long long value, std::ostream* inside = nullptr);
KASSETTE_API void show(unsigned long long value, std::ostream* inside = nullptr);
KASSETTE_API void show(float value, std::ostream* inside = nullptr);
KASSETTE_API void show(double value, std::ostream* inside = nullptr);
KASSETTE_API void show(long double value, std::ostream* inside = nullptr);
KASSETTE_API void show(const char* value, std::ostream* inside = nullptr);
KASSETTE_API void show(std::nullptr_t value, std::ostream* inside = nullptr);

template <class T>
void show(const T& value, std::ostream* inside = nullptr);

/// A stream shows nothing: what was written to it has been seen.
inline void show(const std::ostream&, std::ostream* = nullptr) {}

/// Saves this thread's scope state (recording, learning phase, device, ...), and restores it after a longjmp, which
/// runs no destructors.
KASSETTE_API void remember_scopes();
KASSETTE_API void return_to_scopes();
/// Whether a longjmp out of the library is safe now: no other thread is working for this one, and it is not freeing
/// history. Safe in signal handlers.
KASSETTE_API bool may_jump() noexcept;
/// Tells profiles and detect_nan where the user's lines are, for code that is in no file: `find` returns the line of a
/// return address, "<stdin>:3", or an empty text. For another language, `caller` returns what stands for the line that
/// calls now, in place of an address; null if there is none.
KASSETTE_API void set_find_line(Text (*find)(const void* address), const void* (*caller)() = nullptr);

/// What knows a class that nobody taught to print, or an enumeration, by the name of its type: writes the value, or
/// returns false. A prompt on a compiler does.
using Describe = bool (*)(const char* type, const void* value, std::ostream& out);
KASSETTE_API void set_describe(Describe describe);

namespace detail {

/// A text that is being put together. `what` is __PRETTY_FUNCTION__ of a function whose only template parameter is T.
class KASSETTE_API Sheet {
 public:
  explicit Sheet(std::ostream* inside);
  /// Writes the text to standard output, unless it is part of another one.
  ~Sheet();
  Sheet(const Sheet&) = delete;
  Sheet& operator=(const Sheet&) = delete;
  std::ostream& stream() { return *stream_; }
  void add(const char* text);
  void quoted(const char* text, std::size_t size);
  void address(const void* pointer);
  void object(const char* what, const void* pointer);
  /// False if nobody knows what its enumerators are called.
  bool enumerator(const char* what, const void* pointer);
  /// False once enough elements are written; then it also writes "..." and how many there are in all.
  bool room(std::int64_t index, std::int64_t size);
  /// One more form of the value, for a notebook.
  void form(const char* mime, const char* data, std::size_t size);
  /// False where nobody would look at another form.
  bool takes_forms() const { return forms_; }

 private:
  std::ostream* stream_;
  bool whole_;
  void* forms_;  // null: none are wanted
};

struct Any {  // the last choice of an overload
  template <class T>
  Any(const T&) {}
};
// What kind of thing a T is: text, a tuple, an optional, a pointer or an array (put), something with an operator<<, a
// range or an enumeration, or none of these.
template <class T>
auto put(Sheet& s, const T& v, int) -> decltype(v.data(), v.length(), void()) {
  s.quoted(v.data(), v.length());
}
using std::get;
template <class T, std::size_t... i>
void put_members(Sheet& s, const T& v, std::index_sequence<i...>) {
  s.add("{");
  (..., (s.add(i ? ", " : ""), show(get<i>(v), &s.stream())));
  s.add("}");
}
template <class T, class = void>
struct IsRange : std::false_type {};
template <class T>
struct IsRange<T, decltype(static_cast<void>(std::declval<const T&>().begin()))> : std::true_type {};
template <class T, std::enable_if_t<!IsRange<T>::value, int> = 0>
auto put(Sheet& s, const T& v, int) -> decltype(std::tuple_size<T>::value, void()) {
  put_members(s, v, std::make_index_sequence<std::tuple_size<T>::value>());
}
template <class T>
auto put(Sheet& s, const T& v, int) -> decltype(v.has_value(), *v, void()) {
  if (v.has_value()) show(*v, &s.stream());
  else s.add("nullopt");
}
template <class T>
auto put(Sheet& s, const T& v, int) -> decltype(*v, v.get(), void()) {
  s.address(v.get());
}
template <class T, std::size_t n>
void put(Sheet& s, const T (&v)[n], int) {
  s.add("{");
  for (std::size_t i = 0; i < n && s.room(static_cast<std::int64_t>(i), static_cast<std::int64_t>(n)); ++i) {
    if (i) s.add(", ");
    show(v[i], &s.stream());
  }
  s.add("}");
}
template <class T>
void put(Sheet& s, T* const& v, int) {
  s.address(reinterpret_cast<const void*>(v));
}
template <class T>
auto put_range(Sheet& s, const T& v, int) -> decltype(v.begin(), v.end(), v.size(), void()) {
  s.add("{");
  std::int64_t i = 0, size = static_cast<std::int64_t>(v.size());
  for (const auto& element : v) {
    if (!s.room(i, size)) break;
    if (i++) s.add(", ");
    show(element, &s.stream());
  }
  s.add("}");
}
template <class T, std::enable_if_t<std::is_enum<T>::value, int> = 0>
void put_range(Sheet& s, const T& v, int) {
  if (!s.enumerator(__PRETTY_FUNCTION__, &v)) show(static_cast<std::underlying_type_t<T>>(v), &s.stream());
}
template <class T>
void put_range(Sheet& s, const T& v, Any) {
  s.object(__PRETTY_FUNCTION__, &v);
}
/// Not for lambdas: operator<< would convert a lambda to a function pointer, and that to a bool.
template <class T, std::enable_if_t<!(std::is_class<T>::value && std::is_convertible<T, bool>::value), int> = 0>
auto put_own(Sheet& s, const T& v, int) -> decltype(s.stream() << v, void()) {
  s.stream() << v;
}
template <class T>
void put_own(Sheet& s, const T& v, Any) {
  put_range(s, v, 0);
}
/// The forms that mime_bundle_repr(v) gives, where there is such a function beside T.
template <class T>
auto put_forms(Sheet& s, const T& v, int) -> decltype(mime_bundle_repr(v), void()) {
  if (!s.takes_forms()) return;
  for (const auto& [mime, data] : mime_bundle_repr(v)) s.form(&mime[0], data.data(), data.size());
}
template <class T>
void put_forms(Sheet&, const T&, Any) {}
template <class T>
auto put_any(Sheet& s, const T& v, int) -> decltype(put(s, v, 0), void()) {
  put(s, v, 0);
}
template <class T>
void put_any(Sheet& s, const T& v, Any) {
  put_own(s, v, 0);
}

}  // namespace detail

/// Containers, pairs, optionals, pointers, enumerations, and whatever has operator<<.
template <class T>
void show(const T& value, std::ostream* inside) {
  detail::Sheet sheet(inside);
  if constexpr (std::is_function<T>::value) sheet.add("a function: name(...) calls it, ?name shows what it does");
  else {
    detail::put_any(sheet, value, 0);
    detail::put_forms(sheet, value, 0);
  }
}

// ---- the last value that was shown: `_` -----------------------------------------------------------------------------

namespace detail {

/// Keeps a value instead of the one before. `destroy` ends its life.
KASSETTE_API void keep_last(void* value, void (*destroy)(void*));
KASSETTE_API void* last_value() noexcept;

/// Whether a T can be copied; a container says so whatever is in it.
template <class T, class = void>
struct IsCopied : std::is_copy_constructible<T> {};
template <class T>
struct IsCopied<T, std::void_t<typename T::value_type>>
    : std::integral_constant<bool,
                             std::is_copy_constructible<T>::value && (std::is_same<typename T::value_type, T>::value ||
                                                                      IsCopied<typename T::value_type>::value)> {};

// Shows a value, and keeps a copy of it, whose type is what this returns a pointer to; of what cannot be copied,
// nothing. The usual types are compiled in the library, as those of show() are.
KASSETTE_API Tensor* show_and_keep(const Tensor& value);
KASSETTE_API Shape* show_and_keep(const Shape& value);
KASSETTE_API bool* show_and_keep(const bool& value);
KASSETTE_API int* show_and_keep(const int& value);
KASSETTE_API long* show_and_keep(const long& value);
KASSETTE_API unsigned long* show_and_keep(const unsigned long& value);
KASSETTE_API float* show_and_keep(const float& value);
KASSETTE_API double* show_and_keep(const double& value);
template <class T, class... Kept>
constexpr bool is_any = (std::is_same<std::remove_cv_t<std::remove_reference_t<T>>, Kept>::value || ...);
template <class T>
using NotInLibrary = std::enable_if_t<!is_any<T, Tensor, Shape, bool, int, long, unsigned long, float, double>, int>;
template <class T, NotInLibrary<T> = 0>
auto show_and_keep(T&& value) {
  using Kept = std::remove_cv_t<std::remove_reference_t<T>>;
  show(value);
  if constexpr (std::is_object<Kept>::value && !std::is_array<Kept>::value && !std::is_abstract<Kept>::value &&
                IsCopied<Kept>::value) {
    keep_last(new Kept(static_cast<T&&>(value)), [](void* kept) { delete static_cast<Kept*>(kept); });
    return static_cast<Kept*>(nullptr);
  } else {
    keep_last(nullptr, nullptr);
    return static_cast<void*>(nullptr);
  }
}

}  // namespace detail

}  // namespace repl
}  // namespace kassette

#ifdef __CLING__
// cling looks for cling::printValue(const T*) by its qualified name.
namespace cling {
KASSETTE_API std::string printValue(const kassette::Tensor* value);
KASSETTE_API std::string printValue(const kassette::Tensors* value);
KASSETTE_API std::string printValue(const kassette::NamedTensors* value);
KASSETTE_API std::string printValue(const kassette::Shape* value);
KASSETTE_API std::string printValue(const kassette::Extent* value);
KASSETTE_API std::string printValue(const kassette::DType* value);
KASSETTE_API std::string printValue(const kassette::Device* value);
KASSETTE_API std::string printValue(const kassette::NoneType* value);
KASSETTE_API std::string printValue(const kassette::Half* value);
KASSETTE_API std::string printValue(const kassette::BFloat16* value);
KASSETTE_API std::string printValue(const kassette::Text* value);
KASSETTE_API std::string printValue(const kassette::PrintOptions* value);
KASSETTE_API std::string printValue(const kassette::KeptObject* value);
KASSETTE_API std::string printValue(const kassette::MemoryStats* value);
KASSETTE_API std::string printValue(const kassette::Description* value);
KASSETTE_API std::string printValue(const kassette::MemoryReport* value);
KASSETTE_API std::string printValue(const kassette::Picture* value);
KASSETTE_API std::string printValue(const kassette::Profile* value);
KASSETTE_API std::string printValue(const kassette::Drawing* value);
KASSETTE_API std::string printValue(const kassette::Timing* value);
KASSETTE_API std::string printValue(const kassette::Function* value);
KASSETTE_API std::string printValue(const kassette::distributed::World* value);
KASSETTE_API std::string printValue(const kassette::backend::Step* value);
KASSETTE_API std::string printValue(const kassette::backend::RnnResult* value);
KASSETTE_API std::string printValue(const kassette::backend::NormalizedBatch* value);
KASSETTE_API std::string printValue(const kassette::backend::CtcDecoded* value);
KASSETTE_API std::string printValue(const kassette::backend::SparseParts* value);
KASSETTE_API std::string printValue(const kassette::testing::Comparison* value);
KASSETTE_API std::string printValue(const kassette::external::Value* value);
}  // namespace cling
namespace kassette {
// For elements of std containers, cling looks here. The templates let cling::printValue win where both are seen.
KASSETTE_API std::string printValue(const Tensor* value, const void*);
KASSETTE_API std::string printValue(const Shape* value, const void*);
template <class = void>
std::string printValue(const Tensor* value) {
  return printValue(value, nullptr);
}
template <class = void>
std::string printValue(const Shape* value) {
  return printValue(value, nullptr);
}
}  // namespace kassette
#endif

#endif  // KASSETTE_REPL_H
