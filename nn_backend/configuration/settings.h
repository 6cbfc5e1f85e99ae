// nn_backend/configuration/settings.h - reading keras.json, the configuration file that Python's Keras and kassette
// share.
#pragma once
#include <string>

#include <kassette/dtype.h>

namespace kassette::backend::detail {

/// The settings of keras.json and KERAS_BACKEND, with defaults for those that are not set.
struct Settings {
  DType floatx = float32;
  double epsilon = 1e-7;
  std::string backend = "tensorflow";
  bool channels_first = false;
  std::string source;  // the file or variable that named the backend, for messages
};

/// `name` prefixed with the names of the enclosing name scopes.
std::string scoped_name(Name name);
/// False inside manual_variable_initialization(true).
bool initialises_variables();

/// KERAS_HOME, else ~/.keras, or /tmp/.keras where the home cannot be written; a leading ~ is expanded.
std::string keras_directory();

/// Reads the file; if there is none, writes one with the defaults. A file that other users could have written is not
/// read, and a warning is logged. In a program with more rights than its user (elevated()) file and environment are
/// ignored. Throws RuntimeError if the file cannot be read, and the errors of apply_settings().
Settings read_settings();

/// Applies the text of a settings file to `s`; `file` is its name in messages. Malformed JSON counts as {}. Throws
/// AssertionError for a bad value, TypeError if the text is not an object, ValueError if the backend is a path.
void apply_settings(const std::string& text, const std::string& file, Settings& s);

}  // namespace kassette::backend::detail
