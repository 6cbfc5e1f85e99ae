#!/usr/bin/env bash
# tests/scripts/documentation.sh SOURCE BUILD - compiles and runs the C++ of README.md and docs/, compares what it prints, and finds
# every function of K commented and with an example: docs/make/examples.py. Then follows the links: docs/make/links.py. docs/from_numpy.md has to be
# what docs/make/from_numpy.py writes.
set -euo pipefail
source=$1 build=$2
command -v python3 >/dev/null || { echo "skipped: there is no python3"; exit 77; }
python3 "$source/docs/make/links.py" "$source"
python3 "$source/docs/make/from_numpy.py" "$source" --check
exec python3 "$source/docs/make/examples.py" "$source" "$build"
