// ops/expr.h - the ops as functions of tensors, with which adjoints are written.
#pragma once
#include "ops/arithmetic.h"
#include "ops/like.h"
#include "ops/matmul.h"
#include "ops/normalization.h"
#include "ops/reduce.h"
#include "ops/reduce_arg.h"
#include "ops/scan.h"
#include "ops/shaping.h"
#include "ops/softmax.h"
