// OpenBLAS called directly through cblas, with its own threads, on reused buffers. --library PATH
// of libopenblas.so.0, or of the library inside the scipy-openblas32 wheel (whose symbols begin
// with scipy_).
#include <dlfcn.h>

#include "../../timer.h"

using bench::row;

namespace {

using Sgemm = void (*)(int order, int transpose_a, int transpose_b, int m, int n, int k,
                       float alpha, const float* a, int lda, const float* b, int ldb, float beta,
                       float* c, int ldc);

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
  auto set_threads = reinterpret_cast<void (*)(int)>(symbol("openblas_set_num_threads"));
  auto core = reinterpret_cast<char* (*)()>(symbol("openblas_get_corename"));
  auto config = reinterpret_cast<char* (*)()>(symbol("openblas_get_config"));
  if (!sgemm || !set_threads || !core || !config)
    return std::fprintf(stderr, "%s: no OpenBLAS\n", options.library.c_str()), 1;
  set_threads(options.threads);
  for (int n : {2, 512, 1024})
    row(n == 2 ? "small.matmul2" : "mm.sq" + std::to_string(n), [=] {
      auto size = static_cast<std::size_t>(n) * static_cast<std::size_t>(n);
      return [=, a = filled(size), b = filled(size), c = filled(size)] {
        sgemm(/*row-major*/ 101, /*no transpose*/ 111, 111, n, n, n, 1.f, a, n, b, n, 0.f, c, n);
      };
    });
  return bench::run(options, "\"peer\": \"openblas\", \"core\": \"" + bench::plain(core()) +
                                 "\", \"version\": \"" + bench::plain(config()) + "\"");
}
