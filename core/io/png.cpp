// core/io/png.cpp - pictures, by libpng.
#include <kassette/io.h>

#include <png.h>

#include <algorithm>
#include <csetjmp>
#include <cstring>
#include <vector>

#include "core/convert.h"
#include "core/io/file.h"
#include "core/io/zip.h"

namespace kassette {
namespace {

// libpng leaves a function that failed by longjmp, past destructors. So whatever calls it here holds nothing that has one, and
// what it fills belongs to the caller.

constexpr std::size_t kMessage = 160;

struct Picture {
  // In, for reading.
  const std::byte* file;
  std::int64_t size, at;
  // In, for writing.
  io::OutputFile* out;
  // Both.
  std::int64_t height, width;
  int channels, bits;
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
  if (static_cast<std::int64_t>(n) > p->size - p->at) png_error(png, "the file is cut short");
  std::memcpy(to, p->file + p->at, n);
  p->at += static_cast<std::int64_t>(n);
}

struct PngReader {
  png_structp png = nullptr;
  png_infop info = nullptr;
  ~PngReader() { png_destroy_read_struct(&png, &info, nullptr); }
};

/// The header, and what turns each kind of picture into 8 or 16 bits a channel. False: p.message says why.
bool read_header(PngReader& r, Picture& p) {
  if (setjmp(png_jmpbuf(r.png))) return false;
  png_set_read_fn(r.png, &p, take);
  png_set_user_limits(r.png, 0x7fffffff, 0x7fffffff);   // sizes are held against the file's below
  png_set_chunk_malloc_max(r.png, 1 << 20);
  png_set_keep_unknown_chunks(r.png, PNG_HANDLE_CHUNK_NEVER, nullptr, 0);
  png_read_info(r.png, r.info);
  int color = png_get_color_type(r.png, r.info);
  if (color == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(r.png);
  if (color == PNG_COLOR_TYPE_GRAY && png_get_bit_depth(r.png, r.info) < 8) png_set_expand_gray_1_2_4_to_8(r.png);
  if (png_get_valid(r.png, r.info, PNG_INFO_tRNS)) png_set_tRNS_to_alpha(r.png);
  if (png_get_bit_depth(r.png, r.info) == 16) png_set_swap(r.png);
  png_set_interlace_handling(r.png);
  std::int64_t packed_row = static_cast<std::int64_t>(png_get_rowbytes(r.png, r.info));
  png_read_update_info(r.png, r.info);
  p.height = png_get_image_height(r.png, r.info);
  p.width = png_get_image_width(r.png, r.info);
  p.channels = png_get_channels(r.png, r.info);
  p.bits = png_get_bit_depth(r.png, r.info);
  if (packed_row > p.size * io::kMaxInflation / std::max<std::int64_t>(p.height, 1)) {
    std::strncpy(p.message, "the file is too short for the size that it claims", kMessage - 1);
    return false;
  }
  return true;
}

bool read_rows(PngReader& r, std::byte** rows) {
  if (setjmp(png_jmpbuf(r.png))) return false;
  png_read_image(r.png, reinterpret_cast<png_bytepp>(rows));
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
    std::strncpy(p->message, e.what(), kMessage - 1);
  }
  png_longjmp(png, 2);
}
void flush(png_structp) {}

struct PngWriter {
  png_structp png = nullptr;
  png_infop info = nullptr;
  ~PngWriter() { png_destroy_write_struct(&png, &info); }
};

/// 0, or 1 for libpng's own trouble and 2 for that of the file.
int write_rows(PngWriter& w, Picture& p, std::byte** rows) {
  if (int failed = setjmp(png_jmpbuf(w.png))) return failed;
  png_set_write_fn(w.png, &p, put, flush);
  constexpr int kColors[] = {0, PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB, PNG_COLOR_TYPE_RGB_ALPHA};
  png_set_IHDR(w.png, w.info, static_cast<png_uint_32>(p.width), static_cast<png_uint_32>(p.height), p.bits, kColors[p.channels],
               PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_write_info(w.png, w.info);
  if (p.bits == 16) png_set_swap(w.png);
  png_write_image(w.png, reinterpret_cast<png_bytepp>(rows));
  png_write_end(w.png, nullptr);
  return 0;
}

std::vector<std::byte*> row_pointers(std::byte* data, const Picture& p) {
  std::vector<std::byte*> rows(static_cast<std::size_t>(p.height));
  for (std::size_t i = 0; i < rows.size(); ++i)
    rows[i] = data + static_cast<std::int64_t>(i) * p.width * p.channels * (p.bits / 8);
  return rows;
}

/// 0 to 1 as 0 to 255.
std::vector<std::byte> gray_levels(const io::Source& source) {
  std::vector<std::byte> out(static_cast<std::size_t>(source.spec().numel()));
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

Tensor load_png(Name path) {
  io::InputFile file("load_png", path);
  Picture p{};
  p.file = file.map();
  p.size = file.size();
  if (p.size < 8 || png_sig_cmp(reinterpret_cast<png_const_bytep>(p.file), 0, 8)) file.refuse("not a PNG file");
  PngReader r;
  r.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &p, note, ignore);
  if (r.png) r.info = png_create_info_struct(r.png);
  if (!r.info) fail<RuntimeError>("load_png: libpng could not start");
  if (!read_header(r, p)) file.refuse(p.message);
  io::Fresh raw = io::fresh(Spec(p.bits == 16 ? uint16 : uint8, {p.height, p.width, p.channels}));
  auto rows = row_pointers(raw.data, p);
  if (!read_rows(r, rows.data())) file.refuse(p.message);
  return raw.tensor;
}

void save_png(Name path, const Tensor& x) {
  io::Source source("save_png", x);
  const Spec& spec = source.spec();
  Picture p{};
  p.height = spec.rank >= 2 ? spec.dims[0] : 0;
  p.width = spec.rank >= 2 ? spec.dims[1] : 0;
  p.channels = spec.rank == 3 && spec.dims[2] <= 4 ? static_cast<int>(spec.dims[2]) : spec.rank == 2 ? 1 : 0;
  p.bits = spec.dtype == uint16 ? 16 : 8;
  if (!p.channels || !p.height || !p.width)
    fail<ValueError>("save_png: a tensor of shape ", spec, "; (height, width) or (height, width, 1 to 4) is expected, and not empty");
  if (std::max(p.height, p.width) > 1'000'000) fail<ValueError>("save_png: a picture of ", spec, "; libpng writes up to 1000000 a side");
  std::vector<std::byte> levels;
  auto* data = const_cast<std::byte*>(source.data());
  if (spec.dtype.is_float() || spec.dtype.is_bool()) {
    levels = gray_levels(source);
    data = levels.data();
  } else if (spec.dtype != uint8 && spec.dtype != uint16) {
    fail<TypeError>("save_png: ", spec.dtype, "; uint8, uint16, bool and floats from 0 to 1 are possible");
  }
  io::OutputFile file("save_png", path);
  p.out = &file;
  PngWriter w;
  w.png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &p, note, ignore);
  if (w.png) w.info = png_create_info_struct(w.png);
  if (!w.info) fail<RuntimeError>("save_png: libpng could not start");
  auto rows = row_pointers(data, p);
  if (int failed = write_rows(w, p, rows.data())) {
    if (failed == 2) fail<RuntimeError>(p.message);
    fail<RuntimeError>("save_png: ", p.message);
  }
  file.commit();
}

}  // namespace kassette
