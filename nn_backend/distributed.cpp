// nn_backend/distributed.cpp - the same program on many ranks.
#include <kassette/backend/state.h>
#include <kassette/distributed.h>

#include <ostream>
#include <utility>
#include <vector>

#include "autograd/walk.h"
#include "core/sparse.h"
#include "core/text.h"
#include "ops/collective.h"
#include "ops/reduce_job.h"

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
  RankCall call(*group_, call_number("barrier"), words);
  if (group_->comm) group_->comm->barrier();
}

std::ostream& operator<<(std::ostream& os, const World& world) {
  return os << "World(rank " << world.rank() << " of " << world.size() << ", " << transport_name() << ")";
}

Tensor all_reduce(const Tensor& x, Reduction how, const World& world) { return all_reduce(Tensors(x), how, world)[0]; }
Tensors all_reduce(const Tensors& xs, Reduction how, const World& world) {
  return together("all_reduce", xs, world, [&](RankGroup& g) { return kassette::all_reduce(xs, static_cast<kassette::Reduction>(how), g); });
}

namespace {

/// Gradients as they become complete, in messages of a certain size.
class Buckets final : public Completions {
 public:
  Buckets(const Tensors& variables, Reduction how, const GradientOptions& options, RankGroup& group)
      : variables_(variables), how_(static_cast<kassette::Reduction>(how)), options_(options), group_(group) {}

  void complete(std::int64_t i, const Tensor& g) override {
    const Body &x = Access::body(variables_[i]), &b = Access::body(g);
    members_.push_back(i);
    values_.push_back(g);
    now_ = now_ && b.storage && b.device == cpu && !context().symbolic;
    bytes_ += x.known() ? x.bytes() : 0;
    if (bytes_ >= options_.bucket_bytes) close(options_.overlap);
  }

  /// Those gradients, reduced.
  Tensors reduce(Tensors gradients) {
    const bool aside = options_.overlap && !buckets_.empty();   // of one bucket nothing is left to compute
    close(aside);
    Tensor token;
    for (Bucket& bucket : buckets_) {
      Tensors xs;
      for (std::int64_t i : bucket.members) xs.push_back(gradients[i]);
      token = all_reduce_start(xs, token, how_, group_, aside, std::move(bucket.job));
      bucket.token = token;
    }
    for (Bucket& bucket : buckets_) {
      Tensors xs;
      for (std::int64_t i : bucket.members) xs.push_back(gradients[i]);
      const Tensors results = all_reduce_wait(bucket.token, xs, how_, group_);
      for (std::int64_t k = 0; k < xs.size(); ++k) gradients.begin()[bucket.members[static_cast<std::size_t>(k)]] = results[k];
    }
    return gradients;
  }

 private:
  struct Bucket {
    std::vector<std::int64_t> members;
    Ref<ReduceJob> job;
    Tensor token;
  };
  void close(bool aside) {
    if (members_.empty()) return;
    Ref<ReduceJob> job;
    if (now_) job = ReduceJob::begin(values_, how_, group_, aside);
    buckets_.push_back({std::move(members_), std::move(job), Tensor()});
    members_.clear();
    values_ = Tensors();
    bytes_ = 0;
    now_ = true;
  }

  const Tensors& variables_;
  kassette::Reduction how_;
  const GradientOptions& options_;
  RankGroup& group_;
  std::vector<std::int64_t> members_;
  Tensors values_;
  std::int64_t bytes_ = 0;
  bool now_ = true;
  std::vector<Bucket> buckets_;
};

Tensors reduced_gradients(const Tensor& loss, const Tensors& variables, Reduction how, const GradientOptions& options, const World& world,
                          Kept kept) {
  check("gradients", loss);
  return together("gradients", variables, world, [&](RankGroup& g) {
    if (how != sum && how != mean) fail<ValueError>("gradients: gradients are added or averaged over the ranks, with sum or mean");
    Buckets buckets(variables, how, options, g);
    return buckets.reduce(kassette::gradients(loss, variables, kept, &buckets));
  });
}

}  // namespace

Tensors gradients(const Tensor& loss, const Tensors& variables, Reduction how, const GradientOptions& options, const World& world) {
  return reduced_gradients(loss, variables, how, options, world, Kept::everything);
}
Tensors gradients(Tensor&& loss, const Tensors& variables, Reduction how, const GradientOptions& options, const World& world) {
  const Tensor last = std::move(loss);
  const bool alone = last.defined() && Access::impl(last)->count.load(std::memory_order_acquire) == 1;
  return reduced_gradients(last, variables, how, options, world, alone ? Kept::leaves : Kept::everything);
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
