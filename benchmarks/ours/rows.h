// What our files of rows share: numbers to compute on, and who adds which rows.
#pragma once
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <kassette/backend.h>

namespace K = kassette::backend;
using kassette::Tensor;
using kassette::Tensors;

/// n numbers from a distribution, the same in every run.
template <class Distribution>
std::vector<float> draw(int n, Distribution from) {
  std::mt19937 generator(1);
  std::vector<float> values(static_cast<std::size_t>(n));
  for (float& v : values) v = from(generator);
  return values;
}
inline Tensor uniform(int n) { return K::constant(draw(n, std::uniform_real_distribution<float>(0.1f, 1.1f))); }
inline Tensor uniform(int m, int n) { return K::reshape(uniform(m * n), {m, n}); }
inline Tensor uniform(int l, int m, int n) { return K::reshape(uniform(l * m * n), {l, m, n}); }
inline Tensor uniform(int k, int l, int m, int n) { return K::reshape(uniform(k * l * m * n), {k, l, m, n}); }
/// int32 numbers in [0, most).
inline Tensor integers(int most, int n) { return K::cast((uniform(n) - 0.1) * most, "int32"); }

/// The rows of kernels.cpp: what one family or one kernel costs.
void kernel_rows();
/// The rows of numpy.cpp: np, np::linalg and nn.
void numpy_rows();
/// The rows of convolution.cpp: convolution, pooling, resizing, and a network of them.
void convolution_rows();
/// The rows of files.cpp: files, and tensors as people look at them.
void file_rows();
/// The rows of threads.cpp: work of growing size.
void thread_rows();

/// The rows of device.cpp: those of a CUDA device, while a DeviceScope of it lives; `tiny`: at sizes for an emulated
/// one.
void device_rows(bool tiny);
/// What the driver says of a CUDA device, as JSON fields that begin with a comma; without a driver `"emulated": true`.
std::string device_facts(const std::string& device);
