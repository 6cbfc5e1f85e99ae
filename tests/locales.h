// tests/locales.h - locales that write numbers in another way, for tests that nothing depends on them.
#pragma once
#include <unistd.h>

#include <clocale>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <locale>
#include <string>
#include <vector>

namespace kassette::test {

/// How German or English numbers look to a C++ stream: 1.234,5 and wahr, or 1,234.5 and true.
class GroupedNumbers : public std::numpunct<char> {
 public:
  GroupedNumbers(char point, char separator) : point_(point), separator_(separator) {}

 protected:
  char do_decimal_point() const override { return point_; }
  char do_thousands_sep() const override { return separator_; }
  std::string do_grouping() const override { return "\3"; }
  std::string do_truename() const override { return "wahr"; }
  std::string do_falsename() const override { return "falsch"; }

 private:
  char point_, separator_;
};

/// A locale for C and one for C++.
struct LocalePair {
  std::string name;  // of C's, "" for none
  std::locale streams;
};

/// Sets both for a scope; the flags of std::cout as well, which a program may leave in any state.
class InLocale {
 public:
  explicit InLocale(const LocalePair& pair) : c_(std::setlocale(LC_ALL, nullptr)), flags_(nullptr) {
    flags_.copyfmt(std::cout);
    streams_ = std::locale::global(pair.streams);  // sets C's too where it has a name
    if (!pair.name.empty()) std::setlocale(LC_ALL, pair.name.c_str());
    std::cout.imbue(pair.streams);
    std::cout << std::hex << std::showpos << std::scientific << std::boolalpha;
  }
  ~InLocale() {
    std::locale::global(streams_);
    std::setlocale(LC_ALL, c_.c_str());
    std::cout.copyfmt(flags_);
  }
  InLocale(const InLocale&) = delete;
  InLocale& operator=(const InLocale&) = delete;

 private:
  std::string c_;
  std::ios flags_;
  std::locale streams_;
};

/// German and English numbers, as facets of our own and, where localedef is installed, as the system's locales de_DE
/// and en_US, which are compiled into a folder that LOCPATH names meanwhile.
class Locales {
 public:
  Locales() {
    const char* before = std::getenv("LOCPATH");
    had_path_ = before != nullptr;
    if (before) path_ = before;
    folder_ = (std::filesystem::temp_directory_path() / "kassette-locales-XXXXXX").string();
    if (!mkdtemp(folder_.data())) folder_.clear();
    ::setenv("LOCPATH", folder_.c_str(), 1);
    for (const char* name : {"de_DE", "en_US"}) {
      const bool german = name[0] == 'd';
      const std::locale streams(std::locale::classic(),
                                german ? new GroupedNumbers(',', '.') : new GroupedNumbers('.', ','));
      all.push_back({"", streams});
      const std::string full = std::string(name) + ".UTF-8", target = folder_ + '/' + full;
      [[maybe_unused]] int status = std::system(
          ("localedef --no-archive -i " + std::string(name) + " -f UTF-8 '" + target + "' >/dev/null 2>&1").c_str());
      const std::string was = std::setlocale(LC_ALL, nullptr);
      if (!std::setlocale(LC_ALL, full.c_str())) continue;
      std::setlocale(LC_ALL, was.c_str());
      ++of_the_system;
      all.push_back({full, streams});
      all.push_back({full, std::locale(full.c_str())});
    }
  }
  ~Locales() {
    std::error_code ignored;
    if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
    if (had_path_) ::setenv("LOCPATH", path_.c_str(), 1);
    else ::unsetenv("LOCPATH");
  }
  Locales(const Locales&) = delete;
  Locales& operator=(const Locales&) = delete;

  std::vector<LocalePair> all;
  int of_the_system = 0;

 private:
  std::string folder_, path_;
  bool had_path_ = false;
};

}  // namespace kassette::test
