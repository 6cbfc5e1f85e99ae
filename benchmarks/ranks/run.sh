#!/usr/bin/env bash
# benchmarks/ranks/run.sh BUILD [ROUNDS] - two ranks of one thread beside one rank of two threads: data-parallel training, and what a
# collective costs beside MPI alone. Prints a table in Markdown. With `tc qdisc add dev lo root tbf rate 2gbit burst 512kb latency 50ms`
# and NETWORK=tcp, the rows of overlap are those of a network of 2 Gbit/s.
set -euo pipefail
program=$(realpath "$1")/benchmarks/kassette_ranks
rounds=${2:-3}
unset OPENBLAS_CORETYPE
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
ranks=(mpirun -n 2)
[ "${NETWORK:-}" != tcp ] || ranks+=(--mca btl "tcp,self")
for ((i = 0; i < rounds; ++i)); do
  if [ "${NETWORK:-}" = tcp ]; then
    KASSETTE_RANKS_OVERLAP=1 KASSETTE_NUM_THREADS=1 "${ranks[@]}" "$program" overlap >>"$work/two"
  else
    KASSETTE_NUM_THREADS=2 "$program" train >>"$work/one"
    KASSETTE_NUM_THREADS=1 "${ranks[@]}" "$program" train >>"$work/two"
    KASSETTE_NUM_THREADS=1 "${ranks[@]}" "$program" collectives >>"$work/two"
  fi
done
touch "$work/one"
python3 - "$work/one" "$work/two" <<'PY'
import statistics
import sys

def rows(path):
    found = {}
    for line in open(path):
        name, value, unit = line.rstrip("\n").split("\t")
        found.setdefault((name, unit), []).append(float(value))
    return {key: statistics.median(values) for key, values in found.items()}

one, two = rows(sys.argv[1]), rows(sys.argv[2])
print("| row | one rank, two threads | two ranks, one thread each | ratio |\n|---|---|---|---|")
for (name, unit), value in two.items():
    alone = one.get((name, unit))
    print(f"| {name} | {f'{alone:.4g} {unit}' if alone else ''} | {value:.4g} {unit} | {f'{value / alone:.2f}' if alone else ''} |")
PY
