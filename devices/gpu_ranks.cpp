// devices/gpu_ranks.cpp - setting up the exchange between the GPUs of a group of ranks.
#include "devices/gpu_ranks.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "core/log.h"
#include "core/storage.h"
#include "core/text.h"
#include "devices/device_transport.h"
#include "devices/plugin_file.h"

namespace kassette::devices {
namespace {

constexpr const char* kFile = "libkassette_nccl.so";

bool is_turned_off() {
  const char* set = std::getenv("KASSETTE_NCCL");
  return set && !std::strcmp(set, "0");
}

/// Loads libkassette_nccl.so. Returns null, with the reason in `why`, if that fails.
const DeviceTransport* load(std::string* why) {
  if (is_turned_off()) {
    *why = "KASSETTE_NCCL is 0";
    return nullptr;
  }
  void* library = open_next_to_library(kFile, why);
  if (!library) return nullptr;
  using Entry = const DeviceTransport* (*)();
  auto entry = reinterpret_cast<Entry>(dlsym(library, "kassette_nccl_transport"));
  const DeviceTransport* transport = entry ? entry() : nullptr;
  if (transport && transport->abi == kDeviceTransportAbi) return transport;
  *why = text(kFile, " is of another version of kassette; build or install both together");
  return nullptr;
}

/// What each rank tells the others about itself.
struct RankGpuInfo {
  char machine[40];  // equal on one machine, whatever its name
  char gpu[DeviceTransport::kNameBytes];
  char missing[160];  // what this rank lacks; empty: nothing
};

void put(char* to, std::size_t room, const std::string& text) { std::snprintf(to, room, "%s", text.c_str()); }

RankGpuInfo gpu_info(Device device, const DeviceTransport*& transport) {
  RankGpuInfo info{};
  std::string why;
  transport = load(&why);
  if (!transport) {
    put(info.missing, sizeof info.missing, why);
  } else if (!transport->name_gpu(device.index(), info.gpu, info.missing, sizeof info.missing)) {
    transport = nullptr;
  }
  if (std::FILE* boot = std::fopen("/proc/sys/kernel/random/boot_id", "r")) {
    if (!std::fgets(info.machine, sizeof info.machine, boot)) info.machine[0] = 0;
    std::fclose(boot);
  }
  return info;
}

template <class T>
std::vector<T> of_all_ranks(RankGroup& group, const T& mine) {
  std::vector<T> all(group.size);
  const std::vector<std::int64_t> sizes(all.size(), sizeof(T));
  group.comm->all_gather(&mine, all.data(), sizes.data());
  return all;
}

/// Why these ranks cannot exchange between GPUs; empty if they can.
std::string why_not_direct(const std::vector<RankGpuInfo>& infos) {
  for (std::size_t r = 0; r < infos.size(); ++r)
    if (*infos[r].missing) return text("rank ", r, ": ", infos[r].missing);
  // NCCL allows one rank per GPU.
  for (std::size_t r = 0; r < infos.size(); ++r)
    for (std::size_t other = r + 1; other < infos.size(); ++other)
      if (!std::strcmp(infos[r].machine, infos[other].machine) && !std::strcmp(infos[r].gpu, infos[other].gpu))
        return text("ranks ", r, " and ", other,
                    " share a GPU (distributed::World::local_rank numbers the ranks of a machine)");
  return "";
}

/// Returns null, with the reason in `why`, if joining fails on any rank.
DeviceCommunicator* join(RankGroup& group, Device device, const DeviceTransport& transport, RankGpuInfo mine,
                         std::string* why) {
  struct Start {
    char id[DeviceTransport::kIdBytes];
    char failed[160];
  } start{};
  if (group.rank == 0 && !transport.new_id(start.id, start.failed, sizeof start.failed) && !*start.failed)
    put(start.failed, sizeof start.failed, "NCCL could not create an id (ncclGetUniqueId)");
  group.comm->broadcast(&start, sizeof start, 0);
  if (*start.failed) {
    *why = text("rank 0: ", start.failed);
    return nullptr;
  }
  DeviceCommunicator* comm = transport.join(start.id, group.rank, group.size, device.index(),
                                            device_api(device).stream(), mine.missing, sizeof mine.missing);
  *why = why_not_direct(of_all_ranks(group, mine));
  return why->empty() ? comm : nullptr;
}

}  // namespace

void connect_gpus(RankGroup& group, Device device) {
  GpuRanks& gpus = group.gpus;
  if (gpus.connected.load(std::memory_order_relaxed)) return;  // another thread was here first
  const DeviceTransport* transport = nullptr;
  const RankGpuInfo mine = gpu_info(device, transport);
  std::string why = why_not_direct(of_all_ranks(group, mine));
  if (why.empty()) gpus.comm = join(group, device, *transport, mine, &why);
  gpus.device = device;
  if (gpus.comm) {
    end_ranks_before_libraries();
    log_info(text("rank ", group.rank, " of ", group.size, " exchanges from ", device, " by ", transport->describe()));
  } else if (group.rank == 0) {
    static constinit WarnOnce slow;
    const std::string words =
        text("tensors of GPUs are exchanged by way of the host's memory, for lack of NCCL: ", why);
    if (transport || !is_turned_off()) slow.say(words);
    else log_info(words);
  }
  gpus.connected.store(true, std::memory_order_release);
}

}  // namespace kassette::devices
