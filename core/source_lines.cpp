// core/source_lines.cpp - return addresses, and the lines of source behind them.
#include "core/source_lines.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <unwind.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <map>

#include "core/text.h"

extern char** environ;

namespace kassette {
namespace {

// ---- the address ----------------------------------------------------------------------------------------------------

/// Where code is in memory: from `begin` to before `end`.
struct CodeRange {
  std::uintptr_t begin = 0, end = 0;
};

/// Where that of this library is.

CodeRange find_own_code() {
  CodeRange own;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* data) {
        const auto here = reinterpret_cast<std::uintptr_t>(&find_own_code);
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const auto& part = info->dlpi_phdr[i];
          const std::uintptr_t begin = info->dlpi_addr + part.p_vaddr;
          if (part.p_type != PT_LOAD || !(part.p_flags & PF_X) || here < begin || here >= begin + part.p_memsz)
            continue;
          *static_cast<CodeRange*>(data) = {begin, begin + part.p_memsz};
          return 1;
        }
        return 0;
      },
      &own);
  return own;
}

/// A walk up the stack, to the first frame whose code is not this library's.
struct Walk {
  CodeRange own;
  std::uintptr_t found = 0;  // the address in that frame
  int frames = 0;
};

_Unwind_Reason_Code look_at_frame(_Unwind_Context* frame, void* data) {
  constexpr int kMostFrames = 200;  // a backward pass through nested functions is some dozens deep
  auto& walk = *static_cast<Walk*>(data);
  const std::uintptr_t at = _Unwind_GetIP(frame);
  if (at < walk.own.begin || at >= walk.own.end) {
    walk.found = at;
    return _URC_END_OF_STACK;
  }
  return ++walk.frames < kMostFrames ? _URC_NO_REASON : _URC_END_OF_STACK;
}

// ---- its line -------------------------------------------------------------------------------------------------------

constinit std::atomic<FindLine> find_line{nullptr};
constinit std::atomic<FindCaller> find_caller{nullptr};

/// A program or library that was loaded, and where it begins in memory.
struct Place {
  std::string file;
  std::uintptr_t base = 0;
};

Place place_of(const void* address) {
  Dl_info info;
  link_map* map = nullptr;
  if (!dladdr1(address, &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) || !map) return {};
  return {map->l_name && *map->l_name ? map->l_name : "/proc/self/exe", map->l_addr};
}

/// What the program printed; nothing if it cannot be run. posix_spawn, not fork, which would run the handlers that
/// libraries register for it.
std::string output_of(std::vector<std::string> words) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return {};
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  const bool started = posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ) == 0;
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  std::string said;
  char piece[4096];
  for (ssize_t got; started && (got = read(ends[0], piece, sizeof piece)) > 0;) said.append(piece, got);
  close(ends[0]);
  if (started) waitpid(child, nullptr, 0);
  return said;
}

/// True for a library of the system. Though it may have debug information, none of its lines is the user's.
bool is_of_system(const std::string& file) { return file.starts_with("/lib") || file.starts_with("/usr/lib"); }

std::string demangled(const std::string& name) {
  int status = 0;
  char* plain = abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status);
  std::string found = plain ? plain : name;
  std::free(plain);
  return found;
}

/// Fills in the lines of the addresses in one file: `which` are their indices.
void look_up(const Place& place, const std::vector<const void*>& addresses, const std::vector<std::size_t>& which,
             std::vector<std::string>& lines) {
  std::string file = place.file;
  // The child's own /proc/self/exe would be addr2line.
  char program[4096];
  if (const ssize_t n = readlink("/proc/self/exe", program, sizeof program); file == "/proc/self/exe" && n > 0)
    file.assign(program, n);
  std::vector<std::string> words = {"addr2line", "-a", "-i", "-f", "-e", file};
  for (std::size_t i : which) {
    PlainStream at;  // a return address is behind the call, which may be in another line
    at << "0x" << std::hex << reinterpret_cast<std::uintptr_t>(addresses[i]) - place.base - 1;
    words.push_back(at.str());
  }
  char folder[4096];
  const std::string here = getcwd(folder, sizeof folder) ? folder : "";
  // For each address: itself, then for each function that is inlined there its name and its line, the innermost first.
  const std::string said = output_of(std::move(words));
  std::size_t next = 0;
  std::string function;
  for (std::size_t begin = 0, end; begin < said.size(); begin = end + 1) {
    end = std::min(said.find('\n', begin), said.size());
    const std::string line = said.substr(begin, end - begin);
    if (line.starts_with("0x")) {
      ++next;
      function.clear();
      continue;
    }
    if (next == 0 || next > which.size()) continue;
    std::string& found = lines[which[next - 1]];
    if (function.empty()) {
      function = line;
      continue;
    }
    if (found.empty() || found.find(':') == std::string::npos) {
      if (const std::string_view own = own_line(line, here); !own.empty()) found = own;
      else if (found.empty() && line.find("/include/") == std::string::npos && function != "??")
        found = demangled(function);
    }
    function.clear();
  }
}

}  // namespace

__attribute__((noinline)) const void* caller_address() noexcept {
  if (const FindCaller of_language = find_caller.load(std::memory_order_acquire))
    if (const void* line = of_language()) return line;
  static const CodeRange own = find_own_code();
  Walk walk{own};
  _Unwind_Backtrace(look_at_frame, &walk);
  return reinterpret_cast<const void*>(walk.found);
}

void set_find_line(FindLine find, FindCaller caller) {
  find_line.store(find, std::memory_order_release);
  find_caller.store(caller, std::memory_order_release);
}

std::vector<std::string> source_lines(const std::vector<const void*>& addresses) {
  std::vector<std::string> lines(addresses.size());
  std::map<std::string, std::pair<Place, std::vector<std::size_t>>> files;
  const FindLine of_prompt = find_line.load(std::memory_order_acquire);
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    if (!addresses[i]) continue;
    if (of_prompt) lines[i] = of_prompt(addresses[i]);
    if (!lines[i].empty()) continue;
    if (Place place = place_of(addresses[i]); !place.file.empty() && !is_of_system(place.file)) {
      auto& [kept, which] = files[place.file];
      kept = std::move(place);
      which.push_back(i);
    }
  }
  constexpr std::size_t kAtOnce = 4096;  // addresses in one command line
  for (const auto& [file, of] : files)
    for (std::size_t k = 0; k < of.second.size(); k += kAtOnce) {
      const auto begin = of.second.begin() + static_cast<std::ptrdiff_t>(k);
      const auto n = static_cast<std::ptrdiff_t>(std::min(kAtOnce, of.second.size() - k));
      look_up(of.first, addresses, std::vector<std::size_t>(begin, begin + n), lines);
    }
  return lines;
}

}  // namespace kassette
