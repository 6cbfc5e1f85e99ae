#!/usr/bin/env python3
"""The rows of a CUDA device as a table: ours beside PyTorch's, as ratios and as fractions of the bandwidth of a copy.

    benchmarks/device_table.py FOLDER [--command TEXT] [--driver TEXT] [--version TEXT] [--emulated]

Reads FOLDER/kassette.jsonl and, where there are such, FOLDER/torch.jsonl and those of ours with other settings, tf32.jsonl and nograph.jsonl, which the
programs wrote row by row and may have been stopped in; writes FOLDER/table.md and table.json. `tests/scripts/gpu.sh` calls it.
"""

import argparse
import json
import os
import re
import sys
import time

import goals
import report

EMULATED = (
    "**cuda:0 is emulated: the kernels ran on the host, at tiny sizes. These figures say that the rows run, and nothing about a GPU.**"
)


def read(path):
    """(header, {row: fields}) of a program's lines; a last line that is not whole is left out."""
    header, rows = {}, {}
    if os.path.exists(path):
        with open(path, encoding="utf-8") as f:
            for line in f:
                try:
                    said = json.loads(line)
                except ValueError:
                    continue
                if said.pop("header", None):
                    header = said
                elif "row" in said:
                    rows[said.pop("row")] = said
    return header, rows


def bandwidth(cells, moved):
    """Bytes a second of the quickest of these cells."""
    times = [c["median_ns"] for c in cells if "median_ns" in c]
    return moved / min(times) * 1e9 if times and moved else None


def judged(row, ratio, fraction, moves):
    """[(goal, whether it is met)]; None where its yardstick is missing. Of a row that is not said to move memory no fraction is asked."""
    have = {"torch": ratio, "copy": fraction}
    return [
        (f"{'<=' if against == 'torch' else '>='} {bound:g} {against}", met(have[against], against, bound))
        for pattern, against, bound in goals.DEVICE_GOALS
        if re.fullmatch(pattern, row) and (moves or against != "copy")
    ]


def met(value, against, bound):
    if value is None:
        return None
    return value <= bound if against == "torch" else value >= bound


def compare(ours, torch):
    """A dictionary for each row, ours first and in our order."""
    yardstick = ours.get("copy.device", {})
    copy = bandwidth([yardstick, torch.get("copy.device", {})], yardstick.get("moved"))
    out = []
    for row in [*ours, *(r for r in torch if r not in ours and r + ".fn" not in ours)]:
        mine, theirs = ours.get(row, {}), torch.get(row.removesuffix(".fn"), {})
        have, peer = mine.get("median_ns"), theirs.get("median_ns")
        reached = bandwidth([mine], mine.get("moved"))
        ratio = have / peer if have and peer else None
        fraction = reached / copy if reached and copy else None
        out.append(
            {
                "row": row,
                "kassette_ns": have,
                "torch_ns": peer,
                "ratio": ratio,
                "bytes_per_second": reached,
                "fraction_of_copy": fraction,
                "goals": judged(row, ratio, fraction, "moved" in mine),
                "errors": {n: c["error"] for n, c in (("kassette", mine), ("torch", theirs)) if "error" in c},
            }
        )
    return out


def lines(rows, emulated):
    """The table's lines. On an emulated device no goal is met or missed."""
    out = [["row", "kassette", "torch", "ratio", "GB/s", "of copy", "goal"]]
    for r in rows:
        said = "; ".join(
            goal + ("" if emulated or met is None else " met" if met else " MISSED") for goal, met in r["goals"]
        )
        out.append(
            [
                r["row"],
                "error: " + r["errors"]["kassette"] if "kassette" in r["errors"] else report.figure(r["kassette_ns"]),
                "error" if "torch" in r["errors"] else report.figure(r["torch_ns"]),
                "" if r["ratio"] is None else f"{r['ratio']:.2f}",
                "" if r["bytes_per_second"] is None else f"{r['bytes_per_second'] / 1e9:.4g}",
                "" if r["fraction_of_copy"] is None else f"{r['fraction_of_copy']:.2f}",
                said,
            ]
        )
    return out


SETTINGS = {"tf32": "with TF32", "nograph": "without graphs"}


def settings(ours, others):
    """The table's lines of rows that were measured with other settings, too: how much longer each took then."""
    out = [["row", "kassette", *SETTINGS.values()]]
    for row, mine in ours.items():
        ratios = [
            others[name][row]["median_ns"] / mine["median_ns"]
            if "median_ns" in mine and "median_ns" in others[name].get(row, {})
            else None
            for name in SETTINGS
        ]
        if any(ratios):
            out.append([row, report.figure(mine["median_ns"]), *("" if r is None else f"{r:.2f} times" for r in ratios)])
    return out


def document(data):
    facts = [
        f"- {name}: " + ", ".join(f"{k} {v}" for k, v in header.items() if k not in ("peer", "features", "threads"))
        for name, header in data["headers"].items()
        if header
    ]
    verdicts = [met for r in data["rows"] for _, met in r["goals"] if met is not None]
    count = f"{len(data['rows'])} rows, {sum(verdicts)} goals met, {len(verdicts) - sum(verdicts)} missed."
    return "\n".join(
        [
            f"# {'An emulated CUDA device' if data['emulated'] else 'A CUDA device'}, {data['date']}",
            "",
            f"`{data['command']}` at {data['version'] or 'no known commit'}; {data['driver'] or 'no NVIDIA driver'}",
            "",
            *([EMULATED, ""] if data["emulated"] else []),
            *facts,
            "",
            "A time is the median; the ratio is ours over PyTorch's, eager, also where ours goes through a function (`.fn`). `of copy` is what an operation "
            "must read and write, in the time that it took, over what the quicker of both copies on the device reads and writes.",
            "",
            report.as_markdown(lines(data["rows"], data["emulated"])),
            "",
            f"{len(data['rows'])} rows." if data["emulated"] else count,
            "",
            *([report.as_markdown(data["settings"]), ""] if len(data["settings"]) > 1 else []),
        ]
    )


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("folder")
    p.add_argument("--command", default=" ".join(sys.argv))
    p.add_argument("--driver", default="", help="the device and its driver, as nvidia-smi names them")
    p.add_argument("--version", default="", help="the commit of ours")
    p.add_argument("--emulated", action="store_true")
    o = p.parse_args()
    header, ours = read(os.path.join(o.folder, "kassette.jsonl"))
    torch_header, torch = read(os.path.join(o.folder, "torch.jsonl"))
    if not ours:
        sys.exit("device_table.py: no row of ours was measured")
    data = {
        "date": time.strftime("%Y-%m-%d %H:%M"),
        "command": o.command,
        "driver": o.driver,
        "version": o.version,
        "emulated": o.emulated or bool(header.get("emulated")),
        "headers": {"kassette": header, "torch": torch_header},
        "rows": compare(ours, torch),
        "settings": settings(ours, {name: read(os.path.join(o.folder, name + ".jsonl"))[1] for name in SETTINGS}),
    }
    for name, text in (("table.json", json.dumps(data, indent=1) + "\n"), ("table.md", document(data))):
        with open(os.path.join(o.folder, name), "w", encoding="utf-8") as f:
            f.write(text)
    print(report.as_text(lines(data["rows"], data["emulated"])))
    print(f"{len(ours)} rows of ours, {len(torch)} of PyTorch")


if __name__ == "__main__":
    main()
