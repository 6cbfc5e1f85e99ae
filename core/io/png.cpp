// core/io/png.cpp - reading and writing PNG images with libpng.
#include <kassette/io.h>

#include <png.h>

#include <algorithm>
#include <cerrno>
#include <csetjmp>
#include <cstring>
#include <vector>

#include "core/convert.h"
#include "core/io/file.h"
#include "core/io/zip.h"

namespace kassette {
namespace {

// libpng reports errors by longjmp, which skips destructors. So functions that call it here have no locals with
// destructors, and the buffers that they fill belong to the caller.

constexpr std::size_t kMessage = 160;
constexpr unsigned kMaxSide = 1'000'000;  // libpng's own default

struct Picture {
  // In, for reading: the file, and a part of it that is still to be consumed.
  const io::InputFile* file;
  std::int64_t at;
  std::vector<std::byte> buffer;
  std::size_t next, filled;
  // In, for writing.
  io::OutputFile* out;
  // Both.
  std::int64_t height, width;
  int channels, bits, passes;
  char message[kMessage];
};

void note(png_structp png, png_const_charp message) {
  auto* p = static_cast<Picture*>(png_get_error_ptr(png));
  std::strncpy(p->message, message, kMessage - 1);
  png_longjmp(png, 1);
}
void ignore(png_structp, png_const_charp) {}

void take(png_structp png, png_bytep to, std::size_t n) {
  auto* p = static_cast<Picture*>(png_get_io_ptr(png));
  while (n) {
    if (p->next == p->filled) {
      std::int64_t got = p->file->read_some(p->at, p->buffer.data(), static_cast<std::int64_t>(p->buffer.size()));
      if (got < 0) png_error(png, errno_text(errno));
      if (got == 0) png_error(png, "the file is cut short");
      p->at += got;
      p->next = 0;
      p->filled = got;
    }
    std::size_t part = std::min(n, p->filled - p->next);
    std::memcpy(to, p->buffer.data() + p->next, part);
    p->next += part;
    to += part;
    n -= part;
  }
}

struct PngReader {
  png_structp png = nullptr;
  png_infop info = nullptr;
  ~PngReader() { png_destroy_read_struct(&png, &info, nullptr); }
};

/// Reads the header, and sets up the conversion of each kind of image to 8 or 16 bits per channel. Returns false, with
/// the reason in p.message, if that fails.
bool read_header(PngReader& r, Picture& p) {
  if (setjmp(png_jmpbuf(r.png))) return false;
  png_set_read_fn(r.png, &p, take);
  png_set_user_limits(r.png, 0x7fffffff, 0x7fffffff);  // checked below, with messages of our own
  png_set_chunk_malloc_max(r.png, 1 << 20);
  // -1: text chunks, profiles and the like are not kept: a thousand of them may unpack to a megabyte each.
  png_set_keep_unknown_chunks(r.png, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
  png_read_info(r.png, r.info);
  if (std::max(png_get_image_height(r.png, r.info), png_get_image_width(r.png, r.info)) > kMaxSide) {
    std::strncpy(p.message, "more than 1000000 pixels a side", kMessage - 1);
    return false;
  }
  // Before libpng takes memory for rows. Each row has a byte for its filter, interlaced or not.
  std::int64_t packed = static_cast<std::int64_t>(png_get_rowbytes(r.png, r.info)) + 1;
  if (__builtin_mul_overflow(packed, static_cast<std::int64_t>(png_get_image_height(r.png, r.info)), &packed) ||
      packed / io::kMaxInflation > p.file->size()) {
    std::strncpy(p.message, "the file is too short for the size that it claims", kMessage - 1);
    return false;
  }
  int color = png_get_color_type(r.png, r.info);
  if (color == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(r.png);
  if (color == PNG_COLOR_TYPE_GRAY && png_get_bit_depth(r.png, r.info) < 8) png_set_expand_gray_1_2_4_to_8(r.png);
  if (png_get_valid(r.png, r.info, PNG_INFO_tRNS)) png_set_tRNS_to_alpha(r.png);
  if (png_get_bit_depth(r.png, r.info) == 16) png_set_swap(r.png);
  p.passes = png_set_interlace_handling(r.png);
  png_read_update_info(r.png, r.info);
  p.height = png_get_image_height(r.png, r.info);
  p.width = png_get_image_width(r.png, r.info);
  p.channels = png_get_channels(r.png, r.info);
  p.bits = png_get_bit_depth(r.png, r.info);
  return true;
}

bool read_rows(PngReader& r, const Picture& p, std::byte* data) {
  if (setjmp(png_jmpbuf(r.png))) return false;
  // Row by row: pointers to all rows would take more memory than a narrow image.
  const std::int64_t stride = p.width * p.channels * (p.bits / 8);
  for (int pass = 0; pass < p.passes; ++pass)
    for (std::int64_t y = 0; y < p.height; ++y)
      png_read_row(r.png, reinterpret_cast<png_bytep>(data + y * stride), nullptr);
  png_read_end(r.png, nullptr);
  return true;
}

void put(png_structp png, png_bytep data, std::size_t n) {
  auto* p = static_cast<Picture*>(png_get_io_ptr(png));
  // No exception may pass through libpng.
  try {
    p->out->write(data, static_cast<std::int64_t>(n));
    return;
  } catch (const Error& e) {
    std::strncpy(p->message, e.given(), kMessage - 1);
  }
  png_longjmp(png, 1);
}
void flush(png_structp) {}

struct PngWriter {
  png_structp png = nullptr;
  png_infop info = nullptr;
  ~PngWriter() { png_destroy_write_struct(&png, &info); }
};

/// Returns false, with the reason in p.message, if that fails.
bool write_rows(PngWriter& w, Picture& p, const std::byte* data) {
  if (setjmp(png_jmpbuf(w.png))) return false;
  png_set_write_fn(w.png, &p, put, flush);
  constexpr int kColors[] = {0, PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB,
                             PNG_COLOR_TYPE_RGB_ALPHA};
  png_set_IHDR(w.png, w.info, static_cast<png_uint_32>(p.width), static_cast<png_uint_32>(p.height), p.bits,
               kColors[p.channels], PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_write_info(w.png, w.info);
  if (p.bits == 16) png_set_swap(w.png);
  const std::int64_t stride = p.width * p.channels * (p.bits / 8);
  for (std::int64_t y = 0; y < p.height; ++y)
    png_write_row(w.png, reinterpret_cast<png_const_bytep>(data + y * stride));
  png_write_end(w.png, nullptr);
  return true;
}

/// Maps 0 ... 1 to 0 ... 255.
std::vector<std::byte> gray_levels(const io::Source& source) {
  std::vector<std::byte> out(source.spec().numel());
  dispatch(source.spec().dtype, [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    auto* from = reinterpret_cast<const T*>(source.data());
    for (std::size_t i = 0; i < out.size(); ++i) {
      auto v = convert_one<double>(from[i]);
      out[i] = static_cast<std::byte>(v > 0 ? static_cast<int>(std::min(v, 1.0) * 255 + 0.5) : 0);
    }
  });
  return out;
}

}  // namespace

Tensor load_png(Name path, const LoadLimits& limits) {
  io::InputFile file("load_png", path, limits.max_bytes);
  png_byte signature[8];
  if (file.read_some(0, signature, 8) < 8 || png_sig_cmp(signature, 0, 8)) file.refuse("not a PNG file");
  Picture p{};
  p.file = &file;
  p.buffer.resize(1 << 15);
  PngReader r;
  r.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &p, note, ignore);
  if (r.png) r.info = png_create_info_struct(r.png);
  if (!r.info) fail<RuntimeError>({"load_png"}, "libpng could not start");
  if (!read_header(r, p)) file.refuse(p.message);
  io::NewTensor raw = io::new_tensor(file, TensorSpec(p.bits == 16 ? uint16 : uint8, {p.height, p.width, p.channels}));
  if (!read_rows(r, p, raw.data)) file.refuse(p.message);
  return raw.tensor;
}

void save_png(Name path, const Tensor& x) {
  io::Source source({"save_png", "x"}, x);
  const TensorSpec& spec = source.spec();
  Picture p{};
  p.height = spec.rank >= 2 ? spec.dims[0] : 0;
  p.width = spec.rank >= 2 ? spec.dims[1] : 0;
  p.channels = spec.rank == 3 && spec.dims[2] <= 4 ? static_cast<int>(spec.dims[2]) : spec.rank == 2 ? 1 : 0;
  p.bits = spec.dtype == uint16 ? 16 : 8;
  if (!p.channels || !p.height || !p.width)
    fail<ValueError>({"save_png", "x"}, "has shape ", spec, kExpected,
                     "it must be (height, width) or (height, width, 1 to 4), and not empty");
  if (std::max(p.height, p.width) > kMaxSide)
    fail<ValueError>({"save_png", "x"}, "has shape ", spec, kExpected, "libpng writes up to 1000000 a side");
  std::vector<std::byte> levels;
  const std::byte* data = source.data();
  if (spec.dtype.is_float() || spec.dtype.is_bool()) {
    levels = gray_levels(source);
    data = levels.data();
  } else if (spec.dtype != uint8 && spec.dtype != uint16) {
    fail<TypeError>({"save_png", "x"}, "is ", spec.dtype, kExpected,
                    "it must be uint8, uint16, bool, or floats from 0 to 1");
  }
  io::OutputFile file("save_png", path);
  p.out = &file;
  PngWriter w;
  w.png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &p, note, ignore);
  if (w.png) w.info = png_create_info_struct(w.png);
  if (!w.info) fail<RuntimeError>({"save_png"}, "libpng could not start");
  if (!write_rows(w, p, data)) fail<RuntimeError>({"save_png"}, p.message);
  file.commit();
}

}  // namespace kassette
