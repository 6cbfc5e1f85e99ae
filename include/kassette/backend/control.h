// include/kassette/backend/control.h - control flow that can be differentiated.
#ifndef KASSETTE_BACKEND_CONTROL_H
#define KASSETTE_BACKEND_CONTROL_H
#include <kassette/api.h>
#include <kassette/none.h>

namespace kassette {
namespace backend {

/// then_expression where the condition holds, else else_expression. With a scalar condition only the chosen callable
/// runs; a condition of higher rank selects element-wise, aligned with the leading axes. Both expressions must have the
/// same shape and dtype. With callables, a condition that depends on variables alone is evaluated now, even if a
/// function is made from the result later; call switch_ inside K::symbolic to have it evaluated at each call. Throws
/// ValueError if the condition's rank is above theirs.
KASSETTE_API Tensor switch_(const Operand& condition, const Branch& then_expression, const Branch& else_expression);

/// x in training, else alt. `training`: a number, a tensor, or None for the learning phase, which is test unless it is
/// fed, frozen or scoped.
KASSETTE_API Tensor in_train_phase(const Branch& x, const Branch& alt, const Operand& training = None);
/// alt in training, else x.
KASSETTE_API Tensor in_test_phase(const Branch& x, const Branch& alt, const Operand& training = None);

/// fn(... fn(fn(initializer, elems[0]), elems[1]) ..., elems[n-1]), along axis 0; without an initializer it starts from
/// elems[0]. fn(acc, x) must return the shape and dtype of acc. On placeholders the loop is one node of the tape, for
/// any length.
KASSETTE_API Tensor foldl(Callable<Tensor(const Tensor&, const Tensor&)> fn, const Operand& elems,
                          const Operand& initializer = None, Name name = None);
/// The same from the last element down to the first.
KASSETTE_API Tensor foldr(Callable<Tensor(const Tensor&, const Tensor&)> fn, const Operand& elems,
                          const Operand& initializer = None, Name name = None);

/// While it lives, loops that this thread makes (foldl, foldr, rnn, map_fn) need little memory for first gradients:
/// they save their states before every n-th step only, and the backward pass computes the n steps from there again.
/// Memory grows with T / n + n instead of T, at the cost of a second forward pass (a third on eager tensors). Random
/// numbers are the same the second time. The function of an eager loop is called once, as on placeholders: a C++ `if`
/// in it is decided in that call.
class KASSETTE_API CheckpointScope {
 public:
  explicit CheckpointScope(std::int64_t steps);
  ~CheckpointScope();
  CheckpointScope(const CheckpointScope&) = delete;
  CheckpointScope& operator=(const CheckpointScope&) = delete;

 private:
  std::int64_t old_;
};
/// `auto scope = K::checkpoint_steps(100);` With 0, the default, n is about the square root of the number of steps.
[[nodiscard]] inline CheckpointScope checkpoint_steps(std::int64_t n = 0) { return CheckpointScope(n); }

}  // namespace backend
}  // namespace kassette

#endif  // KASSETTE_BACKEND_CONTROL_H
