#!/usr/bin/env bash
# tests/checks/engine_ops.sh SOURCE BUILD - the engine knows no op: no object of autograd/ reads an op that another folder defines, and no
# source of the engine compares kernels. What it has to know of an op is said in the definition of the op (OpDef, ops/engine/op.h).
set -euo pipefail
command -v nm >/dev/null || { echo "skipped: there is no nm"; exit 77; }
source_dir=$(realpath "$1")
cd "$2"
objects() { find "$1/CMakeFiles" -name '*.o' 2>/dev/null; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# An op is a variable of OpDef's size. One that certainly is an op says how large that is.
size=$(objects ops | xargs nm -S --defined-only | awk '$4 == "_ZN8kassette3ops9matmul_opE" { print $2 }')
[ -n "$size" ] || { echo "no kassette::ops::matmul_op in the objects of ops/"; exit 1; }
for folder in core devices ops nn_backend; do
  [ -d "$folder/CMakeFiles" ] && objects "$folder" | xargs nm -S --defined-only
done | awk -v size="$size" '$2 == size && $3 ~ /^[DdRrVvBbuWw]$/ { print $4 }' | sort -u >"$work/ops"
objects autograd | xargs nm -u | awk '$1 == "U" || $1 == "w" || $1 == "v" { print $2 }' | sort -u >"$work/read"
# What is inlined or a template may be instantiated in autograd/ itself: weak, and defined in both.
objects autograd | xargs nm --defined-only | awk '$2 ~ /^[VvWwu]$/ { print $3 }' | sort -u >>"$work/read"
bad=0
if sort -u "$work/read" | comm -12 "$work/ops" - | c++filt | grep . ; then
  echo "are ops of other folders that autograd/ reads"
  bad=1
fi
if (cd "$source_dir" && grep -nE '(\.|->)(cpu|cuda) *[!=]=|[!=]= *[A-Za-z_.>-]*(\.|->)(cpu|cuda)\b' autograd/*/*.cpp autograd/*/*.h ops/engine/apply.cpp ops/product/matmul.cpp); then
  echo "compares kernels"
  bad=1
fi
exit $bad
