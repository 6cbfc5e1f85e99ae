#!/usr/bin/env bash
# tests/scripts/refusals.sh SOURCE BUILD - none of the lines of refusals.cpp compiles, and for each the compiler shows the sentence that
# stands behind it: with g++ and clang, C++17 and C++20.
set -euo pipefail
bad=0
lines=$(mktemp)
trap 'rm -f "$lines"' EXIT
for compiler in g++ clang++; do
  if ! command -v "$compiler" >/dev/null; then
    echo "not tried with $compiler, which is not here"
    continue
  fi
  for standard in 17 20; do
    "$compiler" -std=c++$standard -fsyntax-only $([[ $compiler == g++ ]] || echo -ferror-limit=0) -I"$1/include" "$1/tests/scripts/refusals.cpp" >"$lines" 2>&1 && status=0 || status=$?
    # What is said of a line stands between its error and the next.
    awk -v said="$lines" -v name="$compiler -std=c++$standard" '
      BEGIN {
        while ((getline text < said) > 0) {
          if (match(text, /refusals\.cpp:[0-9]+:[0-9]+: error: /)) { split(substr(text, RSTART), part, ":"); at = part[2] }
          else if (text ~ /: error: /) at = 0
          shown[at] = shown[at] "\n" text
        }
      }
      /;  +\/\/ / {
        wanted = $0; sub(/.*;  +\/\/ /, "", wanted); ++n
        if (!(FNR in shown)) { print name ": it compiles: " $0; bad = 1 }
        else if (!index(shown[FNR], wanted)) { print name ": not told \"" wanted "\":" shown[FNR]; bad = 1 }
      }
      END { if (n < 30) { print "only " n + 0 " lines were read"; bad = 1 } exit bad }' "$1/tests/scripts/refusals.cpp" || bad=1
    [ $status -ne 0 ] || bad=1
  done
done
exit $bad
