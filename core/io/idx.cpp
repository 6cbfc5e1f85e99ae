// core/io/idx.cpp - the format of the MNIST files: dtype, sizes, then the elements, all big-endian; often within gzip.
#include <kassette/io.h>

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "core/io/file.h"
#include "core/io/zip.h"
#include "core/rank.h"

namespace kassette {
namespace {

struct Code {
  int code;
  DType dtype;
};
constexpr Code kCodes[] = {{0x08, uint8}, {0x09, int8}, {0x0b, int16}, {0x0c, int32}, {0x0d, float32}, {0x0e, float64}};

/// The bytes of the file, decompressed if it is a gzip file.
class Stream {
 public:
  explicit Stream(const io::InputFile& file) : file_(file) {
    std::string magic = file.read(0, std::min<std::int64_t>(file.size(), 2));
    packed_ = magic == "\x1f\x8b";
    if (!packed_) return;
    std::memset(&z_, 0, sizeof z_);
    if (inflateInit2(&z_, MAX_WBITS + 16) != Z_OK) fail<RuntimeError>({file.what()}, "zlib could not start");
  }
  ~Stream() {
    if (packed_) inflateEnd(&z_);
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  /// An upper bound of the number of bytes.
  std::int64_t limit() const { return packed_ ? file_.size() * io::kMaxInflation : file_.size(); }
  void read(void* to, std::int64_t n) {
    if (!packed_) {
      if (n > file_.size() - at_) cut_short();
      file_.read(at_, to, n);
      at_ += n;
      return;
    }
    for (auto* out = static_cast<Bytef*>(to); n > 0;) {
      auto part = static_cast<uInt>(std::min<std::int64_t>(n, 1 << 30));
      z_.next_out = out;
      z_.avail_out = part;
      while (z_.avail_out) inflate_some();
      out += part;
      n -= part;
    }
  }
  /// Throws ValueError unless everything has been read; for gzip this also checks the checksum.
  void finish() {
    std::byte one;
    if (packed_) {
      z_.next_out = reinterpret_cast<Bytef*>(&one);
      z_.avail_out = 1;
      while (!ended_ && z_.avail_out) inflate_some();
      if (!z_.avail_out) file_.refuse("more bytes than its sizes say");
    } else if (at_ != file_.size()) {
      file_.refuse(file_.size() - at_, " bytes more than its sizes say");
    }
  }

 private:
  void inflate_some() {
    if (ended_) cut_short();
    if (!z_.avail_in && !refill()) cut_short();
    int status = ::inflate(&z_, Z_NO_FLUSH);
    if (status == Z_STREAM_END) next_member();
    else if (status != Z_OK) file_.refuse("is damaged: it cannot be decompressed");
  }
  /// A gzip file is one member or more (RFC 1952), which zeros may follow.
  void next_member() {
    for (;;) {
      if (!z_.avail_in && !refill()) break;
      if (*z_.next_in) break;
      ++z_.next_in, --z_.avail_in;
    }
    if (!z_.avail_in) ended_ = true;
    else if (*z_.next_in != 0x1f || inflateReset(&z_) != Z_OK) file_.refuse("has other bytes behind what gzip wrote");
  }
  bool refill() {
    input_ = file_.read(at_, std::min<std::int64_t>(file_.size() - at_, 1 << 18));
    at_ += static_cast<std::int64_t>(input_.size());
    z_.next_in = reinterpret_cast<Bytef*>(input_.data());
    z_.avail_in = static_cast<uInt>(input_.size());
    return !input_.empty();
  }
  [[noreturn]] void cut_short() const { file_.refuse("is cut short"); }
  const io::InputFile& file_;
  bool packed_ = false, ended_ = false;
  std::int64_t at_ = 0;
  std::string input_;
  z_stream z_;
};

}  // namespace

Tensor load_idx(Name path, const LoadLimits& limits) {
  io::InputFile file("load_idx", path, limits.max_bytes);
  if (file.size() < 4) file.refuse("not an IDX file: ", file.size(), " bytes");
  Stream in(file);
  unsigned char head[4];
  in.read(head, 4);
  TensorSpec spec;
  for (const Code& c : kCodes)
    if (c.code == head[2]) spec.dtype = c.dtype;
  if (head[0] || head[1] || !spec.dtype.given()) file.refuse("not an IDX file");
  if (!is_rank(head[3]))
    file.refuse("an array of ", int(head[3]), " dimensions", kExpected, "at most ", kMaxRank, " are possible");
  spec.rank = static_cast<std::int8_t>(head[3]);
  for (int i = 0; i < spec.rank; ++i) {
    std::uint32_t n;
    in.read(&n, 4);
    spec.dims[i] = io::swapped(n);
  }
  std::int64_t bytes = io::claimed_bytes(file, spec);
  if (bytes > in.limit())
    file.refuse(spec.dtype, " ", spec, " takes ", bytes, " bytes, and the file has no more than ", in.limit());
  io::NewTensor raw = io::new_tensor(file, spec);
  in.read(raw.data, bytes);
  in.finish();
  io::swap_bytes(raw.data, spec.numel(), spec.dtype.size());
  return raw.tensor;
}

void save_idx(Name path, const Tensor& x) {
  io::Source source({"save_idx", "x"}, x);
  const TensorSpec& spec = source.spec();
  unsigned char head[4] = {0, 0, 0, static_cast<unsigned char>(spec.rank)};
  for (const Code& c : kCodes)
    if (c.dtype == spec.dtype) head[2] = static_cast<unsigned char>(c.code);
  if (!head[2])
    fail<TypeError>({"save_idx", "x"}, "is ", spec.dtype, kExpected,
                    "the format has uint8, int8, int16, int32, float32 and float64");
  for (int i = 0; i < spec.rank; ++i)
    if (spec.dims[i] > UINT32_MAX)
      fail<ValueError>({"save_idx", "x"}, "has a size of ", spec.dims[i], kExpected, "the format has 32 bits for it");
  io::OutputFile file("save_idx", path);
  file.write(head, 4);
  for (int i = 0; i < spec.rank; ++i) {
    std::uint32_t n = io::swapped(static_cast<std::uint32_t>(spec.dims[i]));
    file.write(&n, 4);
  }
  std::vector<std::byte> copy(source.data(), source.data() + spec.bytes());
  io::swap_bytes(copy.data(), spec.numel(), spec.dtype.size());
  file.write(copy.data(), spec.bytes());
  file.commit();
}

}  // namespace kassette
