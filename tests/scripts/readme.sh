#!/usr/bin/env bash
# tests/scripts/readme.sh SOURCE BUILD - compiles and runs every C++ program in README.md and docs/sparse.md. A block of text right
# after it is what it prints.
set -euo pipefail
source=$1 build=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
awk -v dir="$work" '
  /^```cpp$/ { ++n; out = dir "/" n ".cpp"; next }
  /^```text$/ && n { out = dir "/" n ".txt"; next }
  /^```/ { out = ""; next }
  out { print > out }' "$source/README.md" "$source/docs/sparse.md"
bad=0 count=0
for program in "$work"/*.cpp; do
  count=$((count + 1))
  if ! g++ -std=c++17 -I"$build/include" "$program" -o "$work/program" -L"$build/lib" -lkassette -Wl,-rpath,"$build/lib"; then
    bad=1
    continue
  fi
  "$work/program" >"$work/printed" || bad=1
  expected=${program%.cpp}.txt
  if [[ -f $expected ]] && ! diff "$expected" "$work/printed"; then
    echo "program $(basename "$program" .cpp) of README.md and docs/sparse.md prints something else"
    bad=1
  fi
done
echo "$count programs of README.md and docs/sparse.md compiled and ran"
[[ $count -gt 0 ]] || bad=1
exit $bad
