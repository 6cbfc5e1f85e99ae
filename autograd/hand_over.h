// autograd/hand_over.h - the tape of a control-flow node, from the step that runs its body to the step that rewinds it.
#pragma once
#include <vector>

#include "ops/op.h"

namespace kassette {

// Note [Hand-over]
// The adjoint of a `call` node is a `call` of Vjp(body) on the same inputs and the cotangents. By itself it runs the body
// recorded and walks that tape. Where a plan holds both, the body runs once: recorded, and its tape waits in the frame for
// the adjoint. So do all adjoints of one body, whatever they want, and an adjoint hands its own tape to its adjoint in turn.
// Only inputs that some adjoint wants have history, so that nothing is saved for the others; nodes of such a tape keep no
// constants, for nobody replays them.
// Where one adjoint takes the tape of a loop and leaves none itself, which is the rule, no ops are recorded at all: see
// Note [Loops].

/// What ran recorded: its inputs, those wanted by an adjoint as nodes of their own, and its results.
struct Tape {
  Tensors args, results;
  Ref<Extra> loop;   // instead of args: the run of a compiled loop, which can go back once. See Note [Loops]
  bool empty() const { return args.empty() && !loop; }
  void clear() {
    args.clear();
    results.clear();
    loop = {};
  }
};

/// Where a call step takes a tape from and leaves its own. Null: it runs by itself, nobody wants it.
struct HandOver {
  Tape* of = nullptr;    // of the procedure that this one rewinds; made here if it is empty
  const std::vector<char>* of_wanted = nullptr;
  bool last = true;      // nobody takes `of` after this step
  bool consume = true;   // nor any tape that was made from it: saved values may go as they are used
  Tape* own = nullptr;
  const std::vector<char>* own_wanted = nullptr;
  const Attrs* taker = nullptr;   // of the one step that takes `own`, for the last time
};

/// A call step on concrete tensors, recorded iff recording is on.
Tensors run_call(const Attrs& attrs, const Tensors& in, const HandOver& h);
/// The same as a kernel: unrecorded.
void run_call(const Call& call, const HandOver& h);

/// The inputs that a rewinding procedure differentiates with respect to, which outputs have cotangents, and how many inputs
/// the rewound one has; null for other procedures.
struct Rewound {
  const Extra* of = nullptr;
  const std::vector<int>* wanted = nullptr;
  const std::vector<char>* has_dy = nullptr;
  int n_in = 0;
};
Rewound rewound_by(const Attrs& attrs);

/// The value of a tensor without history.
Tensor detached(const Body& from);

}  // namespace kassette
