// include/kassette/kept_operand.h - a member of a struct of options that is accepted where a tensor is expected.
#ifndef KASSETTE_KEPT_OPERAND_H
#define KASSETTE_KEPT_OPERAND_H
#include <initializer_list>
#include <type_traits>

#include <kassette/tensor.h>

namespace kassette {

/// An Operand in a struct of options, which may live longer than what it was made of: a tensor is kept, and lists,
/// containers and arrays are copied.
class KASSETTE_API KeptOperand : public Operand {
 public:
  template <class T, std::enable_if_t<std::is_convertible<const T&, Operand>::value &&
                                          !std::is_same<std::decay_t<T>, KeptOperand>::value,
                                      int> = 0>
  KeptOperand(const T& x) : Operand(x) {
    if (kind_ >= kTensor) keep();
  }
  KeptOperand(std::initializer_list<Operand> items) : Operand(items) { keep(); }
  KeptOperand(const KeptOperand& other) noexcept;
  KeptOperand& operator=(const KeptOperand& other) noexcept;
  ~KeptOperand();

 private:
  struct Values;
  void keep();
  Values* values_ = nullptr;  // what the operand refers to
};

}  // namespace kassette

#endif  // KASSETTE_KEPT_OPERAND_H
