// autograd/loops/loops.h - a loop as one node of the tape.
#pragma once
#include "autograd/loops/loop_request.h"

namespace kassette::autograd {

/// The loop as one node. Time must be axis 0 and there must be no mask: run_loop() has turned it into an element.
Tensors loop_node(const LoopRequest& r, bool symbolic, const StepOf& step);

}  // namespace kassette::autograd
