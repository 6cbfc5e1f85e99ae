#!/usr/bin/env python3
"""Two builds of ours side by side: did a change make a row slower?

    benchmarks/beside.py OLD_BUILD NEW_BUILD [--rows REGEX] [--rounds N] [--threads N] [--budget SECONDS] [--limit RATIO] [--out FILE.md]

Rounds are outermost, then rows, then the two builds, which take turns to be first; the one that waits is stopped. A row's ratio is new by old in
one round. A row fails where the median and the lower quartile of its ratios are both above the limit, 1.10: so a slow minute of the machine
fails nothing. Ends with 1 where a row fails.
"""

import argparse
import os
import re
import statistics
import sys
import time

import programs
import run


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--rows", default="^(?!mem|chain)")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--budget", type=float, default=0.1)
    parser.add_argument("--limit", type=float, default=1.10)
    parser.add_argument("--out")
    options = parser.parse_args()
    builds = [run.Served(programs.Program(name, [os.path.join(folder, "benchmarks/kassette_bench")]), options, sys.stderr)
              for name, folder in (("old", options.old), ("new", options.new))]
    rows = [r for r in builds[1].rows if r in builds[0].rows and re.search(options.rows, r)]
    if not rows:
        sys.exit(f"beside.py: no row of both builds is matched by {options.rows}")
    times = {row: {"old": [], "new": []} for row in rows}
    for number in range(options.rounds):
        for row in rows:
            for build in builds if number % 2 else reversed(builds):
                said = build.ask(row)
                if "median_ns" not in said:
                    sys.exit(f"beside.py: {build.name}: {row}: {said.get('error', said)}")
                times[row][build.name].append(said["median_ns"])
    for build in builds:
        build.end()

    lines, slower, ratios = [], [], []
    for row, of in times.items():
        each = sorted(new / old for new, old in zip(of["new"], of["old"]))
        median, quartile = statistics.median(each), each[len(each) // 4]
        ratios.append(median)
        failed = median > options.limit and quartile > options.limit
        slower += [row] * failed
        lines.append(f"| {row} | {statistics.median(of['old']) / 1e3:.4g} | {statistics.median(of['new']) / 1e3:.4g} | {median:.2f} | {quartile:.2f} |{' **slower**' if failed else ''}")
    text = "\n".join([
        f"{time.strftime('%Y-%m-%d')}, {builds[1].header['cpu']}, {options.threads} threads, {options.rounds} rounds. Microseconds; ratio: new by old.", "",
        "| row | old | new | ratio | lower quartile |", "|---|---|---|---|---|", *lines, "",
        f"Geometric mean {statistics.geometric_mean(ratios):.3f} of {len(ratios)} rows; {len(slower)} slower: {', '.join(slower) or 'none'}.", ""])
    print(text)
    if options.out:
        with open(options.out, "w", encoding="utf-8") as file:
            file.write(text)
    sys.exit(bool(slower))


main()
