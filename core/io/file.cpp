// core/io/file.cpp - files and elements, for the readers and writers of file formats.
#include "core/io/file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>

#include "core/convert.h"
#include "core/io/crc.h"

namespace kassette::io {
namespace {

constexpr std::size_t kBuffer = 1 << 16;

}  // namespace

std::string required(const char* what, const char* which, Name name) {
  if (!name.given() || name.size() == 0) fail<ValueError>({what, which}, name.given() ? "is empty" : "is None");
  const std::string_view given(name.data(), name.size());
  if (given.find('\0') != given.npos)
    fail<ValueError>({what, which}, "is '", excerpt(std::string(given)), "', with a NUL at byte ", given.find('\0'));
  return std::string(given);
}

// ---- reading --------------------------------------------------------------------------------------------------------

struct InputFile::Mapping {
  std::atomic<int> users{1};
  void* data;
  std::size_t size;
  void give_back() {
    if (users.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    if (data) ::munmap(data, size);
    delete this;
  }
};

InputFile::InputFile(const char* what, Name path, std::int64_t max_bytes)
    : what_(what), shown_(printable(required(what, "path", path))) {
  if (max_bytes < 0)
    fail<ValueError>({what, "max_bytes"}, "is ", max_bytes, kExpected,
                     "it must not be negative, and 0 stands for 8 times the file's size and at least 1 GiB");
  // Opening a pipe would wait for its writer.
  descriptor_ = ::open(string_of(path).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  struct stat status;
  if (descriptor_ < 0 || ::fstat(descriptor_, &status) != 0) {
    int error = errno;
    if (descriptor_ >= 0) ::close(descriptor_);
    failed(errno_text(error));
  }
  if (!S_ISREG(status.st_mode)) {
    ::close(descriptor_);
    failed(S_ISDIR(status.st_mode) ? "is a directory" : "is not a regular file");
  }
  size_ = status.st_size;
  constexpr std::int64_t kLeast = 1 << 30, kMost = std::numeric_limits<std::int64_t>::max();
  max_bytes_ = max_bytes ? max_bytes : std::max(kLeast, size_ < kMost / 8 ? 8 * size_ : kMost);
}

InputFile::~InputFile() {
  if (mapping_) mapping_->give_back();
  ::close(descriptor_);
}

void InputFile::failed(const std::string& why) const { fail<RuntimeError>({what_}, shown_, ": ", why); }

void InputFile::reserve_bytes(std::int64_t bytes) const {
  if (bytes > max_bytes_ - claimed_)
    refuse("takes ", bytes, " bytes of memory",
           claimed_ ? text(" beside ", claimed_, " of other arrays") : std::string(), ", and max_bytes is ", max_bytes_,
           kRemedy, "{.max_bytes = ...} allows more");
  claimed_ += bytes;
}

std::int64_t InputFile::read_some(std::int64_t offset, void* to, std::int64_t n) const noexcept {
  std::int64_t done = 0;
  while (done < n) {
    ssize_t got = ::pread(descriptor_, static_cast<char*>(to) + done, n - done, offset + done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return -1;
    if (got == 0) break;
    done += got;
  }
  return done;
}

void InputFile::read(std::int64_t offset, void* to, std::int64_t n) const {
  std::int64_t got = read_some(offset, to, n);
  if (got < 0) failed(errno_text(errno));
  if (got < n) refuse("ends at byte ", offset + got, ", while it was read");
}

std::string InputFile::read(std::int64_t offset, std::int64_t n) const {
  std::string s(n, '\0');
  read(offset, s.data(), n);
  return s;
}

const std::byte* InputFile::map() const {
  if (!mapping_) {
    auto m = std::make_unique<Mapping>();
    m->size = size_;
    m->data = nullptr;
    if (size_) {
      void* p = ::mmap(nullptr, m->size, PROT_READ, MAP_PRIVATE, descriptor_, 0);
      if (p == MAP_FAILED && errno == ENOMEM)
        fail<MemoryError>({what_}, shown_, ": cannot be mapped: ", errno_text(errno));
      if (p == MAP_FAILED) failed(text("cannot be mapped: ", errno_text(errno)));
      m->data = p;
    }
    mapping_ = m.release();
  }
  return static_cast<const std::byte*>(mapping_->data);
}

Tensor InputFile::mapped(const TensorSpec& spec, std::int64_t offset) const {
  const std::byte* base = map();
  TensorDesc b;
  b.set(spec);
  b.device = cpu;
  mapping_->users.fetch_add(1, std::memory_order_relaxed);
  try {
    b.storage = Storage::borrow(base + offset, spec.bytes(),
                                {[](void* m) { static_cast<Mapping*>(m)->give_back(); }, mapping_});
  } catch (...) {
    mapping_->give_back();
    throw;
  }
  return Access::wrap(std::move(b));
}

// ---- writing --------------------------------------------------------------------------------------------------------

namespace {

std::string folder_of(const std::string& path) {
  std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

/// Replaces a symbolic link to what does not exist by where it points to. Returns false, with errno, for a circle of
/// links.
bool follow_links(std::string& path) {
  constexpr int kMost = 40;  // as the system does
  char to[PATH_MAX];
  for (int i = 0; i < kMost; ++i) {
    const ssize_t n = ::readlink(path.c_str(), to, sizeof to);
    if (n <= 0 || n == static_cast<ssize_t>(sizeof to)) return true;
    const std::string target(to, static_cast<std::size_t>(n));
    path = target[0] == '/' ? target : path.substr(0, path.rfind('/') + 1) + target;
  }
  errno = ELOOP;
  return false;
}

/// The name of the i-th temporary file for a path: the path and an ending or, where that would be longer than file
/// systems allow, the beginning of its name and a checksum of it.
std::string temporary_name(const std::string& path, int i) {
  std::string ending = text(".kassette-", i, ".tmp");
  const std::size_t name = path.rfind('/') + 1;
  if (path.size() - name + ending.size() <= NAME_MAX) return path + ending;
  const auto* bytes = reinterpret_cast<const std::byte*>(path.data() + name);
  ending = text('-', crc32(0, bytes, static_cast<std::int64_t>(path.size() - name)), ending);
  std::size_t kept = name + NAME_MAX - ending.size();
  while (kept > name && (path[kept] & 0xc0) == 0x80) --kept;  // between characters of UTF-8
  return path.substr(0, kept) + ending;
}

/// Removes a temporary file that a killed writer left behind: a live writer holds a lock on its own.
void remove_orphan(const std::string& name) {
  int left = ::open(name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (left < 0) return;
  struct stat locked, there;
  if (::flock(left, LOCK_EX | LOCK_NB) == 0 && ::fstat(left, &locked) == 0 && S_ISREG(locked.st_mode) &&
      locked.st_uid == ::geteuid() && ::lstat(name.c_str(), &there) == 0 && there.st_ino == locked.st_ino &&
      there.st_dev == locked.st_dev)
    ::unlink(name.c_str());
  ::close(left);
}

}  // namespace

OutputFile::OutputFile(const char* what, Name path, unsigned mode)
    : what_(what), path_(required(what, "path", path)), mode_(mode) {
  struct stat status;
  bool there = ::stat(path_.c_str(), &status) == 0;
  if (there && S_ISDIR(status.st_mode)) fail<RuntimeError>({what}, printable(path_), ": is a directory");
  direct_ = there && !S_ISREG(status.st_mode);
  if (direct_) {
    descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CLOEXEC);
  } else {
    // A symbolic link is kept, and its target replaced, or made if it is not there.
    if (there) {
      if (std::unique_ptr<char, decltype(&std::free)> real(::realpath(path_.c_str(), nullptr), &std::free); real)
        path_ = real.get();
    } else if (!follow_links(path_)) {
      failed("cannot be written");
    }
    descriptor_ = ::open(folder_of(path_).c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, mode_);
    if (descriptor_ >= 0 && ::access(self().c_str(), F_OK) != 0) {  // without /proc it could not be given a name
      ::close(descriptor_);
      descriptor_ = -1;
    }
    if (descriptor_ < 0) (void)open_temporary();
    if (descriptor_ >= 0 && there) (void)::fchmod(descriptor_, status.st_mode & 07777);
  }
  if (descriptor_ < 0) failed("cannot be written");
}

OutputFile::~OutputFile() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
  if (descriptor_ >= 0) ::close(descriptor_);
}

/// The path by which linkat() finds the unnamed open file.
std::string OutputFile::self() const { return text("/proc/self/fd/", descriptor_); }

/// Gives the file a temporary name beside the final one; opens it if it is not open yet. Returns false, with errno, if
/// that fails.
bool OutputFile::open_temporary() {
  const bool open_already = descriptor_ >= 0;
  if (open_already) (void)::flock(descriptor_, LOCK_EX | LOCK_NB);
  for (int i = 0; i < 100;) {
    std::string name = temporary_name(path_, i);
    remove_orphan(name);
    if (open_already) {
      if (::linkat(AT_FDCWD, self().c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0) {
        temporary_ = std::move(name);  // a copy may fail, and the file would stay
        return true;
      }
    } else if (int made = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode_); made >= 0) {
      struct stat status;
      (void)::flock(made, LOCK_EX);
      if (::fstat(made, &status) == 0 && status.st_nlink == 0) {  // removed as an orphan before it was locked
        ::close(made);
        continue;
      }
      descriptor_ = made;
      temporary_ = std::move(name);  // a copy may fail, and the file would stay
      return true;
    }
    if (errno != EEXIST) return false;
    ++i;  // another writer uses this name
  }
  return false;
}

/// Moves the file to its final name. Returns false, with errno, if that fails.
bool OutputFile::rename_to_target(IfExists if_exists) {
  if (temporary_.empty()) {
    if (::linkat(AT_FDCWD, self().c_str(), AT_FDCWD, path_.c_str(), AT_SYMLINK_FOLLOW) == 0) return true;
    if (errno != EEXIST) return false;
    if (if_exists == IfExists::keep) return true;
    if (!open_temporary()) return false;
  } else if (if_exists == IfExists::keep) {
    // For file systems without hard links.
    return ::link(temporary_.c_str(), path_.c_str()) == 0 || errno == EEXIST ||
           ::renameat2(AT_FDCWD, temporary_.c_str(), AT_FDCWD, path_.c_str(), RENAME_NOREPLACE) == 0 || errno == EEXIST;
  }
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) return false;
  temporary_.clear();
  return true;
}

/// Flushes the folder to disk: otherwise the new name may be lost in a crash.
void OutputFile::sync_folder() const {
  int folder = ::open(folder_of(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return;                            // the folder is writable, but not readable
  bool lost = ::fsync(folder) != 0 && errno == EIO;  // other errors: the file system does not support it
  ::close(folder);
  if (lost)
    fail<RuntimeError>({what_}, printable(path_), ": written, but its folder cannot be synced: ", errno_text(EIO));
}

void OutputFile::failed(const char* doing) const {
  fail<RuntimeError>({what_}, printable(path_), ": ", doing, ": ", errno_text(errno));
}

void OutputFile::put(const char* data, std::int64_t n) {
  while (n > 0) {
    ssize_t done = ::write(descriptor_, data, n);
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) failed("cannot be written");
    data += done;
    n -= done;
  }
}

void OutputFile::flush() {
  put(buffer_.data(), static_cast<std::int64_t>(buffer_.size()));
  buffer_.clear();
}

void OutputFile::write(const void* data, std::int64_t n) {
  written_ += n;
  if (buffer_.size() + static_cast<std::size_t>(n) > kBuffer) flush();
  if (static_cast<std::size_t>(n) >= kBuffer) put(static_cast<const char*>(data), n);
  else if (n) buffer_.append(static_cast<const char*>(data), n);
}

void OutputFile::commit(IfExists if_exists) {
  flush();
  if (!direct_) {
    // If the file were renamed before its bytes are on the disk, a crash could leave an empty file under the final
    // name.
    if (::fsync(descriptor_) != 0) failed("cannot be written");
    if (!rename_to_target(if_exists)) failed("cannot be put in its place");
    sync_folder();
  }
  if (::close(std::exchange(descriptor_, -1)) != 0 && direct_) failed("cannot be written");
}

// ---- elements -------------------------------------------------------------------------------------------------------

std::int64_t claimed_bytes(const InputFile& file, const TensorSpec& spec) {
  std::int64_t bytes = spec.dtype.size();
  bool over = false, empty = false;
  for (int i = 0; i < spec.rank; ++i) {
    empty |= spec.dims[i] == 0;
    // Also if another size is 0, as in NumPy.
    over |= __builtin_mul_overflow(bytes, spec.dims[i] ? spec.dims[i] : 1, &bytes);
  }
  if (over || bytes > (std::int64_t(1) << 56)) file.refuse(spec.dtype, " ", spec, " is too large to address");
  return empty ? 0 : bytes;
}

NewTensor new_tensor(const InputFile& file, const TensorSpec& spec) {
  file.reserve_bytes(spec.bytes());
  return new_tensor(spec);
}
NewTensor new_tensor(const TensorSpec& spec) {
  TensorDesc b;
  b.set(spec);
  b.device = cpu;
  b.storage = Storage::allocate(spec.bytes(), cpu);
  auto* data = static_cast<std::byte*>(b.storage->data);
  return {Access::wrap(std::move(b)), data};
}

Source::Source(const At& at, const Tensor& x) {
  if (!x.defined()) fail_empty(at);
  const TensorDesc& b = Access::desc(x);
  Value v = concrete_value(b, at.function);
  spec_.set(b);
  if (b.device.type() == Device::kCpu) {
    TensorDesc held;
    held.set(b);
    held.device = cpu;
    held.storage = std::move(v.storage);
    held.offset = v.offset;
    tensor_ = Access::wrap(std::move(held));
  } else {
    tensor_ = host_copy(x, b.dtype);
  }
  data_ = spec_.numel() ? Access::desc(tensor_).data() : nullptr;
}

void swap_bytes(std::byte* data, std::int64_t n, int size) {
  auto all = [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    for (std::int64_t i = 0; i < n; ++i) {
      T v;
      std::memcpy(&v, data + i * size, sizeof v);
      v = swapped(v);
      std::memcpy(data + i * size, &v, sizeof v);
    }
  };
  if (size == 2) all(static_cast<std::uint16_t*>(nullptr));
  if (size == 4) all(static_cast<std::uint32_t*>(nullptr));
  if (size == 8) all(static_cast<std::uint64_t*>(nullptr));
}

void clean_bools(std::byte* data, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) data[i] = std::byte(data[i] != std::byte(0));
}

}  // namespace kassette::io
