#!/usr/bin/env bash
# tests/checks/level_symbols.sh SOURCE BUILD - no weak symbol of one CPU level's objects is defined
# in any other object of the library: the linker keeps one, and a CPU without AVX-512 might then run
# AVX-512 code.
set -euo pipefail
cd "$2"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# "symbol group" lines, a group being a level or "plain"; DW.ref.* are data, and the same everywhere.
for folder in core devices ops autograd nn_backend; do
  [ -d "$folder/CMakeFiles" ] || continue
  find "$folder/CMakeFiles" -path "*kassette_$folder*.dir/*.o" | while IFS= read -r object; do
    level=$(sed -nE 's/.*kassette_[a-z_]*_(sse2|avx2|avx512|generic)\.dir.*/\1/p' <<<"$object")
    nm --defined-only "$object" | awk -v group="${level:-plain}" '$2 ~ /^[WVu]$/ { print $3, group }'
  done
done | grep -v '^DW\.ref' | sort -u >"$work/symbols" || true

# Type information and vtables are data; a vtable's functions are looked at one by one.
awk '{ groups[$1] = groups[$1] " " $2; count[$1]++ }
     END { for (s in count) if (count[s] > 1 && groups[s] ~ /sse2|avx|generic/) print s ":" groups[s] }' \
  "$work/symbols" | grep -vE '^_ZT[VIS]' | c++filt | sort >"$work/shared" || true
[ ! -s "$work/shared" ] && exit 0
echo "weak symbols that one level shares with another or with plain code:"
cat "$work/shared"
exit 1
