// ops/engine/recorder.h - what ran, and when: the events behind a profile.
#pragma once
#include <cstdint>
#include <exception>
#include <string>
#include <vector>

#include "ops/engine/op.h"

namespace kassette::ops {

/// An op, several that ran as one kernel, or a scope in which they ran.
struct RecordedEvent {
  enum Kind : std::uint8_t { op, fused, scope };
  Kind kind = op;
  bool failed = false;  // ended by an exception
  Device device = cpu;
  std::int32_t thread = 0, depth = 0, origin = 0;
  const char* name = "";
  std::int64_t begin = 0, end = 0;  // nanoseconds of the steady clock
  // On an accelerator: when the work ran there. The others say when it was enqueued. -1: not known.
  std::int64_t device_begin = -1, device_end = -1;
  std::int64_t bytes = 0;  // read and written
  // Of the inputs and of the outputs: in Recording::shapes.
  std::int64_t shapes = 0;
  std::int32_t n_in = 0, n_out = 0;
};
/// The bytes of tensors on a device.
struct MemorySample {
  std::int64_t time, bytes;
  Device device;
};
/// What was recorded between two times. Events of a thread are in the order of their ends: those inside of another come
/// before it.
struct Recording {
  std::int64_t begin = 0, end = 0, left_out = 0;  // left_out: events for which there was no room
  std::vector<RecordedEvent> events;
  std::vector<std::int64_t> shapes;
  std::vector<MemorySample> memory;
  int n_threads = 0;
  /// "(2, 3) float32, () float32 -> (2, 3) float32"; empty for a scope.
  std::string shapes_text(const RecordedEvent& e) const;
};

/// Starts recording, which counts; returns the time.
std::int64_t start_recording();
/// What has ended since `begin`, of all threads.
Recording recorded_since(std::int64_t begin);
/// The same, and ends what start_recording() has started.
Recording stop_recording(std::int64_t begin);

/// An event that has begun and not ended.
struct OpenEvent {
  RecordedEvent event;
  std::vector<TensorSpec> specs;  // of the inputs, then of the outputs
  std::string names;              // of the ops that run as one: "add + tanh"
  std::int32_t origin_around = 0;
  int exceptions = 0;
  void* marks[2] = {};  // on an accelerator: where its work begins and ends
};
/// Both leave an event out if there is no memory for it. Until its end, `e` is what the thread is inside of.
void begin_event(OpenEvent& e) noexcept;
void end_event(OpenEvent& e) noexcept;
/// In place of end_event(): nothing was run.
void cancel_event(OpenEvent& e) noexcept;
/// A copy of the text that stays for as long as the process.
const char* kept_name(const std::string& name);

/// To be called when KASSETTE_PROFILE is set. Defined in nn_backend/inspect/profile.cpp.
void profile_process(const char* file);

}  // namespace kassette::ops
