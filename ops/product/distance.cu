// ops/product/distance.cu - distances between all rows of two matrices, on CUDA. A thread computes one, in the order of
// the CPU.
#include <iterator>

#include "ops/elementwise/elementwise.cuh"
#include "ops/engine/teams.cuh"

namespace kassette::cuda {
namespace {

template <class T>
__global__ void distance_each(const T* x, const T* y, std::int64_t m, std::int64_t n, std::int64_t width,
                              std::int64_t total, T* out) {
  using C = Wide<T>;
  for (std::int64_t t = Thread::first(); t < total; t += Thread::step()) {
    const std::int64_t row = t / n;
    const T *a = x + row * width, *b = y + (row / m * n + t % n) * width;
    C sum = 0;
    for (std::int64_t k = 0; k < width; ++k) {
      const C apart = load(a + k) - load(b + k);
      sum += apart * apart;
    }
    store(out + t, m::sqrt(sum));
  }
}
void run_cdist(const OpCall& call) {
  const TensorSpec &x = call.spec(0), &y = call.spec(1);
  const std::int64_t total = call.out[0]->numel();
  if (total == 0) return;
  for_dtype<Domain::floats>(x.dtype, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    launch(call.op.name, device_of(call.device), blocks_for(total), distance_each<T>, call.in[0].as<T>(),
           call.in[1].as<T>(), x.dims[x.rank - 2], y.dims[y.rank - 2], x.dims[x.rank - 1], total, call.out_as<T>());
  });
}

const PluginKernel kernels[] = {{"cdist", run_cdist}};

}  // namespace

Kernels distance_kernels() { return {kernels, static_cast<int>(std::size(kernels))}; }

}  // namespace kassette::cuda
