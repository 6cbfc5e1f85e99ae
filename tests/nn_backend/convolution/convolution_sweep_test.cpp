// tests/nn_backend/convolution/convolution_sweep_test.cpp - the convolution family at random geometries against its
// definitions: values and gradients, at every CPU level, with large and with small pieces, for any number of threads,
// and on a CUDA device.
#include <kassette/backend.h>

#include <array>
#include <map>
#include <random>
#include <string>

#include "ops/convolution/conv.h"
#include "ops/convolution/conv_kernels.h"
#include "ops/convolution/pool.h"
#include "tests/catch.h"
#include "tests/devices/devices.h"
#include "tests/nn_backend/convolution/convolution_reference.h"
#include "tests/ops/levels.h"
#include "tests/results.h"
#include "tests/sweeps/sample.h"

namespace K = kassette::backend;
using namespace kassette;
using namespace kassette::ops;
using namespace kassette::test;

namespace {

constexpr int kGeometries = kSanitized ? 600 : 2400;

enum class Kind { convolution, transposed, depthwise, separable, local, max_pool, avg_pool, nearest, bilinear };
constexpr const char* kKinds[] = {"convolution", "transposed", "depthwise", "separable", "local",
                                  "max_pool",    "avg_pool",   "nearest",   "bilinear"};

class Dice {
 public:
  explicit Dice(unsigned seed) : random_(seed) {}
  int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  Size from(int low, int high) { return low + below(high - low + 1); }
  bool one_in(int n) { return below(n) == 0; }

 private:
  std::mt19937 random_;
};

/// A call of the family, drawn from a seed, with its inputs and the result by its definition.
struct Problem {
  Kind kind;
  RefWindows g;
  DType dtype;
  std::string padding;
  Size filters = 1, multiplier = 1;
  Tensors in;  // on the host
  Tensor dy;
  RefResult expected;
  double loose = 1;  // how many roundings stand behind a result

  explicit Problem(unsigned seed) : dice_(seed) {
    draw_geometry();
    draw_tensors(seed);
  }
  Tensor call(const Tensors& x) const;
  std::string title() const;
  std::vector<Size> each(Size RefAxis::*what) const {
    std::vector<Size> v;
    for (int d = 3 - g.axes; d < 3; ++d) v.push_back(g.axis[d].*what);
    return v;
  }
  const char* format() const { return g.channels_first ? "channels_first" : "channels_last"; }

 private:
  Dice dice_;

  void draw_geometry();
  void draw_tensors(unsigned seed);
  std::vector<Size> shape(const std::vector<Size>& space, Size channels) const {
    std::vector<Size> s{g.batch};
    if (g.channels_first) s.push_back(channels);
    s.insert(s.end(), space.begin(), space.end());
    if (!g.channels_first) s.push_back(channels);
    return s;
  }
};

void Problem::draw_geometry() {
  constexpr Kind kDrawn[] = {Kind::convolution, Kind::convolution, Kind::convolution, Kind::convolution,
                             Kind::convolution, Kind::convolution, Kind::transposed,  Kind::transposed,
                             Kind::transposed,  Kind::depthwise,   Kind::depthwise,   Kind::separable,
                             Kind::local,       Kind::max_pool,    Kind::max_pool,    Kind::avg_pool,
                             Kind::avg_pool,    Kind::nearest,     Kind::bilinear};
  kind = kDrawn[dice_.below(static_cast<int>(std::size(kDrawn)))];
  const bool pools = kind == Kind::max_pool || kind == Kind::avg_pool,
             enlarges = kind == Kind::nearest || kind == Kind::bilinear;
  g.axes = kind == Kind::convolution                                    ? static_cast<int>(dice_.from(1, 3))
           : kind == Kind::transposed || pools || kind == Kind::nearest ? static_cast<int>(dice_.from(2, 3))
           : kind == Kind::local || kind == Kind::separable             ? static_cast<int>(dice_.from(1, 2))
                                                                        : 2;
  g.channels_first = dice_.below(2);
  g.batch = dice_.one_in(30) ? 0 : dice_.from(1, 3);
  constexpr std::array kDTypes{float32, float32, float64, float64, float16, bfloat16};
  dtype = kDTypes[static_cast<std::size_t>(dice_.below(enlarges ? 4 : 6))];
  const bool causal = kind == Kind::convolution && g.axes == 1 && !g.channels_first && dice_.one_in(3);
  padding = kind == Kind::local ? "valid" : causal ? "causal" : dice_.below(2) ? "same" : "valid";
  const bool dilated =
      dice_.one_in(3) && !pools && !enlarges && kind != Kind::local && !(kind == Kind::transposed && g.axes == 3);
  const bool pointwise = dice_.one_in(8), tiny = dice_.one_in(12);
  for (int d = 3 - g.axes; d < 3; ++d) {
    RefAxis& a = g.axis[d];
    const int largest = pointwise ? 1 : kind == Kind::local ? 3 : g.axes == 1 ? 9 : g.axes == 2 ? 5 : 3;
    a.size = enlarges ? 1 : dice_.from(1, largest);
    a.stride = dilated ? 1 : dice_.from(1, 3);
    a.dilation = dilated ? dice_.from(1, 3) : 1;
    const Size n = dice_.from(1, tiny ? 2 : kind == Kind::local ? 7 : g.axes == 1 ? 60 : g.axes == 2 ? 13 : 6);
    if (enlarges) a.n = std::min<Size>(n, 6), a.out = a.n * a.stride;
    else a.set(n, padding);
  }
  const bool wide = dice_.one_in(8);
  g.c_in = wide ? dice_.from(30, 70) : dice_.from(1, 20);
  g.c_out = kind == Kind::local ? dice_.from(1, 5) : dice_.from(1, 40);
  if (kind == Kind::local) g.c_in = dice_.from(1, 5);
  if (kind == Kind::depthwise || kind == Kind::separable) multiplier = dice_.from(1, 3), g.c_out = g.c_in * multiplier;
  if (pools || enlarges) g.c_out = g.c_in;
  filters = dice_.from(1, 12);
}

void Problem::draw_tensors(unsigned seed) {
  std::uint64_t next = seed * 16ull;
  auto drawn = [&](const std::vector<Size>& dims, bool coarse) {
    Size n = 1;
    for (Size d : dims) n *= d;
    std::vector<double> v = numbers(static_cast<std::size_t>(n), ++next);
    for (double& e : v) e = coarse ? std::floor(4 * e) : 2 * e;  // coarse: many are the same
    return K::cast(K::constant(v, float64, Dims(dims)), dtype);
  };
  auto kernel = [&](Size a, Size b) {
    std::vector<Size> s = each(&RefAxis::size);
    s.push_back(a);
    s.push_back(b);
    return drawn(s, false);
  };
  const std::vector<Size> input = shape(each(&RefAxis::n), g.c_in),
                          output = shape(each(&RefAxis::out), kind == Kind::separable ? filters : g.c_out);
  const bool back = kind == Kind::transposed, coarse = kind == Kind::max_pool && dice_.below(2);
  in = {drawn(back ? output : input, coarse)};
  if (kind == Kind::convolution || back) in.push_back(kernel(g.c_in, g.c_out));
  if (kind == Kind::depthwise || kind == Kind::separable) in.push_back(kernel(g.c_in, multiplier));
  if (kind == Kind::separable) {
    std::vector<Size> point(static_cast<std::size_t>(g.axes), 1);
    point.push_back(g.c_out);
    point.push_back(filters);
    in.push_back(drawn(point, false));
  }
  if (kind == Kind::local) in.push_back(drawn({g.out_points(), g.taps() * g.c_in, g.c_out}, false));
  if (kind == Kind::max_pool && coarse && dtype != float16 && dice_.one_in(4) && in[0].size()) {
    std::vector<double> v = values(K::cast(in[0], float64));
    for (std::size_t i = 0; i < v.size(); i += 5) v[i] = std::nan("");
    in[0] = K::cast(K::constant(v, float64, Dims(input)), dtype);
  }
  dy = drawn(back ? input : output, false);

  std::vector<List> x;
  for (const Tensor& t : in) x.push_back(values(K::cast(t, float64)));
  const List slopes = values(K::cast(dy, float64));
  switch (kind) {
    case Kind::convolution: expected = ref_convolution(g, x[0], x[1], slopes); break;
    case Kind::transposed: expected = ref_transposed(g, x[0], x[1], slopes); break;
    case Kind::depthwise: expected = ref_depthwise(g, x[0], x[1], slopes); break;
    case Kind::separable: expected = ref_separable(g, x[0], x[1], x[2], slopes, filters), loose = 4; break;
    case Kind::local: expected = ref_local(g, x[0], x[1], slopes), loose = 4; break;
    case Kind::max_pool: expected = ref_max_pool(g, x[0], slopes); break;
    case Kind::avg_pool: expected = ref_avg_pool(g, x[0], slopes); break;
    case Kind::nearest: expected = ref_resize(g, false, x[0], slopes); break;
    case Kind::bilinear: expected = ref_resize(g, true, x[0], slopes); break;
  }
}

Tensor Problem::call(const Tensors& x) const {
  const std::vector<Size> strides = each(&RefAxis::stride), dilations = each(&RefAxis::dilation),
                          sizes = each(&RefAxis::size);
  auto f = [&](int i) { return static_cast<int>(g.axis[i].stride); };
  switch (kind) {
    case Kind::convolution:
      return g.axes == 1   ? K::conv1d(x[0], x[1], strides, padding, format(), dilations)
             : g.axes == 2 ? K::conv2d(x[0], x[1], strides, padding, format(), dilations)
                           : K::conv3d(x[0], x[1], strides, padding, format(), dilations);
    case Kind::transposed: {
      const std::vector<Size> wanted = shape(each(&RefAxis::n), g.c_in);
      return g.axes == 2 ? K::conv2d_transpose(x[0], x[1], wanted, strides, padding, format(), dilations)
                         : K::conv3d_transpose(x[0], x[1], wanted, strides, padding, format());
    }
    case Kind::depthwise: return K::depthwise_conv2d(x[0], x[1], strides, padding, format(), dilations);
    case Kind::separable:
      return g.axes == 1 ? K::separable_conv1d(x[0], x[1], x[2], strides, padding, format(), dilations)
                         : K::separable_conv2d(x[0], x[1], x[2], strides, padding, format(), dilations);
    case Kind::local:
      return g.axes == 1 ? K::local_conv1d(x[0], x[1], sizes, strides, format())
                         : K::local_conv2d(x[0], x[1], sizes, strides, each(&RefAxis::out), format());
    case Kind::max_pool:
    case Kind::avg_pool: {
      const char* mode = kind == Kind::max_pool ? "max" : "avg";
      return g.axes == 2 ? K::pool2d(x[0], sizes, strides, padding, format(), mode)
                         : K::pool3d(x[0], sizes, strides, padding, format(), mode);
    }
    case Kind::nearest:
      if (g.axes == 3) return K::resize_volumes(x[0], f(0), f(1), f(2), format());
      return K::resize_images(x[0], f(1), f(2), format());
    case Kind::bilinear: return K::resize_images(x[0], f(1), f(2), format(), "bilinear");
  }
  return {};
}

std::string Problem::title() const {
  std::string s = std::string(kKinds[static_cast<int>(kind)]) + " " + padding + " " + format() + " " + dtype.name() +
                  " x " + printed(in[0].shape());
  for (std::int64_t i = 1; i < in.size(); ++i) s += " w " + printed(in[i].shape());
  for (int d = 3 - g.axes; d < 3; ++d)
    s += ", " + std::to_string(g.axis[d].n) + " by " + std::to_string(g.axis[d].size) + " every " +
         std::to_string(g.axis[d].stride) + " dilated " + std::to_string(g.axis[d].dilation);
  return s;
}

/// The result and the gradients by all inputs.
Tensors run(const Problem& p, const char* device = "cpu") {
  Tensors x;
  for (const Tensor& t : p.in) x.push_back(K::variable(t.to(device), t.dtype()));
  Tensor y = p.call(x);
  Tensors all = K::gradients(K::sum(y * p.dy.to(device)), x), out{y.to("cpu")};
  for (const Tensor& g : all) out.push_back(g.to("cpu"));
  return out;
}

/// How far a result is from its definition, as a share of the largest element and of what the dtype allows: above 1 is
/// wrong.
double apart(const Problem& p, const Tensor& got, const List& expected, bool exact) {
  const List have = values(K::cast(got, float64));
  if (have.size() != expected.size()) return 1e300;
  double most = 0, size = 1e-300;
  for (std::size_t i = 0; i < have.size(); ++i) {
    if (std::isnan(expected[i]) || std::isinf(expected[i]) || exact) {
      if (have[i] != expected[i] && !(std::isnan(have[i]) && std::isnan(expected[i]))) return 1e300;
      continue;
    }
    most = std::isnan(have[i]) ? 1e300 : std::max(most, std::abs(have[i] - expected[i]));
    size = std::max(size, std::abs(expected[i]));
  }
  const double tolerance = p.dtype == float64 ? 1e-13 : p.dtype == float32 ? 2e-6 : p.dtype == float16 ? 6e-4 : 4.5e-3;
  return most / size / (tolerance * p.loose);
}

/// What is wrong with the computed results; empty if nothing is.
std::string wrong(const Problem& p, const Tensors& got) {
  const bool exact = p.kind == Kind::max_pool || p.kind == Kind::nearest;
  if (got[0].shape() != p.dy.shape() || got[0].dtype() != p.dtype)
    return p.title() + ": gives " + printed(got[0].shape());
  if (apart(p, got[0], p.expected.y, exact) > 1) return p.title() + ": another value";
  for (std::size_t i = 0; i < p.expected.gradients.size(); ++i)
    if (apart(p, got[static_cast<std::int64_t>(i) + 1], p.expected.gradients[i], false) > 1)
      return p.title() + ": another gradient " + std::to_string(i);
  return "";
}

/// At the end of the scope, the limits are as they were.
struct LimitsRestored {
  ConvLimits before = conv_limits;
  PoolLimits pool_before = pool_limits;
  ~LimitsRestored() { conv_limits = before, pool_limits = pool_before; }
};
/// So small that nearly every tensor is cut: into tiles, into blocks of channels, into groups of panels, into parts of
/// a batch.
ConvLimits small_limits(unsigned seed) {
  Dice dice(seed);
  ConvLimits limits;
  limits.slab_bytes = dice.from(1, 4) << 9;
  limits.panel_bytes = dice.from(1, 4) << 8;
  limits.packed_bytes = dice.from(1, 8) << 10;
  limits.partial_bytes = dice.from(1, 64) << 10;
  limits.tiles = dice.from(2, 40);
  limits.grain = 1;
  limits.dot_columns = dice.from(0, 4);
  limits.repeated = dice.from(1, 4);
  return limits;
}

/// How many geometries used each algorithm.
class Ways {
 public:
  void saw(const Problem& p, const std::string& path) {
    ++seen_[path];
    if (!p.g.batch) return;
    for (const std::string& s : {path + ", " + kKinds[static_cast<int>(p.kind)], path + ", " + p.format(),
                                 path + ", " + p.dtype.name(), path + ", " + p.padding})
      ++seen_[s];
    bool strided = false, dilated = false, overhangs = false;
    for (const RefAxis& a : p.g.axis) strided |= a.stride > 1, dilated |= a.dilation > 1, overhangs |= a.extent() > a.n;
    seen_[path + ", strided"] += strided;
    seen_[path + ", dilated"] += dilated;
    seen_[path + ", kernel larger than the input"] += overhangs;
  }
  void check(int paths) const {
    int whole = 0;
    for (const auto& [path, n] : seen_) {
      INFO(path << ": " << n << " geometries");
      CHECK(n >= (path.find(',') == std::string::npos ? kGeometries : kGeometries / 60));
      whole += n == kGeometries;
    }
    CHECK(whole == paths);
    CHECK(seen_.size() == static_cast<std::size_t>(paths) * (1 + std::size(kKinds) + 2 + 4 + 3 + 3));
  }

 private:
  std::map<std::string, int> seen_;
};

}  // namespace

TEST_CASE(
    "the convolution family is what its definition says: geometries drawn at random, at every CPU level, in large and in small pieces, on 1 to 8 threads",
    "[conv][sweep]") {
  LimitsRestored limits;
  Ways ways;
  int levels = 0;
  at_every_level([&](devices::Level) { ++levels; });
  for (int i = 0; i < kGeometries; ++i) {
    const Problem p(static_cast<unsigned>(i));
    at_every_level([&](devices::Level level) {
      conv_limits = limits.before;
      pool_limits = limits.pool_before;
      const std::string name = devices::level_name(level);
      if (std::string w = wrong(p, run(p)); !w.empty()) FAIL_CHECK("geometry " << i << " at " << name << ", " << w);
      ways.saw(p, name);

      conv_limits = small_limits(static_cast<unsigned>(i));
      pool_limits.tile = 1 + i % 50, pool_limits.window = 1 + i % 30;
      set_num_threads(1);
      const Tensors one = run(p);
      if (std::string w = wrong(p, one); !w.empty())
        FAIL_CHECK("geometry " << i << " in small pieces at " << name << ", " << w);
      ways.saw(p, name + " in small pieces");

      const int threads = std::array{2, 3, 8}[static_cast<std::size_t>(i % 3)];
      set_num_threads(threads);
      const Tensors many = run(p);
      for (std::int64_t k = 0; k < one.size(); ++k)
        if (!same_bits(one[k], many[k]))
          FAIL_CHECK("geometry " << i << " at " << name << " on " << threads << " threads, other bits: " << p.title());
    });
  }
  ways.check(2 * levels);
}

TEST_CASE(
    "the convolution family is what its definition says on a CUDA device, by direct kernels and by panels of any size",
    "[conv][sweep][device]") {
  if (!has_device("cuda:0")) return;
  struct Restored {
    DeviceConvLimits before = device_conv_limits;
    ~Restored() { device_conv_limits = before; }
  } limits;
  Ways ways;
  int by_panels = 0;
  for (int i = 0; i < 2 * kGeometries; ++i) {
    const Problem p(static_cast<unsigned>(i));
    if (i < kGeometries) {
      device_conv_limits = {DeviceConvLimits::direct, limits.before.workspace};
      if (std::string w = wrong(p, run(p, "cuda:0")); !w.empty())
        FAIL_CHECK("geometry " << i << " by direct kernels, " << w);
      ways.saw(p, "direct kernels");
    }
    if (p.kind != Kind::convolution && p.kind != Kind::transposed && p.kind != Kind::separable) continue;

    // Room for some rows of a panel; now and then for all of them.
    const Size widest = p.g.taps() * std::max({p.g.c_in, p.g.c_out, p.filters});
    device_conv_limits = {DeviceConvLimits::panels,
                          i % 8 ? 32 * widest * Dice(static_cast<unsigned>(i)).from(1, 6) : limits.before.workspace};
    if (std::string w = wrong(p, run(p, "cuda:0")); !w.empty()) FAIL_CHECK("geometry " << i << " by panels, " << w);
    ++by_panels;
  }
  ways.check(1);
  CHECK(by_panels >= 2000);
}
