// tests/op_samples.h - the table that all sweeps read: how to call each K function, and each op that no K function
// uses. An op or K function that is in no sample fails a test (tests/sweeps/coverage_test.cpp), which also lists the
// few that need none. To add one: a line here. What the members mean is in tests/sweeps/sample.h; x, y, z, w are the
// inputs.
#pragma once
#include <cmath>

#include "ops/collective/collective.h"
#include "ops/engine/expr.h"
#include "ops/order/order.h"
#include "ops/product/matmul.h"
#include "ops/shape/positions.h"
#include "ops/softmax/softmax.h"
#include "tests/sweeps/sample.h"

namespace kassette::test {
using namespace ops;
using devices::all_ranks;
namespace {

namespace K = kassette::backend;

/// The expression as text, and as a function of the inputs.
#define CALL(expression) \
#expression, [](const Tensor* in) -> Tensors {                                       \
    [[maybe_unused]] const Tensor &x = in[0], &y = in[1], &z = in[2], &w = in[3];      \
    return expression;                                                                 \
  }

// ---- shapes that many share
inline constexpr const char* kOne = "(2,3) | (4,3) | (1,1) | (0,3) | () | (3) | (1) | (2,1,3) | (3,2,2) | (2,1,2,1,2)";
inline constexpr const char* kTwo =
    "(2,3) (2,3) | (4,3) (4,3) | (2,1) (1,3) | (1,3) (2,3) | (2,1) (2,3) | (0,3) (1,3) | (2,3) (3) | (4,1) (3) | "
    "(2,3) () | (0,3) () | () (2,3) | () () | (2,1,3) (4,1) | (3) (1)";
inline constexpr const char* kTwoWrong = "(2,3) (4,3) | (2,3) (2) | (3) (4)";
inline constexpr const char* kReduce = "(2,3) | (4,3) | (1,1) | (3,1)";
inline constexpr const char* kReduce3 = "(2,3,2) | (4,1,3) | (1,1,1)";
inline constexpr const char* kMatrix = "(2,3) | (4,3) | (1,1) | (0,3)";

// ---- ranges of values
/// kSmall: where tanh is far from 1, whose last place is many of those of its slope.
inline constexpr Input kReal{}, kSmall{-0.6, 0.6}, kPositive{0.2, 3}, kUnit{0.05, 0.95},
    kBool{.low = 0, .high = 1, .dtype = bool_, .differentiable = false}, kNoPath{.differentiable = false},
    kTarget{.low = 0.05, .high = 0.95, .mixes = true};
inline constexpr Input kOptionalBool{.low = 0, .high = 1, .dtype = bool_, .differentiable = false, .optional = true},
    kOptional{.optional = true}, kOptionalPositive{.low = 0.2, .high = 3, .optional = true};
inline constexpr Input kShape{.differentiable = false, .host = true},
    kCondition{.low = 0, .high = 1, .dtype = bool_, .differentiable = false, .host = true};
constexpr Input index_below(int n, DType dtype = int32) {
  return {.low = 0, .high = n - 1.0, .dtype = dtype, .differentiable = false};
}
/// Where entries of sparse tensors are.
constexpr Input place_below(int n, DType dtype = int32) {
  return {.low = 0, .high = n - 1.0, .dtype = dtype, .differentiable = false, .anywhere = true};
}

inline constexpr Takes kFloats = Takes::floats, kNumbers = Takes::numbers, kAnything = Takes::anything,
                       kBools = Takes::bools;
inline constexpr Order kSecond = Order::second, kNone = Order::none;

// Results as a list, in a function of their own: tests/scripts/overhead.sh takes its cost away.
[[gnu::noinline]] inline Tensors list(const K::CtcDecoded& d, const Tensor& scores) {
  Tensors all = d.decoded;
  all.push_back(K::cast(d.log_prob, scores.dtype()));
  return all;
}
[[gnu::noinline]] inline Tensors list(const K::NormalizedBatch& batch) {
  return {batch.normalized, batch.mean, batch.variance};
}
[[gnu::noinline]] inline Tensors list(const ops::TopK& top) { return {top.values, top.indices}; }
[[gnu::noinline]] inline Tensors list(const K::RnnResult& r) {
  Tensors all{r.last_output, r.outputs};
  for (const Tensor& s : r.new_states) all.push_back(s);
  return all;
}

// clang-format off
inline constexpr Sample kOpSamples[] = {
    // ---- elementwise.h
    {"square", kOne, CALL(K::square(x)), {kReal}, kNumbers},
    {"abs", kOne, CALL(K::abs(x)), {kReal}, kNumbers},
    {"sqrt", kOne, CALL(K::sqrt(x)), {kPositive}},
    {"exp", kOne, CALL(K::exp(x)), {kReal}},
    {"log", kOne, CALL(K::log(x)), {kPositive}},
    {"log1p", kOne, CALL(K::log1p(x)), {{-0.6, 2}}},
    {"round", kOne, CALL(K::round(x)), {kReal}, kNumbers, kNone},
    {"sign", kOne, CALL(K::sign(x)), {kReal}, kNumbers},
    {"sin", kOne, CALL(K::sin(x)), {kReal}},
    {"cos", kOne, CALL(K::cos(x)), {kReal}},
    {"pow", kTwo, CALL(K::pow(x, y)), {{0.4, 2}, {0.1, 3}}, kNumbers, kSecond, 4, kTwoWrong},
    {"pow", kOne, CALL(K::pow(x, 3)), {kReal}, kNumbers, kSecond, 4},
    {"pow", kOne, CALL(K::pow(x, 2)), {kReal}, kNumbers},
    {"clip", kOne, CALL(K::clip(x, 0, 1)), {{-2.3, 2.3}}, kNumbers},
    {"clip", "(2,3) (3) (3) | (4,3) (3) (1) | (0,3) (1) (1)", CALL(K::clip(x, y, z)), {{-2.3, 2.3}, {-1, -0.5}, {0.6, 1}}, kNumbers, kSecond, 1,
     "(2,3) (2) (3) | (3) (2,3) (3)"},
    {"maximum", kTwo, CALL(K::maximum(x, y)), {kReal, kReal}, kNumbers, kSecond, 1, kTwoWrong},
    {"minimum", kTwo, CALL(K::minimum(x, y)), {kReal, kReal}, kNumbers, kSecond, 1, kTwoWrong},

    // ---- operators
    {"add", kTwo, CALL(x + y), {kReal, kReal}, kNumbers, kSecond, 1, kTwoWrong, {.k = false}},
    {"subtract", kTwo, CALL(x - y), {kReal, kReal}, kNumbers, kSecond, 1, kTwoWrong, {.k = false}},
    {"multiply", kTwo, CALL(x * y), {kReal, kReal}, kNumbers, kSecond, 1, kTwoWrong, {.k = false}},
    {"divide", kTwo, CALL(x / y), {kReal, kPositive}, kNumbers, kSecond, 1, kTwoWrong, {.k = false}},
    {"remainder", kTwo, CALL(x % y), {{-8.9, 8.9}, {2, 3.4}}, kNumbers, kSecond, 4, kTwoWrong, {.k = false}},
    {"floor_divide", kTwo, CALL(kassette::floor_divide(x, y)), {{-8.9, 8.9}, {2, 3.4}}, kNumbers, kNone, 1, kTwoWrong, {.k = false}},
    {"negative", kOne, CALL(-x), {kReal}, kNumbers, kSecond, 1, "", {.k = false}},
    {"logical_and", kTwo, CALL(x & y), {kNoPath, kNoPath}, kBools, kNone, 1, kTwoWrong, {.k = false}},
    {"logical_or", kTwo, CALL(x | y), {kNoPath, kNoPath}, kBools, kNone, 1, kTwoWrong, {.k = false}},
    {"logical_not", kOne, CALL(~x), {kNoPath}, kBools, kNone, 1, "", {.k = false}},

    // ---- comparison.h
    {"equal", kTwo, CALL(K::equal(x, y)), {kReal, kReal}, kAnything, kNone, 1, kTwoWrong},
    {"not_equal", kTwo, CALL(K::not_equal(x, y)), {kReal, kReal}, kAnything, kNone, 1, kTwoWrong},
    {"greater", kTwo, CALL(K::greater(x, y)), {kReal, kReal}, kNumbers, kNone, 1, kTwoWrong},
    {"greater_equal", kTwo, CALL(K::greater_equal(x, y)), {kReal, kReal}, kNumbers, kNone, 1, kTwoWrong},
    {"less", kTwo, CALL(K::less(x, y)), {kReal, kReal}, kNumbers, kNone, 1, kTwoWrong},
    {"less_equal", kTwo, CALL(K::less_equal(x, y)), {kReal, kReal}, kNumbers, kNone, 1, kTwoWrong},

    // ---- activations.h
    {"relu", kOne, CALL(K::relu(x)), {kReal}, kNumbers},
    {"relu", kOne, CALL(K::relu(x, 0.1)), {kReal}},
    {"relu", kOne, CALL(K::relu(x, 0.1, 1.3, 0.25)), {kReal}, kFloats, kSecond, 4},
    {"elu", kOne, CALL(K::elu(x, 0.7)), {kReal}},
    {"softplus", kOne, CALL(K::softplus(x)), {kReal}},
    {"softsign", kOne, CALL(K::softsign(x)), {kReal}},
    {"sigmoid", kOne, CALL(K::sigmoid(x)), {kReal}},
    {"hard_sigmoid", kOne, CALL(K::hard_sigmoid(x)), {{-3.3, 3.3}}},
    {"tanh", kOne, CALL(K::tanh(x)), {kReal}, kFloats, kSecond, 2},

    // ---- reductions.h
    {"sum", kOne, CALL(K::sum(x)), {kReal}, kNumbers, kSecond, 4},
    {"sum", kReduce, CALL(K::sum(x, -1)), {kReal}, kNumbers, kSecond, 4, "()"},
    {"sum", kReduce3, CALL(K::sum(x, {0, 2}, true)), {kReal}, kNumbers, kSecond, 4, "(2,3) | ()"},
    {"sum", kOne, CALL(K::sum(x, {})), {kReal}, kNumbers},
    {"mean", kReduce, CALL(K::mean(x)), {kReal}, kAnything, kSecond, 4},
    {"mean", kReduce3, CALL(K::mean(x, {1, -1}, true)), {kReal}, kAnything, kSecond, 4, "() | (3)"},
    {"nanmean", kReduce, CALL(K::nanmean(x)), {kReal}, kAnything, kSecond, 4},
    {"nanmean", kReduce3, CALL(K::nanmean(x, {1, -1}, true)), {kReal}, kAnything, kSecond, 4, "() | (3)"},
    {"nanmean", "(2,3,2) (2,3,2) | (4,2,3) (4,2,3)", CALL(K::nanmean(ops::where(x, y, K::stop_gradient(y) * NAN), {1, -1})), {kBool, kReal}, kFloats, kSecond, 4, "(2,3,2) (2,3,3)", {.also = "where stop_gradient multiply"}},
    {"max", kReduce, CALL(K::max(x)), {kReal}, kNumbers},
    {"max", kReduce3, CALL(K::max(x, 1)), {kReal}, kNumbers, kSecond, 1, "(3)"},
    {"min", kReduce, CALL(K::min(x, 0, true)), {kReal}, kNumbers, kSecond, 1, "()"},

    {"prod", kReduce, CALL(K::prod(x)), {kReal}, kNumbers, kSecond, 16},
    {"prod", kReduce3, CALL(K::prod(x, {0, -1}, true)), {kReal}, kNumbers, kSecond, 16, "()"},
    {"var", kReduce, CALL(K::var(x)), {kReal}, kAnything, kSecond, 4},
    {"var", kReduce3, CALL(K::var(x, {0, 1})), {kReal}, kAnything, kSecond, 4, "(3)"},
    {"std", "(2,3) | (4,3) | (1,5)", CALL(K::std(x, 1)), {kReal}, kAnything, kSecond, 8, "(3)"},
    {"any", kReduce, CALL(K::any(x, 0)), {{0, 1}}, kAnything, kNone, 1, "()"},
    {"all", kReduce, CALL(K::all(x, None, true)), {{0, 1}}, kAnything, kNone},
    {"argmax", kReduce, CALL(K::argmax(x)), {kReal}, kAnything, kNone, 1, "()"},
    {"argmin", kReduce3, CALL(K::argmin(x, 1)), {kReal}, kAnything, kNone, 1, "(3) | (2,0)"},
    {"argmax", kReduce, CALL(K::argmax(x, None)), {kReal}, kAnything, kNone},
    {"logsumexp", kReduce, CALL(K::logsumexp(x)), {kReal}, kFloats, kSecond, 4},
    {"logsumexp", kReduce3, CALL(K::logsumexp(x, {0, 2}, true)), {kReal}, kFloats, kSecond, 4, "(2)"},
    {"cumsum", kMatrix, CALL(K::cumsum(x)), {kReal}, kNumbers, kSecond, 8, "()"},
    {"cumsum", kReduce3, CALL(K::cumsum(x, -2)), {kReal}, kNumbers, kSecond, 8, "(3)"},
    {"cumprod", kMatrix, CALL(K::cumprod(x)), {kReal}, kNumbers, kSecond, 16, "()"},
    {"cumprod", kReduce3, CALL(K::cumprod(x, 1)), {{0.5, 1.5}}, kNumbers, kSecond, 16, "(3)"},

    // ---- softmax.h, losses.h, normalization.h
    {"softmax", kMatrix, CALL(K::softmax(x)), {kReal}, kFloats, kSecond, 4, "()"},
    {"softmax", kReduce3, CALL(K::softmax(x, 1)), {kReal}, kFloats, kSecond, 4, "(3)"},
    {"categorical_crossentropy", "(2,3) (2,3) | (4,5) (4,5)", CALL(K::categorical_crossentropy(x, y)), {kUnit, {0.2, 0.8}}, kFloats, kSecond, 8, "(2,3) (2,4) | (2,3) (3)"},
    {"categorical_crossentropy", "(3,2) (3,2) | (5,4) (5,4)", CALL(K::categorical_crossentropy(x, y, false, 0)), {kUnit, {0.2, 0.8}}, kFloats, kSecond, 8, "(2,3) (2,4) | () ()"},
    {"categorical_crossentropy", "(2,3) (2,3) | (4,5) (4,5)", CALL(K::categorical_crossentropy(x, y, true, 0)), {kUnit, kReal}, kFloats, kSecond, 8, "(2,3) (2,4) | () ()"},
    {"sparse_categorical_crossentropy", "(2) (2,3) | (4) (4,5)", CALL(K::sparse_categorical_crossentropy(x, y)), {index_below(3), {0.2, 0.8}}, kFloats, kSecond, 8, "(3) (2,3) | () ()"},
    {"sparse_categorical_crossentropy", "(3) (2,3) | (5) (4,5)", CALL(K::sparse_categorical_crossentropy(x, y, true, 0)), {index_below(2), kReal}, kFloats, kSecond, 8, "(2) (2,3)"},
    {"binary_crossentropy", "(2,3) (2,3) | (4,1) (4,1)", CALL(K::binary_crossentropy(x, y)), {kTarget, {0.2, 0.8}}, kFloats, kSecond, 8, "(2,3) (2,1)"},
    {"binary_crossentropy", "(2,3) (2,3) | (4,1) (4,1)", CALL(K::binary_crossentropy(x, y, true)), {kUnit, kReal}, kFloats, kSecond, 8, "(2,3) (2,1)"},
    {"in_top_k", "(2,3) (2) | (4,5) (4)", CALL(K::in_top_k(x, y, 2)), {kReal, index_below(3)}, kFloats, kNone, 1, "(2,3) (3) | (3) (3)"},
    {"l2_normalize", kReduce, CALL(K::l2_normalize(x)), {kReal}, kFloats, kSecond, 4},
    {"l2_normalize", kReduce3, CALL(K::l2_normalize(x, 1)), {kReal}, kFloats, kSecond, 4, "(3)"},

    {"normalize_batch_in_training", "(4,3) (3) (3) | (2,3) (1) (3) | (5,2) () (2)", CALL(list(K::normalize_batch_in_training(x, y, z, 0))), {kReal, kOptionalPositive, kOptional}, kFloats, kSecond, 16, "(4,3) (4) (3) | () () ()"},
    {"normalize_batch_in_training", "(2,3,2,2) (3) | (3,2,1,4) (2)", CALL(list(K::normalize_batch_in_training(x, y, None, {0, 2, 3}, 1e-2))), {kReal, kOptionalPositive}, kFloats, kSecond, 16, "(2,3) (3) | (2,3,2,2) (2)"},
    {"normalize_batch_in_training", "(2,3,2,2,3) (2,2) | (3,2,1,2,2) (3,1)", CALL(list(K::normalize_batch_in_training(x, None, y, {1, -1, 2}))), {kReal, kOptional}, kFloats, kSecond, 16, "(2,3,2,2,3) (2,2,1)"},
    {"normalize_batch_in_training", "(2,3,2,3,2) | (3,2,2,2,1)", CALL(list(K::normalize_batch_in_training(x, None, None, {0, 2, 4}))), {kReal}, kFloats, kSecond, 16, "(2,3,2,3)"},
    {"batch_normalization", "(4,3) (3) (3) (3) (3) | (2,5) (5) (1) (5) (1) | (0,3) (3) (3) (3) (3)", CALL(K::batch_normalization(x, y, z, w, in[4])), {kReal, kReal, kPositive, kOptional, kOptionalPositive}, kFloats, kSecond, 8, "(4,3) (4) (3) (3) (3) | (4,3) (3) (3) (3) (4,1,3)"},
    {"batch_normalization", "(2,3,2) (3) (3) | (4,2,3) (2) (2)", CALL(K::batch_normalization(x, y, z, None, None, 1, 1e-2)), {kReal, kReal, kPositive}, kFloats, kSecond, 8, "(2,3,2) (2) (3) | (2,3,2) (3) (3,3)"},
    {"batch_normalization", "(2,3,2,2) (2,1,2,1) (1,3,1,1) (2) | (3,2,2,1) (3,1,1,1) (1,2,2,1) (1)", CALL(K::batch_normalization(x, y, z, w, None, -1)), {kReal, kReal, kPositive, kOptional}, kFloats, kSecond, 8, "(2,3,2,2) (2,1,2,3) (1,3,1,1) (2)"},

    // ---- ctc.h
    {"ctc_batch_cost", "(2,2) (2,5,3) (2,1) (2,1) | (3,3) (3,6,4) (3,1) (3,1) | (1,0) (1,4,2) (1,1) (1,1) | (0,2) (0,5,3) (0,1) (0,1)", CALL([&] { Tensor cost = K::ctc_batch_cost(x, y, z, w); return K::cast(cost, y.dtype()); }()), {index_below(2), {0.2, 0.8}, {.low = 4, .high = 4, .dtype = int32, .differentiable = false}, {.low = 0, .dtype = int32, .differentiable = false}}, kFloats, kSecond, 16, "(2,2) (3,5,3) (2,1) (2,1) | (2,2) (2,5,3) (2,2) (2,1) | (2,2) (2,5) (2,1) (2,1) | (2,2) (2,5,3) (2,1) (3,1)", {.also = "cast"}},
    {"ctc_label_dense_to_sparse", "(2,3) (2) | (4,1) (4) | (0,2) (0)", CALL(K::to_dense(K::ctc_label_dense_to_sparse(x, y))), {kReal, {.low = 0, .high = 3, .dtype = int32, .differentiable = false, .anywhere = true}}, kAnything, kSecond, 1, "(2,3) (3) | (2) (2) | (2,3) (2,1)", {.also = "to_dense cast"}},

    {"ctc_decode", "(2,5,3) (2) | (3,6,4) (3) | (1,4,2) (1) | (0,5,3) (0)", CALL(list(K::ctc_decode(x, y), x)), {{0.2, 0.8}, {.low = 3, .high = 4, .dtype = int32, .differentiable = false}}, kFloats, kNone, 16, "(2,5,3) (3) | (2,5) (2) | (2,0,3) (2) | (2,5,3) (2,1)", {.also = "cast"}},
    {"ctc_decode", "(2,5,3) (2) | (3,6,4) (3) | (1,4,2) (1) | (0,5,3) (0)", CALL(list(K::ctc_decode(x, y, false, 4, 2, true), x)), {{0.2, 0.8}, {.low = 3, .high = 4, .dtype = int32, .differentiable = false}}, kFloats, kNone, 16, "(2,5,3) (3) | (2,5) (2) | (2,0,3) (2) | (2,5,3) (2,1)", {.also = "cast"}},

    // ---- linalg.h
    {"dot", "(2,3) (3,4) | (4,1) (1,2) | (0,3) (3,2) | (2,0) (0,3)", CALL(K::dot(x, y)), {kReal, kReal}, kNumbers, kSecond, 16, "(2,3) (2,3) | (2,3) (4)"},
    {"dot", "(2,3) (4,3,2) | (1,2) (3,2,1)", CALL(K::dot(x, y)), {kReal, kReal}, kNumbers, kSecond, 16, "(2,3) (3,2,2)"},
    {"batch_dot", "(2,3,4) (2,4,2) | (3,1,2) (3,2,5)", CALL(K::batch_dot(x, y)), {kReal, kReal}, kNumbers, kSecond, 16, "(2,3,4) (2,3,4) | (2,3,4) (3,4,2)"},
    {"batch_dot", "(2,3) (2,3) | (4,2) (4,2)", CALL(K::batch_dot(x, y, 1)), {kReal, kReal}, kNumbers, kSecond, 16, "(2,3) (2,4) | (2,3) (3,3)"},
    {"batch_dot", "(2,3,4) (2,5,3) | (3,1,2) (3,2,1)", CALL(K::batch_dot(x, y, {1, 2})), {kReal, kReal}, kNumbers, kSecond, 16, "(2,3,4) (2,3,4)"},

    {"unranked_product", "(2,3) (3,4) | (1,2) (3,2,1) | (2,1,3) (3) | (0,3) (3,2)", CALL(ops::unranked_dot(x, y)), {kReal, kReal}, kNumbers, kSecond, 16, "(2,3) (2,3) | () (3)", {.k = false, .also = "dot"}},
    {"unranked_product", "(2,3) (2,3) | (4,2) (4,2) | (2,2,3) (2,3)", CALL(ops::unranked_batch_dot(x, y, -1, -1)), {kReal, kReal}, kNumbers, kSecond, 16, "(2,3) (2,4) | (2,3) (3,3) | (2) (2)", {.k = false, .also = "batch_dot"}},

    // ---- convolution.h
    {"conv1d", "(2,5,3) (2,3,4) | (1,4,2) (3,2,1) | (0,5,3) (2,3,4)", CALL(K::conv1d(x, y, 1, "same")), {kReal, kReal}, kFloats, kSecond, 16, "(2,5,3) (2,2,4) | (2,5) (2,3,4) | (2,5,3) (3,4) | (2,5,3) (0,3,4)", {.grows = false}},
    {"conv1d", "(2,6,3) (2,3,4) | (1,5,2) (3,2,1)", CALL(K::conv1d(x, y, 1, "causal", None, 2)), {kReal, kReal}, kFloats, kSecond, 16, "(2,6,3) (2,2,4)", {.grows = false}},
    {"conv2d", "(2,4,3,2) (2,3,2,3) | (1,3,5,1) (3,2,1,2) | (0,4,3,2) (2,3,2,3)", CALL(K::conv2d(x, y)), {kReal, kReal}, kFloats, kSecond, 16, "(2,4,3,2) (2,3,3,3) | (2,2,3,2) (3,3,2,3) | (2,4,3) (2,3,2,3)", {.grows = false}},
    {"conv2d", "(2,5,4,2) (3,2,2,3) | (1,3,5,1) (2,2,1,2)", CALL(K::conv2d(x, y, {2, 1}, "same")), {kReal, kReal}, kFloats, kSecond, 16, "(2,5,4,2) (3,2,3,3)", {.grows = false}},
    {"conv2d", "(2,2,5,4) (3,2,2,3) | (1,1,3,5) (2,2,1,2)", CALL(K::conv2d(x, y, 3, "same", "channels_first")), {kReal, kReal}, kFloats, kSecond, 16, "(2,2,5,4) (3,2,3,3)", {.grows = false}},
    {"conv2d", "(1,5,6,2) (3,2,2,3) | (2,5,4,1) (2,2,1,2)", CALL(K::conv2d(x, y, 1, "valid", None, {2, 3})), {kReal, kReal}, kFloats, kSecond, 16, "(1,4,6,2) (3,2,2,3)", {.grows = false}},
    {"conv3d", "(1,3,4,3,2) (2,2,3,2,3) | (2,2,3,3,1) (2,3,2,1,2)", CALL(K::conv3d(x, y, {1, 2, 1}, "same")), {kReal, kReal}, kFloats, kSecond, 16, "(1,3,4,3,2) (2,2,3,3,3) | (3,4,3,2) (2,2,3,2,3)", {.grows = false}},
    {"conv2d_transpose", "(2,2,3,3) (3,2,2,3) | (1,2,3,1) (2,2,4,1)", CALL(K::conv2d_transpose(x, y, {K::shape(x)[0], 4, 6, K::shape(y)[2]}, 2, "same")), {kReal, kReal}, kFloats, kSecond, 16, "(2,2,3,3) (3,2,2,2) | (2,3,3,3) (3,2,2,3)", {.grows = false, .also = "shape index"}},
    {"conv2d_transpose", "(2,3,2,3) (3,2,2,3) | (1,3,2,3) (2,2,4,3)", CALL(K::conv2d_transpose(x, y, {K::shape(x)[0], K::shape(y)[2], K::shape(x)[2] + K::shape(y)[0] - 1, K::shape(x)[3] + K::shape(y)[1] - 1}, 1, "valid", "channels_first")), {kReal, kReal}, kFloats, kSecond, 16, "(2,2,2,3) (3,2,2,3)", {.grows = false, .also = "shape index add subtract"}},
    {"conv3d_transpose", "(1,2,1,2,3) (2,3,2,2,3) | (1,2,1,2,1) (2,1,2,3,1)", CALL(K::conv3d_transpose(x, y, {None, 4, 2, 4, K::shape(y)[3]}, 2, "same")), {kReal, kReal}, kFloats, kSecond, 16, "(1,2,1,2,2) (2,3,2,2,3)", {.grows = false, .also = "shape index"}},
    {"depthwise_conv2d", "(2,4,3,2) (2,3,2,3) | (1,3,5,3) (3,2,3,1)", CALL(K::depthwise_conv2d(x, y, {1, 2}, "same")), {kReal, kReal}, kFloats, kSecond, 16, "(2,4,3,2) (2,3,3,3)", {.grows = false}},
    {"separable_conv2d", "(2,4,3,2) (2,3,2,2) (1,1,4,3) | (1,3,5,1) (3,2,1,2) (1,1,2,1)", CALL(K::separable_conv2d(x, y, z, 1, "same")), {kReal, kReal, kReal}, kFloats, kSecond, 32, "(2,4,3,2) (2,3,2,2) (1,1,3,3) | (2,4,3,2) (2,3,2,2) (2,1,4,3)", {.grows = false}},
    {"separable_conv1d", "(2,5,2) (3,2,2) (1,4,3) | (1,4,1) (2,1,1) (1,1,2)", CALL(K::separable_conv1d(x, y, z, 2)), {kReal, kReal, kReal}, kFloats, kSecond, 32, "(2,5,2) (3,2,2) (1,3,3)", {.grows = false}},
    {"pool2d", "(2,4,5,3) | (1,3,3,1) | (0,4,5,3)", CALL(K::pool2d(x, {2, 3}, {2, 1}, "same")), {kReal}, kFloats, kSecond, 1, "(4,5,3)", {.grows = false}},
    {"pool2d", "(2,3,4,5) | (1,1,3,3)", CALL(K::pool2d(x, 2, 1, "valid", "channels_first", "avg")), {kReal}, kFloats, kSecond, 4, "(2,3,1,5)", {.grows = false}},
    {"pool3d", "(1,3,2,4,2) | (2,2,2,2,1)", CALL(K::pool3d(x, 2, 2, "same", None, "avg")), {kReal}, kFloats, kSecond, 4, "(3,2,4,2)", {.grows = false}},
    {"pool3d", "(1,3,2,4,2) | (2,2,2,2,1)", CALL(K::pool3d(x, 2)), {kReal}, kFloats, kSecond, 1, "(1,3,1,4,2)", {.grows = false}},
    {"local_conv1d", "(2,5,3) | (1,5,3)", CALL(K::local_conv1d(x, K::cast(K::reshape(K::sin(K::arange(24, None, 1, "float64")), {2, 6, 2}), x.dtype()), 2, 2)), {kReal}, kFloats, kSecond, 16, "(2,3,3) | (2,5,2)", {.grows = false, .also = "arange sin reshape cast dtype"}},
    {"local_conv2d", "(2,2,3,3) | (1,2,4,3)", CALL(K::local_conv2d(x, K::cast(K::reshape(K::sin(K::arange(64, None, 1, "float64")), {4, 8, 2}), x.dtype()), {2, 2}, {1, 1}, {2, 2}, "channels_first")), {kReal}, kFloats, kSecond, 16, "(2,2,2,3) | (2,3,3,3)", {.grows = false, .also = "arange sin reshape cast dtype"}},
    {"bias_add", "(2,3,4) (4) | (1,1,2) (2) | (0,3,4) (4)", CALL(K::bias_add(x, y)), {kReal, kReal}, kNumbers, kSecond, 1, "(2,3,4) (3) | (2,3,4) (1) | (2,3,4) (2,3,4)", {.grows = false}},
    {"bias_add", "(2,3,4,2) (3) | (1,1,2,2) (1)", CALL(K::bias_add(x, y, "channels_first")), {kReal, kReal}, kNumbers, kSecond, 1, "(2,3,4,2) (2)", {.grows = false}},
    {"bias_add", "(2,3,4) (3,4) | (1,2,2) (2,2)", CALL(K::bias_add(x, y)), {kReal, kReal}, kNumbers, kSecond, 1, "(2,3,4) (2,4)", {.grows = false}},

    // ---- padding.h
    {"temporal_padding", "(2,3,4) | (1,1,2) | (0,3,4)", CALL(K::temporal_padding(x, {1, 2})), {kReal}, kAnything, kSecond, 1, "(2,3)", {.grows = false}},
    {"spatial_2d_padding", "(2,3,4,2) | (1,1,2,1)", CALL(K::spatial_2d_padding(x, {{1, 2}, {0, 1}})), {kReal}, kAnything, kSecond, 1, "(2,3,4)", {.grows = false}},
    {"spatial_3d_padding", "(2,1,3,2,2) | (1,1,2,1,1)", CALL(K::spatial_3d_padding(x, {{1, 2}, {0, 1}, {1, 0}}, "channels_first")), {kReal}, kAnything, kSecond, 1, "(2,3,4)", {.grows = false}},
    {"resize_images", "(2,3,2,2) | (1,1,3,1)", CALL(K::resize_images(x, 2, 3, "channels_last")), {kReal}, kAnything, kSecond, 4, "(2,3,4)", {.grows = false}},
    {"resize_images", "(2,3,2,2) | (1,1,3,1) | (0,2,2,1)", CALL(K::cast(K::resize_images(x, 2, 3, "channels_last", "bilinear"), x.dtype())), {kReal}, kAnything, kSecond, 8, "(2,3,4)", {.grows = false, .also = "cast dtype"}},
    {"resize_images", "(2,2,3,2) | (1,1,1,3)", CALL(K::cast(K::resize_images(x, 3, 1, "channels_first", "bilinear"), x.dtype())), {kReal}, kAnything, kSecond, 8, "(2,3,4)", {.grows = false, .also = "cast dtype"}},
    {"resize_volumes", "(2,1,3,2,2) | (1,2,1,1,1)", CALL(K::resize_volumes(x, 2, 1, 3, "channels_last")), {kReal}, kAnything, kSecond, 8, "(2,3,4)", {.grows = false}},

    // ---- control.h
    {"switch_", "() (2,3) (2,3) | () (4,1) (4,1)", CALL(K::switch_(x, [&] { return K::exp(y) * z; }, [&] { return y * K::exp(z); })), {kCondition, kReal, kReal}, kFloats, kSecond, 4, "() (2,3) (2)", {.also = "exp multiply"}},
    {"switch_", "(2) (2,3) (2,3) | (4) (4,1) (4,1)", CALL(K::switch_(x, y, z)), {kBool, kReal, kReal}, kAnything, kSecond, 1, "(3) (2,3) (2,3)"},
    {"foldl", "(3,2) (2) (2) | (4,1) (1) (1)", CALL(K::foldl([&](const Tensor& a, const Tensor& e) { return K::tanh(a * z + e); }, x, y)), {kSmall, kSmall, kSmall}, kFloats, kSecond, 1, "() (2) (2)", {.also = "multiply add tanh"}},
    {"foldr", "(3,2) (2) (2) | (4,1) (1) (1)", CALL(K::foldr([&](const Tensor& a, const Tensor& e) { return a * K::sin(e) + z; }, x, y)), {kReal, kReal, kReal}, kFloats, kSecond, 16, "() (2) (2)", {.also = "multiply add sin"}},
    {"rnn", "(2,3,2) (2,2) (2) | (1,4,3) (1,3) (3)", CALL(list(K::rnn([&](const Tensor& t, const Tensors& s) {
       Tensor h = K::tanh(t * z + s[0]);
       return K::Step{K::sin(h), {h}};   // were they one, its three cotangents would be added in an order of the loss's
     }, x, {y}))), {kSmall, kSmall, kSmall}, kFloats, kSecond, 1, "(2,3) (2,2) (2) | (2,3,2) (3,2) (2) | (2,3,2) (2,3) (2)", {.also = "multiply add tanh sin"}},
    {"rnn", "(3,2,2) (2,2) (2,2) (3,2) | (4,1,3) (1,3) (1,1) (4,1)", CALL(list(K::rnn([&](const Tensor& t, const Tensors& s) {
       Tensor h = K::sin(t * s[2] + s[0]);
       return K::Step{h * s[1], {h, s[1] - t}};
     }, x, {y, y * 0.5}, /*go_backwards=*/true, /*mask=*/w, /*constants=*/z, /*unroll=*/false, /*input_length=*/None, /*time_major=*/true))), {kSmall, kSmall, kSmall, kOptionalBool}, kFloats, kSecond, 16, "(3,2,2) (2,2) (2,2) (2,3) | (3,2,2) (2,2) (2,2) (3)", {.also = "multiply add subtract sin"}},
    {"rnn", "(2,3,2) (2,2) (2,3,1) | (3,2,1) (3,1) (3,2,1)", CALL(list(K::rnn([&](const Tensor& t, const Tensors& s) {
       return K::Step{K::expand_dims(t, 1), {s[0] * t}};
     }, x, {y}, false, z, None, false, None, false, /*zero_output_for_mask=*/true))), {kReal, kReal, kOptionalBool}, kNumbers, kSecond, 16, "(2,3,2) (2,2) (2,3,2)", {.also = "multiply expand_dims"}},
    {"map_fn", "(2,3) (3) | (1,1) (1)", CALL(K::map_fn([&](const Tensor& t) { return K::exp(t) * y; }, x)), {kReal, kReal}, kFloats, kSecond, 4, "() (2)", {.also = "exp multiply"}},
    {"map_fn", "(3,2) (3) | (4,1) (4)", CALL(K::map_fn([](const Tensors& t) { return t[0] * t[1]; }, {x, y})), {kReal, kReal}, kNumbers, kSecond, 4, "(2,2) (3)", {.also = "multiply"}},
    {"in_train_phase", "(2,3) (2,3) () | (4,1) (4,1) ()", CALL(K::in_train_phase(K::exp(x), x * y, z)), {kReal, kReal, {.low = 0, .high = 1, .dtype = int32, .differentiable = false}}, kFloats, kSecond, 4, "", {.also = "exp multiply"}},
    {"in_test_phase", "(2,3) (2,3) () | (4,1) (4,1) ()", CALL(K::in_test_phase(x * y, K::exp(x), z)), {kReal, kReal, {.low = 0, .high = 1, .dtype = int32, .differentiable = false}}, kFloats, kSecond, 4, "", {.also = "exp multiply"}},

    // ---- introspection.h, creation.h
    {"cast", kOne, CALL(K::cast(x, float64)), {kReal}, kAnything},
    {"cast", kOne, CALL(K::cast(x, "int32")), {kReal}, kAnything, kNone},
    {"cast", kOne, CALL(K::cast(x, "bool")), {kReal}, kAnything, kNone},
    {"shape", kOne, CALL(K::shape(x)), {kReal}, kAnything, kNone},
    {"size", kOne, CALL(K::size(x)), {kReal}, kAnything, kNone},
    {"identity", kOne, CALL(K::identity(x)), {kReal}, kAnything},
    {"zeros", kOne, CALL(K::zeros(K::shape(x), "float64")), {kReal}, kAnything, kNone, 1, "", {.grows = false, .also = "shape"}},
    {"ones", kOne, CALL(K::ones(K::shape(x), "float64")), {kReal}, kAnything, kNone, 1, "", {.grows = false, .also = "shape"}},
    {"eye", kMatrix, CALL(K::eye(K::shape(x), "float64")), {kReal}, kAnything, kNone, 1, "", {.grows = false, .also = "shape"}},
    {"zeros_like", kOne, CALL(K::zeros_like(x, "float64")), {kReal}, kAnything, kNone, 1, "", {.grows = false}},
    {"ones_like", kOne, CALL(K::ones_like(x, "int16")), {kReal}, kAnything, kNone, 1, "", {.grows = false}},
    {"arange", "() () | () ()", CALL(K::arange(x, y, 2, "float64")), {{.low = 1, .dtype = int32, .differentiable = false, .host = true}, {.low = 5, .high = 9, .dtype = int32, .differentiable = false, .host = true}}, kFloats, kNone, 1, "(2) ()"},
    {"print_tensor", kOne, CALL(K::print_tensor(x, "x is")), {kReal}, kAnything},
    {"stop_gradient", kOne, CALL(K::stop_gradient(x)), {kReal}, kAnything, kNone},

    // ---- random.h
    {"random_normal", kOne, CALL(K::random_normal(K::shape(x), 0.5, 2.0, "float64", 7)), {kNoPath}, kAnything, kNone, 1, "", {.draws = true, .also = "shape dtype"}},
    {"random_normal", "(2,3) (3) () | (4,1) (1) ()", CALL(K::random_normal(K::shape(x), y, z, x.dtype(), 7)), {kShape, kReal, kPositive}, kFloats, kSecond, 1, "", {.draws = true, .also = "shape dtype"}},
    {"random_uniform", "(2,3) (3) () | (4,1) (1) ()", CALL(K::random_uniform(K::shape(x), y, z, x.dtype(), 7)), {kShape, kReal, {3, 4}}, kFloats, kSecond, 1, "", {.draws = true, .also = "shape dtype"}},
    {"random_uniform", kOne, CALL(K::random_uniform(K::shape(x), -3, 9, "int32", 7)), {kNoPath}, kAnything, kNone, 1, "", {.draws = true, .also = "shape dtype"}},
    {"random_uniform", kOne, CALL(K::random_uniform(K::shape(x), 0.0, 1.0, "float64", 7)), {kNoPath}, kAnything, kNone, 1, "", {.draws = true, .also = "shape dtype"}},
    {"random_binomial", kOne, CALL(K::random_binomial(K::shape(x), 0.4, "float64", 7)), {kNoPath}, kAnything, kNone, 1, "", {.draws = true, .also = "shape dtype"}},
    {"truncated_normal", "(2,3) (3) () | (4,1) (1) ()", CALL(K::truncated_normal(K::shape(x), y, z, x.dtype(), 7)), {kShape, kReal, kPositive}, kFloats, kSecond, 1, "", {.draws = true, .also = "shape dtype"}},
    {"dropout", kOne, CALL(K::dropout(x, 0.4, None, 7)), {kReal}, kFloats, kSecond, 1, "", {.draws = true, .dtype_is_value = true}},
    {"dropout", "(2,3,4) | (4,1,2)", CALL(K::dropout(x, 0.4, {None, 1, None}, 7)), {kReal}, kFloats, kSecond, 1, "(2,3)", {.draws = true, .dtype_is_value = true}},

    // ---- shaping.h
    {"concatenate", "(2,3) (2,1) | (4,1) (4,2) | (1,0) (1,3)", CALL(K::concatenate({x, y})), {kReal, kReal}, kAnything, kSecond, 1, "(2,3) (3,3) | (2,3) (3) | () ()"},
    {"concatenate", "(2,3) (1,3) (2,3) | (3,1) (0,1) (2,1)", CALL(K::concatenate({x, y, z}, 0)), {kReal, kReal, kReal}, kAnything, kSecond, 1, "(2,3) (2,3) (2,2)"},
    {"stack", "(2,3) (2,3) | (4,1) (4,1) | (0,3) (0,3) | () ()", CALL(K::stack({x, y})), {kReal, kReal}, kAnything, kSecond, 1, "(2,3) (2,1) | (3) (3,1)"},
    {"stack", "(2,3) (2,3) | (4,1) (4,1)", CALL(K::stack({x, y, x}, -1)), {kReal, kReal}, kAnything, kSecond, 1, "(2,3) (2,1)"},
    {"reshape", "(2,3) | (4,3) | (1,6) | (0,3)", CALL(K::reshape(x, {-1, 3, 1})), {kReal}, kAnything, kSecond, 1, "(2,2)"},
    {"reshape", "(2,3) | (4,3) | (0,3) | (3,1)", CALL(K::reshape(x, {K::shape(x)[1], K::shape(x)[0]})), {kReal}, kAnything, kSecond, 1, "(3)", {.also = "shape index"}},
    {"permute_dimensions", "(2,3,4) | (1,3,2) | (0,2,3)", CALL(K::permute_dimensions(x, {2, 0, 1})), {kReal}, kAnything, kSecond, 1, "(2,3)"},
    {"transpose", kOne, CALL(K::transpose(x)), {kReal}, kAnything, kSecond, 1, ""},
    {"repeat_elements", "(2,3) | (4,1) | (0,3)", CALL(K::repeat_elements(x, 3, 1)), {kReal}, kAnything, kSecond, 1, "(3) | ()"},
    {"repeat", "(2,3) | (4,1) | (0,3)", CALL(K::repeat(x, 3)), {kReal}, kAnything},
    {"tile", "(2,3) | (4,1) | (0,3)", CALL(K::tile(x, {2, 3})), {kReal}, kAnything},
    {"tile", "(2,3) | (4,1) | (3) | (2)", CALL(K::tile(x, 2)), {kReal}, kAnything},
    {"flatten", kOne, CALL(K::flatten(x)), {kReal}, kAnything},
    {"batch_flatten", "(2,3) | (4,1) | (2,3,2) | (1,2,3) | (0,2,3)", CALL(K::batch_flatten(x)), {kReal}, kAnything},
    {"expand_dims", kOne, CALL(K::expand_dims(x)), {kReal}, kAnything},
    {"expand_dims", kMatrix, CALL(K::expand_dims(x, 1)), {kReal}, kAnything, kSecond, 1, "()"},
    {"squeeze", "(2,1,3) | (4,1,1) | (0,1,2)", CALL(K::squeeze(x, 1)), {kReal}, kAnything, kSecond, 1, "(2,3,1) | (3)"},
    {"reverse", kMatrix, CALL(K::reverse(x, 1)), {kReal}, kAnything, kSecond, 1, "(3)"},
    {"reverse", "(2,3,2) | (1,4,3)", CALL(K::reverse(x, {0, -1})), {kReal}, kAnything, kSecond, 1, "(3)"},
    {"slice", "(3,4) | (2,3)", CALL(K::slice(x, {1, 0}, {1, -1})), {kReal}, kAnything, kSecond, 1, "(1,3) | (3) | (2,3,4)"},
    {"slice", "(3,4) (2) (2) | (4,6) (2) (2)", CALL(K::slice(x, y, z)), {kReal, {.low = 1, .high = 1, .dtype = int32, .differentiable = false, .host = true}, {.low = 2, .dtype = int32, .differentiable = false, .host = true}}, kAnything, kSecond, 1,
     "(2,2) (2) (2) | (4,6) (1) (2)", {.grows = false}},
    {"one_hot", "(2,3) | (4,1) | (0,3) | ()", CALL(K::one_hot(x, 3)), {index_below(4)}, kFloats, kNone},
    {"gather", "(3,2) (2,2) | (3,1) (4,2) | (4) (2) | (3,2) (0,2)", CALL(K::gather(x, y)), {kReal, index_below(3)}, kAnything, kSecond, 1, "() (2)"},
    {"index", "(3,4) | (5,2)", CALL(x[1]), {kReal}, kAnything, kSecond, 1, "() | (1,3)", {.k = false}},
    {"index", "(3,4) | (5,2)", CALL(x(kassette::all, kassette::slice(None, None, -1))), {kReal}, kAnything, kSecond, 1, "(3)", {.k = false}},
    {"index", "(3,4) (2) | (2,5) (3) | (2,3) (0)", CALL(x(kassette::slice(None, None, -1), y)), {kReal, index_below(3)}, kAnything, kSecond, 1, "(3) (2)", {.k = false, .also = "gather"}},
    {"index_positions", "(3,4) (2) (2) | (5,4,2) (3,1) (2) | (3,4) (0) (0)", CALL(x(y, z)), {kReal, index_below(3), index_below(4, int64)}, kAnything, kSecond, 1, "(3) (2) (2) | (3,4) (2) (3)", {.k = false, .also = "index gather"}},
    {"index_positions", "(3,2,4) (2) (2) | (5,3,4) (2) (1)", CALL(x(y, kassette::slice(None, None, -1), z)), {kReal, index_below(3), index_below(4)}, kAnything, kSecond, 1, "(3,2) (2) (2)", {.k = false, .also = "index gather"}},
    {"nonzero", "(3,4) (3,4) | (5,2,3) (5,2) | (3) () | (0,3) (0,3)", CALL(x[y]), {kReal, kBool}, kAnything, kSecond, 1, "(3,4) (4) | (3) (3,1)", {.k = false, .also = "index gather"}},
    {"index_set", "(3,4) (2) (2,4) | (5,2) (3) (1,2) | (3,2,2) (0) (2)", CALL(x.at(y).set(z)), {kReal, index_below(3), kReal}, kAnything, kSecond, 1, "(3,4) (2) (3,4)", {.k = false, .also = "at index index_positions broadcast_to broadcast_like"}},
    {"index_add", "(3,4) (2) (2,4) | (5,2) (3) (1,2) | (3,4) (2) () | (5,2) (3) () | (3,2,2) (0) (2)", CALL(x.at(y).add(z)), {kReal, index_below(3), kReal}, kNumbers, kSecond, 1, "(3,4) (2) (3,4)", {.k = false, .also = "at index index_positions broadcast_to broadcast_like"}},
    {"index_add", "(3,4) (4) (3,1) | (2,3) (3) (2,1)", CALL(x.at(kassette::all, y).add(z)), {kReal, kBool, kReal}, kNumbers, kSecond, 1, "(3,4) (3) (3,1)", {.grows = false, .k = false, .also = "at index index_positions broadcast_to broadcast_like nonzero"}},
    {"index_multiply", "(3,4) (5) (5,4) | (5,2) (3) (1,2) | (3,2,2) (0) ()", CALL(x.at(y).multiply(z)), {kReal, index_below(3), kReal}, kNumbers, kSecond, 16, "(3,4) (2) (3,4)", {.grows = false, .k = false, .also = "at index index_positions broadcast_to broadcast_like"}},
    {"index_min", "(3,4) (5) (5,4) | (5,2) (3) (1,2) | (3,2,2) (0) ()", CALL(x.at(y).min(z)), {kReal, index_below(3), kReal}, kNumbers, kSecond, 1, "(3,4) (2) (3,4)", {.k = false, .also = "at index index_positions broadcast_to broadcast_like"}},
    {"index_max", "(3,4) (5) (5,4) | (5,2) (3) (1,2) | (3,2,2) (0) ()", CALL(x.at(y).max(z)), {kReal, index_below(3), kReal}, kNumbers, kSecond, 1, "(3,4) (2) (3,4)", {.k = false, .also = "at index index_positions broadcast_to broadcast_like"}},
    {"nonzero", "(2,3) | (5) | (2,1,3) | (0,3)", CALL(ops::nonzero(x)), {kReal}, kAnything, kNone, 1, "()", {.k = false, .also = "stack floor_divide remainder"}},
    {"index", "(4,3,2) | (5,2,3)", CALL(x(kassette::slice(1, None, 2), kassette::ellipsis, -1, kassette::newaxis)), {kReal}, kAnything, kSecond, 1, "(3)", {.k = false}},

    // ---- sparse.h; the dense shape is fixed, so the sizes of the entries alone vary
    {"sparse_coo", "(4,2) (4) | (1,2) (1) | (0,2) (0)", CALL(K::to_dense(K::sparse_coo(x, y, {3, 4}))), {place_below(3), kReal}, kAnything, kSecond, 4, "(4,2) (3) | (4,3) (4) | (4,2) (4,1)", {.grows = false, .also = "to_dense sparse_to_dense"}},
    {"to_dense", "(5,3) (5) | (2,3) (2)", CALL(K::to_dense(K::sparse_coo(x, y, {2, 3, 2}))), {place_below(2, int64), kReal}, kAnything, kSecond, 4, "(5,3) (4)", {.grows = false, .also = "sparse_coo"}},
    {"to_sparse", "(2,3) | (4,3) | (1,1) | (0,3) | (3) | (1) | (2,1,3) | (3,2,2)", CALL(K::to_dense(K::to_sparse(x))), {kReal}, kAnything, kSecond, 1, "()", {.grows = false}},
    {"dot", "(4,2) (4) (3,2) | (1,2) (1) (3,5) | (0,2) (0) (3,1)", CALL(K::dot(K::sparse_coo(x, y, {4, 3}), z)), {place_below(3), kReal, kReal}, kNumbers, kSecond, 16, "(4,2) (4) (2,3) | (4,2) (3) (3,2)", {.grows = false, .also = "sparse_coo"}},
    {"dot", "(4,2) (4) (3,4) | (6,2) (6) (1,4)", CALL(K::dot(z, K::sparse_coo(x, y, {4, 3}))), {place_below(3, int64), kReal, kReal}, kNumbers, kSecond, 16, "(4,2) (4) (4,3)", {.grows = false, .also = "sparse_coo"}},
    {"dot", "(4,2) (4) (3) | (6,2) (6) (3)", CALL(K::dot(K::sparse_coo(x, y, {4, 3}), z)), {place_below(3), kReal, kReal}, kNumbers, kSecond, 16, "(4,2) (4) (4)", {.grows = false, .also = "sparse_coo"}},
    {"concatenate", "(4,2) (4) (2,2) (2) | (1,2) (1) (3,2) (3)", CALL(K::to_dense(K::concatenate({K::sparse_coo(x, y, {3, 4}), K::sparse_coo(z, w, {3, 3})}))), {place_below(3), kReal, place_below(3), kReal}, kAnything, kSecond, 4, "(4,2) (3) (2,2) (2)", {.grows = false, .also = "sparse_coo to_dense"}},
    {"transpose", "(4,2) (4) | (1,2) (1)", CALL(K::to_dense(K::transpose(K::sparse_coo(x, y, {3, 4})))), {place_below(3), kReal}, kAnything, kSecond, 4, "(4,2) (3)", {.grows = false, .also = "sparse_coo to_dense"}},

    // ---- collectives, among the one rank of this process; those of several ranks are in tests/ranks
    {"all_reduce", kOne, CALL(ops::all_reduce({x}, Reduction::sum, all_ranks())), {kReal}, kNumbers, kSecond, 1, "", {.k = false}},
    {"all_reduce", "(2,3) (3) | (4,3) (1)", CALL(ops::all_reduce({x, y}, Reduction::mean, all_ranks())), {kReal, {.mixes = true}}, kFloats, kSecond, 1, "", {.k = false}},
    {"all_reduce_nonlinear", kOne, CALL(ops::all_reduce({x}, Reduction::prod, all_ranks())), {kReal}, kNumbers, kSecond, 1, "", {.k = false, .also = "all_reduce"}},
    {"broadcast", kOne, CALL(ops::broadcast({x}, 0, all_ranks())), {kReal}, kAnything, kSecond, 1, "", {.k = false}},
    {"all_gather", kOne, CALL(ops::all_gather(x, all_ranks())), {kReal}, kAnything, kSecond, 1, "", {.k = false}},
    {"reduce_scatter", kMatrix, CALL(ops::reduce_scatter(x, Reduction::sum, all_ranks())), {kReal}, kNumbers, kSecond, 1, "()", {.k = false}},
    {"reduce_scatter_nonlinear", kMatrix, CALL(ops::reduce_scatter(x, Reduction::max, all_ranks())), {kReal}, kAnything, kSecond, 1, "()", {.k = false, .also = "reduce_scatter"}},
    {"shard", kMatrix, CALL(ops::shard(x, all_ranks())), {kReal}, kAnything, kSecond, 1, "()", {.k = false}},
    {"all_to_all", kMatrix, CALL(ops::all_to_all(x, all_ranks())), {kReal}, kAnything, kSecond, 1, "()", {.k = false}},

    // ---- ops that adjoints are made of
    {"expm1", kOne, CALL(ops::expm1(x)), {kReal}, kFloats, kSecond, 1, "", {.k = false}},
    {"leaky_relu", kOne, CALL(ops::leaky_relu(x, 0.2)), {kReal}, kFloats, kSecond, 1, "", {.k = false}},
    {"general_relu", kOne, CALL(ops::general_relu(x, 0, 1.3, -0.75)), {kReal}, kFloats, kSecond, 1, "", {.k = false}},
    {"logit", kOne, CALL(ops::logit(x)), {kUnit}, kFloats, kSecond, 4, "", {.k = false}},
    {"rsqrt", kOne, CALL(ops::rsqrt(x, 0.1)), {kPositive}, kFloats, kSecond, 4, "", {.k = false}},
    {"mul_no_nan", kTwo, CALL(ops::mul_no_nan(x, y)), {kReal, kReal}, kFloats, kSecond, 1, kTwoWrong, {.k = false}},
    {"div_no_nan", kTwo, CALL(ops::div_no_nan(x, y)), {kReal, kPositive}, kFloats, kSecond, 1, kTwoWrong, {.k = false}},
    {"where_positive", kTwo, CALL(ops::where_positive(x, y)), {kReal, kNoPath}, kNumbers, kSecond, 1, kTwoWrong, {.k = false}},
    {"where", "(2,3) (2,3) (2,3) | (2,1) (1,3) (2,3) | (1,3) (4,1) (1,1) | (2,1) () (3) | (4,3) () (1)", CALL(ops::where(x, y, z)),
     {kBool, kReal, kReal}, kAnything, kSecond, 1, "(2,3) (4,3) (2,3) | (2) (3) (3)", {.k = false}},
    {"broadcast_like", "(1,3) (2,3) | (4,1) (4,3) | (3) (2,3) | () (2,2)", CALL(ops::broadcast_like(x, y)), {kReal, kNoPath}, kAnything, kSecond, 1, "", {.k = false}},
    {"sum_to_like", "(2,3) (1,3) | (4,3) (4,1) | (2,3) (3) | (2,2) ()", CALL(ops::sum_to_like(x, y)), {kReal, kNoPath}, kNumbers, kSecond, 4, "", {.k = false}},
    {"reshape_like", "(2,3) (3,2) | (4,1) (1,4)", CALL(ops::reshape_like(x, y)), {kReal, kNoPath}, kAnything, kSecond, 1, "(2,3) (2,2)", {.k = false}},
    {"broadcast_to", "(1,3) | (4,1)", CALL(ops::broadcast_to(x, {2, 4, 3})), {kReal}, kAnything, kSecond, 1, "(2,3) | (2,1,4,3)", {.grows = false, .k = false}},
    {"unstack", "(2,3) | (2,1) | (2,0)", CALL(ops::unstack(x, 2, 0)), {kReal}, kAnything, kSecond, 1, "(3,2)", {.grows = false, .k = false}},
    {"split_like", "(5,2) (2,2) (3,2) | (3,1) (1,1) (2,1)", CALL(ops::split_like(x, {y, z}, 0)), {kReal, kNoPath, kNoPath}, kAnything, kSecond, 1, "", {.grows = false, .k = false}},
    {"log_softmax", kMatrix, CALL(ops::log_softmax(x)), {kReal}, kFloats, kSecond, 4, "()", {.k = false}},
    {"pick", "(2,3) (2) | (4,3) (4)", CALL(ops::take_along_axis(x, K::cast(y, "int64"))), {kReal, index_below(3)}, kAnything, kSecond, 1, "(2,3) (3)", {.k = false, .also = "cast"}},
    {"sort", "(2,3) | (4,3) | (1,1) | (0,3) | (3) | (2,1,3)", CALL(ops::sort(x)), {kReal}, kAnything, kSecond, 1, "()", {.k = false}},
    {"sort", "(2,3,2) | (4,1,3) | (3,0,2)", CALL(ops::sort(x, 1, true)), {kReal}, kAnything, kSecond, 1, "(3)", {.k = false}},
    {"argsort", "(2,3) | (4,3) | (0,3) | (3)", CALL(ops::argsort(x)), {kReal}, kAnything, kNone, 1, "()", {.k = false}},
    {"argsort", kReduce3, CALL(ops::argsort(x, -3, true)), {kReal}, kAnything, kNone, 1, "(3)", {.k = false}},
    {"top_k", "(2,3) | (4,2) | (0,3) | (3)", CALL(list(ops::top_k(x, 2))), {kReal}, kAnything, kSecond, 1, "() | (3,1)", {.k = false, .also = "take_places"}},
    {"top_k", "(3,2,2) | (4,1,3)", CALL(list(ops::top_k(x, 2, 0))), {kReal}, kAnything, kSecond, 1, "(1,2,2)", {.k = false, .also = "take_places"}},
    {"cummax_places", kReduce3, CALL(ops::cummax_places(x, 1)), {kReal}, kNumbers, kNone, 1, "(3)", {.k = false, .also = "cummax"}},
    {"cummin_places", kReduce3, CALL(ops::cummin_places(x, -1)), {kReal}, kNumbers, kNone, 1, "()", {.k = false, .also = "cummin"}},
    {"flat_places", "(2,3) (2,4) | (4,1) (4,5)", CALL(ops::flat_places(K::cast(x, "int64"), y, 1)), {{-3, 3}, {.differentiable = false, .mixes = true}}, kAnything, kNone, 1, "(2,3) (3,4) | (3) (3)", {.k = false, .also = "cast"}},
    {"searchsorted", "(3) (2,3) | (4) (3,1) | (0) (4) | (2) (5) | (4) () | (1) ()", CALL(ops::searchsorted(ops::sort(x), y)), {kReal, kReal}, kAnything, kNone, 1, "() (3)", {.k = false, .also = "sort"}},
    {"searchsorted", "(2,3) (2,4) | (4,1) (4,3) | (2,0) (2,2)", CALL(ops::searchsorted(ops::sort(x), y, ops::Side::right)), {kReal, kReal}, kAnything, kNone, 1, "(2,3) (3,3) | (2,3) (2)", {.k = false, .also = "sort"}},
    {"pad", "(2,3) | (4,1) | (0,3)", CALL(ops::pad(x, {2, {1, 0}, {0, 2}})), {kReal}, kAnything, kSecond, 1, "(3)", {.k = false}},

    // ---- ops of special_ops.h
    {"i1", kOne, CALL(ops::i1(x)), {kReal}, kFloats, kSecond, 4, "", {.k = false}},

    // ---- ops of number_ops.h
    {"modf_fraction", kOne, CALL(ops::modf_fraction(x)), {kReal}, kFloats, kSecond, 4, "", {.k = false}},
    {"frexp_exponent", kOne, CALL(ops::frexp_exponent(x)), {kReal}, kFloats, kNone, 1, "", {.k = false}},
};
// clang-format on

}  // namespace
}  // namespace kassette::test
