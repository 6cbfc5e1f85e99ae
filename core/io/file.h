// core/io/file.h - files as the readers and writers of formats see them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "core/printable.h"
#include "core/text.h"

namespace kassette::io {

using Bytes = std::span<const std::byte>;

/// A regular file that is being read. Errors are ValueErrors in the name of `what`, with the path.
class InputFile {
 public:
  /// `max_bytes` as in LoadOptions: what claim() allows in all.
  InputFile(const char* what, Name path, std::int64_t max_bytes);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  std::int64_t size() const { return size_; }
  /// Called before memory is taken for elements. ValueError where all claims together exceed max_bytes.
  void claim(std::int64_t bytes) const;
  /// As many bytes from `offset` on as there are, up to n; -1 with errno where reading fails.
  std::int64_t read_some(std::int64_t offset, void* to, std::int64_t n) const noexcept;
  /// All of [offset, offset + n) into `to`; the range has been held against size().
  void read(std::int64_t offset, void* to, std::int64_t n) const;
  std::string read(std::int64_t offset, std::int64_t n) const;
  /// The whole file, read-only, as memory that a tensor can own a share of: see mapped().
  const std::byte* map() const;
  /// A tensor over the file's bytes from `offset` on, which are as many as the spec wants.
  Tensor mapped(const TensorSpec& spec, std::int64_t offset) const;

  /// ValueError: "load_npy: x.npy: " and the parts. They may quote the file: what would not show becomes a question mark, and
  /// what is long is cut.
  template <class... Parts>
  [[noreturn]] void refuse(const Parts&... parts) const {
    fail<ValueError>(what_, ": ", shown_, ": ", excerpt(text(parts...)));
  }
  const char* what() const { return what_; }

 private:
  struct Mapping;
  [[noreturn]] void failed(const std::string& why) const;
  const char* what_;
  std::string shown_;  // the path as messages have it
  int descriptor_ = -1;
  std::int64_t size_ = 0, max_bytes_ = 0;
  mutable std::int64_t claimed_ = 0;
  mutable Mapping* mapping_ = nullptr;
};

/// A file that is being written: without a name where the file system can do that, else under one of its own, until commit()
/// puts it in its place. Without commit() nothing is left; of a process that is killed at most a name, which the next save
/// of the same file removes. What is no regular file (a pipe, /dev/stdout) is written to directly.
class OutputFile {
 public:
  OutputFile(const char* what, Name path, unsigned mode = 0666);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(const void* data, std::int64_t n);
  void write(const std::string& text) { write(text.data(), static_cast<std::int64_t>(text.size())); }
  std::int64_t written() const { return written_; }
  enum class Existing { replace, keep };
  /// With `keep`, a file that is there by now stays.
  void commit(Existing existing = Existing::replace);
  const char* what() const { return what_; }

 private:
  bool take_name();
  bool put_in_place(Existing existing);
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

/// The bytes of elements that a header claims; ValueError where they cannot be counted. An empty array's other sizes have to be
/// countable as well: strides are made of them.
std::int64_t claimed_bytes(const InputFile& file, const TensorSpec& spec);

/// A fresh tensor on the CPU and its bytes, to be filled before anybody else sees it.
struct Fresh {
  Tensor tensor;
  std::byte* data;
};
Fresh fresh(const TensorSpec& spec);
/// For elements of the file: their bytes are claimed.
Fresh fresh(const InputFile& file, const TensorSpec& spec);

/// The value of what a writer was given, on the CPU, without history.
class Source {
 public:
  Source(const char* what, const Tensor& x);
  const TensorSpec& spec() const { return spec_; }
  const std::byte* data() const { return data_; }

 private:
  Tensor tensor_;
  TensorSpec spec_;
  const std::byte* data_;
};

/// The C string of a name; ValueError for None.
std::string required(const char* what, const char* which, Name name);

template <class T>
T swapped(T v) {
  if constexpr (sizeof(T) == 2) return __builtin_bswap16(v);
  else if constexpr (sizeof(T) == 4) return __builtin_bswap32(v);
  else if constexpr (sizeof(T) == 8) return __builtin_bswap64(v);
  else return v;
}
/// Turns round the bytes of n elements of `size` bytes (1, 2, 4 or 8).
void swap_bytes(std::byte* data, std::int64_t n, int size);
/// n elements of uint32 or uint64 (`size` 4 or 8), which are the last bytes of the n int64 at `data`, as int64 in their place.
/// ValueError where one does not fit; `where` as in npy.h.
void unsigned_to_int64(const InputFile& file, const char* where, std::byte* data, std::int64_t n, int size);
/// Any byte but 0 becomes 1: what else a bool holds is undefined behaviour wherever it is read.
void clean_bools(std::byte* data, std::int64_t n);

template <class T>
T load_le(const void* p) {
  T v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
              "the readers and writers of files want a little-endian machine");

}  // namespace kassette::io
