#include <iostream>

#include <torch/torch.h>

int main() {
  torch::Tensor w = torch::ones({2, 2}, torch::requires_grad());
  torch::Tensor loss = torch::matmul(w, w).sum();
  std::cout << loss.item<float>() << '\n' << torch::autograd::grad({loss}, {w})[0] << '\n';
}
