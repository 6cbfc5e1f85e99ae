// include/kassette/backend/state.h - reading and changing variables.
#ifndef KASSETTE_BACKEND_STATE_H
#define KASSETTE_BACKEND_STATE_H
#include <kassette/api.h>

namespace kassette {
namespace backend {

/// x <- new_x. Runs at once and returns x; inside K::symbolic, or if new_x depends on a placeholder, it returns an op
/// for `function` or `eval`, whose value is the new one. Throws ValueError if the shapes differ, TypeError if x is not
/// a variable.
KASSETTE_API Tensor update(const Tensor& x, const Operand& new_x);
/// x <- x + increment; otherwise like update.
KASSETTE_API Tensor update_add(const Tensor& x, const Operand& increment);
/// x <- x - decrement; otherwise like update.
KASSETTE_API Tensor update_sub(const Tensor& x, const Operand& decrement);
/// x <- momentum * x + (1 - momentum) * value; otherwise like update.
KASSETTE_API Tensor moving_average_update(const Tensor& x, const Operand& value, const Operand& momentum);

/// The value of any tensor, without history, on its device; of a sparse tensor, its dense value. A symbolic tensor is
/// computed now, and the updates in it are applied. Throws ValueError if a placeholder that it needs has no value.
KASSETTE_API Tensor eval(const Operand& x);
/// x as a new tensor. Each time it is computed - now, if x has a value, else at each call of a function or step of a
/// loop that needs it - a line is written: the message, a space, and the value as NumPy prints it. It is written to
/// standard output, or to the sink of set_print_sink (<kassette/print.h>). The gradient passes through, and writes
/// nothing.
KASSETTE_API Tensor print_tensor(const Operand& x, Name message = "");
/// The value of a variable (or of any tensor), as returned by eval.
KASSETTE_API Tensor get_value(const Operand& x);
KASSETTE_API Tensors batch_get_value(const Tensors& ops);
/// x <- value, at once in every scope: converted to the dtype of x; throws ValueError unless the shapes are equal.
KASSETTE_API void set_value(const Tensor& x, const Operand& value);
/// One assignment of batch_set_value.
struct ValuePair {
  ValuePair(const Tensor& v, const Operand& x) : variable(v), value(x) {}
  Tensor variable;
  KeptOperand value;
};
/// Sets several variables; checks all values before it writes any.
KASSETTE_API void batch_set_value(std::initializer_list<ValuePair> tuples);
KASSETTE_API void batch_set_value(const Tensors& variables, const Tensors& values);

}  // namespace backend
}  // namespace kassette

#endif  // KASSETTE_BACKEND_STATE_H
