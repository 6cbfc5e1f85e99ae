// tests/mutation/mutant.cpp - which mutant is active, and which places were reached.
#include "tests/mutation/mutant.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>

namespace kassette::mutation {
namespace {

constexpr int kMutants = 4096;
unsigned char unshared[kMutants];

// Before the constructors of all globals, which may reach mutants.
[[gnu::constructor(101)]] void start() {
  if (const char* id = std::getenv("KASSETTE_MUTANT")) active = std::atoi(id);
  const char* path = std::getenv("KASSETTE_MUTANTS_REACHED");
  if (!path) return;
  int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0) return;
  if (ftruncate(file, kMutants) == 0) {
    void* shared = mmap(nullptr, kMutants, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (shared != MAP_FAILED) reached = static_cast<unsigned char*>(shared);
  }
  close(file);
}

}  // namespace

int active = 0;
unsigned char* reached = unshared;

}  // namespace kassette::mutation
