#!/bin/sh
# tests/nn_backend/k_functions.sh OUT HEADER... - writes a line REACH(name), for each K function that the headers declare once. Those of
# refusals.h, whose lines begin with their type, are no functions, and make others of their names overloaded: they count as two.
set -eu
out=$1
shift
sed -sn '/^namespace backend/,/^}  .. namespace backend/{
  s/^KASSETTE_API [A-Za-z:_0-9]* \([a-z_0-9]*\)(.*/REACH(\1),/p
  s/^Tensor \([a-z_]*\)(.*/REACH(\1),\nREACH(\1),/p
}' "$@" | sort | uniq -u >"$out"
