// tests/emulated_cuda/symbols.cpp - reads this library's own symbol table from its file.
#include "symbols.h"

#include "cuda_runtime.h"

#include <cxxabi.h>
#include <elf.h>
#include <link.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

/// This library in memory.
struct Loaded {
  std::uintptr_t base;
  char* memory_of_thread;
  const char* path;
};
thread_local bool touched;  // a thread gets its memory when it first touches something in it

Loaded self() {
  touched = true;
  Loaded found = {};
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* to) {
        const auto here = reinterpret_cast<std::uintptr_t>(&self);
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const auto& part = info->dlpi_phdr[i];
          if (part.p_type != PT_LOAD || here - info->dlpi_addr - part.p_vaddr >= part.p_memsz) continue;
          *static_cast<Loaded*>(to) = {info->dlpi_addr, static_cast<char*>(info->dlpi_tls_data), info->dlpi_name};
          return 1;
        }
        return 0;
      },
      &found);
  if (!found.path) emulated_die("does not find itself in memory");
  return found;
}

/// Calls take(symbol, name) for each symbol of the file.
template <class Take>
void each_symbol(const char* path, Take take) {
  std::vector<char> file;
  std::FILE* in = std::fopen(path, "rb");
  if (!in) emulated_die("cannot read its own library");
  std::fseek(in, 0, SEEK_END);
  file.resize(static_cast<std::size_t>(std::ftell(in)));
  std::rewind(in);
  if (std::fread(file.data(), 1, file.size(), in) != file.size()) emulated_die("cannot read its own library");
  std::fclose(in);
  const auto* head = reinterpret_cast<const ElfW(Ehdr)*>(file.data());
  const auto* sections = reinterpret_cast<const ElfW(Shdr)*>(file.data() + head->e_shoff);
  for (int i = 0; i < head->e_shnum; ++i) {
    if (sections[i].sh_type != SHT_SYMTAB) continue;
    const auto* symbols = reinterpret_cast<const ElfW(Sym)*>(file.data() + sections[i].sh_offset);
    const char* names = file.data() + sections[sections[i].sh_link].sh_offset;
    for (std::size_t s = 0; s < sections[i].sh_size / sizeof *symbols; ++s)
      take(symbols[s], names + symbols[s].st_name);
  }
}

}  // namespace

std::vector<EmulatedSymbol> emulated_shared() {
  std::vector<EmulatedSymbol> found;
  each_symbol(self().path, [&](const ElfW(Sym) & s, const char* name) {
    if ((s.st_info & 15) == STT_TLS && s.st_shndx != SHN_UNDEF && !std::strncmp(name, "_ZZ", 3))
      found.push_back({s.st_value, s.st_size});
  });
  return found;
}
char* emulated_memory_of_thread() { return self().memory_of_thread; }

std::string emulated_name(const void* kernel) {
  const Loaded library = self();
  std::string found = "a kernel";
  each_symbol(library.path, [&](const ElfW(Sym) & s, const char* name) {
    if ((s.st_info & 15) != STT_FUNC || library.base + s.st_value != reinterpret_cast<std::uintptr_t>(kernel)) return;
    char* plain = abi::__cxa_demangle(name, nullptr, nullptr, nullptr);
    found = plain ? plain : name;
    std::free(plain);
  });
  return found;
}
