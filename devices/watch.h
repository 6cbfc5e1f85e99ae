// devices/watch.h - a thread that ends the job where a call waits for other ranks for too long, or is interrupted.
#pragma once
#include <functional>
#include <string>

#include "devices/transport.h"

namespace kassette {

class DeviceCommunicator;  // devices/device_transport.h

/// Ends all ranks, soon. Where several fail at once the first one does it: Open MPI's mpirun (4.1.4) may crash or hang on many requests at a
/// time.
void abort_in_turn(const Transport& transport, int rank, int status);

/// Starts the thread. Once.
void watch_ranks(const Transport& transport, int rank);
/// From now on until unwatch(), a call waits; `describe` says which. Unless `timed` it may wait for ever. Returns what unwatch() takes; -1
/// where too many wait already.
int watch(const std::function<std::string()>* describe, bool timed = true);
void unwatch(int place);
/// What has been enqueued through `comm` up to now, the last of it in a call of those words, waits on a GPU, until it has run.
void watch_enqueued(DeviceCommunicator& comm, std::string words);

}  // namespace kassette
