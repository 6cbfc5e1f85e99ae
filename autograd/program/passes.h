// autograd/program/passes.h - the passes that analyse and reorder a program before it runs. Each uses the results of
// those above it.
#pragma once
#include <utility>
#include <vector>

#include "autograd/program/program.h"

namespace kassette::autograd {

/// True if instruction s reads only the shape of its input i.
bool reads_shape(const Instruction& s, int i);
/// Sorts the instructions by `places`: one pair (key, index of the instruction) for each instruction.
void reorder(Program& p, std::vector<std::pair<int, int>> places);
/// Fills `root`: the slots of outputs, fetches and effects.
void find_roots(Program& p);
/// Fills Instruction::need: whether the value, the shape or nothing of an instruction's outputs is needed.
void find_needs(Program& p);
/// Removes unused instructions, moves elementwise ones whose results only updates use to the end, and sets first_tail:
/// Note [Commit].
void find_tail(Program& p);
/// Liveness: fills last_use, last_value_use, and the slots that are dead after each instruction.
void find_last_uses(Program& p);
/// Fills Effect::in_place_instruction and old_value_slot of updates that may write into the variable's own memory.
void find_in_place(Program& p);
/// Fills Instruction::splat, see Note [Splats].
void find_splats(Program& p);
/// Fills differentiable: for each feed, the outputs that depend differentiably on it.
void find_differentiable(Program& p);

}  // namespace kassette::autograd
