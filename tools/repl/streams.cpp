// tools/repl/streams.cpp - the standard streams of a session that is served.
#include "tools/repl/streams.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <streambuf>
#include <utility>

namespace repl {
namespace {

// Note [Order of the streams]
// Standard output and error are pipes of their own, so that the front end can tell them apart, and two pipes have no
// order between them. So whoever writes to one waits until the other has been read empty. That costs a system call
// where a program keeps to one stream, and some tenths of a millisecond at a change. A reader that is busy or gone is
// not waited for beyond kPatienceMs.
constexpr int kPatienceMs = 200;

void wait_until_read(int fd) {
  for (int waited = 0, unread = 0; waited < kPatienceMs * 20; ++waited) {
    if (ioctl(fd, FIONREAD, &unread) != 0 || unread == 0) return;
    usleep(50);
  }
}

ssize_t write_in_order(int fd, const char* data, std::size_t size) {
  wait_until_read(fd == 1 ? 2 : 1);
  std::size_t at = 0;
  while (at < size) {
    const ssize_t n = write(fd, data + at, size - at);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) {
      pollfd wait = {fd, POLLOUT, 0};
      poll(&wait, 1, -1);
      continue;
    }
    if (n <= 0) return at ? static_cast<ssize_t>(at) : -1;
    at += static_cast<std::size_t>(n);
  }
  return static_cast<ssize_t>(at);
}

ssize_t write_cookie(void* cookie, const char* data, std::size_t size) {
  return std::max<ssize_t>(0, write_in_order(cookie ? 2 : 1, data, size));
}

FILE* ordered(bool error) {
  static char marks[2];
  cookie_io_functions_t functions = {};
  functions.write = write_cookie;
  FILE* file = fopencookie(error ? &marks[1] : nullptr, "w", functions);
  // Lines, for the sake of child processes, which write to the same pipe.
  if (file) std::setvbuf(file, nullptr, error ? _IONBF : _IOLBF, 1 << 16);
  return file;
}

/// A stream of C++ over one of C.
class OverFile : public std::streambuf {
 public:
  explicit OverFile(FILE** file) : file_(file) {}

 protected:
  int overflow(int c) override {
    if (c == traits_type::eof()) return 0;
    return std::fputc(c, *file_);
  }
  std::streamsize xsputn(const char* data, std::streamsize n) override {
    return static_cast<std::streamsize>(std::fwrite(data, 1, static_cast<std::size_t>(n), *file_));
  }
  int sync() override { return std::fflush(*file_); }

 private:
  FILE** file_;
};

// ---- input ----------------------------------------------------------------------------------------------------------

std::function<std::optional<std::string>()> ask;
std::string line;      // what was asked for last
std::size_t used = 0;  // of it
bool ended = false;

/// Whether there is something to read.
bool ready() {
  while (used == line.size() && !ended) {
    flush_streams();
    std::optional<std::string> text = ask();
    ended = !text;
    line = text ? *text + '\n' : "";
    used = 0;
  }
  return used < line.size();
}

ssize_t read_cookie(void*, char* to, std::size_t size) {
  if (!ready()) return 0;
  const std::size_t n = std::min(size, line.size() - used);
  std::memcpy(to, line.data() + used, n);
  used += n;
  return static_cast<ssize_t>(n);
}

/// std::cin, over the same lines as stdin. It holds one character at a time, so that both may read of one line.
class Asking : public std::streambuf {
  char held_ = 0;
  int underflow() override {
    if (gptr() < egptr()) return traits_type::to_int_type(*gptr());
    if (!ready()) return traits_type::eof();
    held_ = line[used++];
    setg(&held_, &held_, &held_ + 1);
    return traits_type::to_int_type(held_);
  }

 public:
  void forget() { setg(&held_, &held_, &held_); }
};
Asking asking;

}  // namespace

void order_streams() {
  if (FILE* file = ordered(false)) stdout = file;
  if (FILE* file = ordered(true)) stderr = file;
  static OverFile out(&stdout), error(&stderr), log(&stderr);
  std::cout.rdbuf(&out);
  std::cerr.rdbuf(&error);
  std::clog.rdbuf(&log);
}

void flush_streams() {
  std::cout.flush();
  std::cerr.flush();
  std::clog.flush();
  std::fflush(nullptr);
}

void ask_for_input(std::function<std::optional<std::string>()> how) {
  ask = std::move(how);
  cookie_io_functions_t functions = {};
  functions.read = read_cookie;
  if (FILE* file = fopencookie(nullptr, "r", functions)) {
    std::setvbuf(file, nullptr, _IONBF, 0);
    stdin = file;
  }
  std::cin.rdbuf(&asking);
}

void forget_input() {
  line.clear();
  used = 0;
  ended = false;
  asking.forget();
  std::cin.clear();
  std::clearerr(stdin);
}

}  // namespace repl
