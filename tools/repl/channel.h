// tools/repl/channel.h - records between two processes: a session and its checker, a session that is served and the
// front end that drives it.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace repl {

/// A request, an event or an answer: its kind, and named fields of bytes.
struct Record {
  std::string kind;
  std::vector<std::pair<std::string, std::string>> fields;
  /// Empty where there is no such field.
  std::string get(const std::string& name) const;
};

/// A stream socket with records: "kind count\n", then for each field "name size\n", its bytes and "\n".
class Channel {
 public:
  explicit Channel(int fd) : fd_(fd) {}
  int fd() const { return fd_; }
  /// False where nobody is at the other end.
  bool send(const Record& record);
  /// Waits for a record; nullopt where the other end is closed, or sends what is no record.
  std::optional<Record> receive();
  /// The same in two steps, for who waits for something else too: reads what has come, or waits until something does;
  /// false where the other end is closed, or has sent what is no record.
  bool fill();
  /// The first record of what was read, once it is whole.
  std::optional<Record> take();

 private:
  int fd_;
  std::string bytes_;    // read, and not yet part of a record that was taken
  bool broken_ = false;  // they are no record
};

}  // namespace repl
