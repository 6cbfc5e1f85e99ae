// ops/expr.h - ops as functions of tensors, for the adjoints, which are written with them.
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
