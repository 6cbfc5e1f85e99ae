// tests/nn_backend/settings_test.cpp - keras.json: specification 0.1 to 0.7, its twelve situations and more.
#include <kassette/backend.h>

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "nn_backend/settings.h"
#include "tests/catch.h"
#include "tests/environment.h"
#include "tests/sources.h"

namespace K = kassette::backend;
namespace fs = std::filesystem;
using kassette::float32;
using kassette::float64;
using kassette::test::Environment;

namespace {

constexpr const char* kDefaults =
    "{\n    \"floatx\": \"float32\",\n    \"epsilon\": 1e-07,\n    \"backend\": \"tensorflow\",\n"
    "    \"image_data_format\": \"channels_last\"\n}";

fs::path fresh_folder() {
  std::string name = (fs::temp_directory_path() / "kassette_settings_XXXXXX").string();
  REQUIRE(mkdtemp(name.data()));
  return name;
}

/// A Keras directory of its own, and the configuration that was before when it ends.
struct Home {
  Home() : folder(fresh_folder()), env("KERAS_HOME", (folder / "keras").c_str()), no_backend("KERAS_BACKEND", nullptr) {}
  explicit Home(const std::string& text) : Home() { write(text); }
  ~Home() {
    fs::permissions(folder, fs::perms::owner_all);
    fs::remove_all(folder);
    setenv("KERAS_HOME", outer.c_str(), 1);
    unsetenv("KERAS_BACKEND");
    K::reload();
  }
  void write(const std::string& text) {
    fs::create_directories(folder / "keras");
    std::ofstream(file()) << text;
  }
  fs::path file() const { return folder / "keras" / "keras.json"; }
  std::string text() const { return kassette::test::text_of(file()); }
  std::string outer = std::getenv("KERAS_HOME");
  fs::path folder;
  Environment env, no_backend;
};

void check_defaults() {
  CHECK(K::floatx() == float32);
  CHECK(K::epsilon() == 1e-7);
  CHECK(K::backend() == "tensorflow");
  CHECK(K::image_data_format() == "channels_last");
}

/// What Python's json makes of a file, `asked` of it as c, or "no python3".
std::string python(const fs::path& file, const std::string& asked) {
  std::string command = "python3 -c 'import json,sys; c=json.load(open(sys.argv[1])); print(" + asked + ")' '" + file.string() + "' 2>&1";
  FILE* pipe = popen(command.c_str(), "r");
  std::string out;
  char part[256];
  while (std::fgets(part, sizeof part, pipe)) out += part;
  int status = pclose(pipe);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 127) return "no python3";
  return status == 0 ? out : "failed: " + out;
}

}  // namespace

TEST_CASE("without a directory, directory and file are made with the defaults", "[settings]") {
  Home home;
  K::reload();
  check_defaults();
  CHECK(home.text() == kDefaults);
  int files = 0;
  for (const auto& entry : fs::directory_iterator(home.folder / "keras")) files += entry.exists();
  CHECK(files == 1);   // no temporary is left
}

TEST_CASE("Python's json reads what we write, and would write the same", "[settings]") {
  Home home;
  K::reload();
  std::string read = python(home.file(), "list(c.items()), json.dumps(c, indent=4) == open(sys.argv[1]).read()");
  if (read != "no python3")
    CHECK(read == "[('floatx', 'float32'), ('epsilon', 1e-07), ('backend', 'tensorflow'), ('image_data_format', 'channels_last')] True\n");
}

TEST_CASE("a directory that cannot be written is no error", "[settings]") {
  Home home;
  setenv("KERAS_HOME", "/proc/self/nowhere", 1);   // refuses root too
  K::reload();
  check_defaults();
}

TEST_CASE("the directory is KERAS_HOME, else that of the home, else one in tmp", "[settings]") {
  Environment home("HOME", "/tmp"), none("KERAS_HOME", nullptr);
  CHECK(K::keras_directory() == "/tmp/.keras");
  {
    fs::path folder = fresh_folder();
    Environment own("HOME", folder.c_str());
    CHECK(K::keras_directory() == folder.string() + "/.keras");
    Environment tilde("KERAS_HOME", "~/k");
    CHECK(K::keras_directory() == folder.string() + "/k");
    fs::remove(folder);
  }
  Environment unwritable("HOME", "/proc/self/nowhere");
  CHECK(K::keras_directory() == "/tmp/.keras");
  Environment empty("KERAS_HOME", "");
  CHECK(K::keras_directory() == "");
}

TEST_CASE("malformed JSON counts as none, and stays as it is", "[settings]") {
  for (const char* text : {"{", "", "{'floatx': 'float64'}", "{\"floatx\": \"float64\",}", "\xff\xfe{}", "\xef\xbb\xbf{\"floatx\": \"float64\"}",
                           "{\"floatx\": \"float64\", \"x\": 0123456789012345678901}"}) {
    Home home(text);
    K::reload();
    check_defaults();
    CHECK(home.text() == text);
  }
}

TEST_CASE("missing fields have their defaults and are not filled in", "[settings]") {
  Home home("{}");
  K::reload();
  check_defaults();
  CHECK(home.text() == "{}");
}

TEST_CASE("the fields of the file hold, unknown ones are passed over", "[settings]") {
  Home home(R"({"floatx": "float64", "epsilon": 1.0, "image_data_format": "channels_first", "backend": "kassette", "x": [1]})");
  K::reload();
  CHECK(K::floatx() == float64);
  CHECK(K::variable({1, 2}).dtype() == float64);
  CHECK(K::epsilon() == 1.0);
  CHECK(K::image_data_format() == "channels_first");
  CHECK(K::normalize_data_format() == "channels_first");
  CHECK(K::backend() == "kassette");
}

TEST_CASE("bad values are an AssertionError, at every use", "[settings]") {
  struct Bad {
    const char *text, *message;
  };
  for (const Bad& bad : {Bad{R"({"floatx": "float8"})", "floatx is \"float8\"; it takes \"float16\" or \"float32\" or \"float64\""},
                         Bad{R"({"floatx": null})", "floatx is null; it takes \"float16\" or \"float32\" or \"float64\""},
                         Bad{R"({"epsilon": 1})", "epsilon is 1; it takes a float such as 1e-07 or 1.0"},
                         Bad{R"({"epsilon": 18446744073709551616})", "epsilon is 18446744073709551616; it takes a float such as 1e-07 or 1.0"},
                         Bad{R"({"epsilon":-123456789012345678901})", "epsilon is -123456789012345678901; it takes a float such as 1e-07 or 1.0"},
                         Bad{R"({"epsilon": true})", "epsilon is true; it takes a float such as 1e-07 or 1.0"},
                         Bad{R"({"image_data_format": "th"})", "image_data_format is \"th\"; it takes \"channels_last\" or \"channels_first\""}}) {
    Home home(bad.text);
    CHECK_THROWS_AS(K::reload(), kassette::AssertionError);
    CHECK_THROWS_WITH(K::floatx(), home.file().string() + ": " + bad.message);
    CHECK_THROWS_AS(K::variable(1.0), kassette::AssertionError);
    CHECK(home.text() == bad.text);
  }
}

TEST_CASE("Python's json takes the same files for malformed, and the same numbers for integers", "[settings]") {
  const std::string long_integer(400, '7');
  for (const std::string& text : {std::string("\xef\xbb\xbf{}"), "{\"epsilon\": " + long_integer + "}", std::string("{\"epsilon\": 12345678901234567890.0}"),
                                  std::string("{\"a\\\"0\": 100000000000000000000, \"b\": \"1000000000000000000000\", \"epsilon\": 1e-20}")}) {
    Home home(text);
    const std::string said = python(home.file(), "type(c.get(\"epsilon\")).__name__");
    INFO(text << '\n' << said);
    if (said == "no python3") return;
    const std::string got = [] {
      try {
        K::reload();
        return K::epsilon() == 1e-7 ? "failed" : "float\n";
      } catch (const kassette::AssertionError&) {
        return "int\n";
      }
    }();
    CHECK(said.compare(0, got.size(), got) == 0);
  }
}

TEST_CASE("a file that holds no object is an error", "[settings]") {
  Home home("[1, 2]");
  CHECK_THROWS_AS(K::reload(), kassette::TypeError);
  CHECK_THROWS_WITH(K::backend(), home.file().string() + ": holds array where an object is expected");
}

TEST_CASE("a file that cannot be read is an error of one line", "[settings]") {
  Home home;
  fs::create_directories(home.file());   // a directory: refuses root too
  CHECK_THROWS_WITH(K::reload(), "keras.json: cannot read " + home.file().string() + ": Is a directory");
}

TEST_CASE("a file without permission to read is an error of one line", "[settings]") {
  if (geteuid() == 0) return kassette::test::skip("root reads every file");
  Home locked("{}");
  fs::permissions(locked.file(), fs::perms::none);
  CHECK_THROWS_WITH(K::reload(), "keras.json: cannot read " + locked.file().string() + ": Permission denied");
}

TEST_CASE("KERAS_BACKEND goes before the file, unless it is empty", "[settings]") {
  Home home(R"({"backend": "theano"})");
  {
    Environment name("KERAS_BACKEND", "tensorflow");
    K::reload();
    CHECK(K::backend() == "tensorflow");
  }
  Environment empty("KERAS_BACKEND", "");
  K::reload();
  CHECK(K::backend() == "theano");
  CHECK(K::relu({-1.0, 1.0}).to_vector<float>()[1] == 1);
}

TEST_CASE("KERAS_BACKEND is not written into the file", "[settings]") {
  Home home;
  Environment name("KERAS_BACKEND", "kassette");
  K::reload();
  CHECK(K::backend() == "kassette");
  CHECK(home.text() == kDefaults);
}

TEST_CASE("a backend that is nowhere is a ValueError", "[settings]") {
  Home home(R"({"backend": "no.such.module"})");
  CHECK_THROWS_AS(K::reload(), kassette::ValueError);
  try {
    K::zeros({2});
    FAIL("no error");
  } catch (const kassette::ValueError& e) {
    std::string message = e.what();
    CHECK(message.rfind("Unable to import backend : no.such.module: no no/such/module.so in ", 0) == 0);
    CHECK(message.find(home.file().string()) != std::string::npos);
    CHECK(message.find('\n') == std::string::npos);
  }
}

TEST_CASE("processes and threads that begin at once leave one whole file", "[settings]") {
  Home home;
  std::vector<pid_t> children;
  for (int i = 0; i < 8; ++i) {
    pid_t child = fork();
    if (child == 0) {
      bool ok = true;
      try {
        ok = K::read_settings().backend == "tensorflow";
      } catch (...) {
        ok = false;
      }
      _exit(ok ? 0 : 1);
    }
    children.push_back(child);
  }
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back([] { K::read_settings(); });
  for (std::thread& t : threads) t.join();
  for (pid_t child : children) {
    int status = 1;
    waitpid(child, &status, 0);
    CHECK(status == 0);
  }
  CHECK(home.text() == kDefaults);
  int files = 0;
  for (const auto& entry : fs::directory_iterator(home.folder / "keras")) files += entry.exists();
  CHECK(files == 1);
}
