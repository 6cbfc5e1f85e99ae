// ops/collective/collective_device.cpp - collectives from GPU memory to GPU memory, without a copy to the host.
//
// Note [Between GPUs]
// The ranks compare their calls and exchange row counts by MPI in host memory, as for CPU tensors. The elements go from
// GPU to GPU, by work that is enqueued on the compute stream, so that no rank waits on the host. All memory is
// allocated before the ranks compare their calls: from then on enqueuing cannot fail, so that no kernel waits for a GPU
// that does not take part. Enqueued work may still get stuck or fail; the thread of devices/watch.cpp watches it.
//
// Messages (send, recv) still go through the host: NCCL's send blocks the stream until the receiver arrives, but ours
// must return at once.
#include "ops/collective/collective_device.h"

#include <functional>
#include <vector>

#include "devices/gpu_ranks.h"
#include "devices/watch.h"
#include "ops/collective/collective_call.h"
#include "ops/engine/device_graph.h"

namespace kassette::ops {

DeviceCommunicator* direct_way(const OpCall& call, bool rows_differ) {
  if (call.device == cpu) return nullptr;
  launch_captured();  // the exchange is enqueued on the stream itself, after the work that was captured so far
  devices::GpuRanks& gpus = group_of(call.attrs).gpus;
  if (!gpus.connected.load(std::memory_order_acquire))
    together(call, rows_differ, [&](RankGroup& group) { devices::connect_gpus(group, call.device); });
  if (gpus.comm && gpus.device != call.device)
    prepared(call, [&]() -> DeviceCommunicator* {
      fail<ValueError>({}, words_of(call), ": it is on ", call.device, ", and this world exchanges from ", gpus.device,
                       kRemedy, "another GPU takes a world of its own, by split");
    });
  return gpus.comm;
}

namespace {

/// Runs exchange(group), which enqueues work, within together(), and has the work watched.
template <class F>
void directly(const OpCall& call, DeviceCommunicator& comm, bool rows_differ, F exchange) {
  together(call, rows_differ, [&](RankGroup& group) {
    exchange(group);
    devices::watch_enqueued(comm, words_of(call));
  });
}
template <class F>
void directly(const OpCall& call, DeviceCommunicator& comm, F exchange) {
  directly(call, comm, /*rows_differ=*/false, exchange);
}

/// The tensors of a list with their outputs, and temporary memory for those that are combined in another dtype
/// (packed_size).
class Parts {
 public:
  Parts(const OpCall& call, int n) {
    for (int i = 0; i < n; ++i) {
      allocate_output(*call.out[i], call.device);
      parts_.push_back({call.in[i].data, call.out[i]->data(), call.spec(i).numel(), call.spec(i).dtype, nullptr});
    }
  }
  Parts(const OpCall& call, int n, Reduction how) : Parts(call, n) {
    for (devices::DevicePart& part : parts_) {
      const int size = devices::packed_size(part.dtype, how);
      if (!size || !part.count) continue;
      rooms_.push_back(Storage::allocate(part.count * size, call.device));  // is reused in stream order only
      part.room = rooms_.back()->data;
    }
  }
  const devices::DevicePart* data() const { return parts_.data(); }
  int size() const { return static_cast<int>(parts_.size()); }

 private:
  std::vector<devices::DevicePart> parts_;
  std::vector<Ref<Storage>> rooms_;
};

int divisor_of(const OpCall& call, const RankGroup& group) {
  return reduction_of(call.attrs) == Reduction::mean ? group.size : 1;
}

}  // namespace

void direct_all_reduce(const OpCall& call, DeviceCommunicator& comm) {
  const Reduction how = reduction_of(call.attrs);
  const Parts parts = prepared(call, [&] { return Parts(call, call.n_in, how); });
  directly(call, comm,
           [&](RankGroup& group) { comm.all_reduce(parts.data(), parts.size(), how, divisor_of(call, group)); });
}

void direct_broadcast(const OpCall& call, DeviceCommunicator& comm) {
  const Parts parts = prepared(call, [&] { return Parts(call, call.n_in); });
  directly(call, comm, [&](RankGroup&) { comm.broadcast(parts.data(), parts.size(), root_of(call.attrs)); });
}

void direct_reduce(const OpCall& call, DeviceCommunicator& comm) {
  const Parts parts = prepared(call, [&] { return Parts(call, call.n_in, Reduction::sum); });
  directly(call, comm, [&](RankGroup&) { comm.reduce(parts.data(), parts.size(), root_of(call.attrs)); });
}

void direct_all_gather(const OpCall& call, DeviceCommunicator& comm) {
  directly(call, comm, /*rows_differ=*/true, [&](RankGroup& group) {
    const std::vector<std::int64_t> bytes = gathered_bytes(call, group);
    agreed(group, [&] {
      allocate_output(*call.out[0], call.device);
      return true;
    });
    comm.all_gather(call.in[0].data, call.out[0]->data(), bytes.data());
  });
}

void direct_reduce_scatter(const OpCall& call, DeviceCommunicator& comm) {
  const Reduction how = reduction_of(call.attrs);
  const Parts parts = prepared(call, [&] { return Parts(call, 1, how); });
  directly(call, comm, /*rows_differ=*/call.n_in > 1, [&](RankGroup& group) {
    const std::vector<std::int64_t> counts = scattered_counts(call, group);
    comm.reduce_scatter(parts.data()[0], counts.data(), how, divisor_of(call, group));
  });
}

void direct_all_to_all(const OpCall& call, DeviceCommunicator& comm) {
  const Parts parts = prepared(call, [&] { return Parts(call, 1); });
  directly(call, comm, [&](RankGroup& group) {
    comm.all_to_all(parts.data()[0].in, parts.data()[0].out, call.spec(0).bytes() / group.size);
  });
}

}  // namespace kassette::ops
