// devices/transport.h - how ranks exchange bytes: what a transport library (libkassette_mpi.so) implements.
#pragma once
#include <cstdint>

#include <kassette/dtype.h>

namespace kassette {

/// How the elements of all ranks are combined. Sums of floats take the order that the transport chooses; minimum and maximum of
/// floats are NaN where one of them is.
enum class Combine : std::uint8_t { sum, prod, min, max };

/// A group of ranks that exchange messages apart from all other groups. Every call but send and recv is made by all ranks of the
/// group, in the same order. Buffers are host memory, but where only bytes are moved and Transport::takes_gpu_memory says so; counts may exceed 2^31. A call that fails throws std::runtime_error with one
/// line. One thread at a time may be in a communicator; two threads may be in two of them where
/// Transport::concurrent says so.
class Communicator {
 public:
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// `in` and `out` may be the same. float32, float64, the integers and, for min and max, bool.
  virtual void all_reduce(const void* in, void* out, std::int64_t count, DType dtype, Combine how) = 0;
  virtual void broadcast(void* data, std::int64_t bytes, int root) = 0;
  /// `out` is written on `root` alone.
  virtual void reduce(const void* in, void* out, std::int64_t count, DType dtype, Combine how, int root) = 0;
  /// counts[r]: bytes of rank r, whose part of `out` follows those of the ranks before.
  virtual void all_gather(const void* in, void* out, const std::int64_t* bytes) = 0;
  /// counts[r]: elements of `in` whose sum rank r gets.
  virtual void reduce_scatter(const void* in, void* out, const std::int64_t* counts, DType dtype, Combine how) = 0;
  /// Rank r gets bytes_in[r] of `in` and gives bytes_out[r] of `out`; parts lie one after another.
  virtual void all_to_all(const void* in, const std::int64_t* bytes_in, void* out, const std::int64_t* bytes_out) = 0;
  virtual void barrier() = 0;
  /// A message of `header_bytes` and one of `bytes`, in order with others to that rank. Returns at once; the transport calls
  /// release(state) when it no longer reads `data`, in a later call of this communicator.
  virtual void send(const void* header, std::int64_t header_bytes, const void* data, std::int64_t bytes, int to,
                    void (*release)(void*), void* state) = 0;
  /// Waits for the header of the next message, then for its data.
  virtual void recv_header(void* header, std::int64_t header_bytes, int from) = 0;
  virtual void recv_data(void* data, std::int64_t bytes, int from) = 0;
  /// The ranks that give the same colour, ordered by key, then rank; null for colour -1.
  virtual Communicator* split(int colour, int key) = 0;
  /// From now on all_reduce takes one way, which gives the same bits, whether it leaves the core to others while it waits or not.
  virtual void set_background(bool leaves_core) = 0;

 protected:
  ~Communicator() = default;  // communicators live until the process ends
};

/// What a transport library exports: `extern "C" const Transport* kassette_mpi_transport()`.
struct Transport {
  std::uint64_t abi;  // kTransportAbi of the headers that it was built with
  /// Starts the transport, once; null where that fails, then `why` has the reason.
  Communicator* (*start)(char* why, int why_bytes);
  int (*local_rank)();         // among the ranks of this machine
  int (*local_size)();         // how many these are
  bool (*concurrent)();        // two threads may be in two communicators at once; known after start
  bool (*takes_gpu_memory)();  // all_gather, all_to_all, send and recv do; known after start
  /// Ends the transport, where it started it: waits until every message has left.
  void (*finish)();
  /// Ends every rank of the job with that status, now.
  void (*abort)(int status);
  const char* (*describe)();  // "Open MPI 4.1.4"
};

inline constexpr std::uint64_t kTransportAbi = 2;

}  // namespace kassette
