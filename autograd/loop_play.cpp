// autograd/loop_play.cpp - the middle steps of a compiled loop, there and back, row by row. See Note [Rows by themselves].
#include <algorithm>

#include "autograd/loop_rows.h"
#include "autograd/loop_run.h"
#include "core/fast_paths.h"

namespace kassette {

bool LoopRun::by_rows(Arrangement& s, const std::vector<Carried>& carried, LoopRows& to) {
  const LoopProgram& p = *program_;
  if (!p.keys.empty() || !listed_.empty()) return false;
  auto multiplication = [&](int step, int out, LoopRows::Multiplication* m) {
    Bound& b = bounds_[step];
    if (b.dynamic || b.views || !MatrixProduct::of(call_of(b), body(out), &m->product)) return false;
    m->rows = plan_.input(*b.step, m->product.rows);
    m->columns = plan_.input(*b.step, m->product.columns);
    m->out = out;
    return true;
  };
  for (const LoopItem& item : s.items) {
    LoopRows::Multiplication m;
    if (item.chain >= 0) {
      to.add(*s.chains[item.chain]);
    } else if (item.sum >= 0) {
      if (!multiplication(item.step, item.sum, &m)) return false;
      to.add_sum(m);
    } else if (const Bound& b = bounds_[item.step]; !b.silent) {
      if (!multiplication(item.step, b.step->out, &m)) return false;
      to.add(m);
    }
  }
  running_ = nullptr;
  std::vector<int> changing;
  for (const Carried& c : carried) changing.push_back(c.to);
  return to.fits(bodies_, p.varies, changing);
}

/// Where slots are in step t and, each step going on by one or back, in those after it. What does not move is where it is.
std::vector<Track> LoopRun::tracks_from(std::int64_t t, std::int64_t begin, int by) {
  const LoopProgram& p = *program_;
  std::vector<Track> tracks(bodies_.size());
  for (std::size_t i = 0; i < tracks.size(); ++i)
    if (bodies_[i].storage) tracks[i].at[0] = tracks[i].at[1] = body(static_cast<int>(i)).data();
  const int by_index = call_.reverse ? -by : by;
  auto moves = [&](int slot, std::byte* first, int sign) {
    tracks[slot] = {{first, first}, sign * body(slot).bytes()};
  };
  for (int i = 0; i < p.arity.nx; ++i) {
    const int slot = p.args[i];
    moves(slot, const_cast<std::byte*>(Access::body(in_[i + 1]).data()) + index_of(t) * body(slot).bytes(), by_index);
  }
  auto stack = [&](int slot) { return static_cast<std::byte*>(stacks_[slot]->data); };
  for (int slot : stacked_) moves(slot, stack(slot) + (t - begin) * body(slot).bytes(), by);
  if (by > 0) return tracks;
  for (const Carried& c : states_)   // as restore() has them
    if (p.kept[c.to] && has_stack(c.from)) moves(c.to, stack(c.from) + (t - begin - 1) * body(c.to).bytes(), by);
  return tracks;
}

/// The buffers of what is carried. False, where one is neither a stack nor a pair that changes places.
bool LoopRun::follow(const std::vector<Carried>& carried, std::vector<Track>& tracks) {
  for (const Carried& c : carried) {
    if (c.from < 0 || (!c.swaps && !has_stack(c.from))) return false;
    Body& to = body(c.to);
    Track &a = tracks[c.from], &b = tracks[c.to];
    if (!c.swaps) {
      b = {{to.data(), to.data()}, a.next};
      continue;
    }
    if (!ours(to.storage.get(), to.bytes())) return false;
    make_room(c.from);
    a = {{body(c.from).data(), to.data()}, 0};
    b = {{to.data(), body(c.from).data()}, 0};
  }
  return true;
}

void LoopRun::carry_on(const std::vector<Carried>& carried, const std::vector<Track>& tracks, std::int64_t steps) {
  for (const Carried& c : carried) {
    Body &from = body(c.from), &to = body(c.to);
    if (!c.swaps) {
      to.offset += steps * tracks[c.to].next;
    } else if (steps % 2) {
      std::swap(from.storage, to.storage);
      std::swap(from.offset, to.offset);
    }
  }
}

/// Plays steps [t, end) of the pass that began with `begin`, if that goes by rows; how many it played.
std::int64_t LoopRun::play_rows(std::int64_t t, std::int64_t begin, std::int64_t end) {
  const LoopProgram& p = *program_;
  if (end - t < 2 || !may_take(FastPath::loop_rows)) return 0;
  for (int i = 0; pass_ != Pass::keeping && i < p.arity.ny; ++i)
    if (!has_stack(p.outs[i])) return 0;
  LoopRows rows;
  if (!by_rows(*forward_, states_, rows)) return 0;
  std::vector<Track> tracks = tracks_from(t, begin, 1);
  if (!follow(states_, tracks)) return 0;
  count_taken(FastPath::loop_rows);
  rows.run(end - t, tracks, bodies_);
  carry_on(states_, tracks, end - t);
  return end - t;
}

/// The same back from step t to `end`, the last of them, with cotangents of that variant.
std::int64_t LoopRun::rewind_rows(const Variant& v, Back& back, const Tensors& dys, std::int64_t t, std::int64_t begin, std::int64_t end) {
  const LoopProgram& p = *program_;
  if (t - end < 1 || !may_take(FastPath::loop_rows_back)) return 0;
  for (std::size_t i = 0; i < dx_.size(); ++i)
    if (dx_[i] && !back.in_place[i]) return 0;
  LoopRows rows;
  if (!by_rows(*back.steps, back.carried, rows)) return 0;
  std::vector<Track> tracks = tracks_from(t, begin, -1);
  for (int k = 0; k < p.arity.ny; ++k) {
    if (!v.has_dy[k]) continue;
    const int slot = p.dys[k];
    const std::int64_t bytes = body(slot).bytes();
    std::byte* at = const_cast<std::byte*>(Access::body(dys[k]).data()) + t * bytes;
    tracks[slot] = {{at, at}, -bytes};
  }
  for (std::size_t i = 0; i < dx_.size(); ++i) {
    if (!dx_[i]) continue;
    const std::int64_t bytes = body(v.din[i]).bytes();
    std::byte* at = static_cast<std::byte*>(dx_[i]->data) + index_of(t) * bytes;
    tracks[v.din[i]] = {{at, at}, call_.reverse ? bytes : -bytes};
  }
  if (!follow(back.carried, tracks) || !rows.sums_last(tracks)) return 0;
  const std::int64_t steps = t - end + 1;
  count_taken(FastPath::loop_rows_back);
  rows.run(steps, tracks, bodies_);
  carry_on(back.carried, tracks, steps);
  return steps;
}

}  // namespace kassette
