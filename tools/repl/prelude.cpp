// tools/repl/prelude.cpp - the headers that every session begins with, compiled once and kept.
#include "tools/repl/prelude.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "clang/AST/ASTConsumer.h"
#include "clang/AST/ASTContext.h"
#include "clang/AST/ExternalASTSource.h"
#include "clang/Basic/FileManager.h"
#include "clang/Basic/SourceManager.h"
#include "clang/Basic/Version.h"
#include "clang/Frontend/CompilerInstance.h"
#include "clang/Frontend/FrontendActions.h"
#include "clang/Interpreter/Interpreter.h"

#include <kassette/version.h>

namespace repl {

const char* const kHeaders = R"(
#include <algorithm>
#include <array>
#include <atomic>
#include <bitset>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iomanip>
#include <iostream>
#include <limits>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <queue>
#include <random>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>
#include <kassette/io.h>
#include <kassette/prompt.h>
)";

std::vector<std::string> compiler_options(const std::string& include_dir, const std::string& precompiled) {
  // For Note [Source lines]: line tables. Without the last, a template parameter of a template takes what it should
  // not, and xtensor is ambiguous.
  std::vector<std::string> options = {"-std=c++17",
                                      "-gline-tables-only",
                                      "-xc++",
                                      "-I" + include_dir,
                                      "-Wno-unused-value",
                                      "-Wno-dangling-else",
                                      "-Wno-c++20-extensions",
                                      "-Wno-undefined-inline",
                                      "-fno-relaxed-template-template-args"};
  if (!precompiled.empty()) options.insert(options.end(), {"-include-pch", precompiled});
  return options;
}

std::unique_ptr<clang::CompilerInstance> make_compiler(const std::vector<std::string>& options) {
  std::vector<const char*> arguments;
  for (const std::string& option : options) arguments.push_back(option.c_str());
  clang::IncrementalCompilerBuilder builder;
  builder.SetCompilerArgs(arguments);
  auto compiler = builder.CreateCpp();
  if (!compiler) throw std::runtime_error("clang does not start: " + llvm::toString(compiler.takeError()));
  return std::move(*compiler);
}

std::unique_ptr<clang::ASTConsumer> follow_precompiled(clang::CompilerInstance* compiler) {
  struct Follower : clang::ASTConsumer {
    clang::CompilerInstance* compiler;
    explicit Follower(clang::CompilerInstance* c) : compiler(c) {}
    bool HandleTopLevelDecl(clang::DeclGroupRef d) override { return compiler->getASTConsumer().HandleTopLevelDecl(d); }
  };
  auto follower = std::make_unique<Follower>(compiler);
  if (clang::ExternalASTSource* source = compiler->getASTContext().getExternalSource())
    source->StartTranslationUnit(follower.get());
  return follower;
}

void close_files(clang::CompilerInstance& compiler) {
  llvm::SmallVector<clang::OptionalFileEntryRef, 0> files;
  compiler.getFileManager().GetUniqueIDMapping(files);
  for (const clang::OptionalFileEntryRef& file : files)
    if (file) file->closeFile();
}

namespace {

/// What a header was when it was read: "size seconds.nanoseconds path"; empty where there is no such file.
std::string state_of(const std::string& path) {
  struct stat s {};
  if (stat(path.c_str(), &s) != 0) return "";
  std::ostringstream out;
  out << s.st_size << ' ' << s.st_mtim.tv_sec << '.' << s.st_mtim.tv_nsec << ' ' << path;
  return out.str();
}

/// Whether all that the list names is as it was.
bool up_to_date(const std::string& list) {
  std::ifstream in(list);
  bool any = false;
  for (std::string line; std::getline(in, line); any = true) {
    std::size_t path = line.find(' ');
    if (path != std::string::npos) path = line.find(' ', path + 1);
    if (path == std::string::npos || state_of(line.substr(path + 1)) != line) return false;
  }
  return any;
}

/// A folder of the user's own that is kept; empty if there is none.
std::string cache_folder() {
  const char *cache = std::getenv("XDG_CACHE_HOME"), *home = std::getenv("HOME");
  const std::string base = cache && *cache ? cache : home && *home ? std::string(home) + "/.cache" : "";
  if (base.empty()) return "";
  std::error_code error;
  std::filesystem::create_directories(base + "/kassette", error);
  return access((base + "/kassette").c_str(), W_OK) == 0 ? base + "/kassette" : "";
}

/// A folder for this session alone; empty if there can be none.
std::string temporary_folder() {
  std::error_code error;
  std::string path = (std::filesystem::temp_directory_path(error) / "kassette-XXXXXX").string();
  return !error && mkdtemp(path.data()) ? path : "";
}

bool add_line(const std::string& file, const std::string& line) {
  std::ofstream out(file, std::ios::app);
  out << line << '\n';
  out.close();
  return bool(out);
}

/// Writes what clang reads to `file`, and the state of what it has read to `list`.
bool write(const std::vector<std::string>& options, const std::string& file, const std::string& list) {
  auto compiler = make_compiler(options);
  auto& front = compiler->getFrontendOpts();
  const auto text = llvm::MemoryBuffer::getMemBuffer(kHeaders, "kassette");
  front.Inputs = {clang::FrontendInputFile(text->getMemBufferRef(), clang::InputKind(clang::Language::CXX))};
  front.OutputFile = file;
  clang::GeneratePCHAction action;
  if (!compiler->ExecuteAction(action)) return false;
  std::ofstream out(list);
  const auto& sources = compiler->getSourceManager();
  for (auto at = sources.fileinfo_begin(); at != sources.fileinfo_end(); ++at)
    if (const std::string state = state_of(at->first.getName().str()); !state.empty()) out << state << '\n';
  out.close();
  return bool(out);
}

/// The same in another process: the memory that it takes is given back.
bool write_apart(const std::vector<std::string>& options, const std::string& file, const std::string& list) {
  const pid_t child = fork();
  if (child == 0) {
    bool ok = false;
    try {
      ok = write(options, file, list);
    } catch (const std::exception&) {
    }
    _exit(ok ? 0 : 1);
  }
  int status = 1;
  while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return child > 0 && status == 0;
}

}  // namespace

Prelude::Prelude(const std::string& include_dir) {
  const std::vector<std::string> options = compiler_options(include_dir);
  std::string key = clang::getClangFullVersion() + kHeaders + kassette::version();
  for (const std::string& option : options) key += '\n' + option;
  std::ostringstream name;
  name << "/prelude-" << std::hex << std::hash<std::string>()(key);
  std::string folder = cache_folder();
  if (folder.empty()) folder = folder_ = temporary_folder();
  if (folder.empty()) return;
  const std::string whole = folder + name.str(), fresh = whole + '.' + std::to_string(getpid());
  if (!up_to_date(whole + ".list")) {
    // Another session may be at it too: each file is complete before it has its name, and the list is the last.
    const bool made = write_apart(options, fresh + ".pch", fresh + ".list") &&
                      rename((fresh + ".pch").c_str(), (whole + ".pch").c_str()) == 0 &&
                      add_line(fresh + ".list", state_of(whole + ".pch")) &&
                      rename((fresh + ".list").c_str(), (whole + ".list").c_str()) == 0;
    unlink((fresh + ".pch").c_str());
    unlink((fresh + ".list").c_str());
    if (!made) return;
  }
  file_ = whole + ".pch";
}

Prelude::~Prelude() {
  std::error_code error;
  if (!folder_.empty()) std::filesystem::remove_all(folder_, error);
}

void Prelude::discard() {
  unlink(file_.c_str());
  file_.clear();
}

}  // namespace repl
