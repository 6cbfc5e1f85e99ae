#include <iostream>

#include <mlx/mlx.h>

namespace mx = mlx::core;

int main() {
  auto loss = [](const mx::array& w) { return mx::sum(mx::matmul(w, w)); };
  mx::array w = mx::ones({2, 2});
  std::cout << loss(w).item<float>() << '\n' << mx::grad(std::function<mx::array(const mx::array&)>(loss))(w) << '\n';
}
