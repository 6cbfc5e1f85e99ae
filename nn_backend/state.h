// nn_backend/state.h - reading and changing variables.
#ifndef KASSETTE_BACKEND_STATE_H
#define KASSETTE_BACKEND_STATE_H
#include <kassette/api.h>

namespace kassette {
namespace backend {

/// x <- new_x. Runs at once and returns x; inside K::symbolic, or where new_x depends on a placeholder, it is an op for
/// `function` or `eval`, whose value is the new one. Shapes must be equal (ValueError); x must be a variable
/// (TypeError).
KASSETTE_API Tensor update(const Tensor& x, const Operand& new_x);
/// x <- x + increment; as update.
KASSETTE_API Tensor update_add(const Tensor& x, const Operand& increment);
/// x <- x - decrement; as update.
KASSETTE_API Tensor update_sub(const Tensor& x, const Operand& decrement);
/// x <- momentum * x + (1 - momentum) * value; as update.
KASSETTE_API Tensor moving_average_update(const Tensor& x, const Operand& value, const Operand& momentum);

/// The value of any tensor: without history, on its device; of a sparse one dense. What is symbolic is computed now,
/// updates in it applied. Throws ValueError where a placeholder it needs has no value.
KASSETTE_API Tensor eval(const Operand& x);
/// x as a new tensor. Each time it is computed - now, if x has a value, else at each call of a function or step of a
/// loop that needs it - a line is written: the message, a space, the value as NumPy prints it. To standard output, or
/// where set_print_sink (<kassette/print.h>) says. The gradient passes, and writes nothing.
KASSETTE_API Tensor print_tensor(const Operand& x, Name message = "");
/// The value of a variable (or of any tensor), as eval.
KASSETTE_API Tensor get_value(const Operand& x);
KASSETTE_API Tensors batch_get_value(const Tensors& ops);
/// x <- value, at once in every scope: converted to the dtype of x; throws ValueError unless the shapes are equal.
KASSETTE_API void set_value(const Tensor& x, const Operand& value);
/// One assignment of batch_set_value. Refers to the value: in a pair that is kept, not a list in braces, which ends
/// with its line.
struct ValuePair {
  ValuePair(const Tensor& v, const Operand& x) : variable(v), value(x) {}
  Tensor variable;
  Operand value;
};
/// Sets many; checks all before it writes any.
KASSETTE_API void batch_set_value(std::initializer_list<ValuePair> tuples);
KASSETTE_API void batch_set_value(const Tensors& variables, const Tensors& values);

}  // namespace backend
}  // namespace kassette

#endif  // KASSETTE_BACKEND_STATE_H
