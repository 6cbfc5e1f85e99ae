// nn_backend/named.h - messages of compositions: errors in the name of the function that the user called.
#pragma once
#include "core/tensor.h"

namespace kassette {
namespace backend {

/// Inside a catch: throws the error again, its message in the name of `what` instead of that of an op inside.
[[noreturn]] void rethrow_as(const char* what);

/// f(), whose errors speak in the name of `what`. f calls nothing of the user's.
template <class F>
Tensor in_name_of(const char* what, F&& f) {
  try {
    return f();
  } catch (...) {
    rethrow_as(what);
  }
}

}  // namespace backend
}  // namespace kassette
