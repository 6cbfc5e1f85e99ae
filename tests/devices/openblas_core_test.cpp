// tests/devices/openblas_core_test.cpp - the kernels that OpenBLAS runs.
#include "devices/cpu/openblas_core.h"

#include <cstdlib>

#include "tests/catch.h"

using namespace kassette::devices;

extern "C" [[gnu::weak]] void gotoblas_dynamic_init();

TEST_CASE("OpenBLAS runs kernels of this CPU's level, even if it does not know the CPU", "[blas]") {
  if (!gotoblas_dynamic_init) return kassette::test::skip("OpenBLAS is built for one CPU");
  if (std::getenv("OPENBLAS_CORETYPE")) return kassette::test::skip("OPENBLAS_CORETYPE names a core");
  INFO(openblas_core());
  CHECK(level_of_core(openblas_core()) >= best_cpu_level());
}

TEST_CASE("cores of OpenBLAS are of the level of their instructions, and newer ones are left alone", "[blas]") {
  CHECK(level_of_core("Prescott") == kLevels[0]);
  CHECK(level_of_core("Sandybridge") == kLevels[0]);
  CHECK(level_of_core("Zen") == Level::avx2);
  CHECK(level_of_core("Cooperlake") == Level::avx512);
  CHECK(level_of_core("a core of later years") == Level::avx512);
}
