// tests/io/safetensors_test.cpp - safetensors: files from its own package, our own files read back, and headers with
// false contents.
#include <kassette/io.h>

#include <cstring>

#include "tests/io/folder.h"

using namespace kassette;
using namespace kassette::test;

namespace {

std::string named(DType dtype, const NamedShape& shape) { return std::string(dtype.name()) + '/' + shape.name; }

std::string file_of(const std::string& header, std::size_t n) {
  std::int64_t length = static_cast<std::int64_t>(header.size());
  return std::string(reinterpret_cast<const char*>(&length), 8) + header + std::string(n, '\0');
}
std::string refused(const std::string& bytes) {
  return refusal("load_safetensors", bytes, [](const std::string& path) { load_safetensors(path); });
}
constexpr char kText[] = "ÄÖ \"quoted\" \\ \n";

}  // namespace

TEST_CASE("safetensors of its own package come in with metadata", "[io]") {
  if (!std::filesystem::exists(foreign("model.safetensors"))) return skip("the package safetensors is not here");
  for (bool mmap : {false, true}) {
    NamedTensors model = load_safetensors(foreign("model.safetensors"), {.mmap = mmap});
    for (DType dtype : kNumpyDTypes)
      for (const NamedShape& shape : kShapes) check_array(model[named(dtype, shape)], dtype, shape.dims);
    CHECK(model.metadata("format") == std::string("np"));
    CHECK(model.metadata("title") == std::string(kText));
    CHECK(model.metadata("none") == nullptr);
    if (model.contains("bfloat16/matrix")) check_array(model["bfloat16/matrix"], bfloat16, {2, 3});
  }
}

TEST_CASE("safetensors of ours come back in the order given, each aligned for its elements", "[io]") {
  Folder folder;
  NamedTensors model;
  std::vector<DType> dtypes = kNumpyDTypes;
  dtypes.push_back(bfloat16);
  for (DType dtype : dtypes)
    for (const NamedShape& shape : kShapes) model.set(named(dtype, shape), array(dtype, shape.dims));
  model.set_metadata("title", kText);
  save_safetensors(folder / "m", model);
  for (bool mmap : {false, true}) {
    NamedTensors back = load_safetensors(folder / "m", {.mmap = mmap});
    CHECK(printed(back) == printed(model));
    CHECK(back.metadata("title") == std::string(kText));
    for (DType dtype : dtypes)
      for (const NamedShape& shape : kShapes) check_array(back[named(dtype, shape)], dtype, shape.dims);
  }
  save_safetensors(folder / "none", {});
  CHECK(load_safetensors(folder / "none").empty());
  CHECK(error_of<ValueError>([&] {
          save_safetensors(folder / "m", {{"__metadata__", array(int8, {5})}});
        }) == "save_safetensors: tensors holds '__metadata__', which names no tensor in this format");
  CHECK(error_of<ValueError>([&] {
          save_safetensors(folder / "m", {{"\xff", array(int8, {5})}});
        }) == "save_safetensors: a name or text is not UTF-8");
  CHECK(load_safetensors(folder / "m").size() == model.size());
}

TEST_CASE("safetensors that lie are refused in one line", "[io]") {
  auto one = [](const char* dtype, const char* shape, const char* offsets) {
    return std::string("{\"w\":{\"dtype\":\"") + dtype + "\",\"shape\":" + shape + ",\"data_offsets\":" + offsets +
           "}}";
  };
  CHECK(refused(file_of(one("F32", "[2,3]", "[0,24]"), 24)) == "no error");
  CHECK(refused(file_of(one("F32", "[2,3]", "[0,24]") + "   ", 24)) == "no error");
  CHECK(refused("") == "not a safetensors file: 0 bytes");
  CHECK_THAT(refused(std::string(16, '\xff')), Catch::Contains("its header claims 18446744073709551615 bytes"));
  CHECK_THAT(refused(file_of(one("F32", "[2,3]", "[0,24]"), 24).substr(0, 40)),
             Catch::Contains("one that is cut short"));
  CHECK(refused(file_of("[1]  ", 0)) == "not a safetensors file: its header does not begin with '{'");
  CHECK_THAT(refused(file_of("{\"w\":", 0)), Catch::Contains("the header is not JSON: error at byte"));
  CHECK(refused(file_of("{\"w\":1}", 0)) == "the header's entry 'w' does not describe a tensor");
  CHECK(refused(file_of("{\"w\":{\"dtype\":\"F32\"}}", 0)) == "'w' lacks dtype, shape or data_offsets");
  CHECK(refused(file_of("{\"w\":{\"shape\":[[[[[[[[1]]]]]]]]}}", 0)) ==
        "the header's entry 'w' does not describe a tensor");
  CHECK(refused(file_of(one("F8_E4M3", "[2]", "[0,2]"), 2)) ==
        "'w' has elements of dtype F8_E4M3, which tensors do not support; give the names of the arrays to load");
  CHECK(refused(file_of(one("F32", "[2,3]", "[0,20]"), 20)) == "'w' has 20 bytes, and float32 (2, 3) takes 24");
  CHECK(refused(file_of(one("F32", "[2,3]", "[0,24]"), 25)) == "1 bytes belong to no tensor");
  CHECK(refused(file_of(one("F32", "[2,3]", "[0,24]"), 23)) == "'w' lies at 0 to 24; it must lie from 0 to at most 23");
  CHECK(refused(file_of(one("F32", "[2,3]", "[4,28]"), 28)) == "'w' lies at 4 to 28; it must lie from 0 to at most 28");
  CHECK(refused(file_of(one("F32", "[2,-3]", "[0,24]"), 24)) == "the header's entry 'w' does not describe a tensor");
  CHECK(refused(file_of(one("F32", "[2,1e3]", "[0,24]"), 24)) == "the header's entry 'w' does not describe a tensor");
  CHECK(refused(file_of(one("F32", "[1,1,1,1,1,1,1,1,1]", "[0,4]"), 4)) == "'w' has more than 8 dimensions");
  CHECK_THAT(refused(file_of(one("F32", "[4294967296,4294967296,4294967296]", "[0,0]"), 0)),
             Catch::Contains("is too large to address"));
  CHECK(
      refused(file_of(
          "{\"w\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},\"w\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]}}",
          2)) == "two entries of the name 'w'");
  // Two tensors over the same bytes.
  CHECK(
      refused(file_of(
          "{\"v\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},\"w\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[1,3]}}",
          3)) == "'w' lies at 1 to 3; it must lie from 2 to at most 3");
  CHECK(refused(file_of("{\"__metadata__\":{\"a\":1}}", 0)) ==
        "the header's entry '__metadata__' does not describe a tensor");
}

TEST_CASE("safetensors of MLX, and fields that the format does not know, are read as its own reader does", "[io]") {
  // mlx.core.save_safetensors of MLX 0.32 writes null.
  const std::string w = "\"w\":{\"data_offsets\":[0,4],\"dtype\":\"F32\",\"shape\":[1]}";
  CHECK(refused(file_of("{\"__metadata__\":null," + w + "}", 4)) == "no error");
  CHECK(refused(file_of("{" + w + ",\"__metadata__\":{\"a\":\"b\"}}", 4)) == "no error");
  auto with = [&](const std::string& more) {
    return refused(file_of("{\"w\":{\"data_offsets\":[0,4]," + more + "\"dtype\":\"F32\",\"shape\":[1]}}", 4));
  };
  for (const char* more :
       {"\"a\":1,", "\"a\":-1.5e300,", "\"a\":null,", "\"a\":true,", "\"a\":\"\",", "\"a\":{},", "\"a\":[],",
        "\"a\":{\"dtype\":\"I8\",\"shape\":[2,[3]],\"b\":[{\"c\":[]},null]},\"d\":[{}],"}) {
    INFO(more);
    CHECK(with(more) == "no error");
  }
  CHECK(with("\"a\":" + std::string(1000, '[')) == "'w': fields in more than 128 brackets");
  CHECK_THAT(with("\"a\":[1,"), Catch::Contains("the header is not JSON"));
  // Not so: null elsewhere, texts that are none, a second dtype.
  CHECK(refused(file_of("{\"w\":null}", 0)) == "the header's entry 'w' does not describe a tensor");
  CHECK(with("\"dtype\":null,") == "the header's entry 'w' does not describe a tensor");
  CHECK(with("\"dtype\":\"F32\",") == "the header's entry 'w' does not describe a tensor");
  CHECK(refused(file_of("{\"__metadata__\":{\"a\":null}}", 0)) ==
        "the header's entry '__metadata__' does not describe a tensor");
  CHECK(refused(file_of("{\"__metadata__\":[]}", 0)) == "the header's entry '__metadata__' does not describe a tensor");
}

TEST_CASE("a safetensors header ends where its length says", "[io]") {
  const std::string w = "{\"w\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}";
  CHECK(refused(file_of(w + "   ", 4)) == "no error");
  CHECK(refused(file_of(w + std::string("\0hidden", 7), 4)) ==
        "the header is not JSON: a NUL at byte " + std::to_string(w.size()));
  CHECK(refused(file_of(w + std::string("\0", 1), 4)) ==
        "the header is not JSON: a NUL at byte " + std::to_string(w.size()));
  CHECK_THAT(refused(file_of(w + "hidden", 4)), Catch::Contains("the header is not JSON"));
}

TEST_CASE("a header of a million brackets takes no memory and no stack", "[io]") {
  CHECK(refused(file_of("{\"w\":" + std::string(1 << 20, '[') + "}", 0)) ==
        "the header's entry 'w' does not describe a tensor");
  CHECK(refused(file_of("{\"w\":" + std::string(1 << 20, '{') + "}", 0)) != "no error");
}

TEST_CASE("tensors of a safetensors file are read by name", "[io]") {
  Folder folder;
  write_file(
      folder / "m",
      file_of(
          "{\"f\":{\"dtype\":\"F8_E4M3\",\"shape\":[2],\"data_offsets\":[0,2]},\"u\":{\"dtype\":\"U32\",\"shape\":[2],\"data_offsets\":[2,10]},"
          "\"v\":{\"dtype\":\"U64\",\"shape\":[1],\"data_offsets\":[10,18]},\"b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[18,19]}}",
          0) +
          std::string("\7\7\1\0\0\0\xff\xff\xff\xff\2\0\0\0\0\0\0\0\5", 19));
  CHECK_THROWS_WITH(load_safetensors(folder / "m"), Catch::Contains("'f' has elements of dtype F8_E4M3"));
  for (bool mmap : {false, true}) {
    NamedTensors some = load_safetensors(folder / "m", {"u", "v", "b"}, {.mmap = mmap});
    REQUIRE(some.size() == 3);
    CHECK(some["u"].dtype() == uint32);
    CHECK(some["v"].dtype() == uint64);
    CHECK(values(some["u"]) == std::vector<double>{1, 4294967295.0});
    CHECK(values(some["v"]) == std::vector<double>{2});
    CHECK(values(some["b"]) == std::vector<double>{5});
  }
  CHECK_THROWS_WITH(load_safetensors(folder / "m", {"w"}),
                    Catch::Contains("no array is called 'w'; there are 'f', 'u', 'v', 'b'"));
  CHECK(refused(file_of("{\"v\":{\"dtype\":\"U32\",\"shape\":[1],\"data_offsets\":[0,8]}}", 8)) ==
        "'v' has 8 bytes, and uint32 (1,) takes 4");
}

TEST_CASE("many texts, and many tensors, take no more time than their number", "[io][serial]") {
  const int n = 200000;  // minutes where each is looked for among all
  std::string header = "{\"__metadata__\":{";
  for (int i = 0; i < n; ++i) header += (i ? ",\"k" : "\"k") + std::to_string(i) + "\":\"v" + std::to_string(i) + "\"";
  Folder folder;
  write_file(folder / "m", file_of(header + ",\"k7\":\"again\"}}", 0));
  NamedTensors texts = load_safetensors(folder / "m");
  CHECK(texts.metadata_size() == n);
  CHECK(texts.metadata("k199999") == std::string("v199999"));
  CHECK(texts.metadata("k7") == std::string("again"));
  NamedTensors copy = texts;
  copy.set_metadata("k7", "mine");
  CHECK(copy.metadata("k7") == std::string("mine"));
  CHECK(texts.metadata("k7") == std::string("again"));
  NamedTensors model = texts;
  for (int i = 0; i < 50000; ++i) model.set("t" + std::to_string(i), array(int8, {}));
  save_safetensors(folder / "m", model);
  NamedTensors back = load_safetensors(folder / "m");
  CHECK(back.metadata("k199999") == std::string("v199999"));
  CHECK(back.metadata_size() == n);
  CHECK(back.size() == 50000);
}

TEST_CASE("the header that is written is JSON, whatever is in names and texts", "[io]") {
  Folder folder;
  NamedTensors model{{"a\"b\\\n", array(int8, {2, 3})}, {"c", array(float32, {})}};
  save_safetensors(folder / "m", model);
  auto header = [&] {
    const std::string s = read_file(folder / "m").substr(8);
    return s.substr(0, s.find_last_of('}') + 1);
  };
  // As JSON's grammar has it (RFC 8259, 7).
  CHECK(
      header().substr(0, 130) ==
      R"({"a\"b\\\n":{"dtype":"I8","shape":[2,3],"data_offsets":[4,10]},"c":{"dtype":"F32","shape":[],"data_offsets":[0,4]}})");
  model = {};
  model.set_metadata("k\"", "v\t");
  save_safetensors(folder / "m", model);
  CHECK(header() == R"({"__metadata__":{"k\"":"v\t"}})");
  save_safetensors(folder / "m", {});
  CHECK(header() == "{}");
}
