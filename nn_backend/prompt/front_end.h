// nn_backend/prompt/front_end.h - the forms of values that a notebook shows.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include <kassette/display.h>

namespace kassette::repl {

/// Whether values go to a front end rather than to standard output.
bool has_front_end() noexcept;

/// The forms of one value.
class Forms {
 public:
  /// The last of a mime type counts.
  void add(std::string mime, std::string data);
  /// Hands them to the front end, with a text where none was added, as the value or display that this thread is at.
  void deliver(std::string text) const;
  void deliver(std::string text, Shown::Kind kind, std::int64_t id) const;

 private:
  std::vector<std::pair<std::string, std::string>> forms_;
};

/// An id for a place that is replaced.
std::int64_t fresh_display() noexcept;

/// A picture as PNG, a small image with larger pixels; empty for the empty picture.
std::string png_of(const Picture& picture);
/// Whether the terminal on standard output shows PNG by the protocol of kitty.
bool terminal_shows_png();
/// Writes a PNG to such a terminal.
void write_to_terminal(const std::string& png);

// Adds what there is beside the text.
void add_rich(const Tensor& x, Forms& forms);
void add_rich(const Description& d, Forms& forms);
void add_rich(const Picture& picture, Forms& forms);
void add_rich(const Drawing& drawing, Forms& forms);
template <class T>
void add_rich(const T&, Forms&) {}

}  // namespace kassette::repl
