// tests/core/version_test.cpp - the version string.
#include <kassette/version.h>

#include <algorithm>
#include <string>

#include "tests/catch.h"

TEST_CASE("version_has_three_numbers") {
  const std::string version = kassette::version();
  CHECK(std::count(version.begin(), version.end(), '.') == 2);
}
