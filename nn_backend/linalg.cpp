// nn_backend/linalg.cpp - products of tensors.
#include <kassette/backend/linalg.h>

#include "core/text.h"
#include "nn_backend/named.h"
#include "ops/dispatch.h"
#include "ops/matmul.h"
#include "ops/operand.h"

namespace kassette {
namespace backend {

Tensor dot(const Operand& x, const Operand& y) {
  KASSETTE_DISPATCH(dot, x, y);
  DType dtype = dtype_beside(x, y);
  return in_name_of("dot", [&] { return kassette::dot(Arg(x, dtype, "dot"), Arg(y, dtype, "dot")); });
}

Tensor batch_dot(const Operand& x_operand, const Operand& y_operand, const Axes& axes) {
  KASSETTE_DISPATCH(batch_dot, x_operand, y_operand, axes);
  DType dtype = dtype_beside(x_operand, y_operand);
  Arg x(x_operand, dtype, "batch_dot"), y(y_operand, dtype, "batch_dot");
  if (axes.size_ == 0 || axes.size_ > 2)
    fail<ValueError>("batch_dot: ", axes.size_, " axes given; it takes one of x and one of y, or one that stands for both");
  bool given = axes.size_ > 0, matrix = y.tensor().defined() && y.body().rank == 2;
  int of_x = given ? axes.axes_[0] : -1, of_y = given ? axes.axes_[axes.size_ - 1] : matrix ? -1 : -2;
  return in_name_of("batch_dot", [&] { return kassette::batch_dot(x, y, of_x, of_y); });
}

}  // namespace backend
}  // namespace kassette
