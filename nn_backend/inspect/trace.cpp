// nn_backend/inspect/trace.cpp - writing Chrome's trace format, which Perfetto opens: an event for each op, with the
// work on accelerators as processes of their own, and counters of memory.
#include "nn_backend/inspect/trace.h"

#include <set>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/io/file.h"
#include "core/print/decimal.h"
#include "core/source_lines.h"

namespace kassette::inspect {
using ops::RecordedEvent;
using ops::Recording;

TraceNames::TraceNames(const Recording& r) {
  for (const RecordedEvent& e : r.events)
    if (auto [found, added] = names_.try_emplace(e.origin); added) found->second.origin = ops::origin_of(e.origin);
  std::vector<const void*> callers;
  for (const auto& [code, names] : names_) callers.push_back(names.origin.caller);
  const std::vector<std::string> lines = source_lines(callers);
  std::size_t i = 0;
  for (auto& [code, names] : names_) names.line = lines[i++];
}

std::string TraceNames::function(const RecordedEvent& e) const {
  if (e.kind == RecordedEvent::scope) return e.name;
  const ops::Origin& o = of(e).origin;
  if (o.function) return o.function;
  return o.adjoint_of ? std::string("adjoint of ") + o.adjoint_of : e.name;
}

namespace {

/// A string as JSON. The rest is put together as text: destroying an nlohmann-json object allocates, and without memory
/// ends the program.
std::string quoted(const std::string& s) {
  return nlohmann::json(s).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}
std::string microseconds(std::int64_t ns) { return fixed_text(static_cast<double>(ns) * 1e-3, 3); }

/// The number of a process in the trace: the host is 1, and the devices are numbered from 2.
int process_of(Device device) { return device == cpu ? 1 : 2 + device.index(); }

class TraceWriter {
 public:
  TraceWriter(const Recording& r, Name file) : r_(r), names_(r), out_("profile", file) {}
  void write() {
    out_.write(std::string("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n"));
    std::set<std::pair<int, std::string>> processes = {{1, "host"}};
    std::set<int> threads;
    for (const RecordedEvent& e : r_.events) {
      write_event(e);
      threads.insert(e.thread);
      if (e.device_begin >= 0) {
        write_work(e);
        processes.insert({process_of(e.device), text(e.device)});
      }
    }
    for (const ops::MemorySample& s : r_.memory)
      add(text("{\"name\":\"memory of ", s.device, "\",\"ph\":\"C\",\"pid\":1,\"ts\":", microseconds(s.time - r_.begin),
               ",\"args\":{\"bytes\":", s.bytes, "}}"));
    for (const auto& [process, name] : processes)
      add(text("{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":", process, ",\"args\":{\"name\":", quoted(name),
               "}}"));
    for (int thread : threads)
      add(text("{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":1,\"tid\":", thread, ",\"args\":{\"name\":\"thread ",
               thread, "\"}}"));
    out_.write(std::string("\n]}\n"));
    out_.commit();
  }

 private:
  void add(const std::string& event) {
    if (!std::exchange(first_, false)) out_.write(std::string(",\n"));
    out_.write(event);
  }
  std::string head(const RecordedEvent& e, const char* kind, int process, int thread) const {
    return "{\"name\":" + quoted(e.name) + ",\"cat\":\"" + kind + "\",\"ph\":\"X\",\"pid\":" + std::to_string(process) +
           ",\"tid\":" + std::to_string(thread);
  }
  void write_event(const RecordedEvent& e) {
    constexpr const char* kKinds[] = {"op", "fused", "scope"};
    std::string s = head(e, kKinds[e.kind], 1, e.thread) + ",\"ts\":" + microseconds(e.begin - r_.begin) +
                    ",\"dur\":" + microseconds(e.end - e.begin) + ",\"args\":{";
    const TraceNames::Names& names = names_.of(e);
    const char* between = "";
    const auto put = [&](const char* key, const std::string& value) {
      s += std::exchange(between, ",");
      s += std::string("\"") + key + "\":" + value;
    };
    if (e.kind != RecordedEvent::scope) {
      put("shapes", quoted(r_.shapes_text(e)));
      put("bytes", std::to_string(e.bytes));
      put("device", quoted(text(e.device)));
    }
    if (names.origin.function) put("function", quoted(names.origin.function));
    if (names.origin.adjoint_of) put("adjoint of", quoted(names.origin.adjoint_of));
    if (!names.line.empty()) put("line", quoted(names.line));
    if (e.failed) put("failed", "true");
    add(s + "}}");
  }
  /// When an accelerator did it.
  void write_work(const RecordedEvent& e) {
    add(head(e, "device", process_of(e.device), 1) + ",\"ts\":" + microseconds(e.device_begin - r_.begin) +
        ",\"dur\":" + microseconds(e.device_end - e.device_begin) +
        ",\"args\":{\"shapes\":" + quoted(r_.shapes_text(e)) + "}}");
  }

  const Recording& r_;
  const TraceNames names_;
  io::OutputFile out_;
  bool first_ = true;
};

}  // namespace

void write_trace(const Recording& r, Name file) { TraceWriter(r, file).write(); }

}  // namespace kassette::inspect
