// devices/cuda/driver.cpp - looking up functions of the CUDA driver API without linking to its library.
#include "devices/cuda/driver.h"

#include <cuda_runtime.h>

namespace kassette::cuda {
namespace {

Driver functions = {};

template <class F>
bool find(const char* name, F** function) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSymbolNotFound;
#if CUDART_VERSION >= 12050
  const cudaError_t error = cudaGetDriverEntryPointByVersion(name, &found, 12000, cudaEnableDefault, &result);
#else
  const cudaError_t error = cudaGetDriverEntryPoint(name, &found, cudaEnableDefault, &result);
#endif
  *function = reinterpret_cast<F*>(found);
  return error == cudaSuccess && result == cudaDriverEntryPointSuccess && found;
}
}  // namespace

bool find_driver() {
  static const bool found = find("cuDevicePrimaryCtxRetain", &functions.retain) &&
                            find("cuCtxGetCurrent", &functions.get_current) &&
                            find("cuCtxSetCurrent", &functions.set_current);
  return found;
}

const Driver& driver() { return functions; }

}  // namespace kassette::cuda
