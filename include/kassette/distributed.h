// include/kassette/distributed.h - the same program on many ranks: worlds, and what their ranks exchange.
#ifndef KASSETTE_DISTRIBUTED_H
#define KASSETTE_DISTRIBUTED_H
#include <kassette/api.h>
#include <kassette/io.h>
#include <kassette/none.h>

namespace kassette {

namespace devices {
struct RankGroup;
}

namespace distributed {

/// How values of all ranks are combined.
enum Reduction : unsigned char { sum, mean, max, min, prod };

/// A group of ranks: processes that run the same program. It is one pointer: copies are the same world, which lives
/// until the program ends.
class KASSETTE_API World {
 public:
  /// All ranks of the job, as returned by init().
  World();
  /// The number of this process in the group, from 0 on.
  int rank() const;
  int size() const;
  /// The number of this process among the ranks of its machine, which decides which GPU is its own.
  int local_rank() const;
  /// The world of the ranks that pass the same colour, ordered by key, then by rank. All ranks of this world must call
  /// it. Throws ValueError if a colour is below 0.
  World split(int colour, int key = 0) const;
  /// Returns when all ranks have called it.
  void barrier() const;
  friend bool operator==(const World& a, const World& b) { return a.group_ == b.group_; }
  friend bool operator!=(const World& a, const World& b) { return a.group_ != b.group_; }
  /// "World(rank 1 of 4, Open MPI 4.1.4)"
  friend KASSETTE_API std::ostream& operator<<(std::ostream& os, const World& world);

 private:
  explicit World(devices::RankGroup* group) : group_(group) {}
  devices::RankGroup* group_;
  friend struct WorldAccess;
};

/// All ranks of the job: those that mpirun started, or this process alone. The first call starts MPI, unless the
/// program has started it; MPI ends with the program. Throws RuntimeError if several ranks were started and MPI is not
/// available.
KASSETTE_API World init();

/// The sum (mean, ...) of the x of all ranks, with the same bits on all ranks; x must have the same shape and dtype
/// everywhere. A list is exchanged in few messages. Differentiable: the loss is the sum of all ranks' losses. Throws
/// RuntimeError on all ranks if their calls differ, TypeError for the mean of integers and the sum of bool.
KASSETTE_API Tensor all_reduce(const Tensor& x, Reduction how = sum, const World& world = World());
KASSETTE_API Tensors all_reduce(const Tensors& xs, Reduction how = sum, const World& world = World());
/// The same for tensors that are no longer needed, a temporary or std::move(x): a sum or mean on the CPU is computed in
/// their memory if nothing else refers to it.
KASSETTE_API Tensor all_reduce(Tensor&& x, Reduction how = sum, const World& world = World());
KASSETTE_API Tensors all_reduce(Tensors&& xs, Reduction how = sum, const World& world = World());

/// The x of rank `root`, returned on all ranks. A variable is updated to that value, and the variable itself is
/// returned. Differentiable: the gradient arrives at root.
KASSETTE_API Tensor broadcast(const Tensor& x, int root = 0, const World& world = World());
KASSETTE_API Tensors broadcast(const Tensors& xs, int root = 0, const World& world = World());

/// The rarer arguments of `gradients`.
struct GradientOptions {
  Named only_by_name{0};
  /// The number of bytes of gradients that are exchanged in one message.
  std::int64_t bucket_bytes = 1 << 20;
  /// Whether they are exchanged in a second thread while the backward pass continues, if there is more than one
  /// message. The results have the same bits either way.
  bool overlap = true;
};
/// Returns all_reduce(K::gradients(loss, variables), how), with sum or mean. Gradients are packed into buckets, and a
/// bucket is exchanged as soon as the backward pass has completed it, while the rest is computed; in functions too. The
/// gradient is an empty Tensor for a variable that the loss does not depend on.
KASSETTE_API Tensors gradients(const Tensor& loss, const Tensors& variables, Reduction how = sum,
                               const GradientOptions& options = {}, const World& world = World());
/// The same for a loss that is no longer needed, as in K::gradients.
KASSETTE_API Tensors gradients(Tensor&& loss, const Tensors& variables, Reduction how = sum,
                               const GradientOptions& options = {}, const World& world = World());

/// The rows of all ranks, joined along the first axis in the order of ranks; the ranks may have different numbers of
/// rows. Scalars are joined to a vector. Differentiable.
KASSETTE_API Tensor all_gather(const Tensor& x, const World& world = World());
/// The value of shard(all_reduce(x, how)), computed without holding the whole result on any rank. Differentiable.
KASSETTE_API Tensor reduce_scatter(const Tensor& x, Reduction how = sum, const World& world = World());
/// Cuts the first axis of x into one part for each rank, and returns the parts for this rank from all ranks, in the
/// order of ranks. Throws ValueError if the number of rows is not a multiple of the number of ranks. Differentiable.
KASSETTE_API Tensor all_to_all(const Tensor& x, const World& world = World());

/// Sends x, and returns at once. The scalar that it returns stands for the message: its gradient with respect to x is
/// what rank `to` sends back, and in a function it must be among the outputs.
KASSETTE_API Tensor send(const Tensor& x, int to, const World& world = World());
/// Waits for the tensor that rank `from` sends, and returns it. Throws ValueError unless it has the shape and dtype of
/// `like`. If `like` is among the variables of a gradient, the gradient with respect to the received tensor is sent
/// back, and the gradient with respect to `like` is zeros.
KASSETTE_API Tensor recv(const Tensor& like, int from, const World& world = World());

/// This rank's rows of x: all ranks have the same number, except that the first ones have one more if there is a
/// remainder. Differentiable.
KASSETTE_API Tensor shard(const Tensor& x, const World& world = World());

/// Writes a checkpoint in the format of safetensors. All ranks must call it; if it fails on one of them, it throws on
/// all. The file `path` holds the `tensors` of rank 0. `shards` are tensors whose rows are spread over the ranks; each
/// rank writes its rows to a file of its own: for "model.safetensors" these are "model-00001-of-00004.safetensors" and
/// so on. These files are written first, and replace those of an earlier checkpoint of that name: a program that must
/// survive a crash gives each checkpoint a path of its own. Throws ValueError for a scalar among the shards and for a
/// name given twice, and the errors of save_safetensors.
KASSETTE_API void save(Name path, const NamedTensors& tensors, const NamedTensors& shards = None,
                       const World& world = World());
/// Returns the tensors and the shards of a checkpoint. All ranks must call it; if it fails on one of them, it throws on
/// all. From a shard, each rank gets the rows that it saved or, if the number of ranks has changed, the rows that
/// distributed::shard would return for the whole tensor; it reads no other rows. Throws ValueError if a file of shards
/// is missing or belongs to another checkpoint.
KASSETTE_API NamedTensors load(Name path, const LoadOptions& options = {}, const World& world = World());

/// Sets how many seconds a rank waits for others before it ends the job with a line that says where it was waiting; 0
/// means for ever. The initial value is KASSETTE_RANKS_TIMEOUT, or 600.
KASSETTE_API void set_timeout(double seconds);

}  // namespace distributed
}  // namespace kassette

#endif  // KASSETTE_DISTRIBUTED_H
