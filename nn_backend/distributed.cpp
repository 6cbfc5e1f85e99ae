// nn_backend/distributed.cpp - the same program on many ranks.
#include <kassette/backend/state.h>
#include <kassette/distributed.h>

#include <ostream>

#include "core/sparse.h"
#include "core/text.h"
#include "ops/collective.h"

namespace kassette {
namespace distributed {

struct WorldAccess {
  static World make(RankGroup* group) { return World(group); }
  static RankGroup& group(const World& w) { return *w.group_; }
};

namespace {

RankGroup& group_of(const World& w) { return WorldAccess::group(w); }

void check(const char* what, const Tensor& x) {
  if (!x.defined()) fail<ValueError>(what, ": an empty Tensor (an uninitialised variable?)");
  refuse_sparse(what, x);
}
void check(const char* what, const Tensors& xs) {
  for (const Tensor& x : xs) check(what, x);
}

bool computes_now(const Tensor& x) { return !context().symbolic && !(x.defined() && x.symbolic()); }
bool computes_now(const Tensors& xs) {
  for (const Tensor& x : xs)
    if (!computes_now(x)) return false;
  return true;
}

/// run(group), after the checks of x. The other ranks do not wait for what this one refuses.
template <class X, class F>
auto together(const char* what, const X& x, const World& world, F run) {
  RankGroup& group = group_of(world);
  const std::int64_t calls = group.calls;
  try {
    check(what, x);
    return run(group);
  } catch (const Error& e) {
    if (group.calls == calls && computes_now(x)) refuse_call(group, e.what());
    throw;
  }
}

bool is_variable_tensor(const Tensor& x) {
  const Body& b = Access::body(x);
  return (b.flags & kLeaf) && b.node->cell->kind == Leaf::variable;
}

}  // namespace

World::World() : group_(&all_ranks()) {}
World init() { return World(); }
int World::rank() const { return group_->rank; }
int World::size() const { return group_->size; }
int World::local_rank() const { return kassette::local_rank(); }

World World::split(int colour, int key) const {
  if (colour < 0) fail<ValueError>("split: the colour is ", colour, "; it must not be negative");
  return WorldAccess::make(split_ranks(*group_, colour, key));
}

void World::barrier() const {
  const std::function<std::string()> words = [] { return std::string("barrier"); };
  RankCall call(*group_, 0x62617272, words);
  if (group_->comm) group_->comm->barrier();
}

std::ostream& operator<<(std::ostream& os, const World& world) {
  return os << "World(rank " << world.rank() << " of " << world.size() << ", " << transport_name() << ")";
}

Tensor all_reduce(const Tensor& x, Reduction how, const World& world) { return all_reduce(Tensors(x), how, world)[0]; }
Tensors all_reduce(const Tensors& xs, Reduction how, const World& world) {
  return together("all_reduce", xs, world, [&](RankGroup& g) { return kassette::all_reduce(xs, static_cast<kassette::Reduction>(how), g); });
}

Tensor broadcast(const Tensor& x, int root, const World& world) { return broadcast(Tensors(x), root, world)[0]; }
Tensors broadcast(const Tensors& xs, int root, const World& world) {
  return together("broadcast", xs, world, [&](RankGroup& g) {
    Tensors values = kassette::broadcast(xs, root, g);
    for (std::int64_t i = 0; i < xs.size(); ++i)
      if (is_variable_tensor(xs[i])) values.begin()[i] = backend::update(xs[i], values[i]);
    return values;
  });
}

Tensor all_gather(const Tensor& x, const World& world) {
  return together("all_gather", x, world, [&](RankGroup& g) { return kassette::all_gather(x, g); });
}

Tensor reduce_scatter(const Tensor& x, Reduction how, const World& world) {
  return together("reduce_scatter", x, world, [&](RankGroup& g) { return kassette::reduce_scatter(x, static_cast<kassette::Reduction>(how), g); });
}

Tensor all_to_all(const Tensor& x, const World& world) {
  return together("all_to_all", x, world, [&](RankGroup& g) { return kassette::all_to_all(x, g); });
}

Tensor send(const Tensor& x, int to, const World& world) {
  check("send", x);
  return kassette::send(x, to, group_of(world));
}
Tensor recv(const Tensor& like, int from, const World& world) {
  check("recv", like);
  return kassette::recv(like, from, group_of(world));
}

Tensor shard(const Tensor& x, const World& world) {
  check("shard", x);
  return kassette::shard(x, group_of(world));
}

void set_timeout(double seconds) {
  if (!(seconds >= 0)) fail<ValueError>("set_timeout: ", seconds, " seconds; it must not be negative");
  set_ranks_timeout(seconds);
}

}  // namespace distributed
}  // namespace kassette
