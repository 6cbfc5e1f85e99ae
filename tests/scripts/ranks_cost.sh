#!/usr/bin/env bash
# tests/scripts/ranks_cost.sh SOURCE BUILD - the model of what exchanges cost: its simulation, and the table in docs/distributed.md.
set -euo pipefail
command -v python3 >/dev/null || { echo "skipped: there is no python3"; exit 77; }
exec python3 "$1/benchmarks/ranks/cost.py" --check "$1/docs/distributed.md"
