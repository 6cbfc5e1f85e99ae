// nn_backend/inspect/progress.cpp - progress bars.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>

#include <kassette/inspect.h>

#include "core/print/decimal.h"
#include "core/text.h"
#include "nn_backend/inspect/diagram.h"
#include "nn_backend/inspect/progress_text.h"
#include "nn_backend/inspect/terminal.h"
#include "nn_backend/prompt/front_end.h"

namespace kassette {
using namespace inspect;
namespace {

using Clock = std::chrono::steady_clock;
constexpr double kBetween = 0.1;  // seconds between two updates of the bar

std::string clock_text(double seconds) {
  auto s = static_cast<long long>(std::min(seconds, 359999.0));
  char text[32];
  if (s >= 3600) std::snprintf(text, sizeof text, "%lld:%02lld:%02lld", s / 3600, s / 60 % 60, s % 60);
  else std::snprintf(text, sizeof text, "%lld:%02lld", s / 60, s % 60);
  return text;
}

double share_of(std::int64_t done, std::int64_t total) {
  return total > 0 ? std::min(1.0, static_cast<double>(done) / static_cast<double>(total)) : 1;
}

}  // namespace

inspect::ProgressWords inspect::progress_words(const std::string& name, std::int64_t done, std::int64_t total,
                                               double seconds) {
  double per_second = seconds > 0 ? static_cast<double>(done) / seconds : 0;
  const std::string rate =
      per_second >= 1 || done == 0 ? general_text(per_second, 3) + "/s" : general_text(1 / per_second, 3) + " s each";
  std::string head = name.empty() ? "" : name + ' ', tail;
  if (total >= 0) {
    char percent[8];
    std::snprintf(percent, sizeof percent, "%3d%% ", static_cast<int>(share_of(done, total) * 100));
    head += percent;
    tail = ' ' + std::to_string(done) + '/' + std::to_string(total) + ", " + rate;
    if (done > 0 && done < total)
      tail += ", " + clock_text(seconds * static_cast<double>(total - done) / static_cast<double>(done)) + " left";
    else tail += ", " + clock_text(seconds);
  } else {
    tail = std::to_string(done) + ", " + rate + ", " + clock_text(seconds);
  }
  return {head, tail};
}

std::string inspect::progress_text(const std::string& name, std::int64_t done, std::int64_t total, double seconds,
                                   int width, bool unicode) {
  const auto [head, tail] = progress_words(name, done, total, seconds);
  int room = std::min(40, width - 1 - static_cast<int>(head.size() + tail.size()) - 2);
  if (total < 0 || room < 5) return head + tail;
  constexpr const char* kParts[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  int eighths = static_cast<int>(std::lround(share_of(done, total) * room * 8)), full = eighths / 8;
  std::string bar;
  for (int i = 0; i < full; ++i) bar += unicode ? "█" : "#";
  int used = full;
  if (unicode && eighths % 8) {
    bar += kParts[eighths % 8];
    ++used;
  }
  return head + (unicode ? "▕" : "[") + bar + std::string(room - used, ' ') + (unicode ? "▏" : "]") + tail;
}

struct ProgressBar::State {
  std::string name;
  std::int64_t done = 0, total;
  Clock::time_point start = Clock::now(), shown = start;
  std::int64_t next = 1;   // the step at which to read the clock again
  std::int64_t place = 0;  // in a notebook; 0: on a terminal
  bool begun = false;      // the notebook shows it already

  double seconds() const { return std::chrono::duration<double>(Clock::now() - start).count(); }
  void show(const char* end) {
    if (place) return show_in_notebook();
    Terminal t = terminal(STDERR_FILENO);
    std::string line =
        '\r' + progress_text(name, done, total, seconds(), t.width, t.unicode) + (t.color ? "\x1b[K" : "") + end;
    if (write(STDERR_FILENO, line.data(), line.size()) < 0) return;  // failing to show a bar is no reason to stop
  }
  void show_in_notebook() {
    repl::Forms forms;
    const double took = seconds();
    if (total > 0) {  // the bar itself is the browser's
      const auto [before, after] = progress_words(name, done, total, took);
      forms.add("text/html", "<div style=\"font-family:monospace\">" + escaped(before) + "<progress value=\"" +
                                 std::to_string(done) + "\" max=\"" + std::to_string(total) + "\"></progress>" +
                                 escaped(after) + "</div>");
    }
    forms.deliver(progress_text(name, done, total, took, 80, /*unicode=*/true),
                  begun ? repl::Shown::update : repl::Shown::display, place);
    begun = true;
  }
};

ProgressBar::ProgressBar(std::int64_t total, Name label) : state_(nullptr) {
  const bool notebook = repl::has_front_end();
  if (!notebook && !isatty(STDERR_FILENO)) return;
  state_ = new State;
  if (notebook) state_->place = repl::fresh_display();
  state_->name = string_of(label);
  state_->total = total;
  state_->show("");
}
ProgressBar::~ProgressBar() {
  if (!state_) return;
  state_->show("\n");
  delete state_;
}
void ProgressBar::step() {
  if (!state_) return;
  State& s = *state_;
  // In loops of short steps the clock is read only now and then.
  if (++s.done < s.next) return;
  auto now = Clock::now();
  double since = std::chrono::duration<double>(now - s.shown).count();
  if (since < kBetween) {
    s.next = s.done + std::max<std::int64_t>(1, static_cast<std::int64_t>(static_cast<double>(s.done) /
                                                                          std::max(s.seconds(), 1e-3) * kBetween / 4));
    return;
  }
  s.shown = now;
  s.next = s.done + 1;
  s.show("");
}

}  // namespace kassette
