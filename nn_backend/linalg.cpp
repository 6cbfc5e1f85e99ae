// nn_backend/linalg.cpp - products of tensors.
#include <kassette/backend/linalg.h>

#include "core/text.h"
#include "ops/matmul.h"
#include "ops/operand.h"

namespace kassette {
namespace backend {

Tensor dot(const Operand& x, const Operand& y) {
  DType dtype = dtype_beside(x, y);
  return kassette::dot(Arg(x, dtype, "dot"), Arg(y, dtype, "dot"));
}

Tensor batch_dot(const Operand& x_operand, const Operand& y_operand, const Axes& axes) {
  DType dtype = dtype_beside(x_operand, y_operand);
  Arg x(x_operand, dtype, "batch_dot"), y(y_operand, dtype, "batch_dot");
  if (axes.size_ == 0 || axes.size_ > 2)
    fail<ValueError>("batch_dot: ", axes.size_, " axes given; it takes one of x and one of y, or one that stands for both");
  if (axes.size_ > 0) return kassette::batch_dot(x, y, axes.axes_[0], axes.axes_[axes.size_ - 1]);
  bool matrix = y.tensor().defined() && y.body().rank == 2;
  return kassette::batch_dot(x, y, -1, matrix ? -1 : -2);
}

}  // namespace backend
}  // namespace kassette
