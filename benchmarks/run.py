#!/usr/bin/env python3
"""Runs our rows and the peers' in one interleaved run and prints ratios.

    benchmarks/run.py --build BUILD_DIR [--peers DIR] [--rows REGEX] [--rounds N] [--threads N]
                      [--out FILE]

Rounds are outermost, then rows, then programs: a slow minute of the machine hits every program
alike. Every program is started once and asked for a row at a time over a pipe; the others are
stopped meanwhile (SIGSTOP), so that no pool of theirs spins on the cores. DIR is what
peers/install.sh filled; without it, ours runs beside the machine's limits and the system's
OpenBLAS. Results go to FILE.json and FILE.md, by default benchmarks/results/DATE-TIME.
"""

import argparse
import json
import os
import re
import select
import signal
import subprocess
import sys
import time

import compile_times
import goals
import programs
import report

TIMEOUT = 600  # seconds a row may take


class Served:
    """A program that waits for row names."""

    def __init__(self, program, options, log):
        self.name, self.rows = program.name, []
        env = dict(programs.environment(options.threads), **program.env)
        args = [
            *program.command,
            "--threads",
            str(options.threads),
            "--budget",
            str(options.budget),
        ]
        listed = subprocess.run(
            [*args, "--list"], env=env, capture_output=True, text=True, check=False
        )
        self.rows = [r for r in listed.stdout.split() if re.search(program.rows, r)]
        self.process = subprocess.Popen(
            [*args, "--serve"],
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            start_new_session=True,
        )
        self.header = self.answer(lambda d: d.get("header"))
        self.signal(signal.SIGSTOP)

    def signal(self, number):
        if self.process.poll() is None:
            os.killpg(self.process.pid, number)

    def answer(self, wanted):
        """The next JSON line that `wanted` accepts; None where the program ended or hangs."""
        until = time.monotonic() + TIMEOUT
        while time.monotonic() < until:
            if not select.select([self.process.stdout], [], [], 1)[0]:
                continue
            line = self.process.stdout.readline()
            if not line:
                return None
            if line.startswith("{") and wanted(data := json.loads(line)):
                return data
        self.signal(signal.SIGKILL)
        return None

    def ask(self, row):
        if self.process.poll() is not None:
            return {"error": "program has ended"}
        self.signal(signal.SIGCONT)
        try:
            self.process.stdin.write(row + "\n")
            self.process.stdin.flush()
            said = self.answer(lambda d: d.get("row") == row)
        except BrokenPipeError:
            said = None
        self.signal(signal.SIGSTOP)
        if said is None:
            return {"error": f"no answer (exit {self.process.poll()})"}
        return {k: v for k, v in said.items() if k != "row"}

    def end(self):
        self.signal(signal.SIGCONT)
        self.process.stdin.close()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.signal(signal.SIGKILL)


def add(rows, row, name, said):
    """Files one answer; a measurement of time and memory becomes two rows."""
    cell = rows.setdefault(row, {}).setdefault(name, {})
    if "median_ns" in said:
        cell.setdefault("median_ns", []).append(said["median_ns"])
        cell["min_ns"] = min(said["min_ns"], cell.get("min_ns", said["min_ns"]))
        cell.setdefault("spread", []).append(said["spread"])
    else:
        cell.update(said)
    if "bytes" in said and not row.startswith("mem."):
        rows.setdefault("mem." + row, {})[name] = {"bytes": said["bytes"]}


def show(text):
    """A line of progress, on a terminal only."""
    if sys.stderr.isatty():
        print(f"\r{text:50}\r", end="", file=sys.stderr, flush=True)


def once(row):
    return row.startswith(("mem.", "chain."))


def far_behind(cells):
    """Peers that take more than five times as long as the best one: one round shows that as well as three."""
    peers = {n: c for n, c in cells.items() if n != "kassette" and n not in goals.YARDSTICKS}
    known = {n: t for n, c in peers.items() if (t := goals.value(c)) is not None}
    return [n for n, t in known.items() if t > 5 * min(known.values())]


def measure(served, options):
    """{row: {program: cell}} over all rounds, in our order of rows."""
    ours = next((s.rows for s in served if s.name == "kassette"), [])
    others = dict.fromkeys(r for s in served for r in s.rows if r not in ours)
    beside = {r: [o for o in others if o.startswith(r + ".")] for r in ours}  # ew.add.1e7.stream
    order = list(dict.fromkeys([*(x for r in ours for x in (r, *beside[r])), *others]))
    wanted = [r for r in order if re.search(options.rows, r)]
    rows, beaten = {}, set()
    for number in range(options.rounds):
        for row in wanted:
            if number and once(row):
                continue
            for s in served:
                if row in s.rows and (row, s.name) not in beaten:
                    add(rows, row, s.name, s.ask(row))
            beaten |= {(row, name) for name in far_behind(rows.get(row, {}))}
            show(f"round {number + 1}/{options.rounds} {row}")
    show("")
    return rows


def machine():
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        text = f.read()
    model = re.search(r"model name\s*: (.*)", text)
    flags = re.search(r"flags\s*: (.*)", text)
    simd = (
        re.findall(r"\b(?:sse4_2|avx2?|fma|avx512\w+|avx_vnni|amx_\w+)\b", flags[1])
        if flags
        else []
    )
    return {
        "cpu": model[1] if model else "unknown",
        "features": " ".join(simd),
        "cores": len(os.sched_getaffinity(0)),
        "load": round(os.getloadavg()[0], 2),
    }


def arguments():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument(
        "--build", default=os.path.join(programs.HERE, "..", "build"), help="our build folder"
    )
    p.add_argument(
        "--peers",
        default=os.environ.get("PEERS"),
        help="folder that peers/install.sh filled (default: $PEERS)",
    )
    p.add_argument("--rows", default=".*", help="regular expression of row names")
    p.add_argument("--programs", default=".*", help="regular expression of program names")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument(
        "--budget", type=float, default=0.15, help="seconds of sampling a row, program and round"
    )
    p.add_argument("--out", help="results without the ending; '-' writes no file")
    p.add_argument(
        "--priority",
        action="store_true",
        help="real-time scheduling class (root): for a machine that others use too",
    )
    p.add_argument("--install", action="store_true", help="fill --peers first")
    return p.parse_args()


def main():
    options = arguments()
    options.build = os.path.abspath(options.build)
    if options.install:
        subprocess.run([os.path.join(programs.PEERS, "install.sh"), options.peers], check=True)
    if options.peers and not os.path.isdir(options.peers):
        options.peers = None
    if not options.peers:
        print(
            "no peers installed (benchmarks/peers/install.sh DIR, then --peers DIR): "
            "ours beside the machine's limits",
            file=sys.stderr,
        )
    available = [
        p
        for p in programs.all_programs(options.build, options.peers)
        if re.search(options.programs, p.name) and os.path.exists(p.command[0])
    ]
    if options.priority:  # spinning threads lose a factor of ten to a third busy process
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    meta = dict(
        machine(),
        date=time.strftime("%Y-%m-%d %H:%M"),
        threads=options.threads,
        rounds=options.rounds,
        command=" ".join(["benchmarks/run.py", *sys.argv[1:]]),
        commit=subprocess.run(
            ["git", "-C", programs.HERE, "describe", "--always", "--dirty"],
            capture_output=True,
            text=True,
            check=False,
        ).stdout.strip(),
    )
    with open(
        os.path.join(options.build, "benchmarks", "peers", "stderr.log"), "w", encoding="utf-8"
    ) as log:
        served = [Served(p, options, log) for p in available]
        try:
            rows = measure(served, options)
        finally:
            for s in served:
                s.end()
    if any(re.search(options.rows, r) for r in compile_times.ROWS):
        rows.update(
            compile_times.measure(
                options.build, options.peers, lambda name: re.search(options.programs, name)
            )
        )
    data = {
        "meta": meta,
        "headers": {s.name: s.header or {"error": "did not start"} for s in served},
        "rows": rows,
    }
    ours = [r for r in rows if "kassette" in rows[r]]
    print(
        report.as_text(
            report.table(rows) if ours else report.everything(rows, [s.name for s in served])
        )
    )
    missed = [r for r in ours if any(met is False for _, met in goals.judge(rows, r))]
    if ours:
        print(
            f"{len(ours)} rows, {len(missed)} miss a goal"
            + (": " + ", ".join(missed) if missed else "")
        )
        for line in report.means(rows):
            print(line)
    if options.out != "-":
        out = options.out or os.path.join(programs.HERE, "results", time.strftime("%Y-%m-%d-%H%M"))
        for ending, text in (
            (".json", json.dumps(data, indent=1) + "\n"),
            (".md", report.document(data)),
        ):
            with open(out + ending, "w", encoding="utf-8") as f:
                f.write(text)
        print(f"written: {out}.json, {out}.md")


if __name__ == "__main__":
    main()
