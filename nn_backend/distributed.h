// nn_backend/distributed.h - the same program on many ranks: worlds, and what their ranks exchange.
#ifndef KASSETTE_DISTRIBUTED_H
#define KASSETTE_DISTRIBUTED_H
#include <kassette/api.h>
#include <kassette/io.h>

namespace kassette {

namespace devices {
struct RankGroup;
}

namespace distributed {

/// How values of all ranks are combined.
enum Reduction : unsigned char { sum, mean, max, min, prod };

/// A group of ranks: processes that run the same program. One pointer; copies are the same world, which lives until the
/// program ends.
class KASSETTE_API World {
 public:
  /// All ranks of the job; init().
  World();
  /// This process among them, from 0 on.
  int rank() const;
  int size() const;
  /// This process among the ranks of its machine: which GPU is its own.
  int local_rank() const;
  /// The ranks that give the same colour, ordered by key, then by rank. All ranks of this world call it. A colour below
  /// 0 is a ValueError.
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
/// program has; it ends with the program. Throws RuntimeError where several ranks were started and MPI is not there.
KASSETTE_API World init();

/// The sum (mean, ...) of every rank's x, which has one shape and dtype everywhere; the same bits on all ranks. A list
/// is exchanged in few messages. Differentiable: the loss is the sum of all ranks' losses. Throws RuntimeError on all
/// ranks where their calls differ, TypeError for the mean of integers and the sum of bool.
KASSETTE_API Tensor all_reduce(const Tensor& x, Reduction how = sum, const World& world = World());
KASSETTE_API Tensors all_reduce(const Tensors& xs, Reduction how = sum, const World& world = World());

/// Rank root's x, on all ranks. A variable is updated to that value, and the variable itself is returned.
/// Differentiable: the gradient arrives at root.
KASSETTE_API Tensor broadcast(const Tensor& x, int root = 0, const World& world = World());
KASSETTE_API Tensors broadcast(const Tensors& xs, int root = 0, const World& world = World());

/// The rarer arguments of `gradients`.
struct GradientOptions {
  Named named{0};
  /// How many bytes of gradients are exchanged in one message.
  std::int64_t bucket_bytes = 1 << 20;
  /// Exchange them in a second thread while the backward pass goes on, where there is more than one message. The bits
  /// are the same without.
  bool overlap = true;
};
/// Returns all_reduce(K::gradients(loss, variables), how), with sum or mean. Gradients are packed into buckets, and a
/// bucket is exchanged as soon as the backward pass has completed it, while the rest is computed; in functions too. The
/// gradient is an empty Tensor for a variable that the loss does not depend on.
KASSETTE_API Tensors gradients(const Tensor& loss, const Tensors& variables, Reduction how = sum,
                               const GradientOptions& options = {}, const World& world = World());
/// The same for a loss that is no longer needed, as K::gradients takes one.
KASSETTE_API Tensors gradients(Tensor&& loss, const Tensors& variables, Reduction how = sum,
                               const GradientOptions& options = {}, const World& world = World());

/// The rows of all ranks, in the order of ranks, along the first axis; how many rows a rank gives is its own affair.
/// Scalars make a vector. Differentiable.
KASSETTE_API Tensor all_gather(const Tensor& x, const World& world = World());
/// shard(all_reduce(x, how)), without the whole of it on any rank. Differentiable.
KASSETTE_API Tensor reduce_scatter(const Tensor& x, Reduction how = sum, const World& world = World());
/// The first axis cut into one part for each rank: this rank gets its part of everybody's x, in the order of ranks.
/// Throws ValueError where the ranks do not divide the rows. Differentiable.
KASSETTE_API Tensor all_to_all(const Tensor& x, const World& world = World());

/// Sends x, and returns at once. The scalar that it returns stands for the message: its gradient with respect to x is
/// what rank `to` sends back, and in a function it has to be among the outputs.
KASSETTE_API Tensor send(const Tensor& x, int to, const World& world = World());
/// Waits for what rank `from` sends, which has the shape and dtype of `like`; ValueError where it has not. Where `like`
/// is among the variables of a gradient, the gradient with respect to what was received is sent back, and that of
/// `like` is zeros.
KASSETTE_API Tensor recv(const Tensor& like, int from, const World& world = World());

/// This rank's rows of x: each rank has the same number, the first ones one more where a remainder is to be spread.
/// Differentiable.
KASSETTE_API Tensor shard(const Tensor& x, const World& world = World());

/// Writes a checkpoint in the format of safetensors. All ranks call it; what fails on one of them is an error on all.
/// The file `path` holds the `tensors` of rank 0. Of `shards`, tensors whose rows are spread over the ranks, each rank
/// writes its rows to a file of its own: for "model.safetensors" these are "model-00001-of-00004.safetensors" and so
/// on. They are written first, and replace those of an earlier checkpoint of that name: a program that must survive a
/// crash gives each checkpoint a path of its own. Throws ValueError for a scalar among the shards and for a name given
/// twice, and the errors of save_safetensors.
KASSETTE_API void save(Name path, const NamedTensors& tensors, const NamedTensors& shards = None,
                       const World& world = World());
/// Returns the tensors and the shards of a checkpoint. All ranks call it; what fails on one of them is an error on all.
/// Of a shard each rank gets the rows that it saved or, where the number of ranks has changed, the rows that D::shard
/// gives of the whole, and reads no others. Throws ValueError where a file of shards is missing or belongs to another
/// checkpoint.
KASSETTE_API NamedTensors load(Name path, const LoadOptions& options = {}, const World& world = World());

/// How many seconds a rank waits for others before it ends the job with a line that says where it waits; 0: for ever.
/// Initially KASSETTE_RANKS_TIMEOUT, or 600.
KASSETTE_API void set_timeout(double seconds);

}  // namespace distributed
}  // namespace kassette

#endif  // KASSETTE_DISTRIBUTED_H
