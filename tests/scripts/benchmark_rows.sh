#!/usr/bin/env bash
# tests/scripts/benchmark_rows.sh SOURCE BUILD - each row of the benchmarks runs, once or a few times. What it measures so is not read.
set -euo pipefail
program=$2/benchmarks/kassette_bench
[ -x "$program" ] || { echo "skipped: the benchmarks are not built"; exit 77; }
rows=$("$program" --budget 0)
if grep '"error"' <<<"$rows"; then exit 1; fi
echo "$(grep -c '"row"' <<<"$rows") rows"
