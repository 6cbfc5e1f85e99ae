// tests/io/numpy_test.cpp - npy and npz: files from NumPy, our own files read back, and files with false contents.
#include <kassette/io.h>

#include <fcntl.h>
#include <sys/file.h>

#include <csignal>
#include <cstring>
#include <thread>

#include "core/context.h"
#include "core/io/file.h"
#include "core/io/zip.h"
#include "tests/io/folder.h"

namespace K = kassette::backend;
using namespace kassette;
using namespace kassette::test;

namespace {

std::string named(DType dtype, const NamedShape& shape, const char* order) {
  return std::string(dtype.name()) + '/' + shape.name + '/' + order;
}

void check_numpy_arrays(const NamedTensors& arrays) {
  for (DType dtype : kNumpyDTypes)
    for (const NamedShape& shape : kShapes) {
      INFO(dtype.name() << ' ' << shape.name);
      check_array(arrays[named(dtype, shape, "c")], dtype, shape.dims);
      if (shape.dims.size() > 1) check_array(arrays[named(dtype, shape, "fortran")], dtype, shape.dims);
      if (dtype.size() > 1) check_array(arrays[named(dtype, shape, "big")], dtype, shape.dims);
    }
}

/// An npy file of version 1 with that header and n bytes of elements.
std::string npy(std::string header, std::size_t n) {
  header += '\n';
  std::string s("\x93NUMPY\x01\x00", 8);
  s += static_cast<char>(header.size() & 255);
  s += static_cast<char>(header.size() >> 8);
  return s + header + std::string(n, '\1');
}
std::string refused(const std::string& bytes) {
  return refusal("load_npy", bytes, [](const std::string& path) { load_npy(path); });
}

}  // namespace

TEST_CASE("npz files of NumPy come in with every dtype, byte order, memory order and rank", "[io]") {
  for (const char* name : {"arrays.npz", "arrays_deflated.npz"})
    for (bool mmap : {false, true}) check_numpy_arrays(load_npz(foreign(name), {.mmap = mmap}));
}

TEST_CASE("npy versions 2 and 3, special numbers and bfloat16 come in", "[io]") {
  for (bool mmap : {false, true}) {
    check_array(load_npy(foreign("version2.npy"), {.mmap = mmap}), float32, {2, 3});
    check_array(load_npy(foreign("version3.npy"), {.mmap = mmap}), int16, {2, 3, 4});
  }
  std::vector<double> v = load_npy(foreign("special.npy")).to_vector<double>();
  CHECK(std::isnan(v[0]));
  CHECK(v[1] == INFINITY);
  CHECK(v[2] == -INFINITY);
  CHECK((v[3] == 0 && std::signbit(v[3])));
  CHECK(v[4] == 5e-324);
  if (std::filesystem::exists(foreign("bfloat16.npy"))) {
    Tensor x = load_npy(foreign("bfloat16.npy"));
    CHECK(x.dtype() == bfloat16);
    CHECK(values(x) == elements(bfloat16, 6));
  }
}

TEST_CASE("a dtype that tensors do not support is refused by name", "[io]") {
  CHECK_THROWS_WITH(
      load_npy(foreign("complex.npy")),
      Catch::Contains("elements of dtype '<c8', which tensors do not support; convert them in NumPy (x.astype)"));
  CHECK_THROWS_WITH(load_npy(foreign("object.npy")), Catch::Contains("elements of dtype '|O'"));
  CHECK_THROWS_WITH(load_npy(foreign("structure.npy")), Catch::Contains("an array of structures"));
}

TEST_CASE("arrays of uint32 and uint64 keep every value", "[io]") {
  Folder folder;
  auto load = [&](const std::string& header, const std::string& data, bool mmap = false) {
    write_file(folder / "x.npy", npy("{'descr': '" + header + ", }", 0) + data);
    Tensor x = load_npy(folder / "x.npy", {.mmap = mmap});
    CHECK(x.dtype() == (header[2] == '4' ? uint32 : uint64));
    return values<std::uint64_t>(x);
  };
  using V = std::vector<std::uint64_t>;
  const std::string six("\0\0\0\0\1\0\0\0\xff\xff\xff\xff\3\0\0\0\4\0\0\0\5\0\0\x80", 24);
  for (bool mmap : {false, true}) {
    CHECK(load("<u4', 'fortran_order': False, 'shape': (6,)", six, mmap) == V{0, 1, 4294967295, 3, 4, 2147483653});
    CHECK(load("<u4', 'fortran_order': True, 'shape': (2, 3)", six, mmap) == V{0, 4294967295, 4, 1, 3, 2147483653});
    CHECK(load(">u4', 'fortran_order': False, 'shape': (1, 1)", std::string("\1\2\3\4", 4), mmap) == V{0x01020304});
    CHECK(load("<u8', 'fortran_order': False, 'shape': (2,)",
               std::string("\1\0\0\0\0\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff", 16), mmap) == V{1, UINT64_MAX});
    CHECK(load(">u8', 'fortran_order': False, 'shape': ()", std::string("\0\0\0\0\0\0\1\2", 8), mmap) == V{258});
    CHECK(load("<u4', 'fortran_order': False, 'shape': (0, 3)", "", mmap).empty());
  }
  CHECK(refused(npy("{'descr': '<u4', 'fortran_order': False, 'shape': (7,), }", 0) + six) ==
        "uint32 (7,) takes 28 bytes, and the file has 24 for it");
  CHECK(load_npy(foreign("uint32.npy")).dtype() == uint32);
  for (const char* no : {"<u5", "<u44", "<u"})
    CHECK(refused(npy(std::string("{'descr': '") + no + "', 'fortran_order': False, 'shape': (1,), }", 8)) !=
          "no error");
}

TEST_CASE("arrays of an npz are read by name, whatever else it holds", "[io]") {
  // NumPy: savez(w=float32 [0, 1, 2], u=uint32 [0, 1, 2], t=['a', 'b'], big=uint64 [1, 2 ** 63])
  const std::string path = foreign("mixed.npz");
  CHECK_THROWS_WITH(
      load_npz(path),
      "load_npz: " + path +
          ": 't': elements of dtype '<U1', which tensors do not support; convert them in NumPy (x.astype), "
          "or give the names of the arrays to load");
  NamedTensors two = load_npz(path, {"u", "w"});
  REQUIRE(two.size() == 2);
  CHECK(std::string(two.begin()->name) == "w");  // in the order of the file
  CHECK(two["w"].dtype() == float32);
  CHECK(values(two["w"]) == std::vector<double>{0, 1, 2});
  CHECK(two["u"].dtype() == uint32);
  CHECK(values(two["u"]) == std::vector<double>{0, 1, 2});
  const std::vector<std::string> names = {"w"};
  CHECK(load_npz(path, names).size() == 1);
  CHECK(load_npz(path, std::vector<std::string>()).empty());
  CHECK_THROWS_AS(load_npz(path, {}), ValueError);  // options: all of them, 't' too
  CHECK(load_npz(path, {"w", "w"}, {.mmap = true}).size() == 1);
  CHECK(values<std::uint64_t>(load_npz(path, {"big"})["big"]) == std::vector<std::uint64_t>{1, std::uint64_t(1) << 63});
  CHECK_THROWS_WITH(load_npz(path, {"w", "v"}),
                    "load_npz: " + path + ": no array is called 'v'; there are 'w', 'u', 't', 'big'");
  CHECK_THROWS_AS(load_npz(path, {"w", None}), ValueError);
}

TEST_CASE("entries of an npz that share bytes are refused", "[io]") {
  Folder folder;
  save_npz(folder / "x.npz", {{"a1", array(int8, {5})}, {"a2", array(int8, {5})}});
  std::string s = read_file(folder / "x.npz");
  const std::size_t first = s.find("PK\1\2"), second = s.find("PK\1\2", first + 1);
  REQUIRE(second != s.npos);
  for (std::size_t i = 0; i < 4; ++i)
    s[second + 42 + i] = s[first + 42 + i];  // the second array is where the first one is
  CHECK(refusal("load_npz", s, [](const std::string& path) { load_npz(path); }) ==
        "'a1.npy' and 'a2.npy' overlap in the file");
}

TEST_CASE("an encrypted or otherwise compressed entry is passed over unless it is asked for", "[io]") {
  Folder folder;
  save_npz(folder / "x.npz", {{"a1", array(int8, {5})}, {"a2", array(int8, {5})}});
  for (bool encrypted : {false, true}) {
    std::string s = read_file(folder / "x.npz");
    const std::size_t second = s.find("PK\1\2", s.find("PK\1\2") + 1);
    if (encrypted) s[second + 8] |= 1;
    else s[second + 10] = 14;
    write_file(folder / "y.npz", s);
    CHECK(load_npz(folder / "y.npz", {"a1"}).size() == 1);
    CHECK_THROWS_WITH(load_npz(folder / "y.npz"),
                      Catch::Contains(encrypted ? "'a2.npy' is encrypted" : "'a2.npy' is compressed by method 14"));
  }
}

TEST_CASE("names of a file neither break a line nor steer a terminal", "[io]") {
  NamedTensors list{{"a\n\x1b[2J", array(int8, {5})}};
  CHECK(printed(list) == "{a??[2J: (5,) int8}");
  CHECK(error_of<ValueError>([&] { list["b\r"]; }) == "NamedTensors: no tensor is called 'b?'; there is 'a??[2J'");
}

TEST_CASE("npy files of ours come back in both memory orders and byte orders", "[io]") {
  Folder folder;
  std::string path = folder / "x.npy";
  for (DType dtype : kNumpyDTypes)
    for (const NamedShape& shape : kShapes)
      for (bool fortran : {false, true})
        for (bool big : {false, true}) {
          save_npy(path, array(dtype, shape.dims), {.fortran_order = fortran, .big_endian = big});
          check_array(load_npy(path), dtype, shape.dims);
          check_array(load_npy(path, {.mmap = true}), dtype, shape.dims);
        }
  CHECK(folder.files() == 1);
}

TEST_CASE("bfloat16 in big-endian npy is what readers take it for", "[io]") {
  Folder folder;
  Tensor x = K::constant({1.0, -2.0, 3.5}, "bfloat16");
  save_npy(folder / "x.npy", x, {.big_endian = true});
  // numpy.load gives a void of two bytes, whose order it does not keep: v.view(ml_dtypes.bfloat16) must be right.
  const std::string s = read_file(folder / "x.npy");
  CHECK(s.find("'descr': '<V2'") != s.npos);
  CHECK(s.substr(s.size() - 6) == std::string("\x80\x3f\0\xc0\x60\x40", 6));
  CHECK(values(load_npy(folder / "x.npy")) == std::vector<double>{1, -2, 3.5});
  // What numpy.save writes for x.astype(numpy.dtype(ml_dtypes.bfloat16).newbyteorder(">")).
  std::string big = npy("{'descr': '>V2', 'fortran_order': False, 'shape': (3,), }", 0);
  write_file(folder / "y.npy", big + std::string("\x3f\x80\xc0\0\x40\x60", 6));
  for (bool mmap : {false, true}) {
    Tensor y = load_npy(folder / "y.npy", {.mmap = mmap});
    CHECK(y.dtype() == bfloat16);
    CHECK(values(y) == std::vector<double>{1, -2, 3.5});
  }
}

TEST_CASE("the dtype of an npy file is spelled as numpy.dtype() takes it", "[io]") {
  // numpy.dtype(spelling).str, by NumPy 2.
  const std::pair<const char*, DType> spelled[] = {
      {"f4", float32}, {"=f4", float32},    {"|f4", float32}, {"float32", float32}, {"f", float32},
      {"<f", float32}, {"single", float32}, {"d", float64},   {"float", float64},   {"double", float64},
      {"e", float16},  {"half", float16},   {"?", bool_},     {"<?", bool_},        {"|?", bool_},
      {"bool", bool_}, {"b", int8},         {"i1", int8},     {"B", uint8},         {"h", int16},
      {"H", uint16},   {"i", int32},        {"int32", int32}, {"l", int64},         {"q", int64},
      {"int", int64},  {"long", int64},     {"u4", uint32},   {"uint32", uint32},   {"L", uint64}};
  Folder folder;
  for (const auto& [descr, dtype] : spelled) {
    INFO(descr);
    write_file(folder / "x.npy",
               npy("{'descr': '" + std::string(descr) + "', 'fortran_order': False, 'shape': (), }", 8));
    CHECK(load_npy(folder / "x.npy").dtype() == dtype);
  }
  auto with = [](const std::string& descr) {
    return refused(npy("{'descr': '" + descr + "', 'fortran_order': False, 'shape': (2,), }", 16));
  };
  std::string big = npy("{'descr': '>d', 'fortran_order': False, 'shape': (), }", 0);
  write_file(folder / "x.npy", big + std::string("\x3f\xf8\0\0\0\0\0\0", 8));
  CHECK(load_npy(folder / "x.npy").item<double>() == 1.5);
  for (const char* other : {"<float32", ">int64", "<bool", "f", "", "S4", "<U2", "c8", "<M8[s]", "O", "f3", "ff4"})
    if (std::string(other) != "f") CHECK_THAT(with(other), Catch::Contains("which tensors do not support"));
}

TEST_CASE("a shape that is no tuple to Python is refused", "[io]") {
  auto with = [](const std::string& shape) {
    return refused(npy("{'descr': '<f4', 'fortran_order': False, 'shape': " + shape + ", }", 24));
  };
  CHECK(with("(6,)") == "no error");
  CHECK(with("(2, 3,)") == "no error");
  CHECK(with("()") == "no error");
  CHECK(with("(6)") == "the shape (6); it must be a tuple");
  for (const char* other : {"6", "[6]", "(,)", "(6,,)", "(2 3)", "(2.0,)", "(,6)"}) CHECK(with(other) != "no error");
}

TEST_CASE("the header that is written is NumPy's, and elements begin at a multiple of 64", "[io]") {
  Folder folder;
  save_npy(folder / "x.npy", array(float32, {2, 3}));
  std::string s = read_file(folder / "x.npy");
  CHECK(s.substr(0, 8) == std::string("\x93NUMPY\x01\x00", 8));
  CHECK(s.substr(10, 60) == "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), } ");
  CHECK(s.size() == 128 + 24);
  CHECK(s[127] == '\n');
}

TEST_CASE("npz files of ours come back, stored and deflated, and are the same bytes each time", "[io]") {
  Folder folder;
  NamedTensors arrays;
  for (DType dtype : kNumpyDTypes)
    for (const NamedShape& shape : kShapes) arrays.set(named(dtype, shape, ""), array(dtype, shape.dims));
  for (bool compress : {false, true}) {
    save_npz(folder / "x.npz", arrays, {.compress = compress});
    for (bool mmap : {false, true}) {
      NamedTensors back = load_npz(folder / "x.npz", {.mmap = mmap});
      REQUIRE(back.size() == arrays.size());
      for (DType dtype : kNumpyDTypes)
        for (const NamedShape& shape : kShapes) check_array(back[named(dtype, shape, "")], dtype, shape.dims);
      CHECK(std::string(back.begin()->name) == arrays.begin()->name);
    }
    std::string once = read_file(folder / "x.npz");
    save_npz(folder / "x.npz", arrays, {.compress = compress});
    CHECK(read_file(folder / "x.npz") == once);
  }
  save_npz(folder / "list.npz", Tensors{array(int32, {2, 3}), array(float64, {5})});
  check_array(load_npz(folder / "list.npz")["arr_1"], float64, {5});
  save_npz(folder / "none.npz", {});
  CHECK(load_npz(folder / "none.npz").empty());
}

TEST_CASE("a mapped array outlives the file's name and the list it came in", "[io]") {
  Folder folder;
  save_npz(folder / "x.npz", {{"w", array(float32, {2, 3})}, {"b", array(float64, {5})}});
  std::int64_t before = totals().live_bytes;
  Tensor w, b;
  {
    NamedTensors arrays = load_npz(folder / "x.npz", {.mmap = true});
    w = arrays["w"];
    b = arrays["b"];
  }
  CHECK(totals().live_bytes == before);  // nothing was copied
  std::filesystem::remove(folder / "x.npz");
  check_array(w, float32, {2, 3});
  check_array(b, float64, {5});
}

TEST_CASE("npy files that lie are refused in one line before memory is taken", "[io]") {
  const std::string good = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";
  CHECK(refused(npy(good, 24)) == "no error");
  CHECK(refused(npy("{\"shape\":(2,3),\"fortran_order\":False,\"descr\":\"<f4\"}", 24)) == "no error");
  CHECK(refused(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2L, 3L), }", 24)) == "no error");
  CHECK(refused(std::string("\x93NUMPY\x02\x00\x00\x00\x10\x00", 12) + std::string(1 << 20, ' ')) ==
        "a header of 1048588 bytes; at most 65547 are read");
  CHECK(refused("") == "not an npy file");
  CHECK(refused("\x93NUMPX\x01\x00 and so on") == "not an npy file");
  CHECK(refused(std::string("\x93NUMPY\x09\x00\x10\x00{}", 12)) == "version 9 of the npy format; 1 to 3 are known");
  CHECK(refused(npy(good, 24).substr(0, 30)) == "ends within its header: 30 bytes of 70");
  CHECK(refused(npy(good, 23)) == "float32 (2, 3) takes 24 bytes, and the file has 23 for it");
  CHECK(refused(npy("{'descr': '<f8', 'fortran_order': False, 'shape': (1099511627776,), }", 8)) ==
        "float64 (1099511627776,) takes 8796093022208 bytes, and the file has 8 for it");
  CHECK(refused(npy("{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999999999999,), }", 8)) ==
        "a size of the header is out of range");
  CHECK(refused(npy("{'descr': '<f8', 'fortran_order': False, 'shape': (-1,), }", 8)) == "a negative size, -1");
  CHECK(refused(npy("{'descr': '<f8', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1), }", 8)) ==
        "an array of more than 8 dimensions");
  CHECK(refused(npy("{'descr': '<f4', 'fortran_order': False, }", 24)) ==
        "the header lacks descr, fortran_order or shape");
  CHECK(refused(npy("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", 24)) ==
        "the header does not describe an array: error at byte 25");
  CHECK(refused(npy(good + "x", 24)) == "the header does not describe an array: error at byte 59");
  CHECK(refused(npy("[1]", 24)) == "the header does not describe an array: error at byte 0");
  // Text of the file in a message stays on its line and within bounds.
  CHECK(refused(npy(std::string("{'descr': '<\n\0', 'fortran_order': False, 'shape': (2,), }", 57), 8)) ==
        "elements of dtype '<?\?', which tensors do not support; convert them in NumPy (x.astype)");
  CHECK(
      refused(npy("{'descr': '<" + std::string(5000, 'x') + "', 'fortran_order': False, 'shape': (2,), }", 8)).size() <
      250);
  // Two sizes whose product wraps around to what is there.
  CHECK_THAT(refused(npy("{'descr': '|u1', 'fortran_order': False, 'shape': (4294967296, 4294967296), }", 8)),
             Catch::Contains("is too large to address"));
  CHECK_THAT(refused(npy("{'descr': '|u1', 'fortran_order': False, 'shape': (0, 4294967296, 4294967296), }", 8)),
             Catch::Contains("is too large to address"));
}

TEST_CASE("bytes of a bool other than 0 and 1 are true", "[io]") {
  Folder folder;
  write_file(folder / "x.npy",
             npy("{'descr': '|b1', 'fortran_order': False, 'shape': (3,), }", 0) + std::string("\0\1\7", 3));
  Tensor x = load_npy(folder / "x.npy", {.mmap = true});
  CHECK(values<std::uint8_t>(x) == std::vector<std::uint8_t>{0, 1, 1});
  CHECK(x.data<bool>()[2] + 0 == 1);
}

TEST_CASE("every npz cut short or with one byte changed is refused or read, never more", "[io][serial]") {
  Folder folder;
  for (bool compress : {false, true}) {
    save_npz(folder / "x.npz", {{"w", array(float32, {2, 3})}}, {.compress = compress});
    check_damaged("load_npz", read_file(folder / "x.npz"), [](const std::string& path) {
      // What is not under the checksum: names, dates, padding, attributes.
      for (const NamedTensor& a : load_npz(path)) CHECK(values(a.tensor) == elements(float32, 6));
    });
  }
}

TEST_CASE("an array without a header in an npz is refused", "[io]") {
  Folder folder;
  save_npz(folder / "x.npz", {{"a", array(int8, {5})}});
  std::string s = read_file(folder / "x.npz");
  std::size_t at = s.find(std::string("\x93NUMPY\x01\x00", 8));
  REQUIRE(at != s.npos);
  for (char length : {'\0', '\1', '\2'}) {
    s[at + 8] = length;
    write_file(folder / "x.npz", s);
    CHECK_THROWS_AS(load_npz(folder / "x.npz"), ValueError);
    write_file(folder / "x.npy", s.substr(at));
    CHECK_THROWS_AS(load_npy(folder / "x.npy"), ValueError);
  }
}

TEST_CASE("an entry of an npz that is damaged says so, wherever it is", "[io]") {
  Folder folder;
  for (bool compress : {false, true}) {
    save_npz(folder / "x.npz", {{"w", array(float64, {2, 3, 4})}}, {.compress = compress});
    const std::string whole = read_file(folder / "x.npz");
    const std::size_t begin = compress ? 30 + 5 : whole.find("\x93NUMPY"), end = whole.find("PK\1\2");
    REQUIRE(begin < end);
    for (std::size_t i = begin; i < end; ++i) {
      std::string s = whole;
      s[i] = static_cast<char>(s[i] ^ 0x55);
      write_file(folder / "y.npz", s);
      NamedTensors got;
      const std::string said = error_of<ValueError>([&] { got = load_npz(folder / "y.npz"); });
      if (said == "no error") CHECK(values(got["w"]) == elements(float64, 24));  // a bit of deflate without meaning
      else CHECK_THAT(said, Catch::Contains("damaged"));
    }
  }
}

TEST_CASE("a zip file without arrays, or with more entries than it counts, is refused", "[io]") {
  Folder folder;
  {
    io::OutputFile file("test", folder / "model.pt");
    io::ZipWriter zip(file);
    for (const char* name : {"archive/data.pkl", "archive/data/0"})
      zip.add(name, std::string(64, 'x'), nullptr, 0, false);
    zip.finish();
    file.commit();
  }
  CHECK(error_of<ValueError>([&] { load_npz(folder / "model.pt"); }) ==
        "load_npz: " + folder / "model.pt" +
            ": holds no arrays (no .npy), but 'archive/data.pkl' and others; PyTorch wrote it: save it there as "
            "safetensors (safetensors.torch.save_file)");
  CHECK_THAT(error_of<ValueError>([&] { load_npz(folder / "model.pt", {"w"}); }), Catch::Contains("holds no arrays"));
  save_npz(folder / "empty.npz", NamedTensors());
  CHECK(load_npz(folder / "empty.npz").empty());  // as numpy.load has it
  save_npz(folder / "x.npz", {{"a", array(int8, {5})}, {"b", array(int8, {5})}});
  std::string s = read_file(folder / "x.npz");
  const std::size_t end = s.rfind("PK\5\6");
  s[end + 8] = s[end + 10] = 1;
  write_file(folder / "x.npz", s);
  CHECK_THAT(error_of<ValueError>([&] { load_npz(folder / "x.npz"); }),
             Catch::Contains("a damaged zip file: its directory is longer than its 1 entries"));
}

TEST_CASE("two arrays of one name in an npz are refused", "[io]") {
  Folder folder;
  save_npz(folder / "x.npz", {{"a1", array(int8, {5})}, {"a2", array(int8, {5})}});
  std::string s = read_file(folder / "x.npz");
  for (std::size_t at; (at = s.find("a2.npy")) != s.npos;) s.replace(at, 2, "a1");
  write_file(folder / "x.npz", s);
  CHECK_THROWS_WITH(load_npz(folder / "x.npz"), Catch::Contains("two arrays of the name 'a1'"));
  CHECK_THROWS_WITH((NamedTensors{{"a", array(int8, {5})}, {"a", array(int8, {5})}}),
                    "NamedTensors: the name 'a' is given twice");
}

TEST_CASE("what cannot be read or written is a RuntimeError that names the file", "[io]") {
  Folder folder;
  CHECK(error_of<RuntimeError>([&] { load_npy(folder / "none.npy"); }) ==
        "load_npy: " + folder / "none.npy" + ": No such file or directory");
  CHECK(error_of<RuntimeError>([&] { load_npy(folder / ""); }) == "load_npy: " + folder / "" + ": is a directory");
  CHECK(error_of<RuntimeError>([&] { save_npy(folder / "a/b.npy", array(int8, {5})); }) ==
        "save_npy: " + folder / "a/b.npy" + ": cannot be written: No such file or directory");
  CHECK(error_of<RuntimeError>([&] { save_npy("/dev/full", array(int8, {5})); }) ==
        "save_npy: /dev/full: cannot be written: No space left on device");
  CHECK(error_of<ValueError>([&] { save_npy(folder / "x.npy", Tensor()); }) ==
        "save_npy: x is an empty Tensor (a gradient that is None, or an uninitialised variable?)");
  CHECK_THAT(error_of<ValueError>([&] {
               save_npy(folder / "x.npy", K::placeholder({K::None, 2}));
             }),
             Catch::Contains("save_npy: the tensor (None, 2) is symbolic"));
  CHECK(folder.files() == 0);
}

TEST_CASE("a file that cannot be finished leaves the old one and nothing beside it", "[io]") {
  Folder folder;
  save_npz(folder / "x.npz", {{"w", array(float32, {2, 3})}});
  NamedTensors bad{{"w", array(float32, {5})}};
  bad.set("p", K::placeholder({2}));
  CHECK_THROWS_AS(save_npz(folder / "x.npz", bad), ValueError);
  CHECK(folder.files() == 1);
  check_array(load_npz(folder / "x.npz")["w"], float32, {2, 3});
}

TEST_CASE("a save that is killed leaves the old file and nothing beside it", "[io]") {
  Folder folder;
  for (bool there : {false, true}) {
    if (there) save_npy(folder / "x.npy", array(float32, {2, 3}));
    pid_t child = ::fork();
    if (child == 0) {
      io::OutputFile file("save_npy", folder / "x.npy");
      file.write(std::string(1 << 20, 'x'));
      ::raise(SIGKILL);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    CHECK(WIFSIGNALED(status));
    // Where the file system has no files without names, the next save of the same file removes what is left.
    if (folder.files() != (there ? 1 : 0)) save_npy(folder / "x.npy", array(float32, {2, 3}));
    CHECK(folder.files() <= 1);
  }
  check_array(load_npy(folder / "x.npy"), float32, {2, 3});
}

TEST_CASE("what a killed save left is removed by the next, and what a living one writes is not", "[io]") {
  Folder folder;
  const std::string left = folder / "x.npy.kassette-0.tmp";
  save_npy(folder / "x.npy", array(int8, {5}));
  write_file(left, "half a fi");
  save_npy(folder / "x.npy", array(float32, {2, 3}));
  CHECK(folder.files() == 1);
  write_file(left, "of another process");
  int held = ::open(left.c_str(), O_RDONLY);
  REQUIRE(::flock(held, LOCK_EX) == 0);
  save_npy(folder / "x.npy", array(float64, {5}));
  CHECK(read_file(left) == "of another process");
  CHECK(folder.files() == 2);
  ::close(held);
  save_npy(folder / "x.npy", array(float32, {2, 3}));
  CHECK(folder.files() == 1);
  check_array(load_npy(folder / "x.npy"), float32, {2, 3});
}

TEST_CASE("threads that save one file at once leave one of theirs, whole", "[io]") {
  Folder folder;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 25; ++i) save_npy(folder / "x.npy", array(float32, {t + 1, 100}));
    });
  for (std::thread& t : threads) t.join();
  CHECK(folder.files() == 1);
  const Tensor x = load_npy(folder / "x.npy");
  check_array(x, float32, {static_cast<int>(x.shape()[0]), 100});
}

TEST_CASE("a file that is there by now stays where that is asked for", "[io]") {
  Folder folder;
  for (const char* expected : {"first", "first"}) {
    io::OutputFile file("test", folder / "x", 0640);
    file.write(std::string(folder.files() ? "second" : "first"));
    file.commit(io::OutputFile::IfExists::keep);
    CHECK(read_file(folder / "x") == expected);
  }
  CHECK(folder.files() == 1);
}

TEST_CASE("a link stays a link, and a file keeps its permissions", "[io]") {
  Folder folder;
  save_npy(folder / "real.npy", array(int8, {5}));
  std::filesystem::permissions(folder / "real.npy", std::filesystem::perms(0640));
  std::filesystem::create_symlink("real.npy", folder / "link.npy");
  save_npy(folder / "link.npy", array(float32, {2, 3}));
  CHECK(std::filesystem::is_symlink(folder / "link.npy"));
  check_array(load_npy(folder / "real.npy"), float32, {2, 3});
  CHECK(std::filesystem::status(folder / "real.npy").permissions() == std::filesystem::perms(0640));
}

TEST_CASE("a link to what is not there yet is kept, and its target made", "[io]") {
  Folder folder;
  std::filesystem::create_directory(folder / "sub");
  std::filesystem::create_symlink("sub/second.npy", folder / "first.npy");
  std::filesystem::create_symlink("real.npy", folder / "sub/second.npy");
  save_npy(folder / "first.npy", array(float32, {2, 3}));
  CHECK(std::filesystem::is_symlink(folder / "first.npy"));
  CHECK(std::filesystem::is_symlink(folder / "sub/second.npy"));
  check_array(load_npy(folder / "sub/real.npy"), float32, {2, 3});
  std::filesystem::create_symlink("loop.npy", folder / "loop.npy");
  CHECK_THROWS_AS(save_npy(folder / "loop.npy", array(int8, {5})), RuntimeError);
  CHECK(std::filesystem::is_symlink(folder / "loop.npy"));
  std::filesystem::create_symlink("none/x.npy", folder / "lost.npy");
  CHECK(error_of<RuntimeError>([&] { save_npy(folder / "lost.npy", array(int8, {5})); }) ==
        "save_npy: " + folder / "none/x.npy" + ": cannot be written: No such file or directory");
}

TEST_CASE("a file may have the longest name that there is", "[io]") {
  Folder folder;
  for (std::string name : {std::string(244, 'x'), std::string(255, 'y'), "xx" + std::string(253 / 2, '\xc3')}) {
    for (std::size_t i = 3; i < name.size(); i += 2)
      if (name[2] == '\xc3') name[i] = '\xa9';  // accented letters, two bytes each
    const std::string path = folder / name;
    for (int i = 0; i < 3; ++i) {
      save_npy(path, array(float32, {i, 3}));
      CHECK(load_npy(path).shape() == Shape{i, 3});
    }
  }
  CHECK(folder.files() == 3);
  CHECK_THROWS_AS(save_npy(folder / std::string(256, 'z'), array(int8, {5})), RuntimeError);
}

TEST_CASE("a list of named tensors prints, is copied whole and names what it has", "[io]") {
  NamedTensors a{{"w", array(float32, {2, 3})}, {"b", array(float64, {5})}};
  NamedTensors b = a;
  b.set("w", array(int8, {5}));
  CHECK(printed(a) == "{w: (2, 3) float32, b: (5,) float64}");
  CHECK(printed(b) == "{w: (5,) int8, b: (5,) float64}");
  CHECK(printed(NamedTensors()) == "{}");
  CHECK(a.tensors().size() == 2);
  CHECK(error_of<ValueError>([&] { a["v"]; }) == "NamedTensors: no tensor is called 'v'; there are 'w', 'b'");
  CHECK(error_of<ValueError>([&] { NamedTensors()["v"]; }) == "NamedTensors: no tensor is called 'v'; there are none");
  std::string names;
  for (const auto& [name, x] : a) names += name;
  CHECK(names == "wb");
}
