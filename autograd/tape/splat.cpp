// autograd/tape/splat.cpp - tensors whose elements are all equal, stored as one element.
#include "autograd/tape/splat.h"

#include "core/fast_paths.h"
#include "ops/engine/observe.h"
#include "ops/shape/repeat.h"

namespace kassette::autograd {
using namespace ops;

bool run_as_splat(const OpCall& call, TensorDesc& out, std::int32_t origin) {
  if (!may_take(FastPath::repeated) || call.device != cpu || call.spec(0).numel() != 1 || out.numel() <= 1)
    return false;
  count_taken(FastPath::repeated);
  out.storage = Storage::allocate(out.dtype.size(), cpu);
  out.offset = 0;
  run_repeated(call, out, origin);
  return true;
}

void write_out(TensorDesc& b) {
  Ref<Storage> whole = Storage::allocate(b.bytes(), cpu);
  CoalescedAxes runs;
  runs.push(b.numel(), true);
  repeat_runs(b.data(), static_cast<std::byte*>(whole->data), b.dtype.size(), runs);
  b.storage = std::move(whole);
}

}  // namespace kassette::autograd
