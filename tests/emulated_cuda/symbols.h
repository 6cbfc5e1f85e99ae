// tests/emulated_cuda/symbols.h - what this library's own table of symbols says: where __shared__ variables lie, how kernels are called. Where
// somebody has stripped it, nothing.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

struct EmulatedSymbol {
  std::size_t place, bytes;
};
/// The variables that are static and thread_local inside functions, which are those of kernels, in the memory that the library has of a thread.
std::vector<EmulatedSymbol> emulated_shared();
/// That memory of the calling thread.
char* emulated_memory_of_thread();
/// The kernel's name as C++ writes it.
std::string emulated_name(const void* kernel);
