#!/usr/bin/env bash
# tests/checks/exports.sh SOURCE BUILD - libkassette.so exports functions, not data (an op's definition has
# one address only while nobody can copy it), nothing that is not ours, and runs no initialiser of
# ours when it is loaded but one.
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
# What runs on loading: the compiler's frame_dummy and libgcc's look at the CPU, nothing of ours.
read -r address size < <(readelf -SW "$library" |
  awk '/ \.init_array / { sub(/.*\.init_array +[A-Z_]+ +/, ""); print $1, $3 }')
for ((slot = 16#$address; slot < 16#$address + 16#$size; slot += 8)); do
  target=$(readelf -rW "$library" | awk -v at="$(printf '%016x' $slot)" '$1 "" == at && /RELATIVE/ { print $4 }')
  name=$(nm "$library" | awk -v at="$(printf '%016x' $((16#${target:-0})))" '$1 "" == at { name = $3 } END { print name }')
  case $name in
    frame_dummy | __cpu_indicator_init) ;;
    *11choose_coreEv) ;;   # before anybody can call OpenBLAS: Note [OpenBLAS' core]
    *)
      echo "an initialiser runs when the library is loaded: $(c++filt "${name:-unknown, at slot $slot}")"
      bad=1
      ;;
  esac
done
exit $bad
