#!/usr/bin/env bash
# tests/scripts/api_lines.sh SOURCE BUILD - api_lines.cpp compiles without a warning: g++ and clang, C++17 and C++20.
set -euo pipefail
bad=0
for compiler in g++ clang++; do
  if ! command -v "$compiler" >/dev/null; then
    echo "$compiler is not here"
    continue
  fi
  for standard in 17 20; do
    "$compiler" -std=c++$standard -Wall -Wextra -Wshadow -Wno-unused-value -Werror -fsyntax-only -I"$1/include" \
      "$1/tests/scripts/api_lines.cpp" || { echo "$compiler -std=c++$standard fails"; bad=1; }
  done
done
exit $bad
