// devices/transport.h - message passing between ranks: the interface that a transport library (libkassette_mpi.so)
// implements.
#pragma once
#include <cstdint>
#include <vector>

#include <kassette/dtype.h>

#include "devices/reduction.h"

namespace kassette::devices {

/// A group of ranks whose messages are separate from those of all other groups. Every call but send and recv is made by
/// all ranks of the group, in the same order. Buffers are host memory; all_gather, all_to_all, send and recv also
/// accept GPU memory if Transport::takes_gpu_memory is true. Counts may exceed 2^31. A call that fails throws
/// std::runtime_error with a message of one line. Only one thread at a time may use a communicator; two threads may use
/// two of them if Transport::concurrent is true.
class Communicator {
 public:
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// `in` and `out` may be the same. Supports float32, float64, the integers and, for min and max, bool. The transport
  /// chooses the order in which floats are summed; min and max of floats are NaN if any element is.
  virtual void all_reduce(const void* in, void* out, std::int64_t count, DType dtype, Reduction how) = 0;
  virtual void broadcast(void* data, std::int64_t bytes, int root) = 0;
  /// `out` is written on `root` only.
  virtual void reduce(const void* in, void* out, std::int64_t count, DType dtype, Reduction how, int root) = 0;
  /// Concatenates the parts of all ranks in `out`, in the order of ranks. bytes[r]: the size of rank r's part.
  virtual void all_gather(const void* in, void* out, const std::int64_t* bytes) = 0;
  /// Combines `in` over the ranks and divides it among them: rank r gets counts[r] elements.
  virtual void reduce_scatter(const void* in, void* out, const std::int64_t* counts, DType dtype, Reduction how) = 0;
  /// Sends the next bytes_in[r] bytes of `in` to each rank r, and receives bytes_out[r] bytes from it into `out`, in
  /// the order of ranks.
  virtual void all_to_all(const void* in, const std::int64_t* bytes_in, void* out, const std::int64_t* bytes_out) = 0;
  virtual void barrier() = 0;
  /// Sends a header and its data to a rank; messages to one rank arrive in order. Returns at once; the transport calls
  /// release(state) when it no longer reads `data`, in a later call of this communicator.
  virtual void send(const void* header, std::int64_t header_bytes, const void* data, std::int64_t bytes, int to,
                    void (*release)(void*), void* state) = 0;
  /// Waits for the header of the next message, then for its data.
  virtual void recv_header(void* header, std::int64_t header_bytes, int from) = 0;
  virtual void recv_data(void* data, std::int64_t bytes, int from) = 0;
  /// Splits the group as MPI_Comm_split does; returns null for colour -1.
  virtual Communicator* split(int colour, int key) = 0;
  /// Makes all_reduce use one algorithm, with the same bits, whether it yields the core while it waits (`leaves_core`)
  /// or not.
  virtual void set_background(bool leaves_core) = 0;

  /// A rank of the group that has reached the end of its program.
  struct EndedRank {
    std::int64_t rank, calls;  // its number in the group; how many calls that all ranks make it had begun
  };
  /// Tells every other rank of the group that this one has ended. Returns at once. This and heard_ends() may be called
  /// while another thread is in a call, if Transport::concurrent is true.
  virtual void tell_end(std::int64_t calls) = 0;
  /// The ranks that have told so since the last call.
  virtual std::vector<EndedRank> heard_ends() = 0;

 protected:
  ~Communicator() = default;  // communicators live until the process ends
};

/// The table of functions that a transport library exports by `extern "C" const Transport* kassette_mpi_transport()`.
struct Transport {
  std::uint64_t abi;  // kTransportAbi of the headers that it was built with
  /// Starts the transport, once. Returns null, with the reason in `why`, if that fails. If `yields`, waiting ranks
  /// leave the core to other threads.
  Communicator* (*start)(bool yields, char* why, int why_bytes);
  int (*local_rank)();         // index among the ranks of this machine
  int (*local_size)();         // number of ranks of this machine
  bool (*concurrent)();        // whether two threads may use two communicators at once; known after start
  bool (*takes_gpu_memory)();  // whether all_gather, all_to_all, send and recv accept GPU memory; known after start
  /// Waits until all ranks of the job have called this, and every message has arrived. Returns false, with the reason
  /// in `why`, if nobody receives a message.
  bool (*await_end)(char* why, int why_bytes);
  /// Ends MPI if start() began it.
  void (*finish)();
  /// Ends every rank of the job at once, with that exit status.
  void (*abort)(int status);
  const char* (*describe)();  // "Open MPI 4.1.4"
};

inline constexpr std::uint64_t kTransportAbi = 5;

}  // namespace kassette::devices
