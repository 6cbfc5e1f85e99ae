// ops/fft/fft_plan.cpp - how the transforms of a length are divided, their roots of unity, and those that are kept.
#include "ops/fft/fft_plan.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <numbers>

#include "ops/fft/fft_run.h"

namespace kassette::ops {

Root root_of_unity(std::int64_t k, std::int64_t n) {
  // The angle in eighths of the circle: 8 k / n.
  const std::int64_t eighth = 8 * k / n, rest = 8 * k - eighth * n;
  const std::int64_t within = eighth % 2 ? n - rest : rest;
  const double angle = std::numbers::pi / 4 * (static_cast<double>(within) / static_cast<double>(n));
  double c = within == n ? std::sqrt(0.5) : std::cos(angle), s = within == n ? c : std::sin(angle);
  if ((eighth + 1) / 2 % 2) std::swap(c, s);  // the second, third, sixth and seventh eighth
  return {eighth >= 2 && eighth < 6 ? -c : c, eighth < 4 ? -s : s};
}

namespace {

constexpr std::int64_t kLongRow = 512;  // shorter ones are not worth two steps

/// The radices whose product is n; empty if n has a prime factor that is too large.
std::vector<int> radices_of(std::int64_t n) {
  std::vector<int> radices;
  auto take = [&](int p) {
    radices.push_back(p);
    n /= p;
  };
  const int twos = __builtin_ctzll(static_cast<unsigned long long>(n));
  if (twos == 1) take(2);
  for (int i = 0, fours = twos % 3 == 1 ? 2 : twos % 3 == 2 ? 1 : 0; twos > 1 && i < fours; ++i) take(4);
  while (n % 8 == 0) take(8);
  for (int p = 3; p <= kLargestRadix; p += 2)
    while (n % p == 0) take(p);
  return n == 1 ? radices : std::vector<int>();
}
bool has_passes(std::int64_t n) { return n == 1 || !radices_of(n).empty(); }

/// The least number with factors 2, 3 and 5 alone that is not below n.
std::int64_t smooth_from(std::int64_t n) {
  std::int64_t best = INT64_MAX;
  for (std::int64_t five = 1; five < best; five *= 5)
    for (std::int64_t three = five; three < best; three *= 3) {
      std::int64_t product = three;
      while (product < n) product *= 2;
      best = std::min(best, product);
      if (three >= n) break;
    }
  return best;
}
/// The divisor of n that is closest to its square root, from below; 0 if there is none that fills vectors.
std::int64_t rows_of(std::int64_t n) {
  for (auto d = static_cast<std::int64_t>(std::sqrt(static_cast<double>(n))); d >= kMostLanes; --d)
    if (n % d == 0) return d;
  return 0;
}

template <class T>
void push(std::vector<T>& to, Root r) {
  to.push_back(static_cast<T>(r.re));
  to.push_back(static_cast<T>(r.im));
}
template <class T>
void plan_passes(FftPlan<T>& plan) {
  plan.radices = radices_of(plan.n);
  plan.work = plan.n;
  std::int64_t n = plan.n;
  for (const int p : plan.radices) {
    for (std::int64_t j = 0; j < n / p; ++j)
      for (int k = 1; k < p; ++k) push(plan.twiddles, root_of_unity(j * k, n));
    if (p > 8)
      for (int k = 0; k < p; ++k) push(plan.twiddles, root_of_unity(k, p));
    n /= p;
  }
}
template <class T>
void plan_steps(FftPlan<T>& plan, std::int64_t rows) {
  plan.way = FftWay::steps;
  plan.rows = rows;
  plan.columns = plan.n / rows;
  plan.of_columns = plan_of<T>(plan.rows, /*in_lanes=*/true);
  plan.of_rows = plan_of<T>(plan.columns, /*in_lanes=*/true);
  for (std::int64_t k = 0; k < rows; ++k) {
    Root roots[kMostLanes];
    for (std::int64_t l = 0; l < kMostLanes; ++l) roots[l] = root_of_unity(k * l, plan.n);
    for (const Root& r : roots) plan.lane_roots.push_back(static_cast<T>(r.re));
    for (const Root& r : roots) plan.lane_roots.push_back(static_cast<T>(r.im));
  }
  while (plan.fine * plan.fine < plan.n) plan.fine *= 2;
  for (std::int64_t k = 0; k < std::min(plan.fine, plan.n); ++k) plan.fine_roots.push_back(root_of_unity(k, plan.n));
  for (std::int64_t k = 0; k < plan.n; k += plan.fine) plan.coarse_roots.push_back(root_of_unity(k, plan.n));
}
/// Bluestein: k l = (k^2 + l^2 - (k - l)^2) / 2, so that the transform is a convolution between two multiplications.
template <class T>
void plan_chirp(FftPlan<T>& plan, bool in_lanes) {
  const std::int64_t n = plan.n, m = smooth_from(2 * n - 1);
  plan.way = FftWay::chirp;
  plan.convolution = plan_of<T>(m, in_lanes);
  plan.work = m;
  std::vector<double> re(static_cast<std::size_t>(m)), im(re), spectrum_re(re), spectrum_im(re);
  for (std::int64_t k = 0, square = 0; k < n; square = (square + 2 * k + 1) % (2 * n), ++k) {
    const Root r = root_of_unity(square, 2 * n);
    push(plan.chirp, r);
    for (const std::int64_t at : {k, (m - k) % m}) {
      re[static_cast<std::size_t>(at)] = r.re;
      im[static_cast<std::size_t>(at)] = -r.im;
    }
  }
  transform_row<double>(*plan_of<double>(m, /*in_lanes=*/false), re.data(), im.data(), spectrum_re.data(),
                        spectrum_im.data(), 1 / static_cast<double>(m));
  for (std::size_t k = 0; k < re.size(); ++k) push(plan.spectrum, {spectrum_re[k], spectrum_im[k]});
}

/// What was made for lengths, the last used ones: at most kMostKept bytes of each type.
constexpr std::int64_t kMostKept = 64 << 20;
template <class Item>
class Kept {
 public:
  using Key = std::pair<std::int64_t, bool>;
  /// The item of a key, made by `make` if it is not kept. Two threads may make the same.
  template <class Make>
  Ref<const Item> get(const Key& key, Make make) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (const auto found = items_.find(key); found != items_.end()) {
        found->second.used = ++uses_;
        return found->second.item;
      }
    }
    Ref<const Item> item = make();
    const std::int64_t size = bytes_of(*item);
    const std::lock_guard<std::mutex> lock(mutex_);
    if (size > kMostKept || items_.count(key)) return item;
    while (bytes_ + size > kMostKept) {
      const auto oldest = std::min_element(items_.begin(), items_.end(),
                                           [](const auto& a, const auto& b) { return a.second.used < b.second.used; });
      bytes_ -= bytes_of(*oldest->second.item);
      items_.erase(oldest);
    }
    items_.emplace(key, Entry{item, ++uses_});
    bytes_ += size;
    return item;
  }
  std::int64_t bytes() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return bytes_;
  }
  /// Lives as long as the process: threads may run transforms while it ends.
  static Kept& all() {
    static Kept& kept = *new Kept;
    return kept;
  }

 private:
  struct Entry {
    Ref<const Item> item;
    std::uint64_t used;
  };
  template <class T>
  static std::int64_t bytes_of(const FftPlan<T>& p) {
    return static_cast<std::int64_t>(
        sizeof p + (p.twiddles.size() + p.chirp.size() + p.spectrum.size() + p.lane_roots.size()) * sizeof(T) +
        (p.fine_roots.size() + p.coarse_roots.size()) * sizeof(Root));
  }
  template <class T>
  static std::int64_t bytes_of(const FftRoots<T>& r) {
    return static_cast<std::int64_t>(sizeof r + r.at.size() * sizeof(T));
  }
  std::mutex mutex_;
  std::map<Key, Entry> items_;
  std::uint64_t uses_ = 0;
  std::int64_t bytes_ = 0;
};

}  // namespace

template <class T>
Ref<const FftPlan<T>> plan_of(std::int64_t n, bool in_lanes) {
  return Kept<FftPlan<T>>::all().get({n, in_lanes}, [&] {
    auto plan = Ref<FftPlan<T>>::adopt(new FftPlan<T>);
    plan->n = n;
    if (!has_passes(n)) plan_chirp(*plan, in_lanes);
    else if (const std::int64_t rows = in_lanes || n < kLongRow ? 0 : rows_of(n)) plan_steps(*plan, rows);
    else plan_passes(*plan);
    return Ref<const FftPlan<T>>(plan.get());
  });
}
template <class T>
Ref<const FftRoots<T>> roots_of(std::int64_t n) {
  return Kept<FftRoots<T>>::all().get({n, false}, [&] {
    auto roots = Ref<FftRoots<T>>::adopt(new FftRoots<T>);
    for (std::int64_t k = 0; k <= n / 4; ++k) push(roots->at, root_of_unity(k, n));
    return Ref<const FftRoots<T>>(roots.get());
  });
}
template Ref<const FftPlan<float>> plan_of<float>(std::int64_t n, bool in_lanes);
template Ref<const FftPlan<double>> plan_of<double>(std::int64_t n, bool in_lanes);
template Ref<const FftRoots<float>> roots_of<float>(std::int64_t n);
template Ref<const FftRoots<double>> roots_of<double>(std::int64_t n);

std::int64_t kept_plan_bytes() {
  return Kept<FftPlan<float>>::all().bytes() + Kept<FftPlan<double>>::all().bytes() +
         Kept<FftRoots<float>>::all().bytes() + Kept<FftRoots<double>>::all().bytes();
}

}  // namespace kassette::ops
