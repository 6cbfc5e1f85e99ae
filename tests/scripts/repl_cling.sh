#!/usr/bin/env bash
# tests/scripts/repl_cling.sh SOURCE BUILD - the golden sessions of tests/repl in real cling, where there is one.
set -euo pipefail
command -v python3 >/dev/null || { echo "skipped: there is no python3"; exit 77; }
KASSETTE_BUILD=$2 exec python3 "$1/tests/scripts/repl_cling.py" "$1/kassette" "$1"
