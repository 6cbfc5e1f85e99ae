#!/usr/bin/env python3
"""benchmarks/threads.py [--build BUILD] [--rounds N] [REGEX] - rows of threads.cpp with one thread beside two, interleaved: the medians, and the
ratio of two threads to one, a line for each row. Two threads must never be slower: exits with 1 where a ratio exceeds 1.05."""
import argparse
import json
import os
import re
import statistics
import subprocess
import sys

LIMIT = 1.05


def median_ns(build, row, threads, budget):
    """Of a new process each time: where its memory lies counts as much as threads do. OpenBLAS starts no threads: ours call it, and its own would
    spin on the second CPU for their first 30 ms."""
    out = subprocess.run([f"{build}/benchmarks/kassette_bench", f"^{re.escape(row)}$", "--threads", str(threads), "--budget", str(budget)],
                         capture_output=True, text=True, check=True, env=dict(os.environ, OPENBLAS_NUM_THREADS="1")).stdout
    return json.loads(out.splitlines()[1])["median_ns"]


def main():
    a = argparse.ArgumentParser()
    a.add_argument("rows", nargs="?", default=".*")
    a.add_argument("--build", default="build")
    a.add_argument("--rounds", type=int, default=9)
    a.add_argument("--budget", type=float, default=0.02)
    o = a.parse_args()
    names = subprocess.run([f"{o.build}/benchmarks/kassette_bench", "--list"], capture_output=True, text=True, check=True).stdout.split()
    names = [n for n in names if n.startswith("threads.") and re.search(o.rows, n)]
    names.sort(key=lambda n: (n.rsplit(".p", 1)[0], int(n.rsplit(".p", 1)[1])))
    header = json.loads(subprocess.run([f"{o.build}/benchmarks/kassette_bench", "^$"], capture_output=True, text=True, check=True).stdout)
    print(f"CPU {header['cpu']}; {o.rounds} rounds, {o.budget} s a row and round\n")
    print("| row | one thread, us | two, us | ratio of medians | median of ratios |\n|---|---|---|---|---|")
    worst = 0
    for name in names:
        rounds = [[median_ns(o.build, name, threads, o.budget) for threads in (1, 2)] for _ in range(o.rounds)]
        x, y = (statistics.median(r[i] for r in rounds) for i in (0, 1))
        ratio = statistics.median(r[1] / r[0] for r in rounds)
        worst = max(worst, min(ratio, y / x))
        print(f"| {name} | {x / 1e3:.2f} | {y / 1e3:.2f} | {y / x:.2f} | {ratio:.2f} |{' over' if min(ratio, y / x) > LIMIT else ''}", flush=True)
    return 1 if worst > LIMIT else 0


sys.exit(main())
