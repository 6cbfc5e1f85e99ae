// include/kassette/profile.h - what runs, and what goes wrong in it: profiles, and the first NaN. Opt-in:
// <kassette/profile.h>.
#ifndef KASSETTE_PROFILE_H
#define KASSETTE_PROFILE_H
#include <iosfwd>

#include <kassette/api.h>
#include <kassette/none.h>
#include <kassette/print.h>

namespace kassette {

/// A profile that runs: while it lives, each op of each thread is recorded with its time, shapes and bytes, those
/// inside of functions, loops and backward passes too. It prints as tables: by op, by line of the source, by function.
class KASSETTE_API Profile {
 public:
  /// See profile().
  explicit Profile(Name file);
  /// Ends it as stop() does; what goes wrong then is a warning in the log.
  ~Profile();
  Profile(const Profile&) = delete;
  Profile& operator=(const Profile&) = delete;
  /// Ends recording and writes the file, if there is one. Throws RuntimeError if it cannot be written. Does nothing if
  /// it has ended already.
  void stop();
  /// Writes what has been recorded as a trace in Chrome's format, which ui.perfetto.dev and chrome://tracing open.
  /// Throws RuntimeError if the file cannot be written.
  void save(Name file) const;
  /// The tables of what has been recorded.
  Text text() const;
  friend KASSETTE_API std::ostream& operator<<(std::ostream& os, const Profile& profile);

 private:
  struct State;
  State* state_;
};

/// Starts a profile: `auto p = kassette::profile("trace.json");`. The trace is written to `file` when the profile ends;
/// None: only where save() says. The variable KASSETTE_PROFILE=trace.json profiles a whole program.
[[nodiscard]] KASSETTE_API Profile profile(Name file = None);

/// What detect_nan looks for.
struct DetectNanOptions {
  Named only_by_name{0};
  bool infinities = true;  // false: NaN alone, for programs that compute with infinities on purpose
};
/// While it lives, an op of any thread whose result has a NaN or an infinity throws.
class KASSETTE_API DetectNan {
 public:
  /// See detect_nan().
  explicit DetectNan(const DetectNanOptions& options);
  ~DetectNan();
  DetectNan(const DetectNan&) = delete;
  DetectNan& operator=(const DetectNan&) = delete;

 private:
  bool infinities_;
};
/// Looks for the first NaN or infinity: `auto guard = kassette::detect_nan();`. While the guard lives, the first op
/// that gives one throws RuntimeError, forward or backward, in functions and loops too. The error names the op, shapes,
/// the line of the source that called or recorded it, and the range of its inputs. Bits are as always, but ops run one
/// by one and take longer.
[[nodiscard]] KASSETTE_API DetectNan detect_nan(const DetectNanOptions& options = {});

}  // namespace kassette

#endif  // KASSETTE_PROFILE_H
