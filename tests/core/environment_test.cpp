// tests/core/environment_test.cpp - the page of environment variables, against what the sources read.
#include "tests/catch.h"
#include "tests/sources.h"

using namespace kassette::test;

TEST_CASE("the documentation names every environment variable that the library reads", "[sources]") {
  const std::string page = text_of(kSourceTree / "docs/environment.md");
  const std::regex read("(?:getenv|is_set)\\(\"(\\w+)\"\\)");
  int found = 0;
  for (const char* folder : {"core", "devices", "ops", "autograd", "nn_backend"})
    for (const auto& path : files_of(folder, ".cpp")) {
      const std::string text = text_of(path);
      for (std::sregex_iterator at(text.begin(), text.end(), read), end; at != end; ++at, ++found) {
        const std::string name = (*at)[1];
        if (name == "HOME" || name == "OPENBLAS_CORETYPE") continue;  // somebody else's
        if (name == "KASSETTE_MPI_PIECE") continue;                   // a limit that tests lower
        if (page.find("`" + name + "`") == std::string::npos)
          FAIL_CHECK(path.filename() << " reads " << name << ", and docs/environment.md does not say so");
      }
    }
  CHECK(found > 8);
}
