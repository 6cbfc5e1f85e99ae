// autograd/passes.h - what is found out about a program before it is run. Each pass reads what those before it have filled in.
#pragma once
#include <utility>
#include <vector>

#include "autograd/program.h"

namespace kassette {

/// Whether step s reads of its input i the shape alone.
bool reads_shape(const Step& s, int i);
/// Sorts the steps: for each of them, in any order, the place where it goes and which it is.
void reorder(Program& p, std::vector<std::pair<int, int>> places);
/// root: the slots whose values are wanted, outputs, fetches and effects.
void find_roots(Program& p);
/// Step::need: what is needed of each step's outputs.
void find_needs(Program& p);
/// Drops steps that nothing needs, and puts last those that serve updates alone: first_tail, Note [Commit].
void find_tail(Program& p);
/// Gives the steps that run a body their tapes, and the steps that rewind it these: Note [Residuals].
void find_residuals(Program& p);
/// last_use, last_value_use, and per step the slots that die with it.
void find_last_uses(Program& p);
/// Effect::step: updates whose value may be written into the variable itself.
void find_in_place(Program& p);
/// Step::splat, see Note [Splats].
void find_splats(Program& p);
/// reaches: which feeds an output depends on differentiably.
void find_differentiable(Program& p);

/// The program for inputs of these shapes, from a complete one: Note [Plans for shapes].
Program specialise(const Program& program, const std::vector<Body>& inputs);

}  // namespace kassette
