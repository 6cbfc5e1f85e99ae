#!/usr/bin/env python3
"""The kernels that ncu has looked at, as a table: how long each ran and how near it came to what the GPU can do.

    benchmarks/kernel_table.py FOLDER [--command TEXT] [--driver TEXT]

Reads each FOLDER/*.csv, as `ncu --csv --page raw` writes it; writes FOLDER/why.md. `tests/scripts/gpu.sh` calls it.
"""

import argparse
import csv
import glob
import os
import re
import statistics
import sys

import report

SECONDS = {"nsecond": 1e-9, "ns": 1e-9, "usecond": 1e-6, "us": 1e-6, "msecond": 1e-3, "ms": 1e-3, "second": 1, "s": 1}
TIME = "gpu__time_duration.sum"
PARTS = {  # of their peaks, in per cent
    "memory": "dram__throughput.avg.pct_of_peak_sustained_elapsed",
    "issue": "smsp__issue_active.avg.pct_of_peak_sustained_active",
    "warps": "sm__warps_active.avg.pct_of_peak_sustained_active",
}
INSTRUCTIONS = "smsp__inst_executed.sum"


def number(text):
    return float(text.replace(",", ""))


def launches(path):
    """A dictionary for each launch: its kernel, its grid, seconds, instructions, parts."""
    with open(path, encoding="utf-8", newline="") as f:
        lines = [line for line in f if line.startswith('"')]  # ncu's own remarks begin with ==
    rows = list(csv.DictReader(lines))
    units = rows[0] if rows and not rows[0]["ID"] else {}
    for row in rows[1:] if units else rows:
        yield {
            "kernel": re.sub(r"^void |kassette::cuda::|\(anonymous namespace\)::|<unnamed>::|\(.*$", "", row["Kernel Name"])[:70],
            "grid": row["Grid Size"].strip("()").replace(" ", ""),
            "seconds": number(row[TIME]) * SECONDS[units.get(TIME) or "ns"],
            "instructions": number(row[INSTRUCTIONS]),
            **{name: number(row[metric]) for name, metric in PARTS.items()},
        }


def lines(all_of_them):
    """The table's lines: launches of one kernel over one grid are one, by their medians, longest first."""
    together = {}
    for launch in all_of_them:
        together.setdefault((launch["kernel"], launch["grid"]), []).append(launch)

    def median(group, key):
        return statistics.median(launch[key] for launch in group)

    out = [["kernel", "grid", "launches", "time", "instructions of warps", "memory", "issue", "warps"]]
    for (kernel, grid), group in sorted(together.items(), key=lambda item: -median(item[1], "seconds")):
        out.append(
            [kernel, grid, str(len(group)), report.figure(median(group, "seconds") * 1e9), f"{median(group, 'instructions'):.3g}"]
            + [f"{median(group, part):.0f} %" for part in PARTS]
        )
    return out


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("folder")
    p.add_argument("--command", default=" ".join(sys.argv))
    p.add_argument("--driver", default="", help="the device and its driver, as nvidia-smi names them")
    o = p.parse_args()
    seen = [launch for path in sorted(glob.glob(os.path.join(o.folder, "*.csv"))) for launch in launches(path)]
    if not seen:
        sys.exit("kernel_table.py: ncu has seen no kernel")
    table = lines(seen)
    text = (
        f"# Kernels\n\n`{o.command}`; {o.driver or 'no NVIDIA driver'}\n\nMedians of launches over the same grid. `memory` is the traffic, `issue` the cycles in "
        f"which instructions were issued, `warps` those that were resident, of what the GPU can do.\n\n{report.as_markdown(table)}\n"
    )
    with open(os.path.join(o.folder, "why.md"), "w", encoding="utf-8") as f:
        f.write(text)
    print(report.as_text(table))
    print(f"{len(seen)} launches, {len(table) - 1} kernels")


if __name__ == "__main__":
    main()
