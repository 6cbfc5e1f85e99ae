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
struct Card {
  char machine[40];  // equal on one machine, whatever its name
  char gpu[DeviceTransport::kNameBytes];
  char lacks[160];  // empty: nothing
};

void put(char* to, std::size_t room, const std::string& text) { std::snprintf(to, room, "%s", text.c_str()); }

Card card_of(Device device, const DeviceTransport*& transport) {
  Card card{};
  std::string why;
  transport = load(&why);
  if (!transport) {
    put(card.lacks, sizeof card.lacks, why);
  } else if (!transport->name_gpu(device.index(), card.gpu, card.lacks, sizeof card.lacks)) {
    transport = nullptr;
  }
  if (std::FILE* boot = std::fopen("/proc/sys/kernel/random/boot_id", "r")) {
    if (!std::fgets(card.machine, sizeof card.machine, boot)) card.machine[0] = 0;
    std::fclose(boot);
  }
  return card;
}

template <class T>
std::vector<T> of_all_ranks(RankGroup& group, const T& mine) {
  std::vector<T> all(group.size);
  const std::vector<std::int64_t> sizes(all.size(), sizeof(T));
  group.comm->all_gather(&mine, all.data(), sizes.data());
  return all;
}

/// Why these ranks cannot exchange between GPUs; empty if they can.
std::string obstacle(const std::vector<Card>& cards) {
  for (std::size_t r = 0; r < cards.size(); ++r)
    if (*cards[r].lacks) return text("rank ", r, ": ", cards[r].lacks);
  // NCCL allows one rank per GPU.
  for (std::size_t r = 0; r < cards.size(); ++r)
    for (std::size_t other = r + 1; other < cards.size(); ++other)
      if (!std::strcmp(cards[r].machine, cards[other].machine) && !std::strcmp(cards[r].gpu, cards[other].gpu))
        return text("ranks ", r, " and ", other, " share a GPU (D::World::local_rank counts those of a machine)");
  return "";
}

/// Returns null, with the reason in `why`, if joining fails on any rank.
DeviceCommunicator* join(RankGroup& group, Device device, const DeviceTransport& transport, Card mine,
                         std::string* why) {
  struct Start {
    char id[DeviceTransport::kIdBytes];
    char failed[160];
  } start{};
  if (group.rank == 0 && !transport.new_id(start.id, start.failed, sizeof start.failed) && !*start.failed)
    put(start.failed, sizeof start.failed, "NCCL makes no id");
  group.comm->broadcast(&start, sizeof start, 0);
  if (*start.failed) {
    *why = text("rank 0: ", start.failed);
    return nullptr;
  }
  DeviceCommunicator* comm = transport.join(start.id, group.rank, group.size, device.index(),
                                            device_api(device).stream(), mine.lacks, sizeof mine.lacks);
  *why = obstacle(of_all_ranks(group, mine));
  return why->empty() ? comm : nullptr;
}

}  // namespace

void meet_gpus(RankGroup& group, Device device) {
  GpuRanks& gpus = group.gpus;
  if (gpus.met.load(std::memory_order_relaxed)) return;  // another thread was here first
  const DeviceTransport* transport = nullptr;
  const Card mine = card_of(device, transport);
  std::string why = obstacle(of_all_ranks(group, mine));
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
  gpus.met.store(true, std::memory_order_release);
}

}  // namespace kassette::devices
