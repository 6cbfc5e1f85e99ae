// tests/sweeps/device_test.cpp - every sample on a CUDA device against the CPU: values, gradients, replayed functions,
// memory.
#include <kassette/error.h>
#include <kassette/runtime.h>
#include <kassette/testing.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "ops/engine/op_registry.h"
#include "tests/catch.h"
#include "tests/devices/devices.h"
#include "tests/sweeps/sample.h"

namespace K = kassette::backend;
using namespace kassette;
using namespace kassette::ops;
using namespace kassette::test;

namespace {

/// Rows that make what lives on the host: keys of draws, shapes as numbers, where the entries of sparse tensors are.
const std::set<std::string> kOnHost{"random_key", "shape", "size", "pack", "sparse_coo", "nonzero", "to_sparse",
                                    "sparse_concatenate", "ctc_label_dense_to_sparse",
                                    // linear algebra goes by way of the host, and comes back
                                    "cholesky", "solve_triangular", "solve", "slogdet", "lu", "qr", "eigh", "eigvalsh",
                                    "svd", "svdvals", "eig",
                                    // and so do Fourier transforms
                                    "fft", "fft_like",
                                    // a function of the user, of values on the host
                                    "host_call"};

/// How a sample's inputs are converted to its arguments.
using Place = Tensor (*)(const Input& input, const Tensor& x);
Tensor stay(const Input&, const Tensor& x) { return x; }
Tensor move(const Input& input, const Tensor& x) { return input.host ? x : x.to("cuda:0"); }

Tensor weights_for(const Tensor& y) {
  DeviceScope scope(cpu);
  return make_input({-1, 1}, y.shape(), y.dtype(), 1).to(y.device());
}

/// Values and, for floats, the gradients of a weighted sum of them; not yet evaluated.
Tensors results(const Sample& s, const Tensors& in, bool gradients, Place place) {
  DeviceScope scope(place == move ? Device("cuda:0") : cpu);
  Tensors xs, wanted;
  for (std::int64_t i = 0; i < in.size(); ++i) {
    const Tensor x = place(s.in[i], in[i]);
    bool wants = gradients && s.order == Order::second && s.in[i].differentiable && x.dtype().is_float();
    xs.push_back(wants ? K::variable(x, x.dtype()) : x);
    if (wants) wanted.push_back(xs[i]);
  }
  Tensors ys = call(s, xs), out = ys;
  Tensor loss;
  for (const Tensor& y : ys) {
    if (wanted.empty() || !y.dtype().is_float()) continue;
    Tensor part = K::sum(y * weights_for(y));
    loss = loss.defined() ? loss + part : part;
  }
  if (!loss.defined()) return out;
  for (const Tensor& g : K::gradients(loss, wanted))
    if (g.defined()) out.push_back(g);
  return out;
}
Tensors on_host(const Tensors& xs) {
  Tensors out;
  for (const Tensor& x : xs) out.push_back(K::eval(x).to("cpu"));
  return out;
}

/// Compares bit for bit, except floats, which are compared to 8 units in the last place of the largest element, as over
/// the CPU levels.
std::string difference(const Sample& s, const Tensors& wanted, const Tensors& got, const Tensors& in) {
  if (wanted.size() != got.size()) return "another number of results";
  Tensors sizes = wanted;
  for (const Tensor& x : in) sizes.push_back(x);
  for (std::int64_t i = 0; i < wanted.size(); ++i) {
    double apart = units_apart(wanted[i], got[i], folded(sizes, wanted[i]));
    // What is drawn has the same bits, unless it is computed from uniform numbers, as logarithms are.
    const bool exact = s.traits.draws && i == 0 && s.loose == 1;
    if (apart <= (exact ? 0 : 8 * s.loose)) continue;
    std::string why = testing::compare(got[i], wanted[i], {.rtol = 0, .atol = 0}).message;
    return "result " + std::to_string(i) + " is " + std::to_string(apart) + " units away: " + why;
  }
  return "";
}

std::string compare_devices(const Sample& s, const Shapes& shapes, DType dtype, bool gradients) {
  Tensors in = make_inputs(s, shapes, dtype);
  return difference(s, on_host(results(s, in, gradients, stay)), on_host(results(s, in, gradients, move)), in);
}

std::int64_t live() {
  clear_scalar_cache();
  return memory_stats("cuda:0").live;
}

template <class F>
void checked(const std::string& what, F&& f) {
  std::int64_t before = live();
  try {
    if (std::string wrong = f(); !wrong.empty()) FAIL_CHECK(what << ": " << wrong);
  } catch (const std::exception& e) {
    FAIL_CHECK(what << ": threw " << e.what());
  }
  if (std::int64_t left = live() - before) FAIL_CHECK(what << ": leaves " << left << " bytes on the device");
}

/// Whether results of a function may differ from those of eager calls, by rounding: cuBLAS and cuBLASLt pick kernels by
/// the alignment of what they are given, too, and one that adds a bias may sum in another order. The emulated device
/// has one product. The ops of a loop, a branch or a call are not on this tape.
bool rounds_otherwise(const Tensors& ys) {
  static const bool is_emulated = emulated<std::int64_t()>("emulated_products");
  static const std::set<std::string> kProducts{"matmul", "convolution", "convolution_input_gradient",
                                               "convolution_kernel_gradient", "call"};
  const std::vector<std::string> ops = ops_behind(ys);
  return !is_emulated && std::ranges::any_of(ops, [](const std::string& op) { return kProducts.contains(op); });
}

/// One function over placeholders, moved to the device, against eager calls there.
std::string play(const Sample& s, const std::vector<Shapes>& cases, DType dtype) {
  Tensors holders, moved;
  for (std::size_t i = 0; i < cases[0].size(); ++i) {
    holders.push_back(placeholder_for(s, i, cases[0][i], dtype));
    moved.push_back(move(s.in[i], holders[static_cast<std::int64_t>(i)]));
  }
  Tensors ys;
  {
    DeviceScope scope("cuda:0");
    ys = call(s, moved);
  }
  const bool rounds = rounds_otherwise(ys);
  Function f = K::function(holders, ys);
  for (const Shapes& shapes : cases) {
    Tensors in = make_inputs(s, shapes, dtype), eager = on_host(results(s, in, false, move)), played = on_host(f(in));
    if (rounds) {
      if (std::string wrong = difference(s, eager, played, in); !wrong.empty())
        return "played at " + text(shapes[0]) + ", against the eager call: " + wrong;
      continue;
    }
    for (std::int64_t i = 0; i < eager.size(); ++i)
      if (!same_bits(eager[i], played[i]))
        return "played at " + text(shapes[0]) + ": result " + std::to_string(i) +
               " has other bits than the eager call's";
  }
  return "";
}

/// The workspace of cuBLAS stays.
void warm_up() { K::dot(K::ones({2, 2}).to("cuda:0"), K::ones({2, 2}).to("cuda:0")); }

DType plain_dtype(const Sample& s) { return s.takes == Takes::bools ? bool_ : takes_integers(s) ? int32 : float32; }

}  // namespace

TEST_CASE("every sample in every dtype gives on a CUDA device what it gives on the CPU, gradients too",
          "[sweep][device]") {
  if (!has_device("cuda:0")) return;
  warm_up();
  for (const Sample& s : op_samples()) {
    bool first = true;  // the other cases in one dtype: what they test is shapes
    for (const Shapes& shapes : cases_of(s)) {
      for (DType dtype : first ? dtypes_of(s.takes) : std::vector<DType>{plain_dtype(s)})
        checked(title(s, shapes, dtype),
                [&] { return compare_devices(s, shapes, dtype, dtype == float32 || dtype == float64); });
      first = false;
    }
  }
}

TEST_CASE("every sample at sizes of many blocks gives on a CUDA device what it gives on the CPU", "[sweep][device]") {
  if (!has_device("cuda:0")) return;
  warm_up();
  for (const Sample& s : op_samples()) {
    if (!s.traits.grows) continue;
    auto cases = cases_of(s);
    for (std::size_t k = 0; k < cases.size() && k < 2; ++k) {
      Shapes shapes = grown(cases[k], 6000);
      checked(title(s, shapes, plain_dtype(s)), [&] { return compare_devices(s, shapes, plain_dtype(s), true); });
    }
  }
}

TEST_CASE("every sample, replayed on a CUDA device, has the bits of eager calls there but for the rounding of products",
          "[sweep][device]") {
  if (!has_device("cuda:0")) return;
  warm_up();
  for (const Sample& s : op_samples())
    if (!s.traits.draws)
      for (const auto& cases : cases_by_ranks(s))
        checked(title(s, cases[0], plain_dtype(s)) + " played", [&] { return play(s, cases, plain_dtype(s)); });
}

TEST_CASE("every op has a kernel on CUDA devices, or makes what lives on the host", "[device]") {
  if (!has_device("cuda:0")) return;
  for (const OpDef* op : all_ops())
    if ((op->cuda == nullptr) != (kOnHost.count(op->name) > 0))
      FAIL_CHECK("op " << op->name
                       << (op->cuda ? " has a CUDA kernel, and is listed as being without" : " has no CUDA kernel"));
}
