// ops/sparse/sparse.cu - conversion of sparse tensors to dense ones, and products, on CUDA. The host has grouped the
// entries (ops/sparse/sparse_index.h), so that one thread or warp sums each result, always in the same order.
#include <iterator>

#include "devices/cuda/launch.cuh"
#include "ops/sparse/sparse_view.h"
#include "ops/engine/teams.cuh"

namespace kassette::cuda {
namespace {

/// Calls f with a part of the index of input 0, which must have entries. `dense_shape` is the number of the input with
/// the dense shape.
template <class F>
void with_index(const OpCall& call, int dense_shape, SparseView::Part part, F f) {
  host_services().with_sparse_index(
      call, dense_shape, part, [](void* state, const SparseView& v) { (*static_cast<F*>(state))(v); }, &f);
}
bool no_entries(const OpCall& call) { return call.spec(0).dims[0] == 0; }

// ---- conversion to dense, and reading at entries --------------------------------------------------------------------
template <class T>
__global__ void add_entries(SparseView v, const T* values, T* out) {
  for (std::int64_t i = Thread::first(); i < v.n; i += Thread::step()) {
    Wide<T> sum = Wide<T>(0);
    for (std::int64_t k = v.starts[i]; k < v.starts[i + 1]; ++k)
      sum = static_cast<Wide<T>>(sum + load(values + v.order[k]));
    store(out + v.elements[i], sum);
  }
}
void run_to_dense(const OpCall& call) {
  CudaDevice& device = device_of(call.device);
  device.zero(call.out[0]->data(), call.out[0]->bytes(), call.op.name);
  if (no_entries(call)) return;
  with_index(call, 2, SparseView::kElements, [&](const SparseView& v) {
    for_dtype<Domain::anything>(call.out[0]->dtype, [&](auto* p) {
      using T = std::remove_pointer_t<decltype(p)>;
      launch(call.op.name, device, blocks_for(v.n), add_entries<T>, v, call.in[1].as<T>(), call.out_as<T>());
    });
  });
}

template <class T>
__global__ void read_entries(SparseView v, const T* x, T* out) {
  for (std::int64_t i = Thread::first(); i < v.n; i += Thread::step())
    for (std::int64_t k = v.starts[i]; k < v.starts[i + 1]; ++k) out[v.order[k]] = x[v.elements[i]];
}
void run_gather(const OpCall& call) {
  if (no_entries(call)) return;
  with_index(call, 1, SparseView::kElements, [&](const SparseView& v) {
    for_size(call.out[0]->dtype.size(), [&](auto* p) {
      using T = std::remove_pointer_t<decltype(p)>;
      launch(call.op.name, device_of(call.device), blocks_for(v.n), read_entries<T>, v, call.in[2].as<T>(),
             call.out_as<T>());
    });
  });
}

// ---- products -------------------------------------------------------------------------------------------------------
/// The type in which products of a dtype are summed; integers wrap.
template <class T, bool = std::is_integral_v<T>>
struct Products {
  using Sum = Wide<T>;
  __device__ static Sum add(Sum a, Sum b, Sum sum, Cotangent which) {
    if ((which == Cotangent::a && a == Sum(0)) || (which == Cotangent::b && b == Sum(0))) return sum;
    if constexpr (sizeof(Sum) == 4) return fmaf(a, b, sum);
    else return fma(a, b, sum);
  }
};
template <class T>
struct Products<T, true> {
  using Sum = std::make_unsigned_t<std::conditional_t<(sizeof(T) < 4), int, T>>;
  __device__ static Sum add(Sum a, Sum b, Sum sum, Cotangent) { return a * b + sum; }
};

/// out[r, j] for a product with x of shape (others, width). A team sums the entries of line r.
template <class Team, class T>
__global__ void dot_lines(SparseView m, const T* values, const T* x, T* out, std::int64_t width, Cotangent which) {
  using P = Products<T>;
  using S = typename P::Sum;
  for (std::int64_t t = Team::first(); t < m.n * width; t += Team::step()) {
    const std::int64_t r = t / width, j = t - r * width;
    S sum = S(0);
    for (std::int64_t k = m.starts[r] + Team::lane(); k < m.starts[r + 1]; k += Team::kSize)
      sum = P::add(static_cast<S>(load(values + (m.order ? m.order[k] : k))),
                   static_cast<S>(load(x + m.others[k] * width + j)), sum, which);
    sum = Team::reduce(sum, Sum<S>());
    if (Team::lane() == 0) store(out + t, sum);
  }
}
/// out[k] is the dot product of row places[2 k] of x and row places[2 k + 1] of y. Rows have `width` elements.
template <class Team, class T>
__global__ void pair_products(SparseView m, const T* x, const T* y, T* out, std::int64_t width, Cotangent which) {
  using P = Products<T>;
  using S = typename P::Sum;
  for (std::int64_t k = Team::first(); k < m.count; k += Team::step()) {
    const T *a = x + m.places[2 * k] * width, *b = y + m.places[2 * k + 1] * width;
    S sum = S(0);
    for (std::int64_t j = Team::lane(); j < width; j += Team::kSize)
      sum = P::add(static_cast<S>(load(a + j)), static_cast<S>(load(b + j)), sum, which);
    sum = Team::reduce(sum, Sum<S>());
    if (Team::lane() == 0) store(out + k, sum);
  }
}
/// Calls f(Warp()) or f(Thread()), the team for each sum. `warp` must depend on shapes alone, since the bits of results
/// depend on it.
template <class F>
void with_members(bool warp, F f) {
  if (warp) f(Warp());
  else f(Thread());
}
std::int64_t columns(const TensorSpec& x) { return x.rank > 1 ? x.dims[1] : 1; }

void run_dot(const OpCall& call) {
  const std::int64_t width = columns(*call.out[0]);
  CudaDevice& device = device_of(call.device);
  if (call.out[0]->numel() == 0 || no_entries(call))
    return device.zero(call.out[0]->data(), call.out[0]->bytes(), call.op.name);
  with_index(call, 2, call.attrs.as<SparseDotAttrs>().transposed ? SparseView::kColumns : SparseView::kRows,
             [&](const SparseView& m) {
               for_dtype<Domain::numbers>(call.out[0]->dtype, [&](auto* p) {
                 using T = std::remove_pointer_t<decltype(p)>;
                 with_members(width < 8 && m.count / m.n >= kWarp, [&](auto team) {
                   using Team = decltype(team);
                   launch(call.op.name, device, blocks_for(m.n * width * Team::kSize), dot_lines<Team, T>, m,
                          call.in[1].as<T>(), call.in[3].as<T>(), call.out_as<T>(), width,
                          call.attrs.as<SparseDotAttrs>().cotangent);
                 });
               });
             });
}
void run_products(const OpCall& call) {
  if (no_entries(call)) return;
  const std::int64_t width = columns(call.spec(2));
  with_index(call, 1, SparseView::kPlaces, [&](const SparseView& m) {
    for_dtype<Domain::numbers>(call.out[0]->dtype, [&](auto* p) {
      using T = std::remove_pointer_t<decltype(p)>;
      with_members(width >= kWarp, [&](auto team) {
        using Team = decltype(team);
        launch(call.op.name, device_of(call.device), blocks_for(m.count * Team::kSize), pair_products<Team, T>, m,
               call.in[2].as<T>(), call.in[3].as<T>(), call.out_as<T>(), width,
               call.attrs.as<SparseProductsAttrs>().cotangent);
      });
    });
  });
}

const PluginKernel kernels[] = {{"sparse_to_dense", run_to_dense},
                                {"sparse_gather", run_gather},
                                {"sparse_dot", run_dot},
                                {"sparse_products", run_products}};

}  // namespace

Kernels sparse_kernels() { return {kernels, static_cast<int>(std::size(kernels))}; }

}  // namespace kassette::cuda
