// tests/devices/plugin_file_test.cpp - loading libraries: what is not a library is refused at once.
#include <sys/stat.h>

#include <dlfcn.h>

#include <string>

#include "devices/plugin_file.h"
#include "tests/io/folder.h"

using namespace kassette::devices;
using namespace kassette::test;

TEST_CASE("a pipe or a folder in place of a library is refused, and does not wait", "[devices]") {
  Folder folder;
  const std::string pipe = folder / "pipe.so", text_file = folder / "text.so", missing = folder / "none.so";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  write_file(text_file, "no library");
  auto refusal_of = [](const std::string& file) {
    std::string why;
    CHECK(open_library(file, RTLD_NOW, &why) == nullptr);
    return why;
  };
  CHECK(refusal_of(pipe) == pipe + " is not a regular file");
  CHECK(refusal_of(folder / "") == folder / "" + " is not a regular file");
  CHECK_THAT(refusal_of(text_file), Catch::Contains("text.so: file too short"));
  CHECK_THAT(refusal_of(missing), Catch::Contains("No such file or directory"));
}
