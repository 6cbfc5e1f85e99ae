// autograd/thin.cpp - results that are one number, repeated.
#include "autograd/frame.h"
#include "core/convert.h"
#include "core/fast_paths.h"
#include "ops/repeat.h"

namespace kassette {

// Note [Thin results]
// The gradient of a sum is one number in the shape of what was summed. Where elementwise steps alone read it, a plan keeps
// that number: the slot has the shape of the whole and the storage of one element, and chains repeat it in registers. A
// reader that is no chain after all (float16, broadcasting, an accelerator) has it written out first.

/// Gives the step's slot its thin result, unless its input has several elements.
bool Plan::spread_thin(Frame& f, const Step& s) const {
  const int slot = s.out;
  const Body& in = *f.arrays[0].body;
  Body& out = f.own[slot];
  f.thin[slot] = may_take(FastPath::repeated) && f.device == cpu && in.numel() == 1 && out.numel() > 1;
  if (!f.thin[slot]) return false;
  count_taken(FastPath::repeated);
  out.storage = Storage::allocate(out.dtype.size(), cpu);
  out.offset = 0;
  s.op->repeated(Call{*s.op, s.attrs, f.arrays.data(), s.n_in, nullptr, 1, cpu}, out, out.data());
  return true;
}

bool Plan::reads_thin(const Frame& f, const Step& s) const {
  for (int slot : program_.reads(s))
    if (f.thin[slot]) return true;
  return false;
}

/// Writes the step's thin inputs out.
void Plan::thicken(Frame& f, const Step& s) const {
  for (int slot : program_.reads(s)) {
    if (!f.thin[slot]) continue;
    Body& b = f.own[slot];
    Ref<Storage> whole = Storage::allocate(b.bytes(), cpu);
    Runs runs;
    runs.push(b.numel(), true);
    repeat_runs(b.data(), static_cast<std::byte*>(whole->data), b.dtype.size(), runs);
    b.storage = std::move(whole);
    b.offset = 0;
    f.thin[slot] = 0;
  }
}

}  // namespace kassette
