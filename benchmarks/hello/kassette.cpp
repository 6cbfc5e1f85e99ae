#include <iostream>

#include <kassette/backend.h>

namespace K = kassette::backend;
using kassette::Tensor;

int main() {
  Tensor w = K::variable({{1.0, 1.0}, {1.0, 1.0}});
  Tensor loss = K::sum(K::dot(w, w));
  std::cout << loss << '\n' << K::gradients(loss, {w})[0] << '\n';
}
