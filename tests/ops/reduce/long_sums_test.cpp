// tests/ops/reduce/long_sums_test.cpp - sums over many elements keep their accuracy: products whose sizes exceed 32
// bits, and ops whose errors would grow with the length if they added one element after another. Exact values are whole
// numbers, or the number of elements times one of them.
#include <kassette/backend.h>

#include <sys/mman.h>
#include <unistd.h>

#include <cmath>
#include <vector>

#include "devices/cpu/blas.h"
#include "tests/ops/levels.h"

namespace K = kassette::backend;
using namespace kassette;
using namespace kassette::test;
using devices::BatchStrides;
using devices::GemmShape;

namespace {

/// Address space that holds `bytes`, of which only the pages that are written take memory. Null if there is none.
class Space {
 public:
  explicit Space(std::size_t bytes) : bytes_(bytes) {
    void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    at_ = p == MAP_FAILED ? nullptr : p;
  }
  ~Space() {
    if (at_) munmap(at_, bytes_);
  }
  Space(const Space&) = delete;
  Space& operator=(const Space&) = delete;
  template <class T>
  T* as() const {
    return static_cast<T*>(at_);
  }
  /// Fills the space with n elements again and again, in the same memory. False if that is not possible.
  template <class T>
  bool repeat(const T* x, std::size_t n) {
    const std::size_t period = n * sizeof(T);
    const int file = memfd_create("long_sums", 0);
    if (file < 0) return false;
    bool done = write(file, x, period) == static_cast<ssize_t>(period);
    for (std::size_t at = 0; done && at < bytes_; at += period)
      done = mmap(static_cast<char*>(at_) + at, std::min(period, bytes_ - at), PROT_READ, MAP_SHARED | MAP_FIXED, file,
                  0) != MAP_FAILED;
    close(file);
    return done;
  }

 private:
  std::size_t bytes_;
  void* at_;
};

/// Whether the relative error is at most 1e-4: one element after another, sums of as many tenths as here are off by 4
/// %.
bool near(double got, double wanted) { return std::fabs(got - wanted) <= 1e-4 * wanted; }

Tensor filled(double v, const Shape& shape) { return K::constant(v, float32, shape); }

}  // namespace

TEST_CASE("a product over more than 2^31 elements is right", "[matmul][serial]") {
  const std::int64_t period = 1 << 24, k = (std::int64_t(1) << 31) + period;
  std::vector<float> x(period);
  for (std::int64_t i = 0; i < period; ++i) x[i] = static_cast<float>(i % 4);
  Space space(static_cast<std::size_t>(k) * sizeof(float));
  if (!space.as<float>() || !space.repeat(x.data(), x.size())) return skip("no address space");
  const auto* a = space.as<float>();
  float out = 0;
  devices::multiply(GemmShape{1, 1, k, false, false, k, 1, 1}, BatchStrides(), a, a, &out);
  CHECK(near(out, 3.5 * static_cast<double>(k)));  // the mean of 0, 1, 4 and 9
}

TEST_CASE("products whose rows are more than 2^31 elements apart are right", "[matmul]") {
  const std::int64_t far = (std::int64_t(1) << 31) + 4096, m = 2, n = 3, k = 70;
  const Space a(2 * far * sizeof(double)), b(3 * far * sizeof(double)), c(2 * far * sizeof(double));
  if (!a.as<double>() || !b.as<double>() || !c.as<double>()) return skip("no address space");
  auto check = [&](auto zero) {
    using T = decltype(zero);
    // By rows: a (m, k), b as (n, k), out (m, n), each row far from the next.
    for (std::int64_t p = 0; p < k; ++p) {
      for (std::int64_t i = 0; i < m; ++i) a.as<T>()[i * far + p] = static_cast<T>(i + p % 5 - 2);
      for (std::int64_t j = 0; j < n; ++j) b.as<T>()[j * far + p] = static_cast<T>(j - p % 7);
    }
    devices::multiply(GemmShape{m, n, k, false, true, far, far, far}, BatchStrides(), a.as<T>(), b.as<T>(), c.as<T>());
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < n; ++j) {
        T wanted = 0;  // whole numbers: exact
        for (std::int64_t p = 0; p < k; ++p) wanted += static_cast<T>(i + p % 5 - 2) * static_cast<T>(j - p % 7);
        CHECK(c.as<T>()[i * far + j] == wanted);
      }
    // One row: the distance is not used, however large.
    T out[3] = {};
    devices::multiply(GemmShape{1, n, k, false, true, far, far, far}, BatchStrides(), a.as<T>(), b.as<T>(), out);
    CHECK(out[1] == c.as<T>()[1]);
  };
  check(0.f);
  check(0.);
}

TEST_CASE("long inner axes of products are as precise as short ones", "[matmul]") {
  at_every_level([](devices::Level) {
    const double tenth = 0.1f;
    const std::int64_t k = 1 << 22;
    const Tensor x = filled(0.1, {1, k}), ones = filled(1, {k, 1});
    CHECK(near(K::dot(x, ones).item<float>(), tenth * k));
    CHECK(near(K::batch_dot(filled(0.1, {2, k}), filled(1, {2, k}), 1)(1, 0).item<float>(), tenth * k));
    CHECK(near(K::dot(x, filled(1, {k, 3}))(0, 2).item<float>(), tenth * k));
    // A matrix beyond the caches and a vector are multiplied row by row.
    const Tensor rows = K::dot(filled(0.1, {128, 1 << 17}), filled(1, {1 << 17, 1}));
    CHECK(near(rows(127, 0).item<float>(), tenth * (1 << 17)));
  });
}

TEST_CASE("softmax, its losses, averages, sums of copies and of rows, and sparse products are precise over long axes",
          "[softmax][pool]") {
  at_every_level([](devices::Level) {
    const std::int64_t n = 1 << 22;
    const double each = 1. / n, tenth = 0.1f;
    const Tensor flat = K::zeros({1, n}), column = K::zeros({n, 2});
    CHECK(near(K::softmax(flat)(0, 5).item<float>(), each));
    CHECK(near(K::logsumexp(filled(0, {1, n}), 1)(0).item<float>(), std::log(double(n))));
    CHECK(near(K::softmax(column, 0)(7, 1).item<float>(), each));
    const Tensor loss = K::categorical_crossentropy(filled(0.1, {1, n}), flat, true);
    CHECK(near(loss(0).item<float>(), tenth * n * std::log(double(n))));
    const Tensor across = K::categorical_crossentropy(filled(0.1, {n, 2}), column, true, 0);
    CHECK(near(across(1).item<float>(), tenth * n * std::log(double(n))));

    const Tensor image = filled(0.1, {1, 2048, 2048, 1});
    CHECK(
        near(K::pool2d(image, {2048, 2048}, {1, 1}, "valid", "channels_last", "avg")(0, 0, 0, 0).item<float>(), tenth));
    const Tensor planes = K::reshape(image, {1, 1, 2048, 2048});
    CHECK(near(K::pool2d(planes, {2048, 2048}, {1, 1}, "valid", "channels_first", "avg")(0, 0, 0, 0).item<float>(),
               tenth));

    Tensor one = K::variable({1.0}, float32);
    const Tensor g = K::gradients(K::sum(K::tile(one, {n}) * 0.1), {one})[0];
    CHECK(near(g(0).item<float>(), tenth * n));
    const Tensor repeated = K::gradients(K::sum(K::repeat_elements(one, n, 0) * 0.1), {one})[0];
    CHECK(near(repeated(0).item<float>(), tenth * n));
    const Tensor rows = K::gradients(K::sum(K::gather(one, K::zeros({n}, int32)) * 0.1), {one})[0];
    CHECK(near(rows(0).item<float>(), tenth * n));
    const Tensor sparse = K::to_sparse(filled(0.1, {1, n}));
    CHECK(near(K::dot(sparse, filled(1, {n, 1}))(0, 0).item<float>(), tenth * n));
    CHECK(near(K::dot(sparse, filled(1, {n, 9}))(0, 8).item<float>(), tenth * n));
  });
}

TEST_CASE("convolutions and the gradients of their kernels are precise over many pixels and many taps",
          "[convolution]") {
  at_every_level([](devices::Level) {
    const std::int64_t side = 2048, n = side * side;
    const double tenth = 0.1f;
    const Tensor image = filled(0.1, {1, side, side, 1});
    CHECK(near(K::conv2d(image, filled(1, {side, side, 1, 1}))(0, 0, 0, 0).item<float>(), tenth * n));
    CHECK(near(K::depthwise_conv2d(image, filled(1, {side, side, 1, 1}))(0, 0, 0, 0).item<float>(), tenth * n));
    const Tensor kernel = K::variable(filled(1, {1, 1, 1, 1}));
    CHECK(near(K::gradients(K::sum(K::conv2d(image, kernel)), {kernel})[0](0, 0, 0, 0).item<float>(), tenth * n));
    // Small convolutions of the parts of the pixels have kernels of one and of several taps and channels.
    for (std::int64_t taps : {1, 2})
      for (std::int64_t channels : {1, 3}) {
        const Tensor x = filled(0.1, {1, side, side, channels}), w = K::variable(filled(1, {taps, taps, channels, 1})),
                     g = K::gradients(K::sum(K::depthwise_conv2d(x, w)), {w})[0];
        const double pixels = static_cast<double>((side - taps + 1) * (side - taps + 1));
        INFO(taps << " taps, " << channels << " channels");
        CHECK(near(g(0, 0, 0, 0).item<float>(), tenth * pixels));
        CHECK(near(g(-1, -1, -1, 0).item<float>(), tenth * pixels));
      }
    const Tensor line = filled(0.1, {1, n, 1}), w = K::variable(filled(1, {3, 1, 1}));
    const Tensor g = K::gradients(K::sum(K::conv1d(line, w)), {w})[0];
    CHECK(near(g(2, 0, 0).item<float>(), tenth * (n - 2)));
  });
}
