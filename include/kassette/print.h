// include/kassette/print.h - how tensors print, and pieces of text that the library hands out.
#ifndef KASSETTE_CORE_PRINT_H
#define KASSETTE_CORE_PRINT_H

#include <kassette/api.h>
#include <kassette/kept.h>

namespace kassette {

/// A piece of text that a call returns, owned by this object; an object whose bytes are all 0 is the empty text. It is
/// accepted wherever a Name is.
class KASSETTE_API Text {
 public:
  Text() noexcept : chars_(nullptr) {}
  /// A copy of the characters.
  explicit Text(Name text);
  Text(const Text& other);
  Text(Text&& other) noexcept : chars_(other.chars_) { other.chars_ = nullptr; }
  Text& operator=(const Text& other);
  Text& operator=(Text&& other) noexcept;
  ~Text();
  /// Never null.
  const char* c_str() const { return chars_ ? chars_ : ""; }
  std::size_t size() const;
  bool empty() const { return size() == 0; }
  friend KASSETTE_API bool operator==(const Text& a, const Name& b);
  // In C++20 the rewritten candidates of the operator above would make Text == Text ambiguous.
  friend bool operator==(const Text& a, const Text& b) { return a == Name(b); }
  friend bool operator!=(const Text& a, const Name& b) { return !(a == b); }
  friend bool operator!=(const Text& a, const Text& b) { return !(a == b); }
  friend KASSETTE_API std::ostream& operator<<(std::ostream& os, const Text& text);

 private:
  char* chars_;
};

/// When floats print as 1.5e+03. `automatic` is NumPy's rule: above 10^8 (less for types of fewer digits), below 10^-4,
/// or if the largest is over 1000 times the smallest. `suppress` applies the first of these only, like NumPy's
/// suppress=True.
enum class SciMode : std::uint8_t { automatic, suppress, never, always };

/// How tensors print; names and defaults are NumPy's.
struct PrintOptions {
  Named only_by_name{0};
  int precision = 8;  // digits after the point, at most
  SciMode sci_mode = SciMode::automatic;
  bool details = true;            // operator<< closes with shape, dtype and device
  std::int64_t threshold = 1000;  // above so many elements only the edges are shown
  int edgeitems = 3;
  int linewidth = 75;
  friend KASSETTE_API std::ostream& operator<<(std::ostream& os, const PrintOptions& options);
};
/// The options that operator<< uses, in all threads.
KASSETTE_API PrintOptions print_options();
/// set_print_options({.precision = 3}): options that are not named get their defaults. Throws ValueError for a negative
/// number.
KASSETTE_API void set_print_options(const PrintOptions& options);

/// A callable that receives each line that K::print_tensor writes, without its newline.
using PrintSink = KeptCallable<void(const char* line)>;
/// Sets where K::print_tensor writes from now on, in all threads; None is standard output. Returns the previous sink.
KASSETTE_API PrintSink set_print_sink(const PrintSink& sink);

/// The elements as NumPy's str() writes them, without dtype and device. Throws ValueError for a symbolic tensor.
KASSETTE_API Text array_text(const Tensor& x);
KASSETTE_API Text array_text(const Tensor& x, const PrintOptions& options);

}  // namespace kassette

#endif  // KASSETTE_CORE_PRINT_H
