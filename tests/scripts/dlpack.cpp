// tests/scripts/dlpack.cpp - our side of dlpack.py: tensors for NumPy, and what we make of NumPy's arrays.
#include <kassette/backend.h>
#include <kassette/dlpack.h>
#include <kassette/print.h>

#include <cstdio>
#include <string>

namespace K = kassette::backend;
using kassette::Tensor;

extern "C" {

/// Elements 0, 1, 2, ... of a shape and dtype.
kassette::dlpack::DLManagedTensor* ours(const char* dtype, int rows, int columns) {
  Tensor x = K::cast(K::reshape(K::arange(0, rows * columns), {rows, columns}), std::string(dtype));
  return kassette::to_dlpack(x);
}
/// The text of what NumPy exported, and whether it lies where NumPy's array lies.
int theirs(kassette::dlpack::DLManagedTensor* managed, const void* data, char* text, int size) {
  try {
    Tensor x = kassette::from_dlpack(managed);
    kassette::set_print_options({.details = false});
    std::snprintf(text, static_cast<std::size_t>(size), "%s %s", x.dtype().name(), kassette::array_text(x).c_str());
    return x.size() && x.data(x.dtype()) == data;
  } catch (const kassette::Error& e) {
    std::snprintf(text, static_cast<std::size_t>(size), "%s", e.what());
    return -1;
  }
}
}
