// tests/io/folder.h - a temporary folder for a test, and the arrays that tests/data/files/make.py also writes.
#pragma once
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/results.h"
#include "tests/sources.h"

namespace kassette::test {

/// A temporary folder, removed with its contents at the end of the scope.
class Folder {
 public:
  Folder()
      : path_(std::filesystem::temp_directory_path() /
              ("kassette-io-" + std::to_string(::getpid()) + "-" + std::to_string(next()))) {
    std::filesystem::create_directory(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  std::size_t files() const {
    std::size_t n = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(path_)) ++n;
    return n;
  }

 private:
  static int next() {
    static int n = 0;
    return n++;
  }
  std::filesystem::path path_;
};

inline void write_file(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}
inline std::string read_file(const std::string& path) { return text_of(path); }

/// The error of load(path) for a file of these bytes, without "what: path: "; "no error" if it is read. Checks that it
/// is one line.
template <class F>
std::string refusal(const std::string& what, const std::string& bytes, F&& load) {
  Folder folder;
  const std::string path = folder / "x", head = what + ": " + path + ": ";
  write_file(path, bytes);
  const std::string message = error_of<ValueError>([&] { load(path); });
  CHECK(message.find('\n') == message.npos);
  return message.compare(0, head.size(), head) == 0 ? message.substr(head.size()) : message;
}
/// Calls load(path) on the file truncated at every byte, which must throw ValueError, and with every byte changed,
/// which must either be read or throw ValueError.
template <class F>
void check_damaged(const std::string& what, const std::string& whole, F&& load) {
  for (std::size_t n = 0; n < whole.size(); ++n) CHECK(refusal(what, whole.substr(0, n), load) != "no error");
  for (std::size_t i = 0; i < whole.size(); ++i)
    for (char mask : {'\1', '\x80', '\xff'}) {
      std::string changed = whole;
      changed[i] = static_cast<char>(changed[i] ^ mask);
      (void)refusal(what, changed, load);
    }
}

/// Runs f in a child process whose address space may grow by `bytes`. Returns false if that was not enough, or f threw.
template <class F>
bool within([[maybe_unused]] std::int64_t bytes, F&& f) {
  pid_t child = ::fork();
  if (child == 0) {
    bool done = false;
    try {
#ifndef __SANITIZE_ADDRESS__
      long pages = 0;
      std::ifstream("/proc/self/statm") >> pages;
      const rlimit limit = {static_cast<rlim_t>(pages * ::sysconf(_SC_PAGESIZE) + bytes), RLIM_INFINITY};
      ::setrlimit(RLIMIT_AS, &limit);
#endif
      f();
      done = true;
    } catch (...) {
    }
    ::_exit(done ? 0 : 1);
  }
  int status = 1;
  ::waitpid(child, &status, 0);
  return status == 0;
}

/// The path of a file written by NumPy, safetensors or Pillow, in tests/data/files or, if set, in the folder
/// KASSETTE_FILES, into which they have just been written.
inline std::string foreign(const std::string& name) {
  const char* folder = std::getenv("KASSETTE_FILES");
  return (folder ? std::filesystem::path(folder) : kSourceTree / "tests/data/files") / name;
}

struct NamedShape {
  const char* name;
  std::vector<int> dims;
};
inline const std::vector<NamedShape> kShapes = {{"scalar", {}},     {"vector", {5}},
                                                {"matrix", {2, 3}}, {"cube", {2, 3, 4}},
                                                {"empty", {0, 3}},  {"eight", {1, 2, 1, 2, 1, 2, 1, 2}}};
inline const std::vector<DType> kNumpyDTypes = {bool_, uint8, uint16, uint32,  uint64,  int8,
                                                int16, int32, int64,  float16, float32, float64};

/// Element i of every array in make.py.
inline double element(DType dtype, int i) {
  if (dtype.is_bool()) return i % 3 == 1;
  int v = (i * 37 + 11) % 97;
  return dtype.is_unsigned() ? v : dtype.is_integer() ? v - 48 : (v - 48) / 8.0;
}
inline std::vector<double> elements(DType dtype, std::size_t n) {
  std::vector<double> v(n);
  for (std::size_t i = 0; i < n; ++i) v[i] = element(dtype, static_cast<int>(i));
  return v;
}
inline Tensor array(DType dtype, const std::vector<int>& shape) {
  std::size_t n = 1;
  for (int d : shape) n *= static_cast<std::size_t>(d);
  return backend::constant(elements(dtype, n), dtype, shape);
}
inline void check_array(const Tensor& got, DType dtype, const std::vector<int>& shape) {
  CHECK(got.dtype() == dtype);
  CHECK(printed(got.shape()) == printed(array(dtype, shape).shape()));
  CHECK(values(got) == elements(dtype, static_cast<std::size_t>(got.size())));
}

}  // namespace kassette::test
