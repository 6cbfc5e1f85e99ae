// tests/sources.h - reading the source tree, for tests that compare one part of it with another.
#pragma once
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace kassette::test {

/// The folder that the program was built from, and the library of the emulated CUDA device (null if there is none).
/// Defined in main.cpp, the only file that depends on the location of the tree, so that a compiler cache works for
/// every clone.
const char* source_folder();
const char* emulated_cuda_library();

/// The source tree: KASSETTE_TEST_SOURCES, for tests that were copied to another machine (tests/scripts/carry.sh), else
/// source_folder().
inline const std::filesystem::path kSourceTree = [] {
  const char* elsewhere = std::getenv("KASSETTE_TEST_SOURCES");
  return elsewhere ? elsewhere : source_folder();
}();

inline std::string text_of(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

/// All files in a folder, and in those below it, whose names end in `ending`.
inline std::vector<std::filesystem::path> files_of(const char* folder, const char* ending) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(kSourceTree / folder))
    if (entry.path().extension() == ending) files.push_back(entry.path());
  return files;
}

/// The names of the functions that the headers of K export from namespace backend, or those of np and nn from `space`
/// numpy and nn.
inline std::set<std::string> declared_functions(const std::string& space = "backend") {
  std::set<std::string> names;
  const std::regex declaration(R"(\nKASSETTE_API\s+[\w:]+\s+(\w+)\()");
  for (const auto& path : files_of(("include/kassette/" + space).c_str(), ".h")) {
    const std::string text = text_of(path);
    const std::size_t from = text.find("namespace " + space + " {");
    const std::size_t to = text.find("}  // namespace " + space + "\n");
    if (from == std::string::npos || to == std::string::npos) continue;
    const auto begin = text.begin() + static_cast<std::ptrdiff_t>(from),
               stop = text.begin() + static_cast<std::ptrdiff_t>(to);
    for (std::sregex_iterator at(begin, stop, declaration), end; at != end; ++at) names.insert((*at)[1]);
  }
  return names;
}

}  // namespace kassette::test
