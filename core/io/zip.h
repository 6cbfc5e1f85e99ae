// core/io/zip.h - zip archives, as npz files are: stored or deflated entries, ZIP64 where sizes need it.
#pragma once
#include <string>
#include <vector>

#include "core/io/file.h"

struct z_stream_s;

namespace kassette::io {

struct ZipEntry {
  std::string name;
  bool deflated = false;
  bool encrypted = false;
  int method = 0;  // as the file has it; ZipReader reads 0 and 8
  std::uint32_t crc = 0;
  std::int64_t packed = 0, size = 0;  // bytes in the file, and of what comes out
  std::int64_t data = 0;              // where they begin
};

/// The entries of an archive, in its order. Sizes and places have been held against the file, and no two entries share a byte:
/// then together they hold no more than the file can.
std::vector<ZipEntry> zip_entries(const InputFile& file);

/// What an entry holds, read once from its beginning; the checksum is tested by finish().
class ZipReader {
 public:
  /// ValueError where the entry is encrypted, or compressed in a way other than by deflate.
  ZipReader(const InputFile& file, const ZipEntry& entry);
  ~ZipReader();
  ZipReader(const ZipReader&) = delete;
  ZipReader& operator=(const ZipReader&) = delete;
  void read(void* to, std::int64_t n);
  std::string read(std::int64_t n);
  /// ValueError unless the entry ends here and is what was written.
  void finish();

 private:
  void inflate(std::byte* to, std::int64_t n);
  const InputFile& file_;
  const ZipEntry& entry_;
  std::int64_t at_, given_ = 0;
  std::uint32_t crc_ = 0;
  std::string input_;
  z_stream_s* stream_ = nullptr;
};

/// Writes an archive, entry by entry. The elements of a stored entry begin at a multiple of 64, so that they can be mapped.
class ZipWriter {
 public:
  explicit ZipWriter(OutputFile& file) : file_(file) {}
  /// One entry made of two pieces; the second begins at the multiple of 64, `head` being one itself.
  void add(const std::string& name, const std::string& head, const std::byte* data, std::int64_t n, bool deflate);
  void finish();

 private:
  struct Written {
    ZipEntry entry;
    std::int64_t header;
  };
  OutputFile& file_;
  std::vector<Written> written_;
};

/// No deflated byte becomes more than this many; whoever claims more lies.
inline constexpr std::int64_t kMaxInflation = 1032;

}  // namespace kassette::io
