#!/usr/bin/env bash
# tests/checks/engine_size.sh SOURCE BUILD - the engine stays small: its tokens, the lines of a function and its parameters have limits.
set -euo pipefail
command -v python3 >/dev/null || { echo "skipped: there is no python3"; exit 77; }
exec python3 "$(dirname "$0")/engine_size.py" "$1"
