// tools/repl/channel.cpp - records between two processes.
#include "tools/repl/channel.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>

namespace repl {
namespace {

/// Splits "name size"; false where that is not what it is.
bool split(const std::string& head, std::string* name, std::size_t* size) {
  const std::size_t space = head.rfind(' ');
  if (space == std::string::npos) return false;
  *name = head.substr(0, space);
  const char* end = head.data() + head.size();
  const auto read = std::from_chars(head.data() + space + 1, end, *size);
  return read.ec == std::errc() && read.ptr == end;
}

}  // namespace

std::string Record::get(const std::string& name) const {
  for (const auto& [key, bytes] : fields)
    if (key == name) return bytes;
  return "";
}

bool Channel::send(const Record& record) {
  std::string out = record.kind + ' ' + std::to_string(record.fields.size()) + '\n';
  for (const auto& [name, bytes] : record.fields)
    out += name + ' ' + std::to_string(bytes.size()) + '\n' + bytes + '\n';
  for (std::size_t at = 0; at < out.size();) {
    const ssize_t n = ::send(fd_, out.data() + at, out.size() - at, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += static_cast<std::size_t>(n);
  }
  return true;
}

bool Channel::fill() {
  char buffer[1 << 14];
  while (!broken_) {
    const ssize_t n = read(fd_, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    bytes_.append(buffer, static_cast<std::size_t>(n));
    return true;
  }
  return false;
}

std::optional<Record> Channel::take() {
  std::size_t at = 0, count = 0;
  auto head = [&](std::string* name, std::size_t* number) {
    const std::size_t end = bytes_.find('\n', at);
    if (end == std::string::npos) return false;
    broken_ = !split(bytes_.substr(at, end - at), name, number);
    at = end + 1;
    return !broken_;
  };
  Record record;
  if (!head(&record.kind, &count)) return std::nullopt;
  for (; count > 0; --count) {
    std::string name;
    std::size_t size = 0;
    if (!head(&name, &size) || bytes_.size() - at <= size) return std::nullopt;
    record.fields.push_back({name, bytes_.substr(at, size)});
    at += size + 1;
  }
  bytes_.erase(0, at);
  return record;
}

std::optional<Record> Channel::receive() {
  for (;;) {
    if (std::optional<Record> record = take()) return record;
    if (!fill()) return std::nullopt;
  }
}

}  // namespace repl
