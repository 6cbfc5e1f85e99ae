// devices/mpi/transport.cpp - the transport of libkassette_mpi.so: MPI 3.
#include "devices/transport.h"

#include <dlfcn.h>
#include <mpi.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "devices/mpi/combine.h"
#include "devices/mpi/shared_memory.h"

namespace kassette::mpi {
using namespace devices;
namespace {

// MPI 3 has int counts: longer messages are sent in pieces. Tests lower the limit to cover that.
std::int64_t most_elements() {
  static const std::int64_t most = [] {
    const char* set = std::getenv("KASSETTE_MPI_PIECE");
    const std::int64_t n = set ? std::atoll(set) : 0;
    return n > 0 ? n : std::int64_t(1) << 30;
  }();
  return most;
}

void check(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw std::runtime_error(std::string(call) + ": " + std::string(text, length));
}

MPI_Datatype type_of(DType dtype) {
  switch (dtype.code()) {
    case DType::kBool:
    case DType::kUint8: return MPI_UINT8_T;
    case DType::kUint16: return MPI_UINT16_T;
    case DType::kUint32: return MPI_UINT32_T;
    case DType::kUint64: return MPI_UINT64_T;
    case DType::kInt8: return MPI_INT8_T;
    case DType::kInt16: return MPI_INT16_T;
    case DType::kInt32: return MPI_INT32_T;
    case DType::kInt64: return MPI_INT64_T;
    case DType::kFloat32: return MPI_FLOAT;
    case DType::kFloat64: return MPI_DOUBLE;
    default: throw std::runtime_error("MPI combines no half types here, and no dtype that type_of does not list");
  }
}

const void* at(const void* data, std::int64_t bytes) { return static_cast<const char*>(data) + bytes; }
void* at(void* data, std::int64_t bytes) { return static_cast<char*>(data) + bytes; }

/// Calls piece(first, count) for pieces of at most most_elements() that cover n elements; not at all for n = 0.
template <class F>
void in_pieces(std::int64_t n, F piece) {
  for (std::int64_t first = 0; first < n; first += most_elements())
    piece(first, static_cast<int>(std::min(most_elements(), n - first)));
}

constexpr int kTag = 0x6b;         // for all messages: those from one rank to another arrive in order
constexpr int kEndTag = kTag + 2;  // for notices that a rank has ended

/// Calls done() until it is true. A patient caller sleeps between calls, for an eighth of the time that it has waited
/// already, at most 300 us: the core is needed for computation.
template <class F>
bool wait_until(F done, bool patient, std::chrono::microseconds limit = std::chrono::microseconds::max()) {
  using namespace std::chrono;
  const auto begin = steady_clock::now();
  while (!done()) {
    if (!patient) continue;
    const auto waited = duration_cast<microseconds>(steady_clock::now() - begin);
    if (waited > limit) return false;
    std::this_thread::sleep_for(std::min(waited / 8, microseconds(300)));
  }
  return true;
}

class MpiCommunicator final : public Communicator {
 public:
  explicit MpiCommunicator(MPI_Comm comm) : comm_(comm) {
    check(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    check(MPI_Comm_rank(comm_, &rank_), "MPI_Comm_rank");
    check(MPI_Comm_size(comm_, &size_), "MPI_Comm_size");
    all().push_back(this);
  }
  /// All communicators, for the end of the program.
  static std::vector<MpiCommunicator*>& all() {
    static auto* list = new std::vector<MpiCommunicator*>;
    return *list;
  }
  /// The rank that does not receive a message within a second; -1 if all have arrived. Call it when all ranks have
  /// ended.
  int unreceived() {
    auto arrived = [&] { return clear_sent(), sent_.empty(); };
    return wait_until(arrived, /*patient=*/true, std::chrono::seconds(1)) ? -1 : sent_.front().to;
  }
  int rank() const override { return rank_; }
  int size() const override { return size_; }

  void all_reduce(const void* in, void* out, std::int64_t count, DType dtype, Reduction how) override {
    clear_sent();
    if (SharedMemory* memory = SharedMemory::takes(dtype, how) ? shared() : nullptr)
      return memory->all_reduce(in, out, count, dtype, how, [this] { return progress(); });
    const MPI_Datatype type = type_of(dtype);
    const MPI_Op op = op_for(dtype, how);
    in_pieces(count, [&](std::int64_t first, int n) {
      const std::int64_t skip = first * dtype.size();
      const void* from = in == out ? MPI_IN_PLACE : at(in, skip);
      if (!in_background_) return check(MPI_Allreduce(from, at(out, skip), n, type, op, comm_), "MPI_Allreduce");
      MPI_Request request;
      check(MPI_Iallreduce(from, at(out, skip), n, type, op, comm_, &request), "MPI_Iallreduce");
      wait_for(request);
    });
  }
  void set_background(bool in_background) override {
    in_background_ = true;
    patient_ = in_background;
  }

  void broadcast(void* data, std::int64_t bytes, int root) override {
    clear_sent();
    in_pieces(bytes, [&](std::int64_t first, int n) {
      check(MPI_Bcast(at(data, first), n, MPI_BYTE, root, comm_), "MPI_Bcast");
    });
  }

  void reduce(const void* in, void* out, std::int64_t count, DType dtype, Reduction how, int root) override {
    clear_sent();
    const MPI_Datatype type = type_of(dtype);
    const MPI_Op op = op_for(dtype, how);
    in_pieces(count, [&](std::int64_t first, int n) {
      const std::int64_t skip = first * dtype.size();
      const void* from = in == out && rank_ == root ? MPI_IN_PLACE : at(in, skip);
      check(MPI_Reduce(from, rank_ == root ? at(out, skip) : nullptr, n, type, op, root, comm_), "MPI_Reduce");
    });
  }

  void all_gather(const void* in, void* out, const std::int64_t* bytes) override {
    clear_sent();
    const PartLayout parts(bytes, size_);
    if (parts.total <= most_elements()) {
      check(MPI_Allgatherv(in, parts.count(rank_), MPI_BYTE, out, parts.counts.data(), parts.begins.data(), MPI_BYTE,
                           comm_),
            "MPI_Allgatherv");
      return;
    }
    std::int64_t begin = 0;
    for (int r = 0; r < size_; begin += bytes[r++]) {
      void* part = at(out, begin);
      if (r == rank_)  // by MPI and not memcpy: it may be GPU memory
        in_pieces(bytes[r], [&](std::int64_t first, int n) {
          check(MPI_Sendrecv(at(in, first), n, MPI_BYTE, 0, kTag, at(part, first), n, MPI_BYTE, 0, kTag, MPI_COMM_SELF,
                             MPI_STATUS_IGNORE),
                "MPI_Sendrecv");
        });
      broadcast(part, bytes[r], r);
    }
  }

  void reduce_scatter(const void* in, void* out, const std::int64_t* counts, DType dtype, Reduction how) override {
    clear_sent();
    const PartLayout parts(counts, size_);
    if (parts.total <= most_elements()) {
      check(MPI_Reduce_scatter(in, out, parts.counts.data(), type_of(dtype), op_for(dtype, how), comm_),
            "MPI_Reduce_scatter");
      return;
    }
    std::int64_t begin = 0;
    for (int r = 0; r < size_; begin += counts[r++] * dtype.size())
      reduce(at(in, begin), out, counts[r], dtype, how, r);
  }

  void all_to_all(const void* in, const std::int64_t* bytes_in, void* out, const std::int64_t* bytes_out) override {
    clear_sent();
    const PartLayout from(bytes_in, size_), to(bytes_out, size_);
    // All ranks must choose the same algorithm: the longest of all totals decides.
    std::int64_t longest = std::max(from.total, to.total);
    all_reduce(&longest, &longest, 1, DType(DType::kInt64), Reduction::max);
    if (longest <= most_elements()) {
      check(MPI_Alltoallv(in, from.counts.data(), from.begins.data(), MPI_BYTE, out, to.counts.data(), to.begins.data(),
                          MPI_BYTE, comm_),
            "MPI_Alltoallv");
      return;
    }
    std::vector<MPI_Request> requests;
    std::int64_t begin = 0;
    auto post = [&](std::int64_t bytes, auto start) {
      in_pieces(bytes, [&](std::int64_t first, int n) {
        requests.emplace_back();
        start(begin + first, n, &requests.back());
      });
      begin += bytes;
    };
    for (int r = 0; r < size_; ++r)
      post(bytes_out[r], [&](std::int64_t first, int n, MPI_Request* request) {
        check(MPI_Irecv(at(out, first), n, MPI_BYTE, r, kTag + 1, comm_, request), "MPI_Irecv");
      });
    begin = 0;
    for (int r = 0; r < size_; ++r)
      post(bytes_in[r], [&](std::int64_t first, int n, MPI_Request* request) {
        check(MPI_Isend(at(in, first), n, MPI_BYTE, r, kTag + 1, comm_, request), "MPI_Isend");
      });
    check(MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE), "MPI_Waitall");
  }

  void barrier() override {
    clear_sent();
    check(MPI_Barrier(comm_), "MPI_Barrier");
  }

  void send(const void* header, std::int64_t header_bytes, const void* data, std::int64_t bytes, int to,
            void (*release)(void*), void* state) override {
    clear_sent();
    sent_.push_back({{}, 0, std::string(static_cast<const char*>(header), header_bytes), to, release, state});
    on_their_way().fetch_add(1, std::memory_order_relaxed);
    Sent& s = sent_.back();
    auto start = [&](const void* from, int n) {
      s.requests.emplace_back();
      check(MPI_Isend(from, n, MPI_BYTE, to, kTag, comm_, &s.requests.back()), "MPI_Isend");
    };
    start(s.header.data(), static_cast<int>(header_bytes));
    in_pieces(bytes, [&](std::int64_t first, int n) { start(at(data, first), n); });
  }

  void recv_header(void* header, std::int64_t header_bytes, int from) override {
    clear_sent();
    check(MPI_Recv(header, static_cast<int>(header_bytes), MPI_BYTE, from, kTag, comm_, MPI_STATUS_IGNORE), "MPI_Recv");
  }
  void recv_data(void* data, std::int64_t bytes, int from) override {
    in_pieces(bytes, [&](std::int64_t first, int n) {
      check(MPI_Recv(at(data, first), n, MPI_BYTE, from, kTag, comm_, MPI_STATUS_IGNORE), "MPI_Recv");
    });
  }

  Communicator* split(int colour, int key) override {
    clear_sent();
    MPI_Comm part;
    check(MPI_Comm_split(comm_, colour < 0 ? MPI_UNDEFINED : colour, key, &part), "MPI_Comm_split");
    return part == MPI_COMM_NULL ? nullptr : new MpiCommunicator(part);
  }

  void tell_end(std::int64_t calls) override {
    calls_at_end_ = calls;
    for (int r = 0; r < size_; ++r) {
      if (r == rank_) continue;
      MPI_Request request;
      check(MPI_Isend(&calls_at_end_, 1, MPI_INT64_T, r, kEndTag, comm_, &request), "MPI_Isend");
      check(MPI_Request_free(&request), "MPI_Request_free");  // a number is on its way at once
    }
  }
  std::vector<EndedRank> heard_ends() override {
    std::vector<EndedRank> ended;
    for (int waiting = 0;;) {
      MPI_Status status;
      check(MPI_Iprobe(MPI_ANY_SOURCE, kEndTag, comm_, &waiting, &status), "MPI_Iprobe");
      if (!waiting) return ended;
      EndedRank& e = ended.emplace_back(EndedRank{status.MPI_SOURCE, 0});
      check(MPI_Recv(&e.calls, 1, MPI_INT64_T, status.MPI_SOURCE, kEndTag, comm_, MPI_STATUS_IGNORE), "MPI_Recv");
    }
  }

 private:
  /// Counts and displacements of the parts in ints, as MPI takes them; only valid if the total fits.
  struct PartLayout {
    std::vector<int> counts, begins;
    std::int64_t total = 0;
    PartLayout(const std::int64_t* sizes, int n) {
      for (int r = 0; r < n; ++r) {
        counts.push_back(static_cast<int>(std::min<std::int64_t>(sizes[r], INT32_MAX)));
        begins.push_back(static_cast<int>(std::min<std::int64_t>(total, INT32_MAX)));
        total += sizes[r];
      }
    }
    int count(int r) const { return counts[r]; }
  };

  /// A message that is being sent.
  struct Sent {
    std::vector<MPI_Request> requests;
    std::size_t n_done = 0;  // of the requests, from the first on
    std::string header;
    int to;
    void (*release)(void*);
    void* state;
  };

  void wait_for(MPI_Request& request) {
    auto done = [&] {
      int flag = 0;
      check(MPI_Test(&request, &flag, MPI_STATUS_IGNORE), "MPI_Test");
      return flag != 0;
    };
    wait_until(done, patient_);
  }

  /// The memory that the ranks share if they all run on one machine; null if not. All of them make the first call.
  SharedMemory* shared() {
    if (!asked_for_shared_) shared_ = SharedMemory::make(comm_);
    asked_for_shared_ = true;
    return shared_;
  }
  /// Lets MPI move messages. Returns whether some are on their way.
  bool progress() {
    int arrived = 0;
    check(MPI_Iprobe(MPI_ANY_SOURCE, kTag, comm_, &arrived, MPI_STATUS_IGNORE), "MPI_Iprobe");
    clear_sent();
    return on_their_way().load(std::memory_order_relaxed) > 0;
  }
  /// The number of messages of all communicators that have not arrived.
  static std::atomic<std::int64_t>& on_their_way() {
    static std::atomic<std::int64_t> n{0};
    return n;
  }

  /// Releases messages that have been sent, oldest first.
  void clear_sent() {
    while (!sent_.empty()) {
      Sent& s = sent_.front();
      for (; s.n_done < s.requests.size(); ++s.n_done) {
        int done = 0;
        check(MPI_Test(&s.requests[s.n_done], &done, MPI_STATUS_IGNORE), "MPI_Test");
        if (!done) return;
      }
      s.release(s.state);
      sent_.pop_front();
      on_their_way().fetch_sub(1, std::memory_order_relaxed);
    }
  }

  MPI_Comm comm_;
  int rank_ = 0, size_ = 1;
  bool in_background_ = false, patient_ = false;
  bool asked_for_shared_ = false;
  SharedMemory* shared_ = nullptr;
  std::deque<Sent> sent_;  // a deque, so that addresses stay valid
  std::int64_t calls_at_end_ = 0;
};

bool started_here = false;
MPI_Comm ends = MPI_COMM_NULL;  // all ranks, for await_end
int thread_level = MPI_THREAD_SINGLE;

bool over() {
  int finalized = 0;
  MPI_Finalized(&finalized);
  return finalized;
}

bool await_end(char* why, int why_bytes) {
  if (over()) return true;
  MPI_Request request;
  if (MPI_Ibarrier(ends, &request) != MPI_SUCCESS) return true;
  auto done = [&] {
    int flag = 0;
    return MPI_Test(&request, &flag, MPI_STATUS_IGNORE) != MPI_SUCCESS || flag;
  };
  wait_until(done, /*patient=*/true);
  for (MpiCommunicator* c : MpiCommunicator::all())
    if (const int to = c->unreceived(); to >= 0) {
      std::snprintf(why, static_cast<std::size_t>(why_bytes),
                    "the program has ended, and rank %d%s has not received a message that was sent to it", to,
                    c == MpiCommunicator::all().front() ? "" : " of a world made by split");
      return false;
    }
  return true;
}

void finish() {
  if (!over() && started_here) MPI_Finalize();
}

/// Makes Open MPI call sched_yield while it waits, unless the environment says otherwise; MPICH does so anyway. Before
/// MPI starts.
void yield_while_waiting() { setenv("OMPI_MCA_mpi_yield_when_idle", "1", /*overwrite=*/0); }

/// The ranks of this machine.
struct Local {
  int rank = 0, size = 1;
  Local() {
    MPI_Comm here;
    if (MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here) != MPI_SUCCESS) return;
    MPI_Comm_rank(here, &rank);
    MPI_Comm_size(here, &size);
    MPI_Comm_free(&here);
  }
};
const Local& local() {
  static const Local l;  // collective: all ranks make it when they start
  return l;
}

Communicator* start(bool yields, char* why, int why_bytes) {
  auto failed = [&](const char* reason) -> Communicator* {
    std::snprintf(why, static_cast<std::size_t>(why_bytes), "%s", reason);
    return nullptr;
  };
  int running = 0;
  MPI_Initialized(&running);
  if (over()) return failed("the program has ended MPI (MPI_Finalize) already");
  if (running) {
    MPI_Query_thread(&thread_level);
  } else {
    if (yields) yield_while_waiting();
    if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &thread_level) != MPI_SUCCESS)
      return failed("MPI_Init_thread failed");
    started_here = true;
  }
  if (thread_level < MPI_THREAD_FUNNELED)
    return failed(
        "MPI was started by MPI_Init, for programs of one thread; start it by MPI_Init_thread, or leave that to init");
  MPI_Comm all;
  if (MPI_Comm_dup(MPI_COMM_WORLD, &all) != MPI_SUCCESS || MPI_Comm_dup(MPI_COMM_WORLD, &ends) != MPI_SUCCESS)
    return failed("MPI_Comm_dup failed");
  local();
  try {
    return new MpiCommunicator(all);
  } catch (const std::exception& e) {
    return failed(e.what());
  }
}

void abort_all(int status) {
  if (!over()) MPI_Abort(MPI_COMM_WORLD, status);
}

const char* describe() {
  static char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(text, &length);
  if (char* comma = std::strchr(text, ',')) *comma = 0;
  return text;
}

/// Whether Open MPI or MPICH reports support of CUDA, unless the environment says so: both are mostly built without it.
bool takes_gpu_memory() {
  if (const char* set = std::getenv("KASSETTE_MPI_CUDA")) return std::strcmp(set, "0") != 0;
  auto query = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "MPIX_Query_cuda_support"));
  return query && query() == 1;
}

constexpr Transport kTransport{.abi = kTransportAbi,
                               .start = start,
                               .local_rank = [] { return local().rank; },
                               .local_size = [] { return local().size; },
                               .concurrent = [] { return thread_level == MPI_THREAD_MULTIPLE; },
                               .takes_gpu_memory = takes_gpu_memory,
                               .await_end = await_end,
                               .finish = finish,
                               .abort = abort_all,
                               .describe = describe};

}  // namespace
}  // namespace kassette::mpi

extern "C" __attribute__((visibility("default"))) const kassette::devices::Transport* kassette_mpi_transport() {
  return &kassette::mpi::kTransport;
}
