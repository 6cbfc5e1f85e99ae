// OpenBLAS called directly through cblas, with its own threads, on reused buffers. --library PATH
// of libopenblas.so.0, or of the library inside the scipy-openblas32 wheel (whose symbols begin
// with scipy_).
#include <dlfcn.h>

#include "../../timer.h"

using bench::row;

namespace {

using Sgemm = void (*)(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha, const float* a,
                       int lda, const float* b, int ldb, float beta, float* c, int ldc);
using Sgemv = void (*)(int order, int transpose, int m, int n, float alpha, const float* a, int lda, const float* x,
                       int incx, float beta, float* y, int incy);

float* filled(std::size_t n) {  // never freed: a row's buffers live as long as the process
  auto* p = static_cast<float*>(std::aligned_alloc(64, (n * sizeof(float) + 63) / 64 * 64));
  for (std::size_t i = 0; i < n; ++i) p[i] = 0.1f + static_cast<float>(i % 977) * 1e-3f;
  return p;
}

}  // namespace

int main(int argc, char** argv) {
  auto options = bench::parse(argc, argv);
  unsetenv("OPENBLAS_CORETYPE");
  void* library = dlopen(options.library.c_str(), RTLD_NOW);
  if (!library) return std::fprintf(stderr, "%s\n", dlerror()), 1;
  auto symbol = [&](const char* name) {
    void* p = dlsym(library, name);
    return p ? p : dlsym(library, (std::string("scipy_") + name).c_str());
  };
  auto sgemm = reinterpret_cast<Sgemm>(symbol("cblas_sgemm"));
  auto sgemv = reinterpret_cast<Sgemv>(symbol("cblas_sgemv"));
  auto set_threads = reinterpret_cast<void (*)(int)>(symbol("openblas_set_num_threads"));
  auto core = reinterpret_cast<char* (*)()>(symbol("openblas_get_corename"));
  auto config = reinterpret_cast<char* (*)()>(symbol("openblas_get_config"));
  if (!sgemm || !sgemv || !set_threads || !core || !config)
    return std::fprintf(stderr, "%s: no OpenBLAS\n", options.library.c_str()), 1;
  set_threads(options.threads);
  auto product = [=](std::string name, int m, int k, int n, int times = 1, bool ta = false, bool tb = false) {
    auto size = [](int a, int b, int c) { return static_cast<std::size_t>(a * b * c); };
    row(name, [=] {
      return [=, a = filled(size(times, m, k)), b = filled(size(times, k, n)), c = filled(size(times, m, n))] {
        for (int i = 0; i < times; ++i)
          sgemm(/*row-major*/ 101, ta ? 112 : 111, tb ? 112 : 111, m, n, k, 1.f, a + i * m * k, ta ? m : k,
                b + i * k * n, tb ? k : n, 0.f, c + i * m * n, n);
      };
    });
  };
  product("small.matmul2", 2, 2, 2);
  for (int n : {64, 128, 256, 512, 1024}) product("mm.sq" + std::to_string(n), n, n, n);
  product("mm.tall", 4096, 64, 4096);
  product("mm.inner", 64, 4096, 64);
  product("mm.m32_k64_n128", 32, 64, 128);
  product("mm.nt1024", 1024, 1024, 1024, 1, false, true);
  product("mm.tn1024", 1024, 1024, 1024, 1, true, false);
  product("mm.tn_k32_64x128", 64, 32, 128, 1, true, false);
  product("mm.nt_m32_k128_n64", 32, 128, 64, 1, false, true);
  product("mm.batched64", 64, 64, 64, 64);
  product("mm.dot_2d", 2048, 256, 256);
  product("mm.dot_3d", 2048, 256, 256);
  row("mm.gemv4096", [=] {
    return [=, a = filled(4096 * 4096), x = filled(4096), y = filled(4096)] {
      sgemv(101, 111, 4096, 4096, 1.f, a, 4096, x, 1, 0.f, y, 1);
    };
  });
  return bench::run(options, "\"peer\": \"openblas\", \"core\": \"" + bench::plain(core()) + "\", \"version\": \"" +
                                 bench::plain(config()) + "\"");
}
