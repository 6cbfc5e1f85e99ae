// nn_backend/backend.h - the Keras backend API: namespace K = kassette::backend.
#pragma once
#include <kassette/api.h>
#include <kassette/error.h>
#include <kassette/tensor.h>

namespace kassette {
namespace backend {
using kassette::None;
using kassette::Tensor;
using kassette::Tensors;
}  // namespace backend
}  // namespace kassette
