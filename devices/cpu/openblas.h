// devices/cpu/openblas.h - what surrounds each call of OpenBLAS, and products by it.
#pragma once
#include "devices/cpu/gemm.h"

namespace kassette::devices {

/// Surrounds calls of OpenBLAS: sets it to one thread, ensures that there is a buffer for this thread
/// and that it stays (Note [OpenBLAS' buffers], Note [Products while the process ends]).
class OpenBlasCall {
 public:
  OpenBlasCall();
  ~OpenBlasCall();
  OpenBlasCall(const OpenBlasCall&) = delete;
  OpenBlasCall& operator=(const OpenBlasCall&) = delete;
};

/// A product by OpenBLAS, or its sum with what is in `out`, to compare with: false unless KASSETTE_PRODUCTS is
/// "openblas", and if a size is above its 32-bit integers. Its bits may depend on the number of threads.
bool multiply_by_openblas(const GemmShape& p, const float* a, const float* b, float* out, bool add);
bool multiply_by_openblas(const GemmShape& p, const double* a, const double* b, double* out, bool add);

}  // namespace kassette::devices
