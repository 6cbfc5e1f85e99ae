// ops/elementwise/op_struct.h - what the structs of elementwise ops are written with: the macros that define their
// gradients.
#pragma once
#include "ops/math/math.h"
#include "ops/elementwise/unary_function.h"
#include "ops/engine/refusals.h"
#ifndef KASSETTE_DEVICE_CODE
#include "ops/engine/expr.h"
#endif

#ifdef KASSETTE_DEVICE_CODE
#define KASSETTE_GRADIENT(expression)
#define KASSETTE_NO_GRADIENT
#define KASSETTE_PATTERN(name)
#else
/// Defines the vjp. In the expression dy is the cotangent, x() and y() are the input and the output (kept only if
/// `reads` names them), and attrs.as<Attrs>() are the op's attributes.
#define KASSETTE_GRADIENT(expression) \
  static void gradient(const VjpContext& ctx) { \
    [[maybe_unused]] const Tensor& dy = ctx.dy(); \
    [[maybe_unused]] auto x = [&] { return ctx.in(0); }; \
    [[maybe_unused]] auto y = [&] { return ctx.out(); }; \
    [[maybe_unused]] const kassette::Attrs& attrs = ctx.attrs; \
    ctx.din(0) = (expression); \
  }
/// Gradients through the op are None.
#define KASSETTE_NO_GRADIENT static constexpr Vjp gradient = nullptr;
/// What the engine may do with the op: a Pattern of ops/engine/op.h.
#define KASSETTE_PATTERN(name) static constexpr Pattern pattern = Pattern::name;
#endif

#ifdef KASSETTE_DEVICE_CODE
#define KASSETTE_GRADIENTS(da, db)
#else
/// Gradients with respect to both inputs. dy is the cotangent, a(), b() and y() the inputs and the output; only those
/// that the op's `reads` names have a value. The engine sums over broadcast axes. Tensor() stands for no gradient.
#define KASSETTE_GRADIENTS(da, db) \
  static void gradient(const VjpContext& ctx) { \
    [[maybe_unused]] const Tensor& dy = ctx.dy(); \
    [[maybe_unused]] auto a = [&] { return ctx.in(0); }; \
    [[maybe_unused]] auto b = [&] { return ctx.in(1); }; \
    [[maybe_unused]] auto y = [&] { return ctx.out(); }; \
    if (ctx.wants(0)) ctx.din(0) = (da); \
    if (ctx.wants(1)) ctx.din(1) = (db); \
  }
#endif
