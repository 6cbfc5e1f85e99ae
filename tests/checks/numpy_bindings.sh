#!/usr/bin/env bash
# tests/checks/numpy_bindings.sh SOURCE BUILD - every function of <kassette/numpy.h> is in Python's kassette.numpy: python/make_numpy.py binds it, or names it as
# one that is written by hand there.
set -euo pipefail
command -v python3 >/dev/null || { echo "skipped: there is no python3"; exit 77; }
exec python3 "$1/python/make_numpy.py" "$1/include" --missing
