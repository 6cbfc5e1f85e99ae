// tools/repl/channel.cpp - records between a session that is served and the front end that drives it.
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

void Channel::send(const Record& record) {
  std::string out = record.kind + ' ' + std::to_string(record.fields.size()) + '\n';
  for (const auto& [name, bytes] : record.fields)
    out += name + ' ' + std::to_string(bytes.size()) + '\n' + bytes + '\n';
  for (std::size_t at = 0; at < out.size();) {
    const ssize_t n = ::send(fd_, out.data() + at, out.size() - at, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) _exit(0);
    at += static_cast<std::size_t>(n);
  }
}

bool Channel::fill() {
  char buffer[1 << 14];
  for (;;) {
    const ssize_t n = read(fd_, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    bytes_.append(buffer, static_cast<std::size_t>(n));
    return true;
  }
}

bool Channel::line(std::string* to) {
  std::size_t end;
  while ((end = bytes_.find('\n')) == std::string::npos)
    if (!fill()) return false;
  *to = bytes_.substr(0, end);
  bytes_.erase(0, end + 1);
  return true;
}

std::optional<Record> Channel::receive() {
  Record record;
  std::string head, name;
  std::size_t count = 0, size = 0;
  if (!line(&head) || !split(head, &record.kind, &count)) return std::nullopt;
  for (; count > 0; --count) {
    if (!line(&head) || !split(head, &name, &size)) return std::nullopt;
    while (bytes_.size() < size + 1)
      if (!fill()) return std::nullopt;
    record.fields.push_back({name, bytes_.substr(0, size)});
    bytes_.erase(0, size + 1);
  }
  return record;
}

}  // namespace repl
