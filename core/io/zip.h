// core/io/zip.h - zip archives, the container of npz files: stored or deflated entries, with ZIP64.
#pragma once
#include <string>
#include <vector>

#include "core/io/file.h"

struct z_stream_s;

namespace kassette::io {

/// An entry of the central directory.
struct ZipEntry {
  std::string name;
  bool deflated = false;
  bool encrypted = false;
  int method = 0;  // the number in the file; ZipReader supports 0 (stored) and 8 (deflated)
  std::uint32_t crc = 0;
  std::int64_t packed = 0, size = 0;  // bytes in the file, and after unpacking
  std::int64_t data = 0;              // offset of the data in the file
};

/// The entries of an archive, in its order. Sizes and offsets have been checked against the file, and no two entries
/// overlap: so an archive cannot unpack to more than its size allows.
std::vector<ZipEntry> zip_entries(const InputFile& file);

/// Reads the contents of an entry once, from the beginning; finish() checks the checksum.
class ZipReader {
 public:
  /// Throws ValueError if the entry is encrypted, or compressed by another method than deflate.
  ZipReader(const InputFile& file, const ZipEntry& entry);
  ~ZipReader();
  ZipReader(const ZipReader&) = delete;
  ZipReader& operator=(const ZipReader&) = delete;
  void read(void* to, std::int64_t n);
  std::string read(std::int64_t n);
  /// Throws ValueError unless the entry ends here and has the right checksum.
  void finish();
  /// Reads the rest; whether it cannot be unpacked or the checksum differs.
  bool damaged();

 private:
  void inflate(std::byte* to, std::int64_t n);
  const InputFile& file_;
  const ZipEntry& entry_;
  std::int64_t at_, given_ = 0;
  std::uint32_t crc_ = 0;
  std::string input_;
  z_stream_s* stream_ = nullptr;
};

/// Writes an archive, entry by entry. The elements of a stored entry begin at a multiple of 64, so that they can be
/// mapped.
class ZipWriter {
 public:
  explicit ZipWriter(OutputFile& file) : file_(file) {}
  /// Adds an entry made of `head`, whose size is a multiple of 64, and `data`.
  void add(const std::string& name, const std::string& head, const std::byte* data, std::int64_t n, bool deflate);
  void finish();

 private:
  /// An entry that has been written, for the central directory.
  struct Written {
    ZipEntry entry;
    std::int64_t header;
  };
  OutputFile& file_;
  std::vector<Written> written_;
};

/// The most bytes that one deflated byte can unpack to; an entry that claims more is refused.
inline constexpr std::int64_t kMaxInflation = 1032;

}  // namespace kassette::io
