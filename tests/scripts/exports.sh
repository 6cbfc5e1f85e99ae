#!/usr/bin/env bash
# tests/scripts/exports.sh SOURCE BUILD - libkassette.so exports functions, not data (an op's row has
# one address only while nobody can copy it), nothing that is not ours, and runs no initialiser of
# ours when it is loaded.
set -euo pipefail
library=$2/lib/libkassette.so
bad=0

nm -DC --defined-only "$library" | awk '$2 ~ /^[BDRVuGS]$/' | grep -vE ' (vtable|typeinfo|typeinfo name) for ' |
  grep . && {
  echo "data is exported"
  bad=1
}
nm -DC --defined-only "$library" | awk '{ $1 = ""; $2 = ""; print }' | grep -vE 'kassette|cling::printValue' |
  grep . && {
  echo "symbols are exported that are not ours"
  bad=1
}
nm -C "$library" | grep -E '_GLOBAL__|__static_initialization' && {
  echo "initialisers run when the library is loaded"
  bad=1
}
# One entry of 8 bytes is the compiler's own frame_dummy.
size=$(readelf -SW "$library" | awk '/ \.init_array / { sub(/.*\.init_array +/, ""); print $4 }')
if [ $((16#${size:-0})) -gt 8 ]; then
  echo ".init_array holds $((16#$size / 8)) entries, one of them the compiler's"
  bad=1
fi
exit $bad
