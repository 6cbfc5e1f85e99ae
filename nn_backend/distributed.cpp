// nn_backend/distributed.cpp - the same program on many ranks.
#include <kassette/backend/state.h>
#include <kassette/distributed.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <ostream>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "autograd/function/gradients.h"
#include "core/sparse.h"
#include "core/text.h"
#include "ops/collective/collective.h"
#include "ops/collective/collective_parts.h"
#include "ops/engine/expr.h"
#include "ops/shape/index.h"
#include "ops/collective/reduce_job.h"
#include "ops/shape/shaping.h"

namespace kassette {
using namespace devices;
using namespace ops;
namespace distributed {

struct WorldAccess {
  static World make(RankGroup* group) { return World(group); }
  static RankGroup& group(const World& w) { return *w.group_; }
};

namespace {

RankGroup& group_of(const World& w) { return WorldAccess::group(w); }

void check(const At& at, const Tensor& x) {
  if (!x.defined()) fail_empty(at);
  refuse_sparse(at, x);
}
void check(const At& at, const Tensors& xs) {
  for (const Tensor& x : xs) {
    if (!x.defined()) fail<ValueError>(at, "hold ", kEmptyTensor);
    check(at, x);
  }
}

bool computes_now(const Tensor& x) { return !context().symbolic && !(x.defined() && x.symbolic()); }
bool computes_now(const Tensors& xs) {
  for (const Tensor& x : xs)
    if (!computes_now(x)) return false;
  return true;
}

/// Calls run(group) after checking x. If a check fails the other ranks are told, so that they do not wait.
template <class X, class F>
auto together(const At& at, const X& x, const World& world, F run) {
  RankGroup& group = group_of(world);
  const std::int64_t calls = group.calls;
  try {
    check(at, x);
    return run(group);
  } catch (const std::exception& e) {  // an Error, or Interrupted
    if (group.calls == calls && computes_now(x)) refuse_call(group, e.what());
    throw;
  }
}

bool is_variable_tensor(const Tensor& x) {
  const TensorDesc& b = Access::desc(x);
  return (b.flags & kLeaf) && b.node->cell->kind == Leaf::variable;
}

/// Runs f, then waits for the other ranks for as long as their files take. If f throws on one rank, all ranks throw.
template <class F>
void all_or_none(RankGroup& group, const char* what, F f) {
  std::string why;
  std::exception_ptr error;
  try {
    f();
  } catch (const std::exception& e) {
    error = std::current_exception();
    why = e.what();
  }
  const std::function<std::string()> words = [&] { return std::string(what); };
  RankCall call(group, call_number(what), words, /*watched=*/false);
  const bool all_well = holds_on_all(group, !error);
  if (!all_well) {
    constexpr std::int64_t kText = 480;
    why.resize(kText - 1);
    std::string every(kText * group.size, '\0');
    const std::vector<std::int64_t> sizes(group.size, kText);
    if (group.comm) group.comm->all_gather(why.c_str(), every.data(), sizes.data());
    if (error) std::rethrow_exception(error);
    for (int r = 0; r < group.size; ++r)
      if (const char* said = every.data() + r * kText; *said) fail<RuntimeError>({what}, "rank ", r, ": ", said);
  }
}

}  // namespace

World::World() : group_(&all_ranks()) {}
World init() { return World(); }
int World::rank() const { return group_->rank; }
int World::size() const { return group_->size; }
int World::local_rank() const { return devices::local_rank(); }

World World::split(int colour, int key) const {
  try {
    if (colour < 0) fail<ValueError>({"split", "colour"}, "is ", colour, kExpected, "it must not be negative");
  } catch (const Error& e) {
    refuse_call(*group_, e.what());
    throw;
  }
  return WorldAccess::make(split_ranks(*group_, colour, key));
}

void World::barrier() const {
  const std::function<std::string()> words = [] { return std::string("barrier"); };
  RankCall call(*group_, call_number("barrier"), words);
  if (group_->comm) group_->comm->barrier();
}

std::ostream& operator<<(std::ostream& os, const World& world) {
  return os << text("World(rank ", world.rank(), " of ", world.size(), ", ", transport_name(), ")");
}

Tensor all_reduce(const Tensor& x, Reduction how, const World& world) { return all_reduce(Tensors(x), how, world)[0]; }
Tensors all_reduce(const Tensors& xs, Reduction how, const World& world) {
  return together({"all_reduce", "xs"}, xs, world,
                  [&](RankGroup& g) { return ops::all_reduce(xs, static_cast<ops::Reduction>(how), g); });
}
Tensor all_reduce(Tensor&& x, Reduction how, const World& world) {
  Tensors one;
  one.push_back(std::move(x));
  return all_reduce(std::move(one), how, world)[0];
}
Tensors all_reduce(Tensors&& xs, Reduction how, const World& world) {
  const Tensors last = std::move(xs);
  return together({"all_reduce", "xs"}, last, world,
                  [&](RankGroup& g) { return ops::all_reduce_in_place(last, static_cast<ops::Reduction>(how), g); });
}

namespace {

/// Collects gradients as they become complete, and reduces them in messages of a given size.
class Buckets final : public autograd::GradientHook {
 public:
  Buckets(const Tensors& variables, Reduction how, const GradientOptions& options, RankGroup& group)
      : variables_(variables), how_(static_cast<ops::Reduction>(how)), options_(options), group_(group) {}

  void on_gradient(std::int64_t i, const Tensor& g) override {
    const TensorDesc &x = Access::desc(variables_[i]), &b = Access::desc(g);
    members_.push_back(i);
    values_.push_back(g);
    now_ = now_ && b.storage && b.device == cpu && !context().symbolic;
    bytes_ += x.known() ? x.bytes() : 0;
    if (bytes_ >= options_.bucket_bytes) close(options_.overlap);
  }

  /// The reduced gradients.
  Tensors reduce(Tensors gradients) {
    // with a single bucket no computation is left to overlap with
    const bool in_background = options_.overlap && !buckets_.empty();
    close(in_background);
    Tensor token;
    for (Bucket& bucket : buckets_) {
      Tensors xs;
      for (std::int64_t i : bucket.members) xs.push_back(gradients[i]);
      token = all_reduce_start(xs, token, how_, group_, in_background, std::move(bucket.job));
      bucket.token = token;
    }
    for (Bucket& bucket : buckets_) {
      Tensors xs;
      for (std::int64_t i : bucket.members) xs.push_back(gradients[i]);
      const Tensors results = all_reduce_wait(bucket.token, xs, how_, group_);
      for (std::int64_t k = 0; k < xs.size(); ++k) gradients.begin()[bucket.members[k]] = results[k];
    }
    return gradients;
  }

  /// Called if the pass fails on this rank: the others throw as well, unless all know already.
  void refuse(const std::string& why) {
    if (last_job_) return last_job_->refuse_next(why);
    if (group_.differed == differed_) refuse_call(group_, why);
  }

 private:
  struct Bucket {
    std::vector<std::int64_t> members;
    Ref<ReduceJob> job;
    Tensor token;
  };
  void close(bool in_background) {
    if (members_.empty()) return;
    Ref<ReduceJob> job;
    if (now_) last_job_ = job = ReduceJob::begin(values_, how_, group_, last_job_, in_background);
    buckets_.push_back({std::move(members_), std::move(job), Tensor()});
    members_.clear();
    values_ = Tensors();
    bytes_ = 0;
    now_ = true;
  }

  const Tensors& variables_;
  ops::Reduction how_;
  const GradientOptions& options_;
  RankGroup& group_;
  const std::int64_t differed_ = group_.differed;
  Ref<ReduceJob> last_job_;
  std::vector<std::int64_t> members_;
  Tensors values_;
  std::int64_t bytes_ = 0;
  bool now_ = true;
  std::vector<Bucket> buckets_;
};

Tensors reduced_gradients(const Tensor& loss, const Tensors& variables, Reduction how, const GradientOptions& options,
                          const World& world, autograd::SavedValues saved) {
  Buckets buckets(variables, how, options, group_of(world));
  try {
    check({"gradients", "loss"}, loss);
    check({"gradients", "variables"}, variables);
    if (how != sum && how != mean)
      fail<ValueError>({"gradients", "how"}, "is ", ops::reduction_name(static_cast<ops::Reduction>(how)), kExpected,
                       "it must be sum or mean: gradients are added or averaged over the ranks");
    return buckets.reduce(autograd::gradients(loss, variables, saved, &buckets));
  } catch (const std::exception& e) {
    if (computes_now(variables)) buckets.refuse(e.what());
    throw;
  }
}

}  // namespace

Tensors gradients(const Tensor& loss, const Tensors& variables, Reduction how, const GradientOptions& options,
                  const World& world) {
  return reduced_gradients(loss, variables, how, options, world, autograd::SavedValues::retain);
}
Tensors gradients(Tensor&& loss, const Tensors& variables, Reduction how, const GradientOptions& options,
                  const World& world) {
  const Tensor last = std::move(loss);
  const bool alone = last.defined() && Access::impl(last)->count.load(std::memory_order_acquire) == 1;
  return reduced_gradients(last, variables, how, options, world,
                           alone ? autograd::SavedValues::rematerialize : autograd::SavedValues::retain);
}

Tensor broadcast(const Tensor& x, int root, const World& world) { return broadcast(Tensors(x), root, world)[0]; }
Tensors broadcast(const Tensors& xs, int root, const World& world) {
  return together({"broadcast", "xs"}, xs, world, [&](RankGroup& g) {
    Tensors values = ops::broadcast(xs, root, g);
    for (std::int64_t i = 0; i < xs.size(); ++i)
      if (is_variable_tensor(xs[i])) values.begin()[i] = backend::update(xs[i], values[i]);
    return values;
  });
}

Tensor all_gather(const Tensor& x, const World& world) {
  return together({"all_gather", "x"}, x, world, [&](RankGroup& g) { return ops::all_gather(x, g); });
}

Tensor reduce_scatter(const Tensor& x, Reduction how, const World& world) {
  return together({"reduce_scatter", "x"}, x, world,
                  [&](RankGroup& g) { return ops::reduce_scatter(x, static_cast<ops::Reduction>(how), g); });
}

Tensor all_to_all(const Tensor& x, const World& world) {
  return together({"all_to_all", "x"}, x, world, [&](RankGroup& g) { return ops::all_to_all(x, g); });
}

Tensor send(const Tensor& x, int to, const World& world) {
  check({"send", "x"}, x);
  return ops::send(x, to, group_of(world));
}
Tensor recv(const Tensor& like, int from, const World& world) {
  check({"recv", "like"}, like);
  return ops::recv(like, from, group_of(world));
}

Tensor shard(const Tensor& x, const World& world) {
  check({"shard", "x"}, x);
  return ops::shard(x, group_of(world));
}

namespace {

// In the metadata of a checkpoint: the number of files of shards; in all of its files: a text that no other checkpoint
// has.
constexpr const char *kShardFiles = "kassette.shard_files", *kCheckpoint = "kassette.checkpoint";

/// "model-00002-of-00004.safetensors", as Hugging Face numbers the parts of a model.
std::string shard_file(const std::string& path, int part, int parts) {
  const std::size_t folder = path.rfind('/'), dot = path.rfind('.');
  const bool has_extension = dot != std::string::npos && dot > (folder == std::string::npos ? 0 : folder + 1);
  const std::size_t end = has_extension ? dot : path.size();
  char number[48];
  std::snprintf(number, sizeof number, "-%05d-of-%05d", part + 1, parts);
  return path.substr(0, end) + number + path.substr(end);
}

std::string in_quotes(const std::string& words) { return "'" + words + "'"; }

/// A random text, drawn by rank 0.
std::string new_checkpoint(RankGroup& group) {
  const std::function<std::string()> words = [] { return std::string("save"); };
  RankCall call(group, call_number("save"), words);
  std::uint64_t drawn = (std::uint64_t(std::random_device()()) << 32) ^
                        static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch().count());
  if (group.comm) group.comm->broadcast(&drawn, sizeof drawn, 0);
  char hex[17];
  std::snprintf(hex, sizeof hex, "%016llx", static_cast<unsigned long long>(drawn));
  return hex;
}

std::string metadata_of(const NamedTensors& list, const char* key) {
  const char* text = list.metadata(key);
  return text ? text : "";
}

NamedTensors load_shards(const std::string& file, const std::string& checkpoint, const LoadOptions& options) {
  NamedTensors shards = load_safetensors(file, options);
  if (metadata_of(shards, kCheckpoint) != checkpoint)
    fail<ValueError>({"load"}, in_quotes(file), " is of another checkpoint");
  return shards;
}

/// This rank's rows of a tensor that another number of ranks has saved in shards. `parts` are mapped: only the rows in
/// use are read.
Tensor rows_of_parts(const char* name, const std::vector<NamedTensors>& parts, const RankGroup& group) {
  std::int64_t n = 0;
  for (const NamedTensors& part : parts) n += part[name].shape()[0];
  const RowRange mine = rows_of(n, group.rank, group.size);
  Tensors pieces;
  std::int64_t first = 0;
  for (const NamedTensors& part : parts) {
    const Tensor& x = part[name];
    const std::int64_t rows = x.shape()[0], begin = std::clamp(mine.begin - first, std::int64_t(0), rows),
                       end = std::clamp(mine.end - first, std::int64_t(0), rows);
    if (begin < end) pieces.push_back(x[slice(begin, end)]);
    first += rows;
  }
  if (pieces.empty()) return parts[0][name][slice(0, 0)] + 0;
  return concatenate(pieces, 0);
}

}  // namespace

void save(Name path, const NamedTensors& tensors, const NamedTensors& shards, const World& world) {
  RankGroup& group = group_of(world);
  const std::string file = string_of(path);
  all_or_none(group, "save", [&] {
    for (const NamedTensor& t : shards) {
      check({"save", "shards"}, t.tensor);
      if (t.tensor.ndim() == 0)
        fail<ValueError>({"save", "shards"}, "holds ", in_quotes(t.name), ", a scalar, which has no rows");
      if (tensors.contains(t.name))
        fail<ValueError>({"save", "shards"}, "holds ", in_quotes(t.name), ", which is among the tensors too");
    }
  });
  const std::string checkpoint = new_checkpoint(group);
  all_or_none(group, "save", [&] {
    if (shards.empty()) return;
    NamedTensors mine = shards;
    mine.set_metadata(kCheckpoint, checkpoint);
    save_safetensors(shard_file(file, group.rank, group.size), mine);
  });
  all_or_none(group, "save", [&] {
    if (group.rank != 0) return;
    NamedTensors whole = tensors;
    whole.set_metadata(kCheckpoint, checkpoint);
    whole.set_metadata(kShardFiles, text(shards.empty() ? 0 : group.size));
    save_safetensors(path, whole);
  });
}

NamedTensors load(Name path, const LoadOptions& options, const World& world) {
  RankGroup& group = group_of(world);
  NamedTensors loaded;
  all_or_none(group, "load", [&] {
    const std::string file = string_of(path);
    loaded = load_safetensors(path, options);
    const std::string checkpoint = metadata_of(loaded, kCheckpoint), files = metadata_of(loaded, kShardFiles);
    const long parts = std::strtol(files.c_str(), nullptr, 10);
    constexpr long kMaxFiles = 99999;
    if (parts < 0 || parts > kMaxFiles)
      fail<ValueError>({"load"}, in_quotes(file), " says that it has ", in_quotes(files), " files of shards");
    if (parts == group.size) {
      for (const NamedTensor& t : load_shards(shard_file(file, group.rank, group.size), checkpoint, options))
        loaded.set(t.name, t.tensor);
    } else if (parts > 0) {
      LoadOptions mapped = options;
      mapped.mmap = true;
      std::vector<NamedTensors> all_parts;
      for (int i = 0; i < parts; ++i)
        all_parts.push_back(load_shards(shard_file(file, i, static_cast<int>(parts)), checkpoint, mapped));
      for (const NamedTensor& t : all_parts[0]) loaded.set(t.name, rows_of_parts(t.name, all_parts, group));
    }
  });
  return loaded;
}

void set_timeout(double seconds) {
  if (!(seconds >= 0))
    fail<ValueError>({"set_timeout", "seconds"}, "is ", seconds, kExpected, "it must not be negative");
  set_ranks_timeout(seconds);
}

}  // namespace distributed
}  // namespace kassette
