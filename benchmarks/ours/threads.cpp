// Work of growing size, for one thread beside two: benchmarks/threads.py runs and compares them.
#include <string>

#include "../timer.h"
#include "rows.h"

using bench::row;

void thread_rows() {
  for (int k = 14; k <= 24; ++k) {
    const std::string size = ".p" + std::to_string(k);
    const int n = 1 << k;
    row("threads.dot" + size, [=] {  // n multiply-adds of a batch of 32
      const int inner = 1 << (k - 5) / 2, columns = n / 32 / inner;
      return [a = uniform(32, inner), b = uniform(inner, columns)] { Tensor c = K::dot(a, b); };
    });
    row("threads.dot_square" + size, [=] {
      const int side = 1 << k / 3, rest = n / side / side;
      return [a = uniform(side, side), b = uniform(side, rest)] { Tensor c = K::dot(a, b); };
    });
    row("threads.add" + size, [=] { return [a = uniform(n), b = uniform(n)] { Tensor c = a + b; }; });
    row("threads.relu" + size, [=] { return [a = uniform(n)] { Tensor c = K::relu(a); }; });
    row("threads.greater" + size, [=] { return [a = uniform(n), b = uniform(n)] { Tensor c = K::greater(a, b); }; });
    row("threads.cast" + size, [=] { return [a = uniform(n)] { Tensor c = K::cast(a, "float64"); }; });
    row("threads.zeros" + size, [=] { return [like = uniform(n)] { Tensor c = K::zeros_like(like); }; });
    row("threads.slice" + size,
        [=] { return [a = uniform(n / 64, 128)] { Tensor c = a(kassette::all, kassette::slice(0, 64)); }; });
    row("threads.gather" + size,
        [=] { return [a = uniform(1000, 128), i = integers(1000, n / 128)] { Tensor c = K::gather(a, i); }; });
    row("threads.exp" + size, [=] { return [a = uniform(n)] { Tensor c = K::exp(a); }; });
    row("threads.sum" + size, [=] { return [a = uniform(n)] { Tensor c = K::sum(a); }; });
    row("threads.softmax" + size, [=] { return [a = uniform(n / 128, 128)] { Tensor c = K::softmax(a); }; });
    row("threads.transpose" + size, [=] { return [a = uniform(n / 128, 128)] { Tensor c = K::transpose(a); }; });
    row("threads.broadcast" + size,
        [=] { return [a = uniform(n / 128, 128), b = uniform(128)] { Tensor c = a + b; }; });
    row("threads.chain.fn" + size, [=] {
      const Tensor x = K::placeholder({K::None});
      return [a = uniform(n), f = K::function({x}, {K::tanh(x * 0.5 + 1.0) * x})] { Tensors y = f({a}); };
    });
  }
}
