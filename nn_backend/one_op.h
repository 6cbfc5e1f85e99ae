// nn_backend/one_op.h - the definitions of K functions that are exactly one op.
#pragma once
#include "ops/engine/dispatch.h"
#include "ops/engine/operand.h"

/// Defines the K function of a tensor x that is the op of its name: KASSETTE_ONE_OP(sum, (const Operand& x, const Axes&
/// axis, bool keepdims), axis, keepdims). After the parameters: what follows x in calls.
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
