// ops/elementwise/unary_function.h - a unary op as a function of one value, whether it has attributes or not.
#pragma once
#include <cstring>

#include "core/attrs.h"
#include "ops/math/math.h"

namespace kassette::ops {

/// True if an op has attributes, a struct Op::Attrs.
template <class Op>
concept HasAttrs = requires {
  typename Op::Attrs;
};

/// The attributes of any unary op as the code of a chain holds them: a copy of the fields, three numbers at most.
struct ChainAttrs {
  double fields[3];
};
inline ChainAttrs chain_attrs(const Attrs& attrs) {
  ChainAttrs copy;
  std::memcpy(copy.fields, attrs.fields(), sizeof copy.fields);
  return copy;
}

/// A unary op as a function of one value, with the attributes that it has.
template <class Op>
struct UnaryFunction {
  inline __attribute__((always_inline)) explicit UnaryFunction(const Attrs&) {}
  KASSETTE_FN explicit UnaryFunction(const ChainAttrs&) {}
  template <class V>
  KASSETTE_FN V operator()(const V& x) const {
    return Op::value(x);
  }
};
template <HasAttrs Op>
struct UnaryFunction<Op> {
  using A = typename Op::Attrs;
  static_assert(sizeof(A) <= sizeof(ChainAttrs));
  inline __attribute__((always_inline)) explicit UnaryFunction(const Attrs& attrs) : a_(attrs.as<A>()) {}
  KASSETTE_FN explicit UnaryFunction(const ChainAttrs& code) {
    const double* from = code.fields;
    attrs::each_field(
        a_, [&](double& field) __attribute__((always_inline)) { field = *from++; });
  }
  template <class V>
  KASSETTE_FN V operator()(const V& x) const {
    return Op::value(x, a_);
  }

 private:
  A a_;
};

}  // namespace kassette::ops
