// include/kassette/display.h - values that are shown in a notebook, in several forms. Opt-in: <kassette/display.h>.
//
// A notebook shows the richest form of a value that it can: a picture, a table in HTML, text. Where there is no
// notebook, at a prompt or in a program, the text is printed.
#ifndef KASSETTE_DISPLAY_H
#define KASSETTE_DISPLAY_H
#include <cstdint>

#include <kassette/repl.h>

namespace kassette {
namespace repl {

/// One form of a value: its mime type, such as "text/plain" or "image/png", and its bytes.
struct Form {
  const char* mime;
  const char* data;
  std::int64_t size;
};

/// A value that is shown. `value`: the result of a line; `display`: what display() was given; `update`: it replaces
/// what was shown before under the same id; `clear`: no value, but what the cell has shown goes.
struct Shown {
  enum Kind : std::uint8_t { value, display, update, clear };
  Kind kind;
  std::int64_t id;  // of a Live; 0: never replaced
  const Form* forms;
  int n_forms;
};

/// What shows values; it may be called by any thread.
using FrontEnd = void (*)(const Shown& shown);
/// From now on show(), display(), Live and progress bars hand their values to front_end, and nothing to standard
/// output; nullptr: standard output again.
KASSETTE_API void set_front_end(FrontEnd front_end) noexcept;

namespace detail {
/// While it lives, show() of this thread is a display, or with an id one that may be replaced.
class KASSETTE_API Displaying {
 public:
  explicit Displaying(Shown::Kind kind = Shown::display, std::int64_t id = 0) noexcept;
  ~Displaying();
  Displaying(const Displaying&) = delete;
  Displaying& operator=(const Displaying&) = delete;

 private:
  Shown::Kind kind_;
  std::int64_t id_;
};
}  // namespace detail

/// Shows a value at once, wherever the call stands. A type of your own has the forms that a function
/// `mime_bundle_repr(v)`, found beside it, returns as pairs of mime type and text, and else its operator<<.
template <class T>
void display(const T& value) {
  detail::Displaying displaying;
  show(value);
}

/// Removes what the cell has shown and printed up to now, in a notebook.
KASSETTE_API void clear_output();

/// A place in the output whose value is replaced by each show(): a curve that is drawn anew while a model learns.
/// Without a notebook each is printed.
class KASSETTE_API Live {
 public:
  Live() noexcept;
  template <class T>
  void show(const T& value) {
    detail::Displaying displaying(next(), id_);
    repl::show(value);
  }

 private:
  Shown::Kind next() noexcept;
  std::int64_t id_;
  bool begun_ = false;
};

}  // namespace repl
}  // namespace kassette

#endif  // KASSETTE_DISPLAY_H
