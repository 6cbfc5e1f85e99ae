// autograd/tape/deferred.cpp - the op of a deferred node.
#include "autograd/tape/deferred.h"

namespace kassette::autograd {

constinit const ops::OpDef deferred_op{.name = "deferred", .rule = nullptr, .cpu = nullptr, .vjp = nullptr, .n_out = 0};

}  // namespace kassette::autograd
