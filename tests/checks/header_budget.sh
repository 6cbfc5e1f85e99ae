#!/usr/bin/env bash
# tests/checks/header_budget.sh SOURCE BUILD - a hello program compiles within 0.6 s with g++, and
# clang-repl-19 starts, includes <kassette/backend.h> and ends within 0.3 s, on a
# machine of ordinary pace.
set -euo pipefail
include=$(realpath "$1")/include
if [ ! -e "$include/kassette/backend.h" ]; then
  echo "skipped: there is no <kassette/backend.h>"
  exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

. "$1/tests/scripts/pace.sh"

cat >"$work/hello.cpp" <<'CPP'
#include <kassette/backend.h>

#include <iostream>

namespace K = kassette::backend;

int main() { std::cout << K::constant({{1, 2}, {3, 4}}) + 1.0 << '\n'; }
CPP
bad=0
for level in -O0 -O2; do
  within 600 "hello program, g++ $level" least 7 g++ -std=c++17 $level -I"$include" -c "$work/hello.cpp" -o "$work/hello.o" || bad=1
done

if ! command -v clang-repl-19 >/dev/null; then
  echo "not tried in clang-repl-19, which is not here"
  exit $bad
fi
repl() {
  printf '#include <kassette/backend.h>\n%%quit\n' | clang-repl-19 --Xcc=-std=c++17 --Xcc=-I"$include" >"$work/said" 2>&1 &&
    ! grep error "$work/said"
}
within 300 "clang-repl-19, start, include, end" least 7 repl || bad=1
exit $bad
