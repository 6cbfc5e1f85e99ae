// devices/watch.h - a thread that ends the job if a call waits too long for other ranks, or is interrupted.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

#include "devices/transport.h"

namespace kassette::devices {

class DeviceCommunicator;  // devices/device_transport.h
struct RankGroup;          // devices/ranks.h

/// For whom a call waits: if they have ended without joining it, it never returns. Without a group: for nobody.
struct Awaited {
  RankGroup* group = nullptr;
  std::int64_t call = 0;  // a call of all ranks: its number in RankGroup::calls
  int rank = -1;          // a call between two ranks: the other
};

/// Ends all ranks, after a delay that depends on the rank. If several ranks fail at once only the first should ask for
/// it: Open MPI's mpirun (4.1.4) may crash or hang on many requests at a time.
void abort_in_turn(const Transport& transport, int rank, int status);

/// Starts the watch thread; called once.
void watch_ranks(const Transport& transport, int rank);
/// Registers a waiting call, which `describe` names, until unwatch(). Unless `timed`, it may wait for ever. Returns the
/// argument for unwatch(); -1 if too many calls are registered, and this one is not watched.
int watch(const std::function<std::string()>* describe, const Awaited& awaited, bool timed = true);
void unwatch(int slot);
/// The call no longer waits for others to join.
void watch_joined(int slot);
/// This rank has reached the end of its program, and waits for the others. If it waits for long, they are told.
void watch_end();
/// From now on the watch thread does not call the transport.
void stop_watching();
/// Watches the work enqueued on a GPU through `comm` until it has run. `words` describe the call that enqueued the last
/// of it.
void watch_enqueued(DeviceCommunicator& comm, std::string words);

}  // namespace kassette::devices
