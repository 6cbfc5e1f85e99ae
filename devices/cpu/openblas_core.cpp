// devices/cpu/openblas_core.cpp - has OpenBLAS run kernels that this CPU is made for.
#include "devices/cpu/openblas_core.h"

#include <cstdlib>

#include <cblas.h>

// With these OpenBLAS itself picks its kernels, while it is loaded, and forgets them. They are exported where it is
// built for several CPUs.
extern "C" {
[[gnu::weak]] void gotoblas_dynamic_init();
[[gnu::weak]] void gotoblas_dynamic_quit();
}

namespace kassette::devices {
namespace {

constexpr const char* kVariable = "OPENBLAS_CORETYPE";

// Note [OpenBLAS' core]
// OpenBLAS knows CPUs by their model. On one that is newer than itself it may run kernels of 2004,
// which take four times as long with AVX-512. So where it has picked kernels of a lower level than the CPU's, it is
// made to pick again, with the name of a core of that level in the environment. This happens while the library is
// loaded, before anything of it can multiply. A core that the user has named stays.
[[gnu::constructor]] void choose_core() {
  const Level level = best_cpu_level();
  const char* core = level == Level::avx512 ? "SkylakeX" : level == Level::avx2 ? "Haswell" : nullptr;
  if (!core || !gotoblas_dynamic_init || !gotoblas_dynamic_quit || std::getenv(kVariable)) return;
  if (level_of_core(openblas_core()) >= level || setenv(kVariable, core, 0) != 0) return;
  gotoblas_dynamic_quit();
  gotoblas_dynamic_init();
  unsetenv(kVariable);
}

}  // namespace

std::string openblas_core() { return openblas_get_corename(); }

Level level_of_core(const std::string& core) {
  for (const char* half : {"Haswell", "Zen", "Excavator"})
    if (core == half) return Level::avx2;
  for (const char* old :
       {"Atom",       "Athlon",     "Banias",   "Barcelona",   "Bobcat",      "Bulldozer", "Coppermine", "Core2",
        "Dunnington", "Generic",    "Katmai",   "Nano",        "Nehalem",     "Northwood", "Opteron",    "Opteron_SSE3",
        "Penryn",     "Piledriver", "Prescott", "Sandybridge", "Steamroller", "Unknown"})
    if (core == old) return kLevels[0];
  return Level::avx512;
}

}  // namespace kassette::devices
