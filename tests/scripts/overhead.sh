#!/usr/bin/env bash
# tests/scripts/overhead.sh SOURCE BUILD - a K function costs at most one op's overhead more than the rows it calls: instructions on
# its smallest sample, counted by callgrind, less those inside of apply. Prints the functions that cost more.
set -euo pipefail
command -v valgrind >/dev/null && command -v python3 >/dev/null || exit 77
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# AVX-512 is more than valgrind knows.
KASSETTE_SIMD=avx2 KASSETTE_NUM_THREADS=1 valgrind --tool=callgrind --callgrind-out-file="$work/out" --compress-strings=no \
  --compress-pos=no --dump-before=kassette_overhead_mark "$2/tests/kassette_tests" "[.overhead]" >"$work/said" 2>"$work/log" ||
  { tail -5 "$work/log"; exit 77; }
python3 - "$work" <<'PYTHON'
import os, re, sys

work = sys.argv[1]
names = [line[7:].strip() for line in open(f"{work}/said") if line.startswith("sample ")]
ROWS = re.compile(r"kassette::apply(1|_all)?\(")
# What a loop or branch calls is the user's.
CONTROL = re.compile(r"switch_|fold|map_fn|rnn|phase")


def count(path):
    """(all instructions, those of calls into apply, how many such calls)"""
    total = rows = calls = 0
    function, callee = "", None
    for line in open(path):
        if line.startswith("fn="):
            function = line[3:]
        elif line.startswith("cfn="):
            callee = line[4:]
        elif line.startswith("calls="):
            number = int(line[6:].split()[0])
            after = True
        elif line[:1].isdigit() or line[:1] in "+-*":
            cost = int(line.split()[1]) if len(line.split()) > 1 else 0
            if callee is not None:
                if ROWS.search(callee) and not ROWS.search(function):
                    rows += cost
                    calls += number
                callee = None
            else:
                total += cost
    return total, rows, calls


found = {}
for k, name in enumerate(names):
    total, rows, calls = count(f"{work}/out.{2 * k + 2}")
    found[name] = (total / 10, rows / 10, calls / 10)
one_op = next(t for n, (t, _, _) in found.items() if n.startswith("K::square ") or n.startswith("K::square#") or "square" in n)
bad = 0
for name, (total, rows, calls) in sorted(found.items(), key=lambda i: i[1][1] - i[1][0]):
    beside = total - rows
    over = beside > one_op and not CONTROL.search(name)
    bad += over
    if over or os.environ.get("VERBOSE"):
        print(f"{'OVER ' if over else '     '}{beside:7.0f} beside {calls:4.1f} rows of {rows:7.0f} instructions: {name}")
print(f"one op: {one_op:.0f} instructions; {bad} of {len(found)} samples cost more beside their rows")
sys.exit(1 if bad else 0)
PYTHON
