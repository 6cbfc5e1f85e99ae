// nn_backend/settings.h - keras.json, the file that Python's Keras and kassette share.
#pragma once
#include <string>

#include <kassette/dtype.h>

namespace kassette {
namespace backend {

/// What the file and KERAS_BACKEND say, defaults where they say nothing.
struct Settings {
  DType floatx = float32;
  double epsilon = 1e-7;
  std::string backend = "tensorflow";
  bool channels_first = false;
  std::string source;  // what named the backend: a file or a variable, for messages
};

/// A given name behind those of the name scopes around it.
std::string scoped_name(Name name);
/// False inside manual_variable_initialization(true).
bool initialises_variables();

/// KERAS_HOME, else ~/.keras, or /tmp/.keras where the home cannot be written; a leading ~ is expanded.
std::string keras_directory();

/// Reads the file; where there is none, writes one with the defaults and never again. A file that others could write is not
/// read: a warning says so. In a program with more rights than its user neither file nor environment counts. Throws
/// RuntimeError where the file cannot be read, and what apply_settings() throws.
Settings read_settings();

/// What the text of a file says; `file` is its name in messages. Malformed JSON counts as {}. Throws AssertionError on a bad
/// value, TypeError where the text is no object, ValueError for a backend that is a path.
void apply_settings(const std::string& text, const std::string& file, Settings& s);

}  // namespace backend
}  // namespace kassette
