// tests/nn_backend/page.h - compares our output with that printed in a page of Keras' documentation:
// `CHECK(shows(K::eval(x), "array(...)"))`.
#pragma once
#include <kassette/backend.h>

#include <sstream>
#include <string>

namespace kassette::test {

/// Brackets and numbers of an array in one line, without the spaces and commas in which versions of NumPy differ.
inline std::string one_line(const std::string& s) {
  std::string out;
  for (char c : s) {
    bool space = c == ' ' || c == '\n' || c == ',';
    if (space && (out.empty() || out.back() == ' ' || out.back() == '[')) continue;
    if (c == ']' && !out.empty() && out.back() == ' ') out.pop_back();
    out += space ? ' ' : c;
  }
  while (!out.empty() && out.back() == ' ') out.pop_back();
  return out;
}

/// The text after `key` up to one of `end`.
inline std::string field(const std::string& s, const std::string& key, const char* end) {
  std::size_t at = s.find(key);
  if (at == std::string::npos) return "";
  at += key.size();
  return s.substr(at, s.find_first_of(end, at) - at);
}

/// A tensor: "array([[ 1.,  2.]], dtype=float32)" or "<tf.Tensor 'Shape_8:0' shape=(2,) dtype=int32>". NumPy leaves out
/// float64.
inline bool shows(const Tensor& x, const std::string& page) {
  if (page.rfind("<tf.Tensor", 0) == 0) {
    std::ostringstream shape;
    shape << x.shape();
    std::string value = field(page, "numpy=", ">");
    return shape.str() == "(" + field(page, "shape=(", ")") + ")" && x.dtype() == field(page, "dtype=", ",>") &&
           (value.empty() || array_text(x) == value);
  }
  std::size_t close = page.rfind(']');
  std::string dtype = field(page.substr(close), "dtype=", ")");
  return one_line(array_text(x).c_str()) == one_line(page.substr(6, close + 1 - 6)) &&
         x.dtype() == (dtype.empty() ? "float64" : dtype);
}

/// Anything else: 'float32', (2, 4, 5), 1e-07, True. Python's quotes are left out.
template <class T>
bool shows(const T& x, const std::string& page) {
  std::ostringstream out;
  if constexpr (std::is_same_v<T, bool>) out << (x ? "True" : "False");
  else out << x;
  bool quoted = page.size() > 1 && page.front() == '\'';
  return out.str() == (quoted ? page.substr(1, page.size() - 2) : page);
}

}  // namespace kassette::test
