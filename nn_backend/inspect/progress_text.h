// nn_backend/inspect/progress_text.h - the line that a progress bar shows.
#pragma once
#include <cstdint>
#include <string>

namespace kassette::inspect {

/// What stands before and after the bar: the name and percentage; the steps, their rate and the time.
struct ProgressWords {
  std::string before, after;
};
/// After `done` of `total` steps; total < 0: unknown.
ProgressWords progress_words(const std::string& name, std::int64_t done, std::int64_t total, double seconds);
/// The same with the bar between them, if `total` is known and there is room.
std::string progress_text(const std::string& name, std::int64_t done, std::int64_t total, double seconds, int width,
                          bool unicode);

}  // namespace kassette::inspect
