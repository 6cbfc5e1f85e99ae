// tests/sweeps/level_test.cpp - every sample on every CPU level and on one and two threads.
#include <kassette/testing.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <span>

#include <kassette/runtime.h>
#include "devices/cpu/threads.h"
#include "tests/catch.h"
#include "tests/ops/levels.h"
#include "tests/sweeps/sample.h"

namespace K = kassette::backend;
using namespace kassette;
using namespace kassette::devices;
using namespace kassette::test;

namespace {

/// Values and, for floats, the gradients of a weighted sum of them.
Tensors run(const Sample& s, const Tensors& in) {
  Tensors xs;
  for (const Tensor& x : in)
    xs.push_back(s.order == Order::second && x.dtype().is_float() ? K::variable(x, x.dtype()) : x);
  Tensors ys = call(s, xs), out;
  for (const Tensor& y : ys) out.push_back(K::eval(y));
  if (s.order == Order::none) return out;
  Tensors wanted;
  for (std::int64_t i = 0; i < xs.size(); ++i)
    if (s.in[i].differentiable && xs[i].dtype().is_float()) wanted.push_back(xs[i]);
  Tensor loss;
  for (const Tensor& y : ys) {
    if (!y.dtype().is_float()) continue;
    Tensor part = K::sum(y * make_input({-1, 1}, y.shape(), y.dtype(), 1));
    loss = loss.defined() ? loss + part : part;
  }
  if (!loss.defined() || wanted.empty()) return out;
  for (const Tensor& g : K::gradients(loss, wanted))
    if (g.defined()) out.push_back(K::eval(g));
  return out;
}

// Under a sanitizer the other dtypes run in other sweeps only.
constexpr int kCases = kSanitized ? 1 : 2;
constexpr DType kAllDTypes[] = {float32, float64, int32};
constexpr auto kDTypes = std::span(kAllDTypes).first(kSanitized ? 1 : 3);
// Elements that two threads share at this divisor of the grains, of reductions too.
constexpr std::int64_t kShared = 20000, kDivisor = 16;

/// Inputs of some `size` elements.
template <class F>
void for_each_large_case(std::int64_t size, F&& f) {
  for (const Sample& s : op_samples()) {
    if (!s.traits.grows) continue;
    int cases = 0;
    for (const Shapes& small : cases_of(s)) {
      if (++cases > kCases) break;
      Shapes shapes = grown(small, size);
      for (DType dtype : kDTypes) {
        bool fits = s.takes == Takes::anything || (dtype.is_float() && s.takes != Takes::bools && !takes_integers(s)) ||
                    (dtype.is_integer() && (s.takes == Takes::numbers || takes_integers(s)));
        if (!fits) continue;
        try {
          f(s, shapes, dtype, make_inputs(s, shapes, dtype));
        } catch (const std::exception& e) {
          FAIL_CHECK(title(s, shapes, dtype) << ": threw " << e.what());
        }
      }
    }
  }
}

/// A checksum (FNV-1a) of the elements, among which every NaN counts as the same: its sign is the CPU's choice.
std::uint64_t checksum(const Tensor& t) {
  std::uint64_t sum = 0xcbf29ce484222325;
  auto add = [&](const auto& values) {
    for (auto value : values) {
      if (value != value) value = std::numeric_limits<decltype(value)>::quiet_NaN();
      unsigned char bytes[sizeof value];
      std::memcpy(bytes, &value, sizeof value);
      for (unsigned char byte : bytes) sum = (sum ^ byte) * 0x100000001b3;
    }
  };
  if (t.dtype() == float64) add(K::flatten(t).to_vector<double>());
  else if (t.dtype().is_float()) add(K::flatten(K::cast(t, float32)).to_vector<float>());
  else add(K::flatten(K::cast(t, int64)).to_vector<std::int64_t>());
  return sum;
}

}  // namespace

TEST_CASE("prints a checksum of every sample, to compare machines", "[.bits]") {
  for_each_large_case(kShared, [](const Sample& s, const Shapes& shapes, DType dtype, const Tensors& in) {
    const Tensors results = run(s, in);
    for (std::int64_t i = 0; i < results.size(); ++i)
      std::printf("bits of %s: result %lld is %016llx\n", title(s, shapes, dtype).c_str(), static_cast<long long>(i),
                  static_cast<unsigned long long>(checksum(results[i])));
  });
}

TEST_CASE("every sample has the same bits on one thread and on two, gradients too", "[sweep]") {
  SettingsScope restore;
  grain_divisor = kDivisor;
  for_each_large_case(kShared, [](const Sample& s, const Shapes& shapes, DType dtype, const Tensors& in) {
    set_num_threads(1);
    Tensors one = run(s, in);
    set_num_threads(2);
    Tensors two = run(s, in);
    for (std::int64_t i = 0; i < one.size(); ++i)
      if (!same_bits(one[i], two[i]))
        FAIL_CHECK(title(s, shapes, dtype) << ": result " << i << " has other bits on two threads");
  });
}

TEST_CASE("every sample agrees over the CPU levels to 8 units in the last place of its largest element", "[sweep]") {
  SettingsScope restore;
  for_each_large_case(kShared, [](const Sample& s, const Shapes& shapes, DType dtype, const Tensors& in) {
    Tensors first;
    for (Level level : kLevels) {
      if (!set_cpu_level(level)) continue;
      Tensors now = run(s, in), sizes = now;
      for (const Tensor& x : in) sizes.push_back(x);
      if (first.empty()) first = now;
      for (std::int64_t i = 0; i < first.size(); ++i) {
        double apart = units_apart(first[i], now[i], folded(sizes, now[i]));
        if (apart > 8 * s.loose)
          FAIL_CHECK(title(s, shapes, dtype) << ": result " << i << " on " << level_name(level) << " is " << apart
                                             << " units away from that on " << level_name(kLevels[0]));
      }
    }
  });
}
