#!/usr/bin/env bash
# tests/scripts/catch2.sh SOURCE BUILD - <kassette/testing.h> has its matchers behind each header of Catch2, 2 and 3, that a test begins
# with. Where Catch2 3 is not here, its headers are stood in for: the guards that they define, and the base class of matchers.
set -euo pipefail
include=$(realpath "$1")/include
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0

# Our own tests take the names of matchers from tests/catch.h, which has them for both versions.
if grep -rnE --include='*.cpp' --include='*.h' 'Catch::(Matchers::|StartsWith|EndsWith|Equals|Matches|Vector|Message|Within)' "$(realpath "$1")/tests" |
  grep -v '/tests/catch\.h:'; then
  echo "matchers of one version of Catch2"
  bad=1
fi

mkdir -p "$work/stand_in/catch2/matchers"
cat >"$work/stand_in/catch2/catch_test_macros.hpp" <<'CPP'
#define CATCH_TEST_MACROS_HPP_INCLUDED
#define TEST_CASE(...) static void test()
CPP
cat >"$work/stand_in/catch2/matchers/catch_matchers.hpp" <<'CPP'
#define CATCH_MATCHERS_HPP_INCLUDED
#define CHECK_THAT(value, matcher) (void)(matcher).match(value)
CPP
cat >"$work/stand_in/catch2/matchers/catch_matchers_templated.hpp" <<'CPP'
#define CATCH_MATCHERS_TEMPLATED_HPP_INCLUDED
#include <catch2/matchers/catch_matchers.hpp>
#include <string>
namespace Catch { namespace Matchers {
struct MatcherGenericBase {
  virtual ~MatcherGenericBase() = default;
  virtual std::string describe() const = 0;
};
} }
CPP
cat >"$work/stand_in/catch2/catch_all.hpp" <<'CPP'
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_templated.hpp>
#define CATCH_VERSION_MAJOR 3
CPP

# compiles "what" "includes" FLAGS...: a test that uses both matchers.
compiles() {
  local what=$1 includes=$2 compiler
  shift 2
  for header in $includes; do echo "#include <$header>"; done >"$work/test.cpp"
  cat >>"$work/test.cpp" <<'CPP'
#include <kassette/testing.h>
TEST_CASE("a matcher") {
  kassette::Tensor x = kassette::backend::constant({1, 2});
  CHECK_THAT(x, kassette::testing::IsClose({1, 2}, {.rtol = 1e-3}));
  CHECK_THAT(x, kassette::testing::MatchesGolden("x"));
}
CPP
  for compiler in g++ clang++; do
    command -v "$compiler" >/dev/null || continue
    "$compiler" -std=c++20 -Wall -Wextra -Wno-unused-function -Werror -fsyntax-only -I"$include" "$@" "$work/test.cpp" || {
      echo "$compiler: no matchers behind $includes ($what)"
      bad=1
    }
  done
}
# here HEADER: whether there is such a header.
here() { echo "#include <$1>" | g++ -std=c++20 -E -x c++ - >/dev/null 2>&1; }

real=stand-in flags=(-isystem "$work/stand_in")
if here catch2/catch_test_macros.hpp; then real="Catch2 3" flags=(); fi
compiles "$real" catch2/catch_test_macros.hpp "${flags[@]}"
compiles "$real" "catch2/catch_test_macros.hpp catch2/matchers/catch_matchers.hpp" "${flags[@]}"
compiles "$real" "catch2/matchers/catch_matchers_templated.hpp catch2/catch_test_macros.hpp" "${flags[@]}"
compiles "$real" catch2/catch_all.hpp "${flags[@]}"
[ "$real" = stand-in ] || [ -z "$(find /usr/include /usr/local/include -name catch_amalgamated.hpp 2>/dev/null)" ] || compiles "$real" catch2/catch_amalgamated.hpp
if here catch2/catch.hpp; then compiles "Catch2 2" catch2/catch.hpp; else echo "not tried with Catch2 2, which is not here"; fi

# Without Catch2 nothing of it is asked for.
echo '#include <kassette/testing.h>' >"$work/alone.cpp"
g++ -std=c++17 -Wall -Wextra -Werror -fsyntax-only -I"$include" "$work/alone.cpp" || bad=1
exit $bad
