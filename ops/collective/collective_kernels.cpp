// ops/collective/collective_kernels.cpp - kernels of collectives and messages by MPI: staging through host memory, and
// packing of lists into messages.
#include <algorithm>
#include <cstring>
#include <functional>
#include <utility>
#include <vector>

#include "core/convert.h"
#include "core/text.h"
#include "devices/plugin.h"
#include "ops/collective/collective_call.h"
#include "ops/collective/collective_device.h"
#include "ops/shape/strided.h"

namespace kassette::ops {
namespace {

/// In a group of one rank, makes each output share the storage of its input and returns true.
bool alone(const OpCall& call) {
  if (group_of(call.attrs).size > 1) return false;
  for (int i = 0; i < call.n_out; ++i) {
    Value v = read_value(*call.in[i].desc);
    call.out[i]->storage = std::move(v.storage);
    call.out[i]->offset = v.offset;
  }
  return true;
}

// --- bytes on the host -----------------------------------------------------------------------------------------------

Ref<Storage> host_block(std::int64_t bytes) { return Storage::allocate(bytes, cpu); }
/// A block for copies from or to `device`, in pinned memory if it can be had: CUDA copies other memory through a small
/// buffer.
Ref<Storage> host_block(std::int64_t bytes, Device device) {
  void* pinned = device == cpu || bytes == 0 ? nullptr : device_moves().allocate_pinned(bytes);
  if (!pinned) return host_block(bytes);
  struct Pinned {
    void* data;
    std::int64_t bytes;
  };
  const auto release = [](void* p) {
    const auto* held = static_cast<Pinned*>(p);
    device_moves().release_pinned(held->data, held->bytes);
    delete held;
  };
  return Storage::borrow(pinned, bytes, {release, new Pinned{pinned, bytes}});
}
std::byte* bytes_of(const Ref<Storage>& block) { return static_cast<std::byte*>(static_cast<void*>(block->data)); }

/// The memory that may be passed to MPI.
enum class Where {
  host,
  anywhere,  // the bytes are only moved, so GPU memory will do if MPI accepts it
};

/// True if a call passes GPU memory to MPI.
bool stays_on_gpu(const OpCall& call, Where where) {
  return where == Where::anywhere && call.device != cpu && devices::transport_takes_gpu_memory();
}

/// The elements of an input, in memory that MPI can read.
class HostInput {
 public:
  HostInput(const OpCall& call, int i, Where where = Where::host) : data_(call.in[i].data) {
    const std::int64_t bytes = call.spec(i).bytes();
    if (call.device == cpu || bytes == 0) return;
    if (stays_on_gpu(call, where)) {
      device_api(call.device).synchronize();  // MPI does not wait for the stream
      return;
    }
    copy_ = host_block(bytes, call.device);
    device_api(call.device).copy_to_host(copy_->data, data_, bytes);
    data_ = bytes_of(copy_);
  }
  const std::byte* data() const { return data_; }

 private:
  std::byte* data_;
  Ref<Storage> copy_;
};

thread_local const std::vector<bool>* reused = nullptr;  // of the innermost ReuseScope

/// Whether output i is computed in the memory of input i.
bool reuses(const OpCall& call, int i) { return reused && (*reused)[i] && call.device == cpu; }

/// Allocates an output, whose shape must be known, and memory for it that MPI can write; finish() copies that to the
/// output.
class HostOutput {
 public:
  HostOutput(const OpCall& call, int i, Where where = Where::host) : out_(*call.out[i]), device_(call.device) {
    if (reuses(call, i)) {
      out_.storage = call.in[i].desc->storage;
      out_.offset = call.in[i].desc->offset;
      return;
    }
    allocate_output(out_, device_);
    if (device_ == cpu) return;
    if (stays_on_gpu(call, where)) {
      device_api(device_).synchronize();  // enqueued work may still use the memory for another tensor
      return;
    }
    copy_ = host_block(out_.bytes(), device_);
  }
  std::byte* data() { return copy_ ? bytes_of(copy_) : out_.data(); }
  void finish() {
    if (copy_ && out_.bytes()) device_api(device_).copy_from_host(out_.data(), copy_->data, out_.bytes());
  }

 private:
  TensorDesc& out_;
  Device device_;
  Ref<Storage> copy_;
};

void copy_bytes(std::byte* to, const std::byte* from, std::int64_t bytes) {
  if (bytes && to != from) std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

/// Half types are combined as float32.
DType combined_dtype(DType dtype) { return is_half(dtype) ? float32 : dtype; }

void divide(std::byte* data, DType dtype, std::int64_t n, int by) {
  auto each = [&](auto* p) {
    const auto d = static_cast<std::remove_pointer_t<decltype(p)>>(by);
    for (std::int64_t i = 0; i < n; ++i) p[i] /= d;
  };
  if (dtype == float64) each(reinterpret_cast<double*>(data));
  else each(reinterpret_cast<float*>(data));
}

// --- lists in few messages -------------------------------------------------------------------------------------------

constexpr std::int64_t kBucket = std::int64_t(32) << 20;  // bytes of a message
/// A larger tensor is a message by itself: copying it into a buffer and back costs more than a message.
constexpr std::int64_t kAlone = std::int64_t(128) << 10;

/// The tensors of a list, and the buffers that are exchanged: tensors with one wire dtype are packed, in order, into
/// buffers of up to kBucket bytes, but for large ones, in the same way on all ranks, since their lists match. The
/// constructor allocates everything.
class Lists {
 public:
  /// `wire` returns the dtype in which elements of a dtype are exchanged.
  Lists(const OpCall& call, DType (*wire)(DType)) {
    items_.reserve(call.n_in);
    for (int i = 0; i < call.n_in; ++i)
      items_.push_back({HostInput(call, i), HostOutput(call, i), call.spec(i).numel(), call.spec(i).dtype,
                        call.spec(i).numel() == 0});
    for (std::size_t first = 0; first < items_.size(); ++first)
      if (!items_[first].placed) buckets_.push_back(bucket_from(first, wire));
  }

  /// Calls exchange(buffer to read, buffer to write, elements, dtype) for each buffer.
  template <class Exchange>
  void run(Exchange exchange) {
    for (const Bucket& b : buckets_) {
      if (!b.packed) {
        exchange(b.items[0]->in.data(), b.items[0]->out.data(), b.n, b.dtype);
        continue;
      }
      std::byte* at = bytes_of(b.packed);
      for (Item* item : b.items) {
        convert(at, b.dtype, item->in.data(), item->dtype, item->n);
        at += item->n * b.dtype.size();
      }
      at = bytes_of(b.packed);
      exchange(at, at, b.n, b.dtype);
      for (Item* item : b.items) {
        convert(item->out.data(), item->dtype, at, b.dtype, item->n);
        at += item->n * b.dtype.size();
      }
    }
    for (Item& item : items_) item.out.finish();
  }

 private:
  struct Item {
    HostInput in;
    HostOutput out;
    std::int64_t n;
    DType dtype;
    bool placed;  // in a bucket; empty tensors need none
  };
  struct Bucket {
    std::vector<Item*> items;
    std::int64_t n = 0;
    DType dtype;
    Ref<Storage> packed;  // null: a single tensor, sent in place
  };

  Bucket bucket_from(std::size_t first, DType (*wire)(DType)) {
    Bucket b;
    b.dtype = wire(items_[first].dtype);
    auto bytes = [&](std::int64_t n) { return n * b.dtype.size(); };
    const bool alone = bytes(items_[first].n) > kAlone;
    for (std::size_t k = first; k < (alone ? first + 1 : items_.size()); ++k) {
      Item& item = items_[k];
      if (item.placed || wire(item.dtype) != b.dtype) continue;
      if (!alone && (bytes(item.n) > kAlone || bytes(b.n + item.n) > kBucket)) continue;
      b.items.push_back(&item);
      item.placed = true;
      b.n += item.n;
    }
    if (b.items.size() > 1 || b.items[0]->dtype != b.dtype) b.packed = host_block(bytes(b.n));
    return b;
  }

  std::vector<Item> items_;
  std::vector<Bucket> buckets_;
};

DType itself(DType dtype) { return dtype; }

}  // namespace

ReuseScope::ReuseScope(std::vector<bool> may) : reused_(std::move(may)) { reused = &reused_; }
ReuseScope::~ReuseScope() { reused = nullptr; }

const char* reduction_name(Reduction how) {
  constexpr const char* names[] = {"sum", "mean", "max", "min", "prod"};
  return names[static_cast<int>(how)];
}

void all_reduce_kernel(const OpCall& call) {
  if (alone(call)) return;
  if (DeviceCommunicator* comm = direct_way(call)) return direct_all_reduce(call, *comm);
  Lists lists = prepared(call, [&] { return Lists(call, combined_dtype); });
  together(call, [&](RankGroup& group) {
    const Reduction how = reduction_of(call.attrs);
    lists.run([&](const std::byte* in, std::byte* out, std::int64_t n, DType dtype) {
      group.comm->all_reduce(in, out, n, dtype, how);
      if (how == Reduction::mean) divide(out, dtype, n, group.size);
    });
  });
}

void broadcast_kernel(const OpCall& call) {
  if (alone(call)) return;
  if (DeviceCommunicator* comm = direct_way(call)) return direct_broadcast(call, *comm);
  Lists lists = prepared(call, [&] { return Lists(call, itself); });
  together(call, [&](RankGroup& group) {
    lists.run([&](const std::byte* in, std::byte* out, std::int64_t n, DType dtype) {
      copy_bytes(out, in, n * dtype.size());
      group.comm->broadcast(out, n * dtype.size(), root_of(call.attrs));
    });
  });
}

void reduce_kernel(const OpCall& call) {
  if (alone(call)) return;
  if (DeviceCommunicator* comm = direct_way(call)) return direct_reduce(call, *comm);
  Lists lists = prepared(call, [&] { return Lists(call, combined_dtype); });
  together(call, [&](RankGroup& group) {
    lists.run([&](const std::byte* in, std::byte* out, std::int64_t n, DType dtype) {
      group.comm->reduce(in, out, n, dtype, Reduction::sum, root_of(call.attrs));
      if (group.rank != root_of(call.attrs) && n) std::memset(out, 0, static_cast<std::size_t>(n * dtype.size()));
    });
  });
}

void all_gather_kernel(const OpCall& call) {
  if (alone(call)) return;
  if (DeviceCommunicator* comm = direct_way(call, /*rows_differ=*/true)) return direct_all_gather(call, *comm);
  const HostInput from = prepared(call, [&] { return HostInput(call, 0, Where::anywhere); });
  together(call, /*rows_differ=*/true, [&](RankGroup& group) {
    const std::vector<std::int64_t> bytes = gathered_bytes(call, group);
    HostOutput to = agreed(group, [&] { return HostOutput(call, 0, Where::anywhere); });
    group.comm->all_gather(from.data(), to.data(), bytes.data());
    to.finish();
  });
}

void reduce_scatter_kernel(const OpCall& call) {
  if (alone(call)) return;
  if (DeviceCommunicator* comm = direct_way(call, /*rows_differ=*/call.n_in > 1))
    return direct_reduce_scatter(call, *comm);
  const std::int64_t n_in = call.spec(0).numel(), n_out = call.out[0]->numel();
  const DType dtype = call.spec(0).dtype, wire = combined_dtype(dtype);
  struct Buffers {
    HostInput from;
    HostOutput to;
    Ref<Storage> wide, part;  // if elements are exchanged in another dtype
  };
  Buffers b = prepared(call, [&] {
    const bool converts = wire != dtype;
    return Buffers{HostInput(call, 0), HostOutput(call, 0), converts ? host_block(n_in * wire.size()) : Ref<Storage>(),
                   converts ? host_block(n_out * wire.size()) : Ref<Storage>()};
  });
  together(call, /*rows_differ=*/call.n_in > 1, [&](RankGroup& group) {
    const std::vector<std::int64_t> counts = scattered_counts(call, group);
    auto reduce = [&](const std::byte* x, std::byte* y) {
      group.comm->reduce_scatter(x, y, counts.data(), wire, reduction_of(call.attrs));
      if (reduction_of(call.attrs) == Reduction::mean) divide(y, wire, n_out, group.size);
    };
    if (!b.wide) {
      reduce(b.from.data(), b.to.data());
    } else {
      convert(b.wide->data, wire, b.from.data(), dtype, n_in);
      reduce(bytes_of(b.wide), bytes_of(b.part));
      convert(b.to.data(), dtype, bytes_of(b.part), wire, n_out);
    }
    b.to.finish();
  });
}

void all_to_all_kernel(const OpCall& call) {
  if (alone(call)) return;
  if (DeviceCommunicator* comm = direct_way(call)) return direct_all_to_all(call, *comm);
  const HostInput from = prepared(call, [&] { return HostInput(call, 0, Where::anywhere); });
  HostOutput to = prepared(call, [&] { return HostOutput(call, 0, Where::anywhere); });
  together(call, [&](RankGroup& group) {
    const std::vector<std::int64_t> parts(group.size, call.spec(0).bytes() / group.size);
    group.comm->all_to_all(from.data(), parts.data(), to.data(), parts.data());
    to.finish();
  });
}

// --- messages between two ranks --------------------------------------------------------------------------------------

namespace {

/// The header of a message, sent before the elements.
struct Header {
  std::int64_t dims[kMaxRank];
  std::int8_t rank;
  DType dtype;
  char padding[6];
};
static_assert(sizeof(Header) == 8 * kMaxRank + 8);

TensorSpec spec_of(const Header& h) {
  TensorSpec s;
  s.rank = h.rank;
  s.dtype = h.dtype;
  std::copy(h.dims, h.dims + kMaxRank, s.dims);
  return s;
}

/// Runs exchange(communicator, held), a message to or from a rank, inside a RankCall that describes it in case it gets
/// stuck.
template <class F>
void with_peer(const OpCall& call, const char* direction, bool waits, F exchange) {
  RankGroup& group = group_of(call.attrs);
  const std::function<std::string()> words = [&] {
    return text(call.op.name, " ", direction, " rank ", peer_of(call.attrs), " of ", call.spec(0).dtype, " ",
                shape_text(call.spec(0)));
  };
  devices::RankCall held(group, words, waits ? peer_of(call.attrs) : -1);
  try {
    exchange(*group.comm, held);
  } catch (...) {
    devices::rethrow_transport_error();
  }
}

}  // namespace

void send_kernel(const OpCall& call) {
  const TensorSpec& in = call.spec(0);
  Header header{};
  std::copy(in.dims, in.dims + in.rank, header.dims);
  header.rank = in.rank;
  header.dtype = in.dtype;
  HostOutput token(call, 0);
  std::memset(token.data(), 0, static_cast<std::size_t>(in.dtype.size()));
  token.finish();
  // The message may be sent later: it owns a copy of the elements until then.
  const std::int64_t bytes = in.bytes();
  const bool on_gpu = stays_on_gpu(call, Where::anywhere);
  Ref<Storage> held = on_gpu ? Storage::allocate(bytes, call.device) : host_block(bytes, call.device);
  if (call.device == cpu || bytes == 0) {
    copy_bytes(bytes_of(held), call.in[0].data, bytes);
  } else if (on_gpu) {
    device_api(call.device).copy(held->data, call.in[0].data, bytes);
    device_api(call.device).synchronize();
  } else {
    device_api(call.device).copy_to_host(held->data, call.in[0].data, bytes);
  }
  with_peer(call, "to", /*waits=*/false, [&](devices::Communicator& comm, devices::RankCall&) {
    const void* data = held->data;
    comm.send(
        &header, sizeof header, data, bytes, peer_of(call.attrs),
        [](void* s) { Ref<Storage>::drop(static_cast<Storage*>(s)); }, held.release());
  });
}

void recv_kernel(const OpCall& call) {
  HostOutput to(call, 0, Where::anywhere);
  with_peer(call, "from", /*waits=*/true, [&](devices::Communicator& comm, devices::RankCall& held) {
    Header header;
    comm.recv_header(&header, sizeof header, peer_of(call.attrs));
    held.has_arrived();
    const TensorSpec sent = spec_of(header);
    const TensorDesc& out = *call.out[0];
    if (sent.dtype != out.dtype || !sent.same_shape(out)) {
      Ref<Storage> unread = host_block(sent.bytes());
      comm.recv_data(unread->data, sent.bytes(), peer_of(call.attrs));  // the next recv takes the next message
      fail<ValueError>({"recv"}, "rank ", peer_of(call.attrs), " sends ", sent.dtype, " ", shape_text(sent), kExpected,
                       "it must be ", out.dtype, " ", shape_text(out));
    }
    comm.recv_data(to.data(), out.bytes(), peer_of(call.attrs));
  });
  to.finish();
}

}  // namespace kassette::ops
