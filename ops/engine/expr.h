// ops/engine/expr.h - the ops as functions of tensors, with which adjoints are written.
#pragma once
#include "ops/elementwise/arithmetic.h"
#include "ops/shape/like.h"
#include "ops/product/matmul.h"
#include "ops/normalization/normalization.h"
#include "ops/reduce/reduce.h"
#include "ops/reduce/reduce_arg.h"
#include "ops/reduce/scan.h"
#include "ops/shape/shaping.h"
#include "ops/softmax/softmax.h"
