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
  for objects in "$folder/CMakeFiles/kassette_$folder"*.dir; do
    level=plain
    [[ ! $objects =~ _(sse2|avx2|avx512|neon64|generic)\.dir$ ]] || level=${BASH_REMATCH[1]}
    find "$objects" -name '*.o' -print0 | xargs -0 nm --defined-only | awk -v group="$level" '$2 ~ /^[WVu]$/ { print $3, group }'
  done
done | grep -v '^DW\.ref' | sort -u >"$work/symbols"
groups=$(cut -d ' ' -f 2 "$work/symbols" | sort -u | wc -l)
[ "$groups" -ge 2 ] || { echo "weak symbols of $groups groups of objects in $2: at least plain code and one level have some"; exit 1; }

# Type information and vtables are data; a vtable's functions are looked at one by one.
awk '{ groups[$1] = groups[$1] " " $2; count[$1]++ }
     END { for (s in count) if (count[s] > 1 && groups[s] ~ /sse2|avx|neon64|generic/) print s ":" groups[s] }' \
  "$work/symbols" | grep -vE '^_ZT[VIS]' | c++filt | sort >"$work/shared" || true
[ ! -s "$work/shared" ] && exit 0
echo "weak symbols that one level shares with another or with plain code:"
cat "$work/shared"
exit 1
