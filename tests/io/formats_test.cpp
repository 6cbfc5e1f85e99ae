// tests/io/formats_test.cpp - CSV, IDX and PNG.
#include <kassette/io.h>

#include <malloc.h>
#include <sys/stat.h>
#include <zlib.h>

#include <clocale>
#include <cstring>
#include <filesystem>
#include <limits>
#include <thread>

#include "tests/io/folder.h"
#include "tests/stderr_of.h"

namespace K = kassette::backend;
using namespace kassette;
using namespace kassette::test;

namespace {

struct File {
  Folder folder;
  std::string path = folder / "x";
  explicit File(const std::string& bytes) { write_file(path, bytes); }
};
std::vector<double> csv(const std::string& text, const LoadCsvOptions& options = {}) {
  return values(load_csv(File(text).path, options));
}
std::string csv_error(const std::string& text, const LoadCsvOptions& options = {}) {
  return refusal("load_csv", text, [&](const std::string& path) { load_csv(path, options); });
}
std::vector<double> row(std::initializer_list<double> v) { return v; }

/// The sample that make.py writes at (y, x, c) of its pictures.
int sample(int y, int x, int c, int bits) { return (y * 53 + x * 29 + c * 71 + (y * x << 8)) % (1 << bits); }
void check_picture(const std::string& name, int channels, int bits) {
  INFO(name);
  Tensor x = load_png(foreign(name));
  CHECK(x.dtype() == (bits == 16 ? uint16 : uint8));
  REQUIRE(printed(x.shape()) == printed(K::zeros({5, 7, channels}).shape()));
  std::vector<double> v = values(x);
  for (int i = 0; i < 5 * 7 * channels; ++i) {
    int level = sample(i / channels / 7, i / channels % 7, i % channels, bits);
    // A sample of few bits is spread over all of 0 to 255.
    CHECK(v[static_cast<std::size_t>(i)] == (bits < 8 ? level * 255 / ((1 << bits) - 1) : level));
  }
}

}  // namespace

TEST_CASE("csv reads numbers of every kind, NaN for empty fields, comments and quotes", "[io]") {
  Tensor x = load_csv(File("1,2.5,-3e2\n4,,inf\n").path);
  CHECK(printed(x.shape()) == "(2, 3)");
  CHECK(x.dtype() == float64);
  std::vector<double> v = values(x);
  CHECK(v[2] == -300);
  CHECK(std::isnan(v[4]));
  CHECK(v[5] == INFINITY);
  CHECK(csv("\xef\xbb\xbf 1 ;\t2\r\n\r\n+3;4 # said\n# nothing\n", {.delimiter = ';'}) == row({1, 2, 3, 4}));
  CHECK(csv("a,b\n\"1\",\" 2 \"\n", {.skip_rows = 1}) == row({1, 2}));
  CHECK(csv("1\n2") == row({1, 2}));
  CHECK(csv("0.1,1e400,-1e400,1e-400", {.dtype = float64}) == row({0.1, INFINITY, -INFINITY, 0}));
  CHECK(csv("0.1", {.dtype = float32})[0] == double(0.1f));
  CHECK(load_csv(File("9007199254740993").path, {.dtype = int64}).item<std::int64_t>() == 9007199254740993);
  CHECK(printed(load_csv(File("").path).shape()) == "(0, 0)");
}

TEST_CASE("csv numbers that are too large or too small for the dtype are infinite or zero, however they are written",
          "[io]") {
  auto zeros = [](int n) { return std::string(static_cast<std::size_t>(n), '0'); };
  const LoadCsvOptions single{.dtype = float32};
  CHECK(csv("0." + zeros(46) + "1", single) == row({0}));
  CHECK(csv("-0." + zeros(46) + "1,1e39,-1" + zeros(39) + ",1e-46", single) == row({0, INFINITY, -INFINITY, 0}));
  CHECK(std::signbit(csv("-0." + zeros(46) + "1", single)[0]));
  CHECK(csv("1" + zeros(500) + "e-5,-1" + zeros(500) + "e-5,1" + zeros(500) + "e-500,0." + zeros(500) + "1e5,0." +
            zeros(500) + "1e501") == row({INFINITY, -INFINITY, 1, 0, 1}));
  CHECK(csv("1e99999999999999999999,1e-99999999999999999999,0e99999999999999999999,+1E400") ==
        row({INFINITY, 0, 0, INFINITY}));
  CHECK(csv("1.401298464324817e-45,1.1754942e-38", single) ==
        row({double(std::numeric_limits<float>::denorm_min()), double(1.1754942e-38f)}));
  CHECK(csv("4.9406564584124654e-324,1.7976931348623157e308") == row({5e-324, std::numeric_limits<double>::max()}));
}

TEST_CASE("csv of one line that is longer than what is read at a time, and of many", "[io]") {
  std::string line, lines, expected;
  std::vector<double> v;
  for (int i = 0; i < 200000; ++i) {
    line += (i ? "," : "") + std::to_string(i);
    lines += std::to_string(i) + (i % 3 ? "\r\n" : "\n");
    v.push_back(i);
  }
  CHECK(csv(line) == v);
  CHECK(csv(line + "\n") == v);
  CHECK(csv(lines, {.dtype = int32}) == v);
  CHECK(csv("\xef\xbb\xbf" + lines, {.dtype = float32}) == v);
}

TEST_CASE("csv of many fields before many blanks takes no more time than its length", "[io]") {
  std::string text = "1";
  for (int i = 0; i < 400000; ++i) text += ",1";
  // 70 s where each field looks at the end of the line.
  CHECK(csv(text + std::string(400000, ' ') + "\n").size() == 400001);
}

TEST_CASE("csv and png that become shorter while they are loaded are no signal", "[io]") {
  Folder folder;
  const std::string path = folder / "x";
  std::string text, line = std::string(98, '1') + ",1\n";
  for (int i = 0; i < 20000; ++i) text += line;
  write_file(path, text);
  bool clean = within(256 << 20, [&] {
    for (int i = 0; i < 40; ++i) {
      write_file(path, text);
      std::thread cut([&] { std::filesystem::resize_file(path, 5000); });
      try {
        (void)load_csv(path);
      } catch (const ValueError&) {
      }
      cut.join();
    }
  });
  CHECK(clean);
}

TEST_CASE("csv says in which line and column something is wrong", "[io]") {
  CHECK(csv_error("1,2\n3\n") == "line 2: 1 columns; there must be 2");
  CHECK(
      csv_error("1,2\n\n3,x y\n") ==
      "line 3, column 2: 'x y' is not a number; {.columns = ...} chooses columns, {.skip_text = true} leaves out those "
      "with text");
  CHECK(csv_error("name,size\n1,2\n") ==
        "line 1, column 1: 'name' is not a number; {.skip_rows = 1} passes over a line of names");
  CHECK(csv_error("1,2.5", {.dtype = int32}) ==
        "line 1, column 2: '2.5' is not an integer; {.skip_rows = 1} passes over a line of names");
  CHECK(csv_error("1\n\"\"", {.dtype = int32}) == "line 2, column 1: an empty field, and int32 has no NaN");
  CHECK(csv_error("1,2\n3,256", {.dtype = uint8}) == "line 2, column 2: 256 does not fit uint8");
  CHECK(csv_error("1 2\n") == "line 1, column 1: '1 2' is not a number; {.skip_rows = 1} passes over a line of names");
  CHECK(csv_error("1\n", {.delimiter = '.'}) ==
        "load_csv: delimiter is '.'; it must not occur in numbers or end lines");
  CHECK(csv_error("1\n", {.delimiter = '\n'}) ==
        "load_csv: delimiter is '\\n'; it must not occur in numbers or end lines");
  CHECK(csv_error("1\n", {.delimiter = '\0'}) ==
        "load_csv: delimiter is '\\0'; it must not occur in numbers or end lines");
  CHECK(csv_error("1\n", {.skip_rows = -1}) == "load_csv: skip_rows is -1; it must not be negative");
}

TEST_CASE("csv gives every number back exactly", "[io]") {
  Folder folder;
  const double inf = INFINITY, tiny = 5e-324, third = 1.0 / 3;
  Tensor x = K::constant({{third, 1e300, -inf}, {tiny, -0.0, 123456789.123}}, float64);
  save_csv(folder / "x", x, {.header = "a,b,c"});
  CHECK(read_file(folder / "x").substr(0, 6) == "a,b,c\n");
  CHECK(values(load_csv(folder / "x", {.skip_rows = 1})) == values(x));
  save_csv(folder / "x", K::cast(x, "float32"));
  CHECK(values(load_csv(folder / "x", {.dtype = float32})) == values(K::cast(x, "float32")));
  save_csv(folder / "x", K::constant({1, 2, 3}, int32), {.delimiter = '\t'});
  CHECK(read_file(folder / "x") == "1\n2\n3\n");
  save_csv(folder / "x", K::constant({{true, false}}, bool_));
  CHECK(values(load_csv(folder / "x", {.dtype = bool_})) == row({1, 0}));
  CHECK(error_of<ValueError>([&] {
          save_csv(folder / "x", K::zeros({2, 2, 2}));
        }) == "save_csv: x has shape (2, 2, 2); it must be a matrix or a vector");
}

TEST_CASE("csv does not ask the locale for its decimal point", "[io]") {
  std::string before = std::setlocale(LC_ALL, nullptr);
  for (const char* name : {"de_DE.UTF-8", "fr_FR.UTF-8", "C.UTF-8"})
    if (std::setlocale(LC_ALL, name)) CHECK(csv("1.5,2") == row({1.5, 2}));
  std::setlocale(LC_ALL, before.c_str());
}

TEST_CASE("readers and writers of compressed files free what zlib holds", "[io]") {
  Folder folder;
  const Tensor x = array(uint8, {2, 3, 4});
  auto each_once = [&] {
    load_idx(foreign("images.idx.gz"));
    NpzOptions compressed;
    compressed.compress = true;
    save_npz(folder / "x.npz", {{"x", x}}, compressed);
    load_npz(folder / "x.npz");
    save_png(folder / "x.png", array(uint8, {4, 4}));
    load_png(folder / "x.png");
  };
  each_once();
  const auto before = ::mallinfo2();
  for (int i = 0; i < 100; ++i) each_once();
  const auto after = ::mallinfo2();
  // A stream of zlib that is left open keeps 40 kB for reading or 260 kB for writing.
  CHECK(after.uordblks + after.hblkhd < before.uordblks + before.hblkhd + 100000);
}

TEST_CASE("idx comes in, plain and within gzip, and goes out", "[io]") {
  check_array(load_idx(foreign("images.idx.gz")), uint8, {2, 3, 4});
  check_array(load_idx(foreign("float.idx")), float32, {2, 3});
  Folder folder;
  for (DType dtype : {uint8, int8, int16, int32, float32, float64})
    for (const NamedShape& shape : kShapes) {
      save_idx(folder / "x", array(dtype, shape.dims));
      check_array(load_idx(folder / "x"), dtype, shape.dims);
    }
  save_idx(folder / "x", array(float32, {2, 3}));
  CHECK(read_file(folder / "x") == read_file(foreign("float.idx")));
  CHECK_THROWS_WITH(save_idx(folder / "x", array(int64, {2})),
                    "save_idx: x is int64; the format has uint8, int8, int16, int32, float32 and float64");
}

TEST_CASE("idx within gzip may have several members, and zeros behind them", "[io]") {
  auto gzip = [](const std::string& bytes) {
    Folder folder;
    gzFile file = gzopen((folder / "x").c_str(), "wb");
    gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
    gzclose(file);
    return read_file(folder / "x");
  };
  const std::string head("\0\0\x08\1\0\0\0\3", 8), rest = "\1\2\3", zeros(700000, '\0');
  const std::vector<double> v = {1, 2, 3};
  CHECK(values(load_idx(File(gzip(head + rest)).path)) == v);
  CHECK(values(load_idx(File(gzip(head) + gzip(rest)).path)) == v);
  CHECK(values(load_idx(File(gzip(head.substr(0, 5)) + gzip("") + gzip(head.substr(5) + "\1") + gzip("\2\3")).path)) ==
        v);
  CHECK(values(load_idx(File(gzip(head) + std::string(9, '\0') + gzip(rest) + zeros).path)) == v);
  auto refused = [&](const std::string& bytes) {
    return refusal("load_idx", bytes, [](const std::string& path) { load_idx(path); });
  };
  CHECK(refused(gzip(head + rest) + "x") == "has other bytes behind what gzip wrote");
  CHECK(refused(gzip(head + rest) + zeros + "x") == "has other bytes behind what gzip wrote");
  CHECK(refused(gzip(head + rest) + "\x1fx") == "is damaged: it cannot be decompressed");
  CHECK(refused(gzip(head + rest) + gzip("x")) == "more bytes than its sizes say");
  CHECK(refused(gzip(head) + gzip("\1\2")) == "is cut short");
}

TEST_CASE("idx files that lie are refused", "[io]") {
  auto load = [](const std::string& path) { load_idx(path); };
  auto refused = [&](const std::string& bytes) { return refusal("load_idx", bytes, load); };
  auto head = [](const std::string& sizes) { return std::string("\0\0\x08\x01", 4) + sizes; };
  CHECK(refused("") == "not an IDX file: 0 bytes");
  CHECK(refused("abcdefgh") == "not an IDX file");
  CHECK(refused(std::string("\0\0\x08\x09", 4) + std::string(36, '\0')) ==
        "an array of 9 dimensions; at most 8 are possible");
  CHECK(refused(head("\xff\xff\xff\xff")) ==
        "uint8 (4294967295,) takes 4294967295 bytes, and the file has no more than 8");
  CHECK(refused(head(std::string("\0\0\0\3", 4)) + "ab") == "is cut short");
  CHECK(refused(head(std::string("\0\0\0\1", 4)) + "ab") == "1 bytes more than its sizes say");
  std::string packed = read_file(foreign("images.idx.gz"));
  for (std::size_t n = 4; n < packed.size(); ++n) CHECK_THROWS_AS(load_idx(File(packed.substr(0, n)).path), ValueError);
  packed[packed.size() - 6] ^= 1;  // the checksum
  CHECK(refused(packed) == "is damaged: it cannot be decompressed");
}

TEST_CASE("png comes in with every kind of pixel", "[io]") {
  for (int bits : {8, 16})
    for (const char* interlaced : {"", "_interlaced"}) {
      std::string end = "_" + std::to_string(bits) + interlaced + ".png";
      check_picture("gray" + end, 1, bits);
      check_picture("gray_alpha" + end, 2, bits);
      check_picture("rgb" + end, 3, bits);
      check_picture("rgba" + end, 4, bits);
    }
  for (int bits : {1, 2, 4}) check_picture("gray_" + std::to_string(bits) + ".png", 1, bits);
  for (int channels : {3, 4}) {
    Tensor x = load_png(foreign(channels == 3 ? "palette.png" : "palette_alpha.png"));
    REQUIRE(x.size() == 5 * 7 * channels);
    std::vector<double> v = values(x), alpha = {0, 100, 200, 255};
    for (int i = 0; i < 35 * channels; ++i) {
      int entry = sample(i / channels / 7, i / channels % 7, 0, 2), c = i % channels;
      CHECK(v[static_cast<std::size_t>(i)] ==
            (c == 3 ? alpha[static_cast<std::size_t>(entry)] : (entry * 40 + c * 13) % 256));
    }
  }
}

TEST_CASE("png goes out and comes back", "[io]") {
  Folder folder;
  for (DType dtype : {uint8, uint16})
    for (int channels : {1, 2, 3, 4}) {
      std::vector<double> v;
      for (int i = 0; i < 35 * channels; ++i)
        v.push_back(sample(i / channels / 7, i / channels % 7, i % channels, dtype.size() * 8));
      save_png(folder / "x.png", K::constant(v, dtype, {5, 7, channels}));
      Tensor x = load_png(folder / "x.png");
      CHECK(x.dtype() == dtype);
      CHECK(values(x) == v);
    }
  save_png(folder / "x.png", K::constant({{0.0, 0.5, 1.0, 2.0, -1.0, double(NAN)}}, float32));
  CHECK(values(load_png(folder / "x.png")) == row({0, 128, 255, 255, 0, 0}));
  CHECK(error_of<ValueError>([&] {
          save_png(folder / "x.png", K::zeros({2, 2, 5}));
        }) == "save_png: x has shape (2, 2, 5); it must be (height, width) or (height, width, 1 to 4), and not empty");
  CHECK(error_of<TypeError>([&] {
          save_png(folder / "x.png", K::zeros({2, 2}, int64));
        }) == "save_png: x is int64; it must be uint8, uint16, bool, or floats from 0 to 1");
  CHECK(error_of<RuntimeError>([&] {
          save_png("/dev/full", K::zeros({300, 300}));
        }) == "save_png: /dev/full: cannot be written: No space left on device");
}

namespace {

std::string big_endian(std::uint32_t v) {
  v = __builtin_bswap32(v);
  return std::string(reinterpret_cast<const char*>(&v), 4);
}
std::string chunk(const std::string& type, const std::string& data) {
  const std::string all = type + data;
  return big_endian(static_cast<std::uint32_t>(data.size())) + all +
         big_endian(static_cast<std::uint32_t>(
             ::crc32(0, reinterpret_cast<const Bytef*>(all.data()), static_cast<uInt>(all.size()))));
}
std::string deflated(const std::string& data) {
  uLongf n = compressBound(data.size());
  std::string out(n, '\0');
  ::compress2(reinterpret_cast<Bytef*>(out.data()), &n, reinterpret_cast<const Bytef*>(data.data()), data.size(), 9);
  out.resize(n);
  return out;
}
std::string png(std::uint32_t width, std::uint32_t height, char bits, char color, const std::string& rows,
                const std::string& more = "") {
  return "\x89PNG\r\n\x1a\n" +
         chunk("IHDR", big_endian(width) + big_endian(height) + bits + color + std::string(3, '\0')) + more +
         chunk("IDAT", deflated(rows)) + chunk("IEND", "");
}
std::string png_error(const std::string& bytes, const LoadLimits& limits = {}) {
  return refusal("load_png", bytes, [&](const std::string& path) { load_png(path, limits); });
}

}  // namespace

TEST_CASE("png takes no more memory than the file can hold", "[io][serial]") {
  CHECK(png_error(png(1, 1, 8, 0, std::string(2, '\0'))) == "no error");
  CHECK(png_error(png(0x7fffffff, 1, 8, 6, "")) == "more than 1000000 pixels a side");
  CHECK(png_error(png(1, 0x7fffffff, 1, 0, "")) == "more than 1000000 pixels a side");
  CHECK(png_error(png(1000000, 1000000, 16, 6, "")) == "the file is too short for the size that it claims");
  // 8 bytes more for each of the rows would be 8 MB.
  const std::string thin = png(1, 1000000, 1, 0, std::string(2000000, '\0'));
  Folder folder;
  write_file(folder / "thin.png", thin);
  CHECK(within(6 << 20, [&] { load_png(folder / "thin.png"); }));
  // A thousand texts of a megabyte each, of which nobody asked for one.
  std::string texts;
  for (int i = 0; i < 1000; ++i) texts += chunk("zTXt", std::string("k\0\0", 3) + deflated(std::string(999000, 'x')));
  write_file(folder / "texts.png", png(1, 1, 8, 0, std::string(2, '\0'), texts));
  CHECK(within(32 << 20, [&] { load_png(folder / "texts.png"); }));
}

TEST_CASE("every loader keeps to max_bytes, and says so in one line", "[io]") {
  Folder folder;
  const std::string path = folder / "x";
  const Tensor a = array(float32, {100}), b = array(float64, {10});
  auto said = [&](auto&& load) {
    const std::string message = error_of<ValueError>(load);
    return message.substr(std::min(message.size(), message.find(path + ": ") + path.size() + 2));
  };
  const std::string over = "takes 400 bytes of memory, and max_bytes is 399; {.max_bytes = ...} allows more";
  save_npy(path, a);
  CHECK(said([&] { load_npy(path, {.max_bytes = 399}); }) == over);
  CHECK(load_npy(path, {.max_bytes = 400}).size() == 100);
  CHECK(load_npy(path, {.mmap = true, .max_bytes = 1}).size() == 100);
  CHECK(
      error_of<ValueError>([&] { load_npy(path, {.max_bytes = -1}); }) ==
      "load_npy: max_bytes is -1; it must not be negative, and 0 stands for 8 times the file's size and at least 1 GiB");
  for (bool compress : {false, true}) {
    save_npz(path, {{"a", a}, {"b", b}}, {.compress = compress});
    CHECK(said([&] { load_npz(path, {.max_bytes = 399}); }) == over);
    CHECK(said([&] { load_npz(path, {.max_bytes = 479}); }) ==
          "takes 80 bytes of memory beside 400 of other arrays, and max_bytes is 479; {.max_bytes = ...} allows more");
    CHECK(load_npz(path, {.max_bytes = 480}).size() == 2);
    CHECK(load_npz(path, {"b"}, {.max_bytes = 80}).size() == 1);
  }
  save_safetensors(path, {{"a", a}});
  CHECK(said([&] { load_safetensors(path, {.max_bytes = 399}); }) == over);
  save_csv(path, a);
  CHECK(said([&] { load_csv(path, {.dtype = float32, .max_bytes = 399}); }) == over);
  CHECK(load_csv(path, {.dtype = float32, .max_bytes = 400}).size() == 100);
  save_idx(path, a);
  CHECK(said([&] { load_idx(path, {.max_bytes = 399}); }) == over);
  save_png(path, K::zeros({20, 20}));
  CHECK(said([&] { load_png(path, {.max_bytes = 399}); }) == over);
  CHECK(load_png(path, {.max_bytes = 400}).size() == 400);
}

TEST_CASE("a pipe or a device in place of a file is refused at once", "[io]") {
  Folder folder;
  ::mkfifo((folder / "pipe").c_str(), 0600);
  CHECK(error_of<RuntimeError>([&] { load_npy(folder / "pipe"); }) ==
        "load_npy: " + folder / "pipe" + ": is not a regular file");
  CHECK(error_of<RuntimeError>([&] { load_csv("/dev/zero"); }) == "load_csv: /dev/zero: is not a regular file");
  CHECK(error_of<RuntimeError>([&] { load_csv("no\nsuch\x1b[2Jfile\xc2\x9b"); }) ==
        "load_csv: no?such?[2Jfile??: No such file or directory");
}

TEST_CASE("every png cut short or with one byte changed is refused or read, never as other pixels", "[io][serial]") {
  const std::string path = foreign("rgb_8_interlaced.png");
  const Tensor whole = load_png(path);
  const std::string said = stderr_of([&] {
    check_damaged("load_png", read_file(path), [&](const std::string& damaged) {
      const Tensor x = load_png(damaged);
      CHECK((x.shape() == whole.shape() && values(x) == values(whole)));
    });
  });
  CHECK(said == "");  // libpng's own handlers print
}
