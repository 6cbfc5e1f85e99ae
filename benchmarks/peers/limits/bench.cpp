// What the machine itself allows: hand-written kernels on reused buffers, two threads that hand
// over by spinning; and the floor of a small eager operation: plain malloc, counts and one indirect
// call.
#include <atomic>
#include <memory>
#include <thread>
#include <sys/mman.h>

#include "../../timer.h"
#include "kernels.h"

using bench::row;

namespace limits {

const Kernels& best() {
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    return avx512();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return avx2();
  return sse2();
}

/// The caller and one spinning worker; between calls the worker spins for a while, then yields.
class Duo {
 public:
  explicit Duo(int threads) : threads_(threads) {
    if (threads_ > 1) worker_ = std::thread([this] { serve(); });
  }
  ~Duo() {
    stop_ = true;
    if (worker_.joinable()) worker_.join();
  }
  int threads() const { return threads_; }
  /// part(0) here and part(1) there; both are done on return.
  template <class Part>
  void run(const Part& part) {
    if (threads_ == 1) return part(0), part(1);
    object_ = &part;
    call_ = [](const void* object) { (*static_cast<const Part*>(object))(1); };
    int turn = go_.load(std::memory_order_relaxed) + 1;
    go_.store(turn, std::memory_order_release);
    part(0);
    while (done_.load(std::memory_order_acquire) != turn) __builtin_ia32_pause();
  }

 private:
  void serve() {
    for (int seen = 0;;) {
      for (int spins = 0; go_.load(std::memory_order_acquire) == seen; ++spins) {
        if (stop_.load(std::memory_order_relaxed)) return;
        if (spins < 100000) __builtin_ia32_pause();
        else std::this_thread::yield();
      }
      call_(object_);
      done_.store(++seen, std::memory_order_release);
    }
  }
  int threads_;
  std::thread worker_;
  std::atomic<bool> stop_{false};
  alignas(64) std::atomic<int> go_{0};
  alignas(64) std::atomic<int> done_{0};
  const void* object_ = nullptr;
  void (*call_)(const void*) = nullptr;
};

/// Touched already, in huge pages where the kernel grants them; given back with the row.
class Buffer {
 public:
  explicit Buffer(std::size_t n) : bytes_((n * sizeof(float) + kHuge - 1) / kHuge * kHuge) {
    void* p = std::aligned_alloc(kHuge, bytes_);
    madvise(p, bytes_, MADV_HUGEPAGE);
    data_.reset(static_cast<float*>(p), std::free);
    for (std::size_t i = 0; i < bytes_ / sizeof(float); ++i)
      data_.get()[i] = 0.1f + static_cast<float>(i % 1000) * 1e-3f;
  }
  operator float*() const { return data_.get(); }

 private:
  static constexpr std::size_t kHuge = 2u << 20;
  std::size_t bytes_;
  std::shared_ptr<float> data_;
};

void map(Duo& duo, Map kernel, const float* a, const float* b, float* c, std::size_t n, bool stream) {
  if (n < 20000 || duo.threads() == 1) return kernel(a, b, c, 0, n, stream);  // a hand-over costs about 0.5 us
  std::size_t half = n / 2 / 64 * 64;
  duo.run([=](int part) { part ? kernel(a, b, c, half, n, stream) : kernel(a, b, c, 0, half, stream); });
}

void elementwise(Duo& duo, const Kernels& k) {
  struct Kind {
    const char* name;
    Map kernel;
    bool binary;
  };
  for (Kind kind : {Kind{"add", k.add, true},
                    {"mul", k.mul, true},
                    {"relu", k.relu, false},
                    {"exp", k.exp, false},
                    {"chain10", k.chain10, false}})
    for (auto [n, tag] : {std::pair<std::size_t, const char*>{1000, ".1e3"}, {100000, ".1e5"}, {10000000, ".1e7"}})
      for (bool stream : {false, true}) {  // the limit of a row is the smaller of the two
        if (stream && n < 10000000) continue;
        std::size_t size = n;
        row(std::string("ew.") + kind.name + tag + (stream ? ".stream" : ""), [=, &duo] {
          Buffer a(size), b = kind.binary ? Buffer(size) : a, c(size);
          return [=, &duo] { map(duo, kind.kernel, a, b, c, size, stream); };
        });
      }
}

/// `blocks` mallocs and frees, `counts` atomic counts up and down, one indirect call on four
/// floats.
void small_floor(const char* name, int blocks, int counts) {
  row(name, [=] {
    return [=] {
      static std::atomic<int> count[8];
      static float x[4] = {1, 2, 3, 4};
      static void (*volatile kernel)(float*, const float*) = [](float* c, const float* a) {
        for (int i = 0; i < 4; ++i) c[i] = a[i] + a[i];
      };
      void* block[4];
      for (int i = 0; i < blocks; ++i) std::memset(block[i] = std::malloc(i ? 64 : 192), 0, i ? 64 : 192);
      for (int i = 0; i < counts; ++i) count[i].fetch_add(1, std::memory_order_relaxed);
      kernel(static_cast<float*>(block[blocks - 1]), x);
      for (int i = 0; i < counts; ++i) count[i].fetch_sub(1, std::memory_order_acq_rel);
      for (int i = 0; i < blocks; ++i) std::free(block[i]);
    };
  });
}

template <class Work>
double best_seconds(int repeats, Work work) {
  double best = 1e9;
  for (int i = 0; i < repeats; ++i) {
    double start = bench::now();
    work();
    best = std::min(best, bench::now() - start);
  }
  return best;
}

/// FMA peak and bandwidth at 4, 40 and 400 MB, as header fields.
std::string peaks(Duo& duo, const Kernels& k) {
  char text[200];
  double flops = 0, seconds = best_seconds(5, [&] {
                      double each[2] = {};
                      duo.run([&](int part) { each[part] = k.fma_loop(1000000); });
                      flops = each[0] + each[1];
                    });
  std::snprintf(text, sizeof text, "\"gflops\": %.0f", flops / seconds / 1e9);
  std::string out = text;
  for (std::size_t n : {std::size_t{1000000}, std::size_t{10000000}, std::size_t{100000000}}) {
    Buffer a(n), c(n);
    int repeats = n > 50000000 ? 3 : 10;
    double gigabytes = static_cast<double>(n) * 4e-9;
    double read = best_seconds(repeats, [&] {
      duo.run([&](int part) {
        volatile float sink = k.sum(a + (part ? n / 2 : 0), n / 2);
        (void)sink;
      });
    });
    double copy = best_seconds(repeats, [&] { map(duo, k.copy, a, a, c, n, false); });
    double stream = best_seconds(repeats, [&] { map(duo, k.copy, a, a, c, n, true); });
    std::snprintf(text, sizeof text, ", \"gb_s_%zuMB\": {\"read\": %.1f, \"copy\": %.1f, \"copy_stream\": %.1f}",
                  n * 4 / 1000000, gigabytes / read, 2 * gigabytes / copy, 2 * gigabytes / stream);
    out += text;
  }
  return out;
}

}  // namespace limits

int main(int argc, char** argv) {
  auto options = bench::parse(argc, argv);
  limits::Duo duo(options.threads);
  const limits::Kernels& kernels = limits::best();
  row("sys.malloc_free_64B", [] {
    return [] {
      void* p = std::malloc(64);
      asm volatile("" : : "r"(p) : "memory");
      std::free(p);
    };
  });
  row("sys.fresh_40MB",
      [] {  // what a C library does with a large result: map, fault every page, unmap
        return [] {
          auto* p = static_cast<char*>(std::malloc(40000000));
          for (std::size_t i = 0; i < 40000000; i += 4096) p[i] = 1;
          asm volatile("" : : "r"(p) : "memory");
          std::free(p);
        };
      });
  row("sys.hand_over", [&] { return [&] { duo.run([](int) {}); }; });
  limits::small_floor("small.add", 2, 0);
  limits::small_floor("small.add_tracked", 3, 2);
  limits::small_floor("small.reshape", 1, 1);
  limits::small_floor("small.sum4", 2, 0);
  limits::small_floor("small.create4", 2, 0);
  limits::elementwise(duo, kernels);
  row("train.adam_1e7", [&] {
    constexpr std::size_t n = 10000000;
    limits::Buffer w(n), m(n), v(n);
    return [=, &duo, &kernels] {
      duo.run([=, &kernels](int part) {
        volatile float sink = kernels.adam(w, m, v, part * n / 2, (part + 1) * n / 2, 1e-3f);
        (void)sink;
      });
    };
  });
  std::string header = std::string("\"peer\": \"limits\", \"level\": \"") + kernels.level + "\"";
  if (!options.list && !options.here) header += ", " + limits::peaks(duo, kernels);
  return bench::run(options, header);
}
