// nn_backend/inspect/progress_text.h - the line that a progress bar shows.
#pragma once
#include <cstdint>
#include <string>

namespace kassette::inspect {

/// The text after `done` of `total` steps; total < 0: unknown.
std::string progress_text(const std::string& name, std::int64_t done, std::int64_t total, double seconds, int width,
                          bool unicode);

}  // namespace kassette::inspect
