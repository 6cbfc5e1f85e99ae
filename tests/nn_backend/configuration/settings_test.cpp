// tests/nn_backend/configuration/settings_test.cpp - keras.json: where it is, what is read, written and refused, and
// the backend that it names.
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

#include "nn_backend/configuration/settings.h"
#include "tests/catch.h"
#include "tests/environment.h"
#include "tests/settings.h"
#include "tests/sources.h"
#include "tests/stderr_of.h"

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
  Home()
      : folder(fresh_folder()), env("KERAS_HOME", (folder / "keras").c_str()), no_backend("KERAS_BACKEND", nullptr) {}
  explicit Home(const std::string& text) : Home() { write(text); }
  ~Home() {
    fs::permissions(folder, fs::perms::owner_all);
    fs::remove_all(folder);
    before.restore();
    K::reload();
  }
  void write(const std::string& text) {
    fs::create_directories(folder / "keras");
    std::ofstream(file()) << text;
  }
  fs::path file() const { return folder / "keras" / "keras.json"; }
  std::string text() const { return kassette::test::text_of(file()); }
  const kassette::test::Settings before = kassette::test::Settings::now();
  fs::path folder;
  Environment env, no_backend;
};

void check_defaults() {
  CHECK(K::floatx() == float32);
  CHECK(K::epsilon() == 1e-7);
  CHECK(K::backend() == "tensorflow");
  CHECK(K::image_data_format() == "channels_last");
}

/// The output of the Python expression `asked`, in which c is what Python's json reads from the file; "no python3" if
/// there is no Python.
std::string python(const fs::path& file, const std::string& asked) {
  std::string command =
      "python3 -c 'import json,sys; c=json.load(open(sys.argv[1])); print(" + asked + ")' '" + file.string() + "' 2>&1";
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
  CHECK(files == 1);  // no temporary is left
}

TEST_CASE("Python's json reads what we write, and would write the same", "[settings]") {
  Home home;
  K::reload();
  std::string read = python(home.file(), "list(c.items()), json.dumps(c, indent=4) == open(sys.argv[1]).read()");
  if (read != "no python3")
    CHECK(
        read ==
        "[('floatx', 'float32'), ('epsilon', 1e-07), ('backend', 'tensorflow'), ('image_data_format', 'channels_last')] True\n");
}

TEST_CASE("a directory that cannot be written is no error", "[settings]") {
  Home home;
  setenv("KERAS_HOME", "/proc/self/nowhere", 1);  // refuses root too
  K::reload();
  check_defaults();
}

TEST_CASE("the directory is KERAS_HOME, else that of the home, else one in tmp", "[settings]") {
  Environment home("HOME", "/tmp"), none("KERAS_HOME", nullptr);
  CHECK(K::detail::keras_directory() == "/tmp/.keras");
  {
    fs::path folder = fresh_folder();
    Environment own("HOME", folder.c_str());
    CHECK(K::detail::keras_directory() == folder.string() + "/.keras");
    Environment tilde("KERAS_HOME", "~/k");
    CHECK(K::detail::keras_directory() == folder.string() + "/k");
    fs::remove(folder);
  }
  Environment unwritable("HOME", "/proc/self/nowhere");
  CHECK(K::detail::keras_directory() == "/tmp/.keras");
  Environment empty("KERAS_HOME", "");
  CHECK(K::detail::keras_directory() == "");
}

TEST_CASE("malformed JSON counts as none, and stays as it is", "[settings]") {
  for (const char* text :
       {"{", "", "{'floatx': 'float64'}", "{\"floatx\": \"float64\",}", "\xff\xfe{}",
        "\xef\xbb\xbf{\"floatx\": \"float64\"}", "{\"floatx\": \"float64\", \"x\": 0123456789012345678901}"}) {
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
  Home home(
      R"({"floatx": "float64", "epsilon": 1.0, "image_data_format": "channels_first", "backend": "kassette", "x": [1]})");
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
  for (const Bad& bad :
       {Bad{R"({"floatx": "float8"})", "floatx is \"float8\"; it must be \"float16\" or \"float32\" or \"float64\""},
        Bad{R"({"floatx": null})", "floatx is null; it must be \"float16\" or \"float32\" or \"float64\""},
        Bad{R"({"epsilon": 1})", "epsilon is 1; it must be a float such as 1e-07 or 1.0"},
        Bad{R"({"epsilon": 18446744073709551616})",
            "epsilon is 18446744073709551616; it must be a float such as 1e-07 or 1.0"},
        Bad{R"({"epsilon":-123456789012345678901})",
            "epsilon is -123456789012345678901; it must be a float such as 1e-07 or 1.0"},
        Bad{R"({"epsilon": true})", "epsilon is true; it must be a float such as 1e-07 or 1.0"},
        Bad{R"({"image_data_format": "th"})",
            "image_data_format is \"th\"; it must be \"channels_last\" or \"channels_first\""}}) {
    Home home(bad.text);
    CHECK_THROWS_AS(K::reload(), kassette::AssertionError);
    CHECK_THROWS_WITH(K::floatx(), home.file().string() + ": " + bad.message);
    CHECK_THROWS_AS(K::variable(1.0), kassette::AssertionError);
    CHECK(home.text() == bad.text);
  }
}

TEST_CASE("Python's json takes the same files for malformed, and the same numbers for integers", "[settings]") {
  const std::string long_integer(400, '7');
  for (const std::string& text :
       {std::string("\xef\xbb\xbf{}"), "{\"epsilon\": " + long_integer + "}",
        std::string("{\"epsilon\": 12345678901234567890.0}"),
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
  CHECK_THROWS_WITH(K::backend(), home.file().string() + ": holds array; it must hold an object");
}

TEST_CASE("a file that cannot be read is an error of one line", "[settings]") {
  Home home;
  fs::create_directories(home.file());  // a directory: refuses root too
  CHECK_THROWS_WITH(K::reload(), "keras.json: cannot read " + home.file().string() + ": Is a directory");
}

TEST_CASE("a file without permission to read is an error of one line", "[settings]") {
  if (geteuid() == 0) return kassette::test::skip("root reads every file");
  Home locked("{}");
  fs::permissions(locked.file(), fs::perms::none);
  CHECK_THROWS_WITH(K::reload(), "keras.json: cannot read " + locked.file().string() + ": Permission denied");
}

namespace {

/// The warnings of read_settings(), and what it read.
struct Read {
  std::string said;
  K::detail::Settings settings;
};
Read read() {
  Read r;
  r.said = kassette::test::stderr_of([&] { r.settings = K::detail::read_settings(); });
  return r;
}
void check_distrusted(const fs::path& file, const std::string& why) {
  Read r = read();
  CHECK(r.said == "kassette: warning: keras.json: " + file.string() +
                      " is not read and the defaults are used, because " + why + '\n');
  CHECK(r.settings.floatx == float32);
  CHECK(r.settings.backend == "tensorflow");
}

}  // namespace

TEST_CASE("a file that others can write is not read", "[settings]") {
  Home home(R"({"floatx": "float64", "backend": "kassette"})");
  CHECK(read().said == "");
  CHECK(read().settings.floatx == float64);
  const std::string file = home.file().string(), folder = home.file().parent_path().string();
  fs::permissions(home.file(), fs::perms(0646));
  check_distrusted(home.file(), file + " can be written by everybody; chmod o-w " + file);
  fs::permissions(home.file(), fs::perms(0666));
  fs::permissions(folder, fs::perms(0757));
  check_distrusted(home.file(), "the folder " + folder + " can be written by everybody; chmod o-w " + folder);
  fs::permissions(folder, fs::perms(01777));
  fs::permissions(home.file(), fs::perms(0644));
  CHECK(read().said == "");  // as in /tmp
  fs::permissions(folder, fs::perms(0755));
  fs::permissions(home.folder, fs::perms(0707));  // above the folder
  check_distrusted(home.file(), "the folder " + home.folder.string() + " can be written by everybody; chmod o-w " +
                                    home.folder.string());
  fs::permissions(home.folder, fs::perms(0755));
  // Through a link, the folders of what it points at count too.
  fs::create_directories(home.folder / "real");
  fs::rename(home.file(), home.folder / "real" / "k.json");
  fs::create_symlink("../real/k.json", home.file());
  CHECK(read().settings.floatx == float64);
  fs::permissions(home.folder / "real", fs::perms(0777));
  check_distrusted(home.file(), "the folder " + (home.folder / "real").string() +
                                    " can be written by everybody; chmod o-w " + (home.folder / "real").string());
}

TEST_CASE("a file, folder or link of another user is not read, and nothing is written there", "[settings]") {
  if (geteuid() != 0) return kassette::test::skip("only root can give a file away");
  const uid_t other = 65534;  // nobody
  Home home(R"({"floatx": "float64"})");
  const std::string file = home.file().string(), folder = home.file().parent_path().string();
  auto belongs = [](const std::string& what) {
    return what + " belongs to nobody, not to root; use a folder of your own (KERAS_HOME, KASSETTE_BACKEND_PATH)";
  };
  REQUIRE(::chown(file.c_str(), other, other) == 0);
  check_distrusted(home.file(), belongs(file));
  REQUIRE(::chown(folder.c_str(), other, other) == 0);
  REQUIRE(::chown(file.c_str(), 0, 0) == 0);
  check_distrusted(home.file(), belongs("the folder " + folder));
  fs::remove(home.file());
  check_distrusted(home.file(), belongs("the folder " + folder));
  CHECK(!fs::exists(home.file()));
  REQUIRE(::chown(folder.c_str(), 0, 0) == 0);
  std::ofstream(home.folder / "mine.json") << "{}";
  fs::create_symlink(home.folder / "mine.json", home.file());
  REQUIRE(::lchown(file.c_str(), other, other) == 0);
  check_distrusted(home.file(), belongs("the link " + file));
  // A pipe of another's in a folder for all would hang whoever opens it.
  fs::remove(home.file());
  fs::permissions(folder, fs::perms(01777));
  REQUIRE(::mkfifo(file.c_str(), 0666) == 0);
  REQUIRE(::chown(file.c_str(), other, other) == 0);
  check_distrusted(home.file(), belongs(file));
}

TEST_CASE("a folder of a group counts as one's own where the group has nobody else", "[settings]") {
  if (geteuid() != 0) return kassette::test::skip("only root can give a file away");
  Home home(R"({"floatx": "float64"})");
  fs::permissions(home.file(), fs::perms(0664));
  CHECK(read().settings.floatx == float64);  // the group root of root
  REQUIRE(::chown(home.file().c_str(), 0, 1) == 0);
  check_distrusted(home.file(),
                   home.file().string() + " can be written by its group; chmod g-w " + home.file().string());
}

TEST_CASE("the file and the folder that are written are trusted afterwards, whatever the umask", "[settings]") {
  Home home;
  const mode_t before = ::umask(0);
  read();
  ::umask(before);
  CHECK(home.text() == kDefaults);
  CHECK(read().said == "");
  home.write(R"({"floatx": "float64"})");
  CHECK(read().settings.floatx == float64);
}

TEST_CASE("the file names a backend and no path", "[settings]") {
  for (const char* name : {"/tmp/x.so", "../x", "a/b", "x\\u0000y", "x\\ny", "\\u001b[2J"}) {
    Home home(std::string("{\"backend\": \"") + name + "\"}");
    INFO(name);
    try {
      K::reload();
      FAIL("no error");
    } catch (const kassette::ValueError& e) {
      const std::string said = e.what();
      CHECK(said.rfind("Unable to import backend : ", 0) == 0);
      CHECK(said.find(": not a name; backend in " + home.file().string() +
                      " must be a name, such as my_package.my_module; KERAS_BACKEND takes a path") != said.npos);
      CHECK(said.find_first_of("\n\x1b") == said.npos);
    }
  }
}

TEST_CASE("libraries are loaded from folders of the user alone", "[settings]") {
  Home home;
  const fs::path library = home.folder / "someones.so";
  std::ofstream(library) << "no library";
  Environment path("KASSETTE_BACKEND_PATH", home.folder.c_str());
  for (const std::string& name : {std::string("someones"), library.string()}) {
    Environment backend("KERAS_BACKEND", name.c_str());
    CHECK_THROWS_WITH(K::reload(), Catch::Contains("file too short") || Catch::Contains("invalid ELF header"));
    fs::permissions(library, fs::perms(0666));
    CHECK_THROWS_WITH(K::reload(), "Unable to import backend : " + name + ": " + library.string() +
                                       " is not loaded, because " + library.string() +
                                       " can be written by everybody; chmod o-w " + library.string());
    fs::permissions(library, fs::perms(0644));
    fs::permissions(home.folder, fs::perms(0757));
    CHECK_THROWS_WITH(K::reload(), "Unable to import backend : " + name + ": " + library.string() +
                                       " is not loaded, because the folder " + home.folder.string() +
                                       " can be written by everybody; chmod o-w " + home.folder.string());
    fs::permissions(home.folder, fs::perms(0755));
  }
}

TEST_CASE("a directory or an endless device as keras.json is an error", "[settings]") {
  Home home;
  fs::create_directories(home.file().parent_path());
  REQUIRE(::mkfifo(home.file().c_str(), 0600) == 0);
  CHECK_THROWS_WITH(K::reload(), "keras.json: cannot read " + home.file().string() + ": is not a regular file");
  fs::remove(home.file());
  fs::create_symlink("/dev/zero", home.file());
  Read zero;  // readable and writable by everybody: not even looked at
  CHECK_NOTHROW(zero = read());
  CHECK(zero.said.find("/dev/zero can be written by everybody") != std::string::npos);
  fs::remove(home.file());
  std::ofstream(home.file()) << "{}";
  fs::resize_file(home.file(), std::uintmax_t(1) << 29);  // mostly a hole
  CHECK_THROWS_WITH(K::reload(),
                    "keras.json: cannot read " + home.file().string() + ": it has more than 1048576 bytes");
  fs::resize_file(home.file(), 0);
  home.write("{\"epsilon\": " + std::string(500000, '[') + std::string(500000, ']') + "}");
  CHECK_THROWS_WITH(K::reload(),
                    home.file().string() + ": epsilon is an array; it must be a float such as 1e-07 or 1.0");
  home.write("{\"floatx\": \"" + std::string(1000, 'x') + "\"}");
  try {
    K::reload();
    FAIL("no error");
  } catch (const kassette::AssertionError& e) {
    CHECK(std::string(e.what()).size() < 500);
  }
  home.write("{}");
}

TEST_CASE("control characters in a folder's name do not break the line", "[settings]") {
  Home home;
  Environment odd("KERAS_HOME", (home.folder / "a\n\x1b[2J").c_str());
  fs::create_directories(home.folder / "a\n\x1b[2J");
  std::ofstream(home.folder / "a\n\x1b[2J" / "keras.json") << "[]";
  CHECK_THROWS_WITH(K::reload(),
                    (home.folder / "a??[2J" / "keras.json").string() + ": holds array; it must hold an object");
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
        ok = K::detail::read_settings().backend == "tensorflow";
      } catch (...) {
        ok = false;
      }
      _exit(ok ? 0 : 1);
    }
    children.push_back(child);
  }
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back([] { K::detail::read_settings(); });
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
