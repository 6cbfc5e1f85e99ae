// Rows of files and of looking at tensors. `io.copy` is what the disk cache gives: the file read
// into memory that is there already.
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <sstream>
#include <string>

#include <kassette/inspect.h>
#include <kassette/io.h>

#include "../timer.h"
#include "rows.h"

using bench::row;

namespace {

constexpr int kFloats = 1 << 22;  // 16 MB in each of four tensors

/// A file that is gone when nobody measures with it any more.
class File {
 public:
  explicit File(const char* suffix)
      : path_(std::string(std::getenv("TMPDIR") ? std::getenv("TMPDIR") : "/tmp") + "/kassette-bench-" +
              std::to_string(getpid()) + suffix) {}
  ~File() { unlink(path_.c_str()); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

kassette::NamedTensors weights() {
  kassette::NamedTensors all;
  for (const char* name : {"a", "b", "c", "d"}) all.set(std::string(name), uniform(kFloats));
  return all;
}

}  // namespace

void file_rows() {
  row("io.copy", [] {
    auto file = std::make_shared<File>(".safetensors");
    save_safetensors(file->path(), weights());
    auto buffer = std::make_shared<std::vector<char>>(std::size_t(4) * 4 * kFloats);
    return [=] {
      int from = open(file->path().c_str(), O_RDONLY);
      std::size_t got = 0;
      while (got < buffer->size()) {
        ssize_t n = read(from, buffer->data() + got, buffer->size() - got);
        if (n <= 0) std::abort();
        got += static_cast<std::size_t>(n);
      }
      close(from);
    };
  });
  row("io.safetensors", [] {
    auto file = std::make_shared<File>(".safetensors");
    save_safetensors(file->path(), weights());
    return [=] { auto all = kassette::load_safetensors(file->path()); };
  });
  row("io.npz", [] {
    auto file = std::make_shared<File>(".npz");
    save_npz(file->path(), weights());
    return [=] { auto all = kassette::load_npz(file->path()); };
  });
  row("io.npy", [] {
    auto file = std::make_shared<File>(".npy");
    save_npy(file->path(), uniform(4 * kFloats));
    return [=] { auto x = kassette::load_npy(file->path()); };
  });
  row("look.print_1e7", [] {
    return [x = uniform(10000000)] {
      std::ostringstream text;
      text << x;
    };
  });
  row("look.describe_1e7", [] { return [x = uniform(10000000)] { static_cast<void>(kassette::describe(x)); }; });
}
