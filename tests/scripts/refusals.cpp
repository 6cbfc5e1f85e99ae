// tests/scripts/refusals.cpp - lines that must not compile, each with a part of the sentence that the compiler shows.
// refusals.sh compiles this file and reads the errors.
#include <kassette/backend.h>
#include <kassette/io.h>
#include <kassette/numpy.h>

#include <string>
#include <vector>

namespace K = kassette::backend;
namespace np = kassette::numpy;
using kassette::all;
using kassette::Tensor;
using kassette::Tensors;

Tensor make();

// clang-format off
void lines(Tensor x, Tensor y, Tensors list, kassette::NamedTensors named) {
  // what would change nothing
  x[0] = y;                                   // this would change nothing
  x(all, 0) = y;                              // this would change nothing
  x["..., 0"] = 1 * y;                        // this would change nothing
  x + y = y;                                  // this would change nothing
  K::zeros({2}) = y;                          // this would change nothing
  std::move(list)[0] = y;                     // this would change nothing
  make() = make();                            // this would change nothing
  x.dtype() = kassette::float64;              // x = K::cast(x, d)
  x.device() = kassette::cpu;                 // x = x.to(d)
  x.shape() = y.shape();                      // x = K::reshape(x, s)
  x.shape()[0] = y.shape()[0];                // x = K::reshape(x, {n
  // what would dangle
  (x + 1).data<float>();                      // name the tensor first
  x[0].data<float>();                         // name the tensor first
  K::eval(x).data(kassette::float32);         // name it first
  kassette::load_npz("f").metadata("k");      // name the list first
  // tensors and numbers
  Tensor a = {1, 2, 3};                       // K::constant({1, 2, 3})
  Tensor b{1.5, 2};                           // K::constant({1, 2, 3})
  Tensor c = {{1, 2}, {3, 4}};                // K::constant({{1, 2}, {3, 4}})
  x = {1, 2, 3};                              // K::constant({1, 2, 3})
  double d(x);                                // x.item<double>()
  static_cast<float>(x);                      // x.item<double>()
  if (x) return;                              // .item<bool>()
  if (!K::all(x > 0)) return;                 // .item<bool>()
  bool e = x && y;                            // .item<bool>()
  x == y;                                     // K::equal(x, y)
  x != 1;                                     // K::not_equal(x, y)
  x[true];                                    // an index is an integer
  x[1.5];                                     // an index is an integer
  // shapes, lists and other libraries' names
  K::zeros(2, 3);                             // K::zeros({2, 3})
  K::ones(2, 3);                              // K::zeros({2, 3})
  K::eye(2, 3);                               // K::zeros({2, 3})
  K::placeholder(2, 3);                       // K::placeholder({2, 3})
  K::random_normal(3, 3);                     // K::random_normal({2, 3})
  K::random_uniform(x.size(), 2);             // K::random_uniform({2, 3})
  K::random_uniform(3, 0, 1);                 // K::random_uniform({2, 3})
  K::random_binomial(2, 3);                   // K::random_binomial({2, 3}, 0.5)
  K::truncated_normal(2u, 3ul, 1.0);          // K::truncated_normal({2, 3})
  K::concatenate(x, y);                       // K::concatenate({x, y}, axis)
  K::concatenate(x + 1, y, 0);                // K::concatenate({x, y}, axis)
  K::stack(x, y, x);                          // K::stack({x, y}, axis)
  K::where(x > 0, x, 0);                      // K::switch_(condition, x, y)
  K::where(x > 0, {1, 2}, {3, 4});            // K::switch_(condition, x, y)
  np::zeros(2, 3);                            // a shape is one argument
  np::empty(2, 3);                            // a shape is one argument
  np::random::standard_normal(2, 3);          // a shape is one argument
  np::random::rand(2, 3);                     // np::random::random({2, 3})
  np::random::randn(2, 3);                    // np::random::standard_normal({2, 3})
  np::random::randint(0, 10, 5);              // np::random::integers(low, high, size)
  np::array(1, 2, 3);                         // np::array({1, 2, 3})
  np::reshape(x, 2, 3);                       // np::reshape(x, {2, 3})
  np::broadcast_to(x, 2, 3);                  // np::broadcast_to(x, {2, 3})
  np::tile(x, 2, 3);                          // np::tile(x, {2, 3})
  np::transpose(x, 1, 0, 2);                  // np::transpose(x, {1, 0})
  np::permute_dims(x, 1, 0);                  // np::permute_dims(x, {1, 0})
  np::concatenate(x, y);                      // np::concatenate({x, y}, axis)
  np::concat(x, y + 1, 0);                    // np::concat({x, y}, axis)
  np::stack(x, y, x);                         // np::stack({x, y}, axis)
  np::hstack(x, y);                           // np::hstack({x, y})
  np::vstack(x, y);                           // np::vstack({x, y})
}
// clang-format on
