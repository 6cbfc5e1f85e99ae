// benchmarks/python/calls.cpp - what calls.py times, in C++: seconds a call, as one JSON line. ./kassette run
// benchmarks/python/calls.cpp
#include <kassette/backend.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <vector>
namespace K = kassette::backend;
using kassette::Tensor;

/// The median over 21 samples of 2000 calls.
template <class F>
double seconds(F f) {
  std::vector<double> samples;
  for (int s = 0; s < 21; ++s) {
    auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < 2000; ++i) f();
    samples.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / 2000);
  }
  std::sort(samples.begin(), samples.end());
  return samples[10];
}

int main() {
  Tensor x = K::placeholder({K::None, 8}), y = K::placeholder({K::None, 8});
  std::vector<float> numbers(32, 1.0f);
  kassette::Function f = K::function({x}, {K::relu(x)});
  double square, add, call;
  {
    K::Scope scope(K::Scope::kSymbolic);
    square = seconds([&] { K::square(x); });
    add = seconds([&] { x + y; });
  }
  call = seconds([&] { f({kassette::from_memory(numbers.data(), kassette::float32, {4, 8})}); });
  std::cout << "{\"square\": " << square << ", \"add\": " << add << ", \"function\": " << call << "}\n";
}
