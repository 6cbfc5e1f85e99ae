// tests/nn_backend/keras_cases.h - reads tests/data/keras_cases.txt: results of tf.keras.backend for given tensors.
#pragma once
#include <kassette/backend.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/sources.h"

namespace kassette::test {

/// A tensor of the file; it has no elements if only its shape is known.
struct GivenTensor {
  DType dtype;
  Shape shape;
  std::string elements;

  Tensor value() const {
    if (dtype.is_float()) return tensor<double>([](const char* s, char** end) { return std::strtod(s, end); });
    return tensor<std::int64_t>(
        [](const char* s, char** end) { return static_cast<std::int64_t>(std::strtoll(s, end, 10)); });
  }
  /// The shape with all sizes unknown.
  Shape of_unknown_sizes() const {
    std::vector<std::int64_t> dims(static_cast<std::size_t>(shape.size()), -1);
    return Shape(dims.data(), shape.rank());
  }

 private:
  template <class T, class Parse>
  Tensor tensor(Parse parse) const {
    std::vector<T> v;
    for (const char* at = elements.c_str(); *at;) {
      char* end;
      v.push_back(parse(at, &end));
      at = *end == ',' ? end + 1 : end;
    }
    return backend::constant(v, dtype, shape);
  }
};

/// An argument that is not a tensor: a number, a list, or None.
struct Argument {
  std::string name, text;
  bool is_none() const { return text == "None"; }
  bool is_list() const { return text[0] == '['; }
  /// A number as in Python: an int, unless it is written as a float.
  Scalar scalar() const {
    if (is_none()) return None;
    if (text.find_first_of(".enf") == std::string::npos) return std::atoi(text.c_str());
    return std::atof(text.c_str());
  }
  std::vector<int> list() const {
    std::vector<int> v;
    std::istringstream in(text.substr(is_list() ? 1 : 0, text.size() - (is_list() ? 2 : 0)));
    for (std::string word; std::getline(in, word, ',');) v.push_back(std::atoi(word.c_str()));
    return v;
  }
};

/// One line of the file.
struct KerasCase {
  std::string line, note, function, error;
  std::vector<Argument> arguments;
  std::vector<GivenTensor> in, gradients;  // a gradient without a dtype: no path
  GivenTensor out;
  bool is_static = false, has_gradients = false;

  const Argument* find(const char* name) const {
    for (const Argument& a : arguments)
      if (a.name == name) return &a;
    return nullptr;
  }
  int integer(const char* name, int otherwise) const {
    return find(name) ? std::atoi(find(name)->text.c_str()) : otherwise;
  }
  double real(const char* name, double otherwise) const {
    return find(name) ? std::atof(find(name)->text.c_str()) : otherwise;
  }
  Axes axes(const char* name, const Axes& otherwise = None) const {
    const Argument* a = find(name);
    if (!a) return otherwise;
    return a->is_none() ? Axes(None) : Axes(a->list());
  }
  Dims dims(const char* name) const { return find(name)->list(); }
};

inline GivenTensor parse_tensor(const std::string& word) {
  static const std::pair<const char*, DType> kNames[] = {
      {"f4", float32}, {"f8", float64}, {"f2", float16}, {"b2", bfloat16}, {"i1", int8}, {"i2", int16},
      {"i4", int32},   {"i8", int64},   {"u1", uint8},   {"u2", uint16},   {"b1", bool_}};
  GivenTensor t;
  for (const auto& [name, dtype] : kNames)
    if (word.compare(0, 2, name) == 0) t.dtype = dtype;
  std::size_t close = word.find(']');
  std::vector<std::int64_t> dims;
  std::istringstream in(word.substr(3, close - 3));
  int rank = 0;
  for (std::string size; std::getline(in, size, ','); ++rank) {
    if (size == "...") rank = -2;
    else dims.push_back(size == "?" ? -1 : std::atoll(size.c_str()));
  }
  t.shape = Shape(dims.data(), rank);
  if (close + 1 < word.size()) t.elements = word.substr(close + 2);
  return t;
}

inline KerasCase parse_case(const std::string& line) {
  KerasCase c;
  c.line = line;
  std::istringstream words(line);
  enum { head, result, gradients } at = head;
  for (std::string word; words >> word;) {
    if (word == "->") at = result;
    else if (word == "|") at = gradients, c.has_gradients = true;
    else if (at == gradients) c.gradients.push_back(word == "-" ? GivenTensor() : parse_tensor(word));
    else if (at == result && word.back() == '!') c.error = word.substr(0, word.size() - 1);
    else if (at == result) c.out = parse_tensor(word);
    else if (word == "static") c.is_static = true;
    else if (word[0] == '~') c.note = word.substr(1);
    else if (c.function.empty()) c.function = word;
    else if (word.size() > 2 && word[1] != '=' && word[2] == '[') c.in.push_back(parse_tensor(word));
    else c.arguments.push_back({word.substr(0, word.find('=')), word.substr(word.find('=') + 1)});
  }
  return c;
}

/// A step of a body: name(operands|argument=value).
struct BodyStep {
  KerasCase call;
  std::vector<int> operands;
};

/// Parses steps separated by semicolons.
inline std::vector<BodyStep> parse_body(const std::string& text) {
  std::vector<BodyStep> body;
  std::istringstream steps(text);
  for (std::string step; std::getline(steps, step, ';');) {
    BodyStep s;
    std::size_t open = step.find('(');
    s.call.function = step.substr(0, open);
    std::istringstream parts(step.substr(open + 1, step.size() - open - 2));
    std::string part;
    std::getline(parts, part, '|');
    s.operands = Argument{"", part}.list();
    while (std::getline(parts, part, '|'))
      s.call.arguments.push_back({part.substr(0, part.find('=')), part.substr(part.find('=') + 1)});
    body.push_back(std::move(s));
  }
  return body;
}

inline std::vector<KerasCase> cases_of(const std::filesystem::path& file) {
  std::vector<KerasCase> cases;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);)
    if (!line.empty() && line[0] != '#') cases.push_back(parse_case(line));
  return cases;
}

inline const std::vector<KerasCase>& keras_cases() {
  static const std::vector<KerasCase> all = cases_of(kSourceTree / "tests/data/keras_cases.txt");
  return all;
}

}  // namespace kassette::test
