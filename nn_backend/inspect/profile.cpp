// nn_backend/inspect/profile.cpp - profiles: their scopes, their tables, and KASSETTE_PROFILE. The file is written in
// trace.cpp.
#include <kassette/profile.h>

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "core/log.h"
#include "core/print/decimal.h"
#include "core/text.h"
#include "devices/bytes_text.h"
#include "devices/launcher.h"
#include "nn_backend/inspect/time_text.h"
#include "nn_backend/inspect/trace.h"
#include "ops/engine/detect_nan.h"
#include "ops/engine/recorder.h"

namespace kassette {
using namespace inspect;
using ops::RecordedEvent;
using ops::Recording;

namespace {

// ---- tables ---------------------------------------------------------------------------------------------------------

/// A line of a table. `self` is the time without that of the events inside. `total` is the time with it, and an event
/// inside of another one in the same line does not count again.
struct Row {
  std::int64_t calls = 0, total = 0, self = 0, bytes = 0;
};
using Rows = std::map<std::string, Row>;

/// Calls f(event, around, self) for each event: `around` are those that it is inside of, the outermost first, and
/// `self` is its time without that of the events inside.
template <class F>
void for_each_nested(const Recording& r, const F& f) {
  std::map<std::int32_t, std::vector<const RecordedEvent*>> by_thread;
  for (const RecordedEvent& e : r.events) by_thread[e.thread].push_back(&e);
  for (const auto& of_thread : by_thread) {
    const std::vector<const RecordedEvent*>& events = of_thread.second;
    // They are in the order of their ends: from the last one backwards, what is around an event comes before it.
    const auto walk = [&](const auto& visit) {
      std::vector<const RecordedEvent*> around;
      std::vector<std::size_t> indices;
      for (std::size_t i = events.size(); i-- > 0;) {
        const RecordedEvent& e = *events[i];
        while (!around.empty() && (around.back()->depth >= e.depth || around.back()->begin > e.begin)) {
          around.pop_back();
          indices.pop_back();
        }
        visit(i, around, indices);
        around.push_back(&e);
        indices.push_back(i);
      }
    };
    std::vector<std::int64_t> self;
    for (const RecordedEvent* e : events) self.push_back(e->end - e->begin);
    walk([&](std::size_t i, const auto&, const std::vector<std::size_t>& around) {
      if (!around.empty()) self[around.back()] -= events[i]->end - events[i]->begin;
    });
    walk([&](std::size_t i, const std::vector<const RecordedEvent*>& around, const auto&) {
      f(*events[i], around, self[i]);
    });
  }
}

/// A table whose rows are key(event); events with an empty key are left out.
template <class Key>
Rows rows_by(const Recording& r, const Key& key) {
  Rows rows;
  for_each_nested(r, [&](const RecordedEvent& e, const std::vector<const RecordedEvent*>& around, std::int64_t self) {
    const std::string name = key(e);
    if (name.empty()) return;
    Row& row = rows[name];
    row.self += self;
    if (std::ranges::any_of(around, [&](const RecordedEvent* a) { return key(*a) == name; })) return;
    ++row.calls;
    row.total += e.end - e.begin;
    row.bytes += e.bytes;
  });
  return rows;
}

std::string padded(const std::string& s, std::size_t width) {
  return s.size() < width ? std::string(width - s.size(), ' ') + s : s;
}

/// The rows by their own time, the longest first.
std::string table_text(const char* head, const Rows& rows) {
  constexpr std::size_t kMost = 25, kWidest = 60;
  std::vector<std::pair<std::string, Row>> sorted(rows.begin(), rows.end());
  std::ranges::stable_sort(sorted, [](const auto& a, const auto& b) { return a.second.self > b.second.self; });
  std::int64_t all = 0;
  for (const auto& [name, row] : sorted) all += row.self;
  std::size_t width = std::string(head).size();
  for (std::size_t i = 0; i < std::min(kMost, sorted.size()); ++i)
    width = std::max(width, std::min(kWidest, sorted[i].first.size()));
  std::string out = head + std::string(width - std::string(head).size(), ' ') +
                    "     calls       self     total   share       bytes\n";
  for (std::size_t i = 0; i < sorted.size() && i < kMost; ++i) {
    auto [name, row] = sorted[i];
    if (name.size() > kWidest) name = text(name.substr(0, kWidest - 3), "...");
    const double share = all ? 100.0 * static_cast<double>(row.self) / static_cast<double>(all) : 0;
    out += name + std::string(width - name.size(), ' ') + padded(std::to_string(row.calls), 10) +
           padded(time_text(static_cast<double>(row.self) * 1e-9), 11) +
           padded(time_text(static_cast<double>(row.total) * 1e-9), 10) + padded(fixed_text(share, 1), 6) + " %" +
           padded(row.bytes ? devices::bytes_text(row.bytes) : "", 12) + '\n';
  }
  if (sorted.size() > kMost) out += text(sorted.size() - kMost, " more\n");
  return out;
}

std::string tables_text(const Recording& r) {
  const TraceNames names(r);
  std::int64_t ops = 0, inside = 0;
  for_each_nested(r, [&](const RecordedEvent& e, const auto& around, std::int64_t) {
    ops += e.kind != RecordedEvent::scope;
    if (around.empty()) inside += e.end - e.begin;
  });
  const auto took = static_cast<double>(r.end - r.begin) * 1e-9;
  std::string out = text(ops, ops == 1 ? " op in " : " ops in ", time_text(took), ", of which ",
                         time_text(static_cast<double>(inside) * 1e-9), " in kassette");
  if (r.n_threads > 1) out += text(", on ", r.n_threads, " threads");
  if (r.left_out) out += text(", and ", r.left_out, " more that were not kept");
  out += "\n\n" + table_text("op", rows_by(r, [](const RecordedEvent& e) -> std::string {
                               return e.kind == RecordedEvent::scope ? "" : e.name;
                             }));
  const Rows lines = rows_by(r, [&](const RecordedEvent& e) { return names.line(e); });
  if (!lines.empty()) out += '\n' + table_text("line", lines);
  out += '\n' + table_text("function", rows_by(r, [&](const RecordedEvent& e) { return names.function(e); }));
  out.pop_back();  // the last end of a line
  return out;
}

}  // namespace

// ---- scopes ---------------------------------------------------------------------------------------------------------

struct Profile::State {
  std::int64_t begin = 0;
  std::string file;
  bool runs = false;
  Recording done;
  Recording now() const { return runs ? ops::recorded_since(begin) : done; }
};

Profile::Profile(Name file) : state_(nullptr) {
  auto made = std::make_unique<State>();
  made->file = string_of(file);
  made->begin = ops::start_recording();
  made->runs = true;
  state_ = made.release();
}
Profile::~Profile() {
  try {
    stop();
  } catch (const std::exception& e) {
    log_warning(e.what());
  }
  delete state_;
}
void Profile::stop() {
  if (!std::exchange(state_->runs, false)) return;
  state_->done = ops::stop_recording(state_->begin);
  if (!state_->file.empty()) write_trace(state_->done, Name(state_->file.c_str()));
}
void Profile::save(Name file) const { write_trace(state_->now(), file); }
Text Profile::text() const { return Text(Name(tables_text(state_->now()).c_str())); }
std::ostream& operator<<(std::ostream& os, const Profile& profile) { return os << profile.text(); }

Profile profile(Name file) { return Profile(file); }

DetectNan::DetectNan(const DetectNanOptions& options) : infinities_(options.infinities) {
  ops::start_detecting(infinities_);
}
DetectNan::~DetectNan() { ops::stop_detecting(infinities_); }
DetectNan detect_nan(const DetectNanOptions& options) { return DetectNan(options); }

// ---- KASSETTE_PROFILE -----------------------------------------------------------------------------------------------

namespace {

Profile* of_process = nullptr;
pid_t process = 0;

/// Each rank of a job writes a file of its own: trace.json, trace.1.json, ...
std::string file_of_rank(std::string file) {
  const std::int64_t rank = devices::launched_rank([](const char* name) { return std::getenv(name); });
  if (rank == 0) return file;
  const auto dot = file.rfind('.');
  const bool suffix = dot != std::string::npos && file.find('/', dot) == std::string::npos;
  return file.insert(suffix ? dot : file.size(), "." + std::to_string(rank));
}

void end_process() {
  if (getpid() != process) return;  // a fork of it
  try {
    of_process->stop();
    std::fprintf(stderr, "%s\n", of_process->text().c_str());
  } catch (const std::exception& e) {
    log_warning(e.what());
  }
}

}  // namespace

void ops::profile_process(const char* file) {
  process = getpid();
  of_process = new Profile(Name(file_of_rank(file).c_str()));  // never destroyed: threads may run until the end
  std::atexit(end_process);
}

}  // namespace kassette
