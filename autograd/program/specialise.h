// autograd/program/specialise.h - a program for inputs whose shapes are known.
#pragma once
#include <vector>

#include "autograd/program/program.h"

namespace kassette::autograd {

/// The program for inputs of these shapes, made from one that has been through all passes: Note [Plans for shapes].
Program specialise(const Program& program, const std::vector<TensorDesc>& inputs);

}  // namespace kassette::autograd
