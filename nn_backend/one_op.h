// nn_backend/one_op.h - the definitions of K functions that are exactly one op.
#pragma once
#include "ops/engine/dispatch.h"
#include "ops/engine/operand.h"

/// Defines the K function of a tensor x that is the op of its name in `ops`. Behind the parameters come the arguments
/// that follow x: KASSETTE_ONE_OP(cumsum, (const Operand& x, int axis), axis).
#define KASSETTE_ONE_OP(function, parameters, ...) \
  Tensor function parameters { \
    KASSETTE_DISPATCH(function, x __VA_OPT__(, ) __VA_ARGS__); \
    return ::kassette::ops::function(Arg(x, DType(), {#function, "x"}) __VA_OPT__(, ) __VA_ARGS__); \
  }
/// Defines the K function of two operands, of which a number or a list takes the dtype of the other.
#define KASSETTE_ONE_OP_OF_TWO(function) \
  Tensor function(const Operand& x, const Operand& y) { \
    KASSETTE_DISPATCH(function, x, y); \
    return ::kassette::ops::function(x, y); \
  }
