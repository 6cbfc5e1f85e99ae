// core/io/file.h - files and elements, for the readers and writers of file formats.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "core/print/printable.h"
#include "core/text.h"

namespace kassette::io {

using Bytes = std::span<const std::byte>;

/// A regular file that is being read. Errors are ValueErrors that name the function `what` and the path.
class InputFile {
 public:
  /// `max_bytes` as in LoadOptions: the limit for the sum of all claims.
  InputFile(const char* what, Name path, std::int64_t max_bytes);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  std::int64_t size() const { return size_; }
  /// To be called before memory is allocated for elements. Throws ValueError if all reservations together exceed
  /// max_bytes.
  void reserve_bytes(std::int64_t bytes) const;
  /// Reads up to n bytes from `offset` on. Returns how many there were; -1, with errno, if reading fails.
  std::int64_t read_some(std::int64_t offset, void* to, std::int64_t n) const noexcept;
  /// Reads [offset, offset + n), which the caller has checked against size().
  void read(std::int64_t offset, void* to, std::int64_t n) const;
  std::string read(std::int64_t offset, std::int64_t n) const;
  /// Maps the whole file read-only. Tensors share the mapping: see mapped().
  const std::byte* map() const;
  /// A tensor over the mapped bytes from `offset` on; the caller has checked that there are spec.bytes() of them.
  Tensor mapped(const TensorSpec& spec, std::int64_t offset) const;

  /// Throws ValueError with "load_npy: x.npy: " and the parts. These may quote the file: control characters become
  /// question marks, and long text is shortened.
  template <class... Parts>
  [[noreturn]] void refuse(const Parts&... parts) const {
    const ErrorText said(parts...);
    fail<ValueError>({what_}, shown_, ": ", excerpt(said.given), kExpected, excerpt(said.expected), kRemedy,
                     excerpt(said.remedy));
  }
  const char* what() const { return what_; }
  /// The path as messages show it.
  const std::string& shown() const { return shown_; }

 private:
  struct Mapping;
  [[noreturn]] void failed(const std::string& why) const;
  const char* what_;
  std::string shown_;
  int descriptor_ = -1;
  std::int64_t size_ = 0, max_bytes_ = 0;
  mutable std::int64_t claimed_ = 0;
  mutable Mapping* mapping_ = nullptr;
};

/// A file that is written atomically: without a name if the file system allows that (O_TMPFILE), else under a temporary
/// one, until commit() renames it. Without commit() nothing is left; a killed process leaves at most a temporary file,
/// which the next save of the same file removes. A path that is not a regular file (a pipe, /dev/stdout) is written to
/// directly.
class OutputFile {
 public:
  OutputFile(const char* what, Name path, unsigned mode = 0666);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(const void* data, std::int64_t n);
  void write(const std::string& text) { write(text.data(), static_cast<std::int64_t>(text.size())); }
  std::int64_t written() const { return written_; }
  /// What happens to a file that exists under the final name by the time of commit().
  enum class IfExists { replace, keep };
  /// Puts the file in its place.
  void commit(IfExists if_exists = IfExists::replace);
  const char* what() const { return what_; }

 private:
  bool open_temporary();
  bool rename_to_target(IfExists if_exists);
  void sync_folder() const;
  std::string self() const;
  void flush();
  void put(const char* data, std::int64_t n);
  [[noreturn]] void failed(const char* doing) const;
  const char* what_;
  std::string path_, temporary_;
  std::string buffer_;
  unsigned mode_;
  int descriptor_ = -1;
  bool direct_ = false;
  std::int64_t written_ = 0;
};

/// The bytes of the elements that a header claims. Throws ValueError if the number is too large. The other sizes of an
/// empty array are checked too: strides are products of them.
std::int64_t claimed_bytes(const InputFile& file, const TensorSpec& spec);

/// A new tensor on the CPU and a pointer to its bytes, to be filled before others can see the tensor.
struct NewTensor {
  Tensor tensor;
  std::byte* data;
};
NewTensor new_tensor(const TensorSpec& spec);
/// new_tensor() for elements of a file: reserves their bytes first.
NewTensor new_tensor(const InputFile& file, const TensorSpec& spec);

/// The value of a writer's argument, copied to the CPU if necessary.
class Source {
 public:
  Source(const At& at, const Tensor& x);
  const TensorSpec& spec() const { return spec_; }
  const std::byte* data() const { return data_; }

 private:
  Tensor tensor_;
  TensorSpec spec_;
  const std::byte* data_;
};

/// The text of an argument; throws ValueError for None. `which` names the argument.
std::string required(const char* what, const char* which, Name name);

/// v with its bytes in reverse order.
template <class T>
T swapped(T v) {
  if constexpr (sizeof(T) == 2) return __builtin_bswap16(v);
  else if constexpr (sizeof(T) == 4) return __builtin_bswap32(v);
  else if constexpr (sizeof(T) == 8) return __builtin_bswap64(v);
  else return v;
}
/// Reverses the byte order of n elements of `size` bytes (1, 2, 4 or 8).
void swap_bytes(std::byte* data, std::int64_t n, int size);
/// Turns any byte but 0 into 1: reading another byte as a bool is undefined behaviour.
void clean_bools(std::byte* data, std::int64_t n);

/// The little-endian number at p, which need not be aligned.
template <class T>
T load_le(const void* p) {
  T v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
              "the readers and writers of files want a little-endian machine");

}  // namespace kassette::io
