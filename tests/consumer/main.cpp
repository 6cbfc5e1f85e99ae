// tests/consumer/main.cpp - a program outside our tree: values, printing, and an error caught by type.
#include <kassette/backend.h>

#include <iostream>
#include <sstream>

namespace K = kassette::backend;

int main() {
  const kassette::Tensor x = K::constant({{1, 2, 3}, {4, 5, 6}}) + 1.0;
  std::cout << x << '\n';
  if (x.to_vector<float>().size() != 6 || x.data<float>()[5] != 7) return 1;
  try {
    K::constant({{1, 2}, {3}});
  } catch (const kassette::ValueError& error) {
    std::cout << error.what() << '\n';
    return 0;
  }
  return 2;
}
