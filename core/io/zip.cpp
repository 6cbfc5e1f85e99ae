// core/io/zip.cpp - zip archives (PKWARE's APPNOTE 6.3).
#include "core/io/zip.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "core/io/crc.h"

namespace kassette::io {
namespace {

constexpr std::uint32_t kLocal = 0x04034b50, kCentral = 0x02014b50, kEnd = 0x06054b50, kEnd64 = 0x06064b50,
                        kLocator64 = 0x07064b50;
constexpr std::int64_t kLocalSize = 30, kCentralSize = 46, kEndSize = 22, kEnd64Size = 56, kLocator64Size = 20;
constexpr std::uint32_t kFull32 = 0xffffffff;
constexpr std::int64_t kChunk = 1 << 18;  // bytes read, checked and unpacked while they are in the cache

struct Directory {
  std::int64_t at, size, count;
};

std::uint16_t u16(const std::string& s, std::int64_t at) { return load_le<std::uint16_t>(s.data() + at); }
std::uint32_t u32(const std::string& s, std::int64_t at) { return load_le<std::uint32_t>(s.data() + at); }
std::int64_t i64(const std::string& s, std::int64_t at) { return load_le<std::int64_t>(s.data() + at); }

/// The position of the directory from the ZIP64 record, to which a locator before the end record points.
Directory directory64(const InputFile& file, std::int64_t end) {
  std::int64_t locator = end - kLocator64Size;
  if (locator < 0) file.refuse("a damaged zip file: the ZIP64 locator is missing");
  std::string l = file.read(locator, kLocator64Size);
  std::int64_t at = i64(l, 8);
  if (u32(l, 0) != kLocator64 || at < 0 || at > locator - kEnd64Size)
    file.refuse("a damaged zip file: the ZIP64 locator is wrong");
  std::string e = file.read(at, kEnd64Size);
  if (u32(e, 0) != kEnd64) file.refuse("a damaged zip file: the ZIP64 record is wrong");
  return {i64(e, 48), i64(e, 40), i64(e, 32)};
}

Directory directory(const InputFile& file) {
  // The end record comes last; only a comment of up to 65,535 bytes may follow.
  std::int64_t n = std::min<std::int64_t>(file.size(), kEndSize + 65535), start = file.size() - n;
  std::string tail = file.read(start, n);
  for (std::int64_t i = n - kEndSize; i >= 0; --i) {
    if (u32(tail, i) != kEnd || i + kEndSize + u16(tail, i + 20) != n) continue;
    std::int64_t end = start + i;
    Directory d{u32(tail, i + 16), u32(tail, i + 12), u16(tail, i + 10)};
    if (d.at == kFull32 || d.size == kFull32 || d.count == 0xffff) d = directory64(file, end);
    if (d.at < 0 || d.size < 0 || d.at > end || d.size > end - d.at || d.count < 0 || d.count > d.size / kCentralSize)
      file.refuse("a damaged zip file: its directory is not inside the file");
    return d;
  }
  file.refuse("not a zip file, or one that is cut short");
}

/// Reads the values that did not fit 32 bits from the ZIP64 field of a directory entry, where they have a fixed order.
void read_extra64(const InputFile& file, const std::string& d, std::int64_t at, std::int64_t n,
                  std::initializer_list<std::int64_t*> wanted) {
  for (std::int64_t end = at + n; end - at >= 4;) {
    std::int64_t id = u16(d, at), size = u16(d, at + 2), next = at + 4 + size;
    if (next > end) break;
    if (id == 1) {
      at += 4;
      for (std::int64_t* v : wanted) {
        if (*v != kFull32) continue;
        if (next - at < 8) file.refuse("a damaged zip file: an entry lacks its ZIP64 sizes");
        *v = i64(d, at);
        at += 8;
      }
      return;
    }
    at = next;
  }
}

}  // namespace

std::vector<ZipEntry> zip_entries(const InputFile& file) {
  Directory dir = directory(file);
  std::string d = file.read(dir.at, dir.size);
  struct EntryRange {
    std::int64_t begin, end;
    std::size_t entry;
  };
  std::vector<ZipEntry> entries;
  std::vector<EntryRange> ranges;
  std::int64_t at = 0;
  for (std::int64_t i = 0; i < dir.count; ++i) {
    if (dir.size - at < kCentralSize || u32(d, at) != kCentral)
      file.refuse("a damaged zip file: entry ", i, " of its directory");
    int flags = u16(d, at + 8), method = u16(d, at + 10);
    std::int64_t name = u16(d, at + 28), extra = u16(d, at + 30), comment = u16(d, at + 32);
    std::int64_t next = at + kCentralSize + name + extra + comment;
    if (next > dir.size) file.refuse("a damaged zip file: entry ", i, " of its directory");
    ZipEntry e;
    e.name = d.substr(at + kCentralSize, name);
    e.crc = u32(d, at + 16);
    e.packed = u32(d, at + 20);
    e.size = u32(d, at + 24);
    std::int64_t header = u32(d, at + 42);
    read_extra64(file, d, at + kCentralSize + name, extra, {&e.size, &e.packed, &header});
    e.encrypted = flags & 1;
    e.method = method;
    e.deflated = method == 8;
    if (header < 0 || header > dir.at - kLocalSize) file.refuse("'", e.name, "' is not inside the file");
    std::string local = file.read(header, kLocalSize);
    if (u32(local, 0) != kLocal) file.refuse("'", e.name, "' is not where the directory says");
    e.data = header + kLocalSize + u16(local, 26) + u16(local, 28);
    if (e.packed < 0 || e.size < 0 || e.data > dir.at || e.packed > dir.at - e.data)
      file.refuse("'", e.name, "' is cut short");
    if (e.deflated ? e.size / kMaxInflation > e.packed : method == 0 && !e.encrypted && e.size != e.packed)
      file.refuse("'", e.name, "' cannot hold the ", e.size, " bytes that it claims");
    ranges.push_back({header, e.data + e.packed, entries.size()});
    entries.push_back(std::move(e));
    at = next;
  }
  if (at != dir.size) file.refuse("a damaged zip file: its directory is longer than its ", dir.count, " entries");
  std::sort(ranges.begin(), ranges.end(), [](const EntryRange& a, const EntryRange& b) {
    return std::pair(a.begin, a.entry) < std::pair(b.begin, b.entry);
  });
  for (std::size_t i = 1; i < ranges.size(); ++i)
    if (ranges[i].begin < ranges[i - 1].end)
      file.refuse("'", entries[ranges[i - 1].entry].name, "' and '", entries[ranges[i].entry].name,
                  "' overlap in the file");
  return entries;
}

ZipReader::ZipReader(const InputFile& file, const ZipEntry& entry) : file_(file), entry_(entry), at_(entry.data) {
  if (entry.encrypted) file.refuse("'", entry.name, "' is encrypted");
  if (entry.method != 0 && entry.method != 8)
    file.refuse("'", entry.name, "' is compressed by method ", entry.method, kExpected,
                "stored and deflated entries are read");
  if (!entry.deflated) return;
  auto stream = std::make_unique<z_stream>();
  std::memset(stream.get(), 0, sizeof(z_stream));
  if (inflateInit2(stream.get(), -MAX_WBITS) != Z_OK) fail<RuntimeError>({file.what()}, "zlib could not start");
  stream_ = stream.release();
}
ZipReader::~ZipReader() {
  if (!stream_) return;
  inflateEnd(stream_);
  delete stream_;
}

void ZipReader::inflate(std::byte* to, std::int64_t n) {
  stream_->next_out = reinterpret_cast<Bytef*>(to);
  stream_->avail_out = static_cast<uInt>(n);
  while (stream_->avail_out) {
    if (!stream_->avail_in) {
      std::int64_t left = entry_.data + entry_.packed - at_;
      input_.resize(std::min(left, kChunk));
      file_.read(at_, input_.data(), static_cast<std::int64_t>(input_.size()));
      at_ += static_cast<std::int64_t>(input_.size());
      stream_->next_in = reinterpret_cast<Bytef*>(input_.data());
      stream_->avail_in = static_cast<uInt>(input_.size());
    }
    int status = ::inflate(stream_, Z_NO_FLUSH);
    if (status == Z_STREAM_END && !stream_->avail_out) break;
    if (status != Z_OK || (!stream_->avail_in && at_ == entry_.data + entry_.packed && stream_->avail_out))
      file_.refuse("'", entry_.name, "' is damaged: it cannot be decompressed");
  }
}

void ZipReader::read(void* to, std::int64_t n) {
  if (n > entry_.size - given_) file_.refuse("'", entry_.name, "' ends too early");
  for (auto* at = static_cast<std::byte*>(to); n > 0;) {
    std::int64_t part = std::min(n, kChunk);
    if (entry_.deflated) {
      inflate(at, part);
    } else {
      file_.read(at_, at, part);
      at_ += part;
    }
    crc_ = crc32(crc_, at, part);
    at += part;
    given_ += part;
    n -= part;
  }
}
std::string ZipReader::read(std::int64_t n) {
  std::string s(n, '\0');
  read(s.data(), n);
  return s;
}

bool ZipReader::damaged() {
  try {
    std::byte part[1 << 12];
    while (given_ < entry_.size) read(part, std::min<std::int64_t>(entry_.size - given_, sizeof part));
  } catch (const ValueError&) {
    return true;
  }
  return crc_ != entry_.crc;
}

void ZipReader::finish() {
  if (given_ != entry_.size)
    file_.refuse("'", entry_.name, "' holds ", entry_.size - given_, " bytes more than its array");
  if (crc_ != entry_.crc) file_.refuse("'", entry_.name, "' is damaged: its checksum differs");
}

// ---- writing --------------------------------------------------------------------------------------------------------

namespace {

/// Builds a record of little-endian fields.
class Record {
 public:
  Record& u16(std::int64_t v) { return put(v, 2); }
  Record& u32(std::int64_t v) { return put(v, 4); }
  Record& u64(std::int64_t v) { return put(v, 8); }
  Record& raw(const std::string& s) {
    bytes_ += s;
    return *this;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  Record& put(std::int64_t v, int n) {
    for (int i = 0; i < n; ++i) bytes_ += static_cast<char>(v >> (8 * i) & 255);
    return *this;
  }
  std::string bytes_;
};

constexpr int kVersion = 45;  // the first with ZIP64
constexpr int kUtf8 = 1 << 11;
constexpr int kDosDate = (0 << 9) | (1 << 5) | 1;  // 1 January 1980: the same arrays give the same file

std::int64_t capped(std::int64_t v) { return std::min<std::int64_t>(v, kFull32); }

std::uint32_t checksum(const std::string& head, const std::byte* data, std::int64_t n) {
  std::uint32_t crc = crc32(0, reinterpret_cast<const std::byte*>(head.data()), static_cast<std::int64_t>(head.size()));
  return crc32(crc, data, n);
}

/// head and data, compressed as one stream.
std::string deflated(const char* what, const std::string& head, const std::byte* data, std::int64_t n) {
  z_stream z{};
  if (deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    fail<RuntimeError>({what}, "zlib could not start");
  std::unique_ptr<z_stream, int (*)(z_stream*)> end(&z, deflateEnd);
  std::string out, block(1 << 15, '\0');
  auto feed = [&](const void* from, std::int64_t left, int flush) {
    auto* at = static_cast<const Bytef*>(from);
    do {
      std::int64_t part = std::min<std::int64_t>(left, 1 << 30);
      z.next_in = const_cast<Bytef*>(at);
      z.avail_in = static_cast<uInt>(part);
      at += part;
      left -= part;
      do {
        z.next_out = reinterpret_cast<Bytef*>(block.data());
        z.avail_out = static_cast<uInt>(block.size());
        ::deflate(&z, left ? Z_NO_FLUSH : flush);
        out.append(block, 0, block.size() - z.avail_out);
      } while (z.avail_out == 0);
    } while (left);
  };
  feed(head.data(), static_cast<std::int64_t>(head.size()), Z_NO_FLUSH);
  feed(data, n, Z_FINISH);
  return out;
}

}  // namespace

void ZipWriter::add(const std::string& name, const std::string& head, const std::byte* data, std::int64_t n,
                    bool deflate) {
  Written w;
  w.header = file_.written();
  w.entry.name = name;
  w.entry.deflated = deflate;
  w.entry.size = static_cast<std::int64_t>(head.size()) + n;
  w.entry.crc = checksum(head, data, n);
  std::string packed;
  if (deflate) packed = deflated(file_.what(), head, data, n);
  w.entry.packed = deflate ? static_cast<std::int64_t>(packed.size()) : w.entry.size;

  Record extra;
  bool large = w.entry.size >= kFull32 || w.entry.packed >= kFull32;
  if (large) extra.u16(1).u16(16).u64(w.entry.size).u64(w.entry.packed);
  if (!deflate) {
    // An extra field with an unused id, as padding that aligns the data.
    std::int64_t at = w.header + kLocalSize + static_cast<std::int64_t>(name.size() + extra.bytes().size()) + 4;
    std::int64_t fill = (64 - at % 64) % 64;
    extra.u16(0xd935).u16(fill).raw(std::string(fill, '\0'));
  }
  Record local;
  local.u32(kLocal).u16(kVersion).u16(kUtf8).u16(deflate ? 8 : 0).u16(0).u16(kDosDate).u32(w.entry.crc);
  local.u32(large ? kFull32 : w.entry.packed).u32(large ? kFull32 : w.entry.size);
  local.u16(static_cast<std::int64_t>(name.size())).u16(static_cast<std::int64_t>(extra.bytes().size()));
  file_.write(local.raw(name).raw(extra.bytes()).bytes());
  if (deflate) {
    file_.write(packed);
  } else {
    file_.write(head);
    file_.write(data, n);
  }
  written_.push_back(std::move(w));
}

void ZipWriter::finish() {
  std::int64_t start = file_.written();
  for (const Written& w : written_) {
    const ZipEntry& e = w.entry;
    Record extra;
    if (e.size >= kFull32) extra.u64(e.size);
    if (e.packed >= kFull32) extra.u64(e.packed);
    if (w.header >= kFull32) extra.u64(w.header);
    std::string fields = extra.bytes();
    if (!fields.empty()) fields = Record().u16(1).u16(static_cast<std::int64_t>(fields.size())).bytes() + fields;
    Record central;
    central.u32(kCentral)
        .u16(kVersion)
        .u16(kVersion)
        .u16(kUtf8)
        .u16(e.deflated ? 8 : 0)
        .u16(0)
        .u16(kDosDate)
        .u32(e.crc);
    central.u32(capped(e.packed)).u32(capped(e.size)).u16(static_cast<std::int64_t>(e.name.size()));
    central.u16(static_cast<std::int64_t>(fields.size())).u16(0).u16(0).u16(0).u32(0).u32(capped(w.header));
    file_.write(central.raw(e.name).raw(fields).bytes());
  }
  std::int64_t end = file_.written(), size = end - start, count = static_cast<std::int64_t>(written_.size());
  Record tail;
  if (start >= kFull32 || size >= kFull32 || count >= 0xffff) {
    tail.u32(kEnd64)
        .u64(kEnd64Size - 12)
        .u16(kVersion)
        .u16(kVersion)
        .u32(0)
        .u32(0)
        .u64(count)
        .u64(count)
        .u64(size)
        .u64(start);
    tail.u32(kLocator64).u32(0).u64(end).u32(1);
  }
  tail.u32(kEnd).u16(0).u16(0).u16(std::min<std::int64_t>(count, 0xffff)).u16(std::min<std::int64_t>(count, 0xffff));
  tail.u32(capped(size)).u32(capped(start)).u16(0);
  file_.write(tail.bytes());
}

}  // namespace kassette::io
