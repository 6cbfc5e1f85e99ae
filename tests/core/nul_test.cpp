// tests/core/nul_test.cpp - a NUL in a std::string is never where the text ends without a word.
#include <kassette/backend.h>
#include <kassette/external_backend.h>
#include <kassette/inspect.h>
#include <kassette/io.h>
#include <kassette/testing.h>

#include <filesystem>
#include <string>
#include <string_view>

#include "core/text.h"
#include "tests/io/folder.h"

namespace K = kassette::backend;
using namespace kassette;
using namespace kassette::test;

namespace {

const std::string kNul("a\0b", 3);
const std::string kSaid = "the text 'a?b' has a NUL at byte 1; names, paths and other texts have none";

}  // namespace

TEST_CASE("a NUL in a path is refused, and no file of the shorter name is made or read", "[io][nul]") {
  Folder folder;
  const std::string path = folder / std::string("x\0.npy", 6), shown = folder / "x?.npy";
  const std::size_t at = (folder / "x").size();
  auto said = [&](const char* function) { return text(function, ": path is '", shown, "', with a NUL at byte ", at); };
  Tensor x = K::ones({2, 2});
  const NamedTensors list{{"x", x}};
  CHECK(error_of<ValueError>([&] { save_npy(path, x); }) == said("save_npy"));
  CHECK(error_of<ValueError>([&] { save_npz(path, list); }) == said("save_npz"));
  CHECK(error_of<ValueError>([&] { save_safetensors(path, list); }) == said("save_safetensors"));
  CHECK(error_of<ValueError>([&] { save_csv(path, x); }) == said("save_csv"));
  CHECK(error_of<ValueError>([&] { save_idx(path, x); }) == said("save_idx"));
  CHECK(error_of<ValueError>([&] { save_png(path, x); }) == said("save_png"));
  CHECK(error_of<ValueError>([&] { save_npy(std::string_view(path), x); }) == said("save_npy"));
  CHECK(error_of<ValueError>([&] { save_npy(std::filesystem::path(path), x); }) == said("save_npy"));
  CHECK(folder.files() == 0);
  save_npy(folder / "x", x);
  CHECK(error_of<ValueError>([&] { load_npy(path); }) == said("load_npy"));
  CHECK(error_of<ValueError>([&] { load_npz(path); }) == said("load_npz"));
  CHECK(error_of<ValueError>([&] { load_safetensors(path); }) == said("load_safetensors"));
  CHECK(error_of<ValueError>([&] { load_csv(path); }) == said("load_csv"));
  CHECK(error_of<ValueError>([&] { load_idx(path); }) == said("load_idx"));
  CHECK(error_of<ValueError>([&] { load_png(path); }) == said("load_png"));
}

TEST_CASE("a NUL in a name, a key or another text is refused", "[io][nul]") {
  Folder folder;
  NamedTensors list;
  CHECK(error_of<ValueError>([&] { list.set(kNul, K::ones({1})); }) == kSaid);
  CHECK(error_of<ValueError>([&] { list.set_metadata(kNul, "v"); }) == kSaid);
  CHECK(error_of<ValueError>([&] { list.set_metadata("k", kNul); }) == kSaid);
  CHECK(error_of<ValueError>([&] { NamedTensors{{kNul, K::ones({1})}}; }) == kSaid);
  CHECK(list.empty());
  CHECK(list.metadata_size() == 0);
  list.set("a", K::ones({1}));
  CHECK(error_of<ValueError>([&] { (void)list.contains(kNul); }) == kSaid);
  save_npz(folder / "x", list);
  CHECK(error_of<ValueError>([&] { load_npz(folder / "x", {kNul}); }) == kSaid);
  CHECK(error_of<ValueError>([&] { save_csv(folder / "y", K::ones({1}), {.header = kNul}); }) == kSaid);
  CHECK(error_of<ValueError>([&] { load_csv(folder / "x", {.columns = {kNul}}); }) == kSaid);
  CHECK(error_of<ValueError>([&] { load_csv(folder / "x", {.missing = {kNul}}); }) == kSaid);
  CHECK(error_of<ValueError>([&] { K::variable(0, None, kNul); }) == kSaid);
  CHECK(error_of<ValueError>([&] { K::placeholder({2}, None, None, false, kNul); }) == kSaid);
  CHECK(error_of<ValueError>([&] { (void)K::name_scope(kNul); }) == kSaid);
  CHECK(error_of<ValueError>([&] { (void)K::get_uid(kNul); }) == kSaid);
  CHECK(error_of<ValueError>([&] { (void)external::Value(kNul); }) == kSaid);
  CHECK(error_of<ValueError>([&] { (void)plot(K::ones({3}), {.title = kNul}); }) == kSaid);
  CHECK(folder.files() == 1);
}

TEST_CASE("a NUL in a dtype, a device, an index or an option is refused", "[core][nul]") {
  CHECK(error_of<TypeError>([] { (void)K::constant(1, std::string("int32\0x", 7)); }).substr(0, 15) ==
        "dtype 'int32?x'");
  CHECK(error_of<TypeError>([] { (void)DType(std::string("int32\0", 6)); }).substr(0, 14) == "dtype 'int32?'");
  CHECK_THROWS_AS(Device(std::string("cpu\0", 4)), ValueError);
  CHECK(error_of<ValueError>([] { (void)K::eval(K::arange(3)[std::string("1\0:", 3)]); }) ==
        "the text '1?:' has a NUL at byte 1; names, paths and other texts have none");
  CHECK_THROWS_AS(K::set_image_data_format(std::string("channels_last\0", 14)), ValueError);
  CHECK_THROWS_AS(K::set_floatx(std::string("float32\0", 8)), ValueError);
}

TEST_CASE("an array and a C string end at their NUL", "[core][nul]") {
  char buffer[16] = "float64";
  CHECK(DType(buffer) == float64);
  const char array[] = "int8\0 and more";
  CHECK(DType(array) == int8);
  CHECK(DType(std::string_view("int32x", 5)) == int32);
  const char full[4] = {'b', 'o', 'o', 'l'};
  CHECK(DType(full) == bool_);
}

TEST_CASE("a message goes on after a NUL in what it quotes", "[errors][nul]") {
  CHECK(error_of([] { fail<ValueError>({"f"}, "is '", std::string("a\0b", 3), "'", kExpected, "it must be c"); }) ==
        "f: is 'a?b'; it must be c");
}
