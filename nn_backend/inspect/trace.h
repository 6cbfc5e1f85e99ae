// nn_backend/inspect/trace.h - a recording in Chrome's trace format.
#pragma once
#include <map>
#include <string>

#include "core/text.h"
#include "ops/engine/origin.h"
#include "ops/engine/recorder.h"

namespace kassette::inspect {

/// What events are called, by line and by function.
class TraceNames {
 public:
  explicit TraceNames(const ops::Recording& r);
  /// "script.cpp:12"; empty if it is not known.
  const std::string& line(const ops::RecordedEvent& e) const { return of(e).line; }
  /// The K function on whose behalf it ran, a scope's own name, or what it is the adjoint of.
  std::string function(const ops::RecordedEvent& e) const;
  struct Names {
    ops::Origin origin;
    std::string line;
  };
  const Names& of(const ops::RecordedEvent& e) const { return names_.at(e.origin); }

 private:
  std::map<std::int32_t, Names> names_;  // by the code of the origin
};

/// Writes a trace. Throws RuntimeError if the file cannot be written.
void write_trace(const ops::Recording& r, Name file);

}  // namespace kassette::inspect
