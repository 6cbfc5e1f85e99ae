// tests/nn_samples.h - the table of how to call each function of nn, as tests/op_samples.h is that of K. The sweeps
// read it, and tests/data/make_nn_cases.py, which asks PyTorch and NumPy for the values of the same expressions.
#pragma once
#include <kassette/nn.h>

#include "tests/op_samples.h"

namespace kassette::test {
namespace {

namespace nn = kassette::nn;

[[gnu::noinline]] inline Tensors list(const nn::Moments& m) { return {m.mean, m.variance}; }

// clang-format off
inline constexpr Sample kNnSamples[] = {
    // ---- activations.h
    {"relu", kOne, CALL(nn::relu(x)), {kReal}, kFloats, kSecond, 1},
    {"relu6", kOne, CALL(nn::relu6(x)), {{-9, 9}}, kFloats, kSecond, 1},
    {"leaky_relu", kOne, CALL(nn::leaky_relu(x)), {kReal}, kFloats, kSecond, 1},
    {"leaky_relu", kOne, CALL(nn::leaky_relu(x, 0.01)), {kReal}, kFloats, kSecond, 1},
    {"elu", kOne, CALL(nn::elu(x, 0.7)), {kReal}, kFloats, kSecond, 1},
    {"selu", kOne, CALL(nn::selu(x)), {kReal}, kFloats, kSecond, 2},
    {"celu", kOne, CALL(nn::celu(x, 0.7)), {kReal}, kFloats, kSecond, 2},
    {"gelu", kOne, CALL(nn::gelu(x)), {kReal}, kFloats, kSecond, 4},
    {"gelu", kOne, CALL(nn::gelu(x, false)), {kReal}, kFloats, kSecond, 4},
    {"silu", kOne, CALL(nn::silu(x)), {kReal}, kFloats, kSecond, 4},
    {"mish", kOne, CALL(nn::mish(x)), {kReal}, kFloats, kSecond, 4},
    {"glu", "(2,4) | (3,2) | (0,6)", CALL(nn::glu(x)), {kReal}, kFloats, kSecond, 4, "(2,3) | ()"},
    {"glu", "(2,4,3) | (1,2,5)", CALL(nn::glu(x, 1)), {kReal}, kFloats, kSecond, 4, "(2,3,4) | (4)"},
    {"sigmoid", kOne, CALL(nn::sigmoid(x)), {kReal}, kFloats, kSecond, 1},
    {"hard_sigmoid", kOne, CALL(nn::hard_sigmoid(x)), {{-4.3, 4.3}}, kFloats, kSecond, 1},
    {"sparse_sigmoid", kOne, CALL(nn::sparse_sigmoid(x)), {{-2.3, 2.3}}, kFloats, kSecond, 1},
    {"log_sigmoid", kOne, CALL(nn::log_sigmoid(x)), {kReal}, kFloats, kSecond, 1},
    {"hard_silu", kOne, CALL(nn::hard_silu(x)), {{-4.3, 4.3}}, kFloats, kSecond, 4},
    {"softplus", kOne, CALL(nn::softplus(x)), {kReal}, kFloats, kSecond, 1},
    {"squareplus", kOne, CALL(nn::squareplus(x)), {kReal}, kFloats, kSecond, 4},
    {"squareplus", kOne, CALL(nn::squareplus(x, 0.5)), {kReal}, kFloats, kSecond, 4},
    {"sparse_plus", kOne, CALL(nn::sparse_plus(x)), {{-2.3, 2.3}}, kFloats, kSecond, 4},
    {"softsign", kOne, CALL(nn::softsign(x)), {kReal}, kFloats, kSecond, 1},
    {"tanh", kOne, CALL(nn::tanh(x)), {kReal}, kFloats, kSecond, 2},
    {"hard_tanh", kOne, CALL(nn::hard_tanh(x)), {{-2.3, 2.3}}, kFloats, kSecond, 1},
    {"tanh_shrink", kOne, CALL(nn::tanh_shrink(x)), {kReal}, kFloats, kSecond, 4},
    {"hard_shrink", kOne, CALL(nn::hard_shrink(x, 0.7)), {kReal}, kFloats, kSecond, 1},
    {"soft_shrink", kOne, CALL(nn::soft_shrink(x, 0.7)), {kReal}, kFloats, kSecond, 1},
    {"threshold", kOne, CALL(nn::threshold(x, 0.3, -1.5)), {kReal}, kFloats, kSecond, 1},
    {"softmax", kMatrix, CALL(nn::softmax(x)), {kReal}, kFloats, kSecond, 4, "()"},
    {"softmax", kReduce3, CALL(nn::softmax(x, {0, -1})), {kReal}, kFloats, kSecond, 8, "()"},
    {"log_softmax", kMatrix, CALL(nn::log_softmax(x)), {kReal}, kFloats, kSecond, 4, "()"},
    {"log_softmax", kReduce3, CALL(nn::log_softmax(x, None)), {kReal}, kFloats, kSecond, 8},
    {"sparsemax", "(2,3) | (4,3) | (1,1)", CALL(nn::sparsemax(x)), {kReal}, kFloats, kSecond, 8, "()"},
    {"sparsemax", kReduce3, CALL(nn::sparsemax(x, 1)), {kReal}, kFloats, kSecond, 8, "(3)"},
    {"one_hot", "(2,3) | (4,1) | () | (0,2)", CALL(nn::one_hot(x, 4, -1, float64)), {index_below(4)}, kFloats, kNone, 1},
    {"one_hot", "(2,3) | (4,1)", CALL(nn::one_hot(x, 4, 1, int32)), {index_below(4, int64)}, kFloats, kNone, 1},
    {"multi_hot", "(2,3) | (4,1) | (2,0)", CALL(nn::multi_hot(x, 5, -1, float32)), {index_below(5)}, kFloats, kNone, 1, "()"},
    {"multi_hot", "(2,3) | (4,1)", CALL(nn::multi_hot(x, 5, 0, int64)), {index_below(5)}, kFloats, kNone, 1},

    // ---- losses.h
    {"mean_squared_error", "(2,3) (2,3) | (4,5) (4,5)", CALL(nn::mean_squared_error(x, y)), {kTarget, kReal}, kFloats, kSecond, 8, "(2,3) (2,4) | (3) (4)"},
    {"mean_absolute_error", "(2,3) (2,3) | (4,5) (4,5)", CALL(nn::mean_absolute_error(x, y)), {kTarget, {2, 3}}, kFloats, kSecond, 8, "(2,3) (2,4)"},
    {"huber", "(2,3) (2,3) | (4,5) (4,5)", CALL(nn::huber(x, y)), {{.low = -3, .high = -0.5, .mixes = true}, kUnit}, kFloats, kSecond, 8, "(2,3) (2,4)"},
    {"huber", "(3) (3) | (5) (5)", CALL(nn::huber(x, y, 4)), {kTarget, kReal}, kFloats, kSecond, 8, "(3) (4)"},
    {"log_cosh", "(2,3) (2,3) | (4,5) (4,5)", CALL(nn::log_cosh(x, y)), {kTarget, kReal}, kFloats, kSecond, 8, "(2,3) (2,4)"},
    {"kl_divergence", "(2,3) (2,3) | (4,5) (4,5)", CALL(nn::kl_divergence(x, y)), {kTarget, {0.2, 0.8}}, kFloats, kSecond, 16, "(2,3) (2,4)"},
    {"poisson", "(2,3) (2,3) | (4,5) (4,5)", CALL(nn::poisson(x, y)), {kTarget, {0.2, 3}}, kFloats, kSecond, 8, "(2,3) (2,4)"},
    {"cosine_similarity", "(2,3) (2,3) | (4,5) (4,5)", CALL(nn::cosine_similarity(x, y)), {kTarget, {0.2, 3}}, kFloats, kSecond, 16, "(2,3) (2,4)"},
    {"cosine_similarity", "(2,3,2) (2,3,2) | (4,1,2) (4,1,2)", CALL(nn::cosine_similarity(x, y, 1)), {kTarget, {0.2, 3}}, kFloats, kSecond, 16, "(2,3,2) (2,4,2) | (2) (2)"},
    {"hinge", "(2,3) (2,3) | (4,5) (4,5)", CALL(nn::hinge(x, y)), {kTarget, {-3, -0.3}}, kFloats, kSecond, 8, "(2,3) (2,4)"},
    {"squared_hinge", "(2,3) (2,3) | (4,5) (4,5)", CALL(nn::squared_hinge(x, y)), {kTarget, {-3, -0.3}}, kFloats, kSecond, 8, "(2,3) (2,4)"},
    {"categorical_hinge", "(2,3) (2,3) | (4,5) (4,5)", CALL(nn::categorical_hinge(x, y)), {kTarget, {0.1, 0.4}}, kFloats, kSecond, 8, "(2,3) (2,4)"},
    {"binary_crossentropy", "(2,3) (2,3) | (4,1) (4,1)", CALL(nn::binary_crossentropy(x, y)), {kTarget, {0.2, 0.8}}, kFloats, kSecond, 8, "(2,3) (2,1)"},
    {"binary_crossentropy", "(2,3) (2,3) | (4,1) (4,1)", CALL(nn::binary_crossentropy(x, y, true)), {kTarget, kReal}, kFloats, kSecond, 8, "(2,3) (2,1)"},
    {"categorical_crossentropy", "(2,3) (2,3) | (4,5) (4,5)", CALL(nn::categorical_crossentropy(x, y)), {kTarget, {0.2, 0.8}}, kFloats, kSecond, 8, "(2,3) (2,4) | (2,3) (3)"},
    {"categorical_crossentropy", "(2,3) (2,3) | (4,5) (4,5)", CALL(nn::categorical_crossentropy(x, y, true, 0)), {kTarget, kReal}, kFloats, kSecond, 8, "(2,3) (2,4)"},
    {"sparse_categorical_crossentropy", "(2) (2,3) | (4) (4,5)", CALL(nn::sparse_categorical_crossentropy(x, y)), {index_below(3), {0.2, 0.8}}, kFloats, kSecond, 8, "(3) (2,3)"},
    {"sparse_categorical_crossentropy", "(3) (2,3) | (5) (4,5)", CALL(nn::sparse_categorical_crossentropy(x, y, true, 0)), {index_below(2), kReal}, kFloats, kSecond, 8, "(2) (2,3)"},
    {"nll_loss", "(2) (2,3) | (4) (4,5)", CALL(nn::nll_loss(x, y)), {index_below(3), kReal}, kFloats, kSecond, 1, "(3) (2,3)"},
    {"nll_loss", "(2,2) (2,3,2) | (4,1) (4,5,1)", CALL(nn::nll_loss(x, y, 1)), {index_below(3, int64), kReal}, kFloats, kSecond, 1, "(3,2) (2,3,2)"},
    {"triplet_margin_loss", "(2,3) (2,3) (2,3) | (4,5) (4,5) (4,5)", CALL(nn::triplet_margin_loss(x, y, z)), {{2, 3}, {-3, -2}, kUnit}, kFloats, kSecond, 16, "(2,3) (2,4) (2,3) | (2,3) (2,3) (2,4)"},
    {"triplet_margin_loss", "(2,3) (2,3) (2,3) | (4,5) (4,5) (4,5)", CALL(nn::triplet_margin_loss(x, y, z, 0.5, 3.0)), {{2, 3}, {-3, -2}, kUnit}, kFloats, kSecond, 32, "(2,3) (2,4) (2,3)"},

    // ---- normalization.h
    {"moments", kReduce3, CALL(list(nn::moments(x, {0, -1}))), {kReal}, kFloats, kSecond, 4, "()"},
    {"normalize", kReduce, CALL(nn::normalize(x)), {kReal}, kFloats, kSecond, 4, "()"},
    {"normalize", kReduce3, CALL(nn::normalize(x, {0, 1}, 1)), {kPositive}, kFloats, kSecond, 8, "(3)"},
    {"normalize", "(2,3,2) | (4,2,3) | (1,3,1)", CALL(nn::normalize(x, 1, 3)), {kPositive}, kFloats, kSecond, 16, "(3)"},
    {"normalize", "(2,3,2) | (4,2,3) | (1,3,1)", CALL(nn::normalize(x, 1, INFINITY)), {kPositive}, kFloats, kSecond, 8, "(3)"},
    {"batch_normalization", "(4,3) (3) (3) (3) (3) | (2,5) (5) (1) (5) (1) | (0,3) (3) (3) (3) (3)", CALL(nn::batch_normalization(x, y, z, -1, w, in[4])), {kReal, kReal, kPositive, kOptional, kOptionalPositive}, kFloats, kSecond, 8, "(4,3) (4) (3) (3) (3)"},
    {"batch_normalization", "(2,3,2) (3) (3) | (4,2,3) (2) (2)", CALL(nn::batch_normalization(x, y, z, 1)), {kReal, kReal, kPositive}, kFloats, kSecond, 8, "(2,3,2) (2) (3)"},
    {"layer_normalization", "(2,3) (3) (3) | (4,5) (5) (5)", CALL(nn::layer_normalization(x, y, z)), {kReal, kReal, kReal}, kFloats, kSecond, 32, "(2,3) (2) (3) | (2,3) (3) (4)"},
    {"layer_normalization", "(2,3,4) (3) | (4,2,3) (2)", CALL(nn::layer_normalization(x, y, None, 1, 1e-2)), {kReal, kReal}, kFloats, kSecond, 16, "(2,3,4) (2)"},
    {"layer_normalization", "(2,3,2,4) (3,4) | (4,2,1,3) (2,3)", CALL(nn::layer_normalization(x, y, y, {1, -1}, 1e-2)), {kReal, kReal}, kFloats, kSecond, 16, "(2,3,2,4) (4,3)"},
    {"rms_normalization", "(2,3) (3) | (4,5) (5)", CALL(nn::rms_normalization(x, y)), {kReal, kReal}, kFloats, kSecond, 16, "(2,3) (2)"},
    {"rms_normalization", "(2,3,4) | (4,2,3)", CALL(nn::rms_normalization(x, None, {1, 2}, 1e-2)), {kReal}, kFloats, kSecond, 16, "(2)"},
    {"group_normalization", "(2,3,4) (4) (4) | (4,5,2) (2) (2)", CALL(nn::group_normalization(x, 2, y, z)), {kReal, kReal, kReal}, kFloats, kSecond, 16, "(2,3,5) (5) (5) | (2,3,4) (3) (4) | (4) (4) (4)"},
    {"group_normalization", "(2,6,2,2) (6) | (1,3,2,3) (3)", CALL(nn::group_normalization(x, 3, y, None, 1, 1e-2)), {kReal, kReal}, kFloats, kSecond, 16, "(2,4,2,2) (4)"},
    {"instance_normalization", "(2,3,4) (4) (4) | (4,5,2) (2) (2)", CALL(nn::instance_normalization(x, y, z)), {kReal, kReal, kReal}, kFloats, kSecond, 16, "(2,3,4) (3) (4)"},
    {"instance_normalization", "(2,6,2,3) | (1,3,3,2)", CALL(nn::instance_normalization(x, None, None, 1, 1e-2)), {kReal}, kFloats, kSecond, 16, "(3)"},
    {"psnr", "(2,3) (2,3) | (4,5) (4,5)", CALL(nn::psnr(x, y, 2.0)), {kReal, {3, 4}}, kFloats, kSecond, 16, "(2,3) (2,4)"},

    // ---- attention.h
    {"dot_product_attention", "(2,3,2,4) (2,5,2,4) (2,5,2,3) | (1,2,3,2) (1,4,3,2) (1,4,3,1) | (2,2,1,3) (2,1,1,3) (2,1,1,2)", CALL(nn::dot_product_attention(x, y, z, {.scale = 0.7})), {kReal, kReal, kReal}, kFloats, kSecond, 16, "(2,3,2,4) (2,5,2,3) (2,5,2,3) | (2,3,2,4) (2,5,2,4) (2,4,2,3) | (2,3,4) (2,5,4) (2,5,4)", {.grows = false}},
    {"dot_product_attention", "(2,3,2,4) (2,4,2,4) (2,4,2,3) | (1,5,3,2) (1,3,3,2) (1,3,3,1)", CALL(nn::dot_product_attention(x, y, z, {.scale = 0.7, .is_causal = true})), {kReal, kReal, kReal}, kFloats, kSecond, 16, "(2,3,2,4) (2,5,3,4) (2,5,2,3)", {.grows = false}},
    {"dot_product_attention", "(2,3,2,4) (2,5,2,4) (2,5,2,3) (3,5) | (1,2,3,2) (1,4,3,2) (1,4,3,1) (2,4)", CALL(nn::dot_product_attention(x, y, z, {.bias = w, .scale = 0.7})), {kReal, kReal, kReal, kOptional}, kFloats, kSecond, 16, "(2,3,2,4) (2,5,2,4) (2,5,2,3) (3,4)", {.grows = false}},
    {"dot_product_attention", "(2,3,2,4) (2,5,2,4) (2,5,2,3) (2,1,1,5) | (1,2,3,2) (1,4,3,2) (1,4,3,1) (1,3,2,1)", CALL(nn::dot_product_attention(x, y, z, {.mask = w, .scale = 0.7})), {kReal, kReal, kReal, kOptionalBool}, kFloats, kSecond, 16, "(2,3,2,4) (2,5,2,4) (2,5,2,3) (3,4)", {.grows = false}},
    {"dot_product_attention", "(2,3,4,2) (2,5,2,2) (2,5,1,3) | (1,2,2,3) (1,4,1,3) (1,4,2,1)", CALL(nn::dot_product_attention(x, y, z)), {kReal, kReal, kReal}, kFloats, kSecond, 16, "(2,3,4,2) (2,5,3,2) (2,5,1,3)", {.grows = false, .sized = true}},

    // ---- convolution.h
    {"conv", "(2,5,4) (2,2,6) | (1,4,2) (3,1,2)", CALL(nn::conv(x, y)), {kReal, kReal}, kFloats, kSecond, 16, "(2,5,4) (2,3,6) | (2,5,4) (2,2,3) | (2,5) (2,2,6)", {.grows = false, .sized = true}},
    {"conv", "(2,5,4,3) (2,2,3,2) | (1,4,4,6) (2,3,2,3)", CALL(nn::conv(x, y, {.strides = 2, .padding = "same"})), {kReal, kReal}, kFloats, kSecond, 16, "(2,5,4,3) (2,2,4,2)", {.grows = false, .sized = true}},
    {"conv", "(2,4,5,4) (2,2,2,6) | (1,2,4,4) (3,2,1,2)", CALL(nn::conv(x, y, {.data_format = "channels_first", .dilation_rate = {1, 2}})), {kReal, kReal}, kFloats, kSecond, 16, "(2,4,5,4) (2,2,3,6)", {.grows = false, .sized = true}},
    {"max_pool", "(2,5,3) | (1,4,2)", CALL(nn::max_pool(x, 2)), {kReal}, kFloats, kSecond, 1, "(2)", {.grows = false}},
    {"max_pool", "(2,3,5,4) | (1,2,3,3)", CALL(nn::max_pool(x, {2, 3}, {.strides = 1, .data_format = "channels_first"})), {kReal}, kFloats, kSecond, 1, "(2,3)", {.grows = false}},
    {"average_pool", "(2,3,5) | (1,2,4)", CALL(nn::average_pool(x, 2, {.data_format = "channels_first"})), {kReal}, kFloats, kSecond, 4, "(2)", {.grows = false}},
    {"average_pool", "(2,4,5,3) | (1,2,4,1)", CALL(nn::average_pool(x, 2)), {kReal}, kFloats, kSecond, 4, "(2,3)", {.grows = false}},
    {"adaptive_average_pool", "(2,5,3) | (1,4,2)", CALL(nn::adaptive_average_pool(x, 3)), {kReal}, kFloats, kSecond, 8, "(2)", {.grows = false, .sized = true}},
    {"adaptive_average_pool", "(2,3,5,7) | (1,2,4,4)", CALL(nn::adaptive_average_pool(x, {2, 3}, "channels_first")), {kReal}, kFloats, kSecond, 8, "(2,3)", {.grows = false, .sized = true}},
    {"adaptive_max_pool", "(2,5,3) | (1,4,2)", CALL(nn::adaptive_max_pool(x, 3)), {kReal}, kFloats, kSecond, 4, "(2)", {.grows = false, .sized = true}},
    {"adaptive_max_pool", "(2,3,5,7) | (1,2,4,4)", CALL(nn::adaptive_max_pool(x, {2, 3}, "channels_first")), {kReal}, kFloats, kSecond, 4, "(2,3)", {.grows = false, .sized = true}},
    {"depth_to_space", "(2,3,2,8) | (1,1,2,4)", CALL(nn::depth_to_space(x, 2)), {kReal}, kAnything, kSecond, 1, "(2,3,2,6) | (2,8)", {.grows = false, .sized = true}},
    {"depth_to_space", "(2,9,3,2) | (1,18,1,2)", CALL(nn::depth_to_space(x, 3, "channels_first")), {kReal}, kAnything, kSecond, 1, "(2,8,3,2)", {.grows = false, .sized = true}},
    {"space_to_depth", "(2,4,6,3) | (1,2,2,1)", CALL(nn::space_to_depth(x, 2)), {kReal}, kAnything, kSecond, 1, "(2,3,4,2)", {.grows = false, .sized = true}},
    {"space_to_depth", "(2,3,3,6) | (1,1,6,3)", CALL(nn::space_to_depth(x, 3, "channels_first")), {kReal}, kAnything, kSecond, 1, "(2,3,4,3)", {.grows = false, .sized = true}},
    {"unfold", "(2,3,4,5) | (1,2,3,3)", CALL(nn::unfold(x, {2, 3})), {kReal}, kAnything, kSecond, 4, "(2,3,1,5) | (3,4)", {.grows = false, .sized = true}},
    {"unfold", "(2,3,4,5) | (1,2,3,3)", CALL(nn::unfold(x, 2, {1, 2}, 1, {2, 1})), {kReal}, kAnything, kSecond, 4, "(3,4)", {.grows = false, .sized = true}},
    {"fold", "(2,12,9) | (1,8,9)", CALL(nn::fold(x, {4, 4}, 2)), {kReal}, kFloats, kSecond, 4, "(2,12,8) | (2,10,9)", {.grows = false, .sized = true}},
    {"fold", "(2,12,15) | (1,4,15)", CALL(nn::fold(x, {4, 5}, 2, {1, 2}, 1, {2, 1})), {kReal}, kFloats, kSecond, 4, "(2,12,14)", {.grows = false, .sized = true}},
};
// clang-format on

}  // namespace
}  // namespace kassette::test
