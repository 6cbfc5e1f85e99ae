// tests/emulated_cuda/symbols.h - reads this library's own symbol table: the __shared__ variables, and the names of
// kernels. In a stripped library it finds nothing.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

struct EmulatedSymbol {
  std::size_t place, bytes;
};
/// The __shared__ variables: static thread_local variables inside functions, with their places in the library's
/// thread-local memory.
std::vector<EmulatedSymbol> emulated_shared();
/// The library's thread-local memory of the calling thread.
char* emulated_memory_of_thread();
/// The demangled name of a kernel.
std::string emulated_name(const void* kernel);
