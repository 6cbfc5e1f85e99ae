#!/usr/bin/env bash
# tests/scripts/function_overhead.sh SOURCE BUILD - a training step of small models takes no more instructions by a function than eagerly: with one
# thread, counted by callgrind. Prints the counts.
set -euo pipefail
for tool in valgrind python3; do
  command -v $tool >/dev/null || { echo "skipped: there is no $tool"; exit 77; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# AVX-512 is more than valgrind knows.
KASSETTE_SIMD=avx2 KASSETTE_NUM_THREADS=1 valgrind --tool=callgrind --callgrind-out-file="$work/out" \
  --dump-before=kassette_overhead_mark "$2/tests/kassette_tests" "[.function_overhead]" >"$work/said" 2>"$work/log" ||
  { echo "skipped: valgrind cannot run the tests here"; tail -5 "$work/log"; exit 77; }
python3 - "$work" <<'PYTHON'
import re, sys

work = sys.argv[1]
models = [line[6:].strip() for line in open(f"{work}/said") if line.startswith("model ")]
bad = 0


def instructions(part):
    return int(re.search(r"^(?:summary|totals): (\d+)", open(f"{work}/out.{part}").read(), re.M)[1]) / 10


for k, model in enumerate(models):
    eager, function = instructions(4 * k + 2), instructions(4 * k + 4)
    over = function > eager
    bad += over
    print(f"{'OVER ' if over else '     '}{eager:9.0f} eagerly, {function:9.0f} by a function, {function / eager:.3f}: {model}")
print(f"{bad} of {len(models)} models take more by a function")
sys.exit(1 if bad or len(models) < 5 else 0)
PYTHON
