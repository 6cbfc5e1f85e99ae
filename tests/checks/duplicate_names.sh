#!/usr/bin/env bash
# tests/checks/duplicate_names.sh SOURCE BUILD - no two files of the library define a class of one qualified name.
set -euo pipefail
command -v python3 >/dev/null || { echo "skipped: there is no python3"; exit 77; }
exec python3 "$(dirname "$0")/duplicate_names.py" "$1"
