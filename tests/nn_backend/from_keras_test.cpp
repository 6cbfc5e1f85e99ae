// tests/nn_backend/from_keras_test.cpp - the rows of docs/from_keras.md, against what Keras computes:
// tests/data/make_keras_rows.py.
#include <kassette/backend.h>

#include "tests/nn_backend/page_rows.h"

namespace K = kassette::backend;
using namespace kassette;
using namespace kassette::test;

namespace {

Tensors list(const K::RnnResult& r) { return {r.last_output, r.outputs, r.new_states[0]}; }

PageRows rows() {
  const Tensor m = input({2, 3}), p = input({3, 4}, 1), b = input({2, 3, 4}), c = input({2, 4, 5}, 2);
  const Tensor state = input({2, 4}, 3), mask = K::constant({{true, false, true}, {false, true, true}}, "bool");
  const auto step = [](const Tensor& x, const Tensors& states) {
    const Tensor y = x + states[0] * 0.5;
    return K::Step{y, {y}};
  };
  return {
      {"`K.sum(x, axis=1, keepdims=True)`", [=] { return Tensors{K::sum(b, 1, true)}; }},
      {"`K.sum(x, axis=[0, -1])`",
       [=] {
         return Tensors{K::sum(b, {0, -1})};
       }},
      {"`K.switch(c, a, b)`", [=] { return Tensors{K::switch_(m > 0, m, 2 * m)}; }},
      {"`x ** 2`, `x // y`",
       [=] {
         return Tensors{K::pow(b, 2), kassette::floor_divide(b, 0.75)};
       }},
      {"`x @ y`",
       [=] {
         return Tensors{K::dot(m, p), kassette::matmul(b, c)};
       }},
      {"`x[:, 1:3]`, `x[..., ::-1]`",
       [=] {
         return Tensors{b(all, slice(1, 3)), b["..., ::-1"]};
       }},
      {"`a, b, c = K.rnn(...)`", [=] { return list(K::rnn(step, b, {state})); }},
      {"`K.rnn(step, x, s, mask=m)`", [=] { return list(K::rnn(step, b, {state}, {.mask = mask})); }},
  };
}

// Rows about names and the form of a call.
const std::set<std::string> kWithoutNumber = {
    "`None`", "`(None, 784)`", "`'float32'`", "`if K.any(x):`", "a NumPy array",
};

}  // namespace

TEST_CASE("each row of the page for users of Keras gives what Keras gives", "[sources][keras]") {
  check_page("docs/from_keras.md", "| Python | C++ |", "tests/data/keras_rows.txt", rows(), kWithoutNumber);
}
