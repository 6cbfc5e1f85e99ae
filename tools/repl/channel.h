// tools/repl/channel.h - records between a session that is served and the front end that drives it.
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
  /// Ends the process where nobody is at the other end.
  void send(const Record& record);
  /// nullopt where the other end is closed, or sends what is no record.
  std::optional<Record> receive();

 private:
  bool fill();
  bool line(std::string* to);
  int fd_;
  std::string bytes_;
};

}  // namespace repl
