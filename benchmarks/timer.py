"""Rows of the Python peers: the same protocol, arguments and output as timer.h."""

import argparse
import json
import re
import subprocess
import sys
import time

SAMPLE = 2e-3
_rows = {}  # name -> setup, returning the operation
_measures = {}  # name -> function returning fields; runs in a process of its own
_ready = {}  # operations set up already: compiled ones are traced once, not once a round


_per = {}  # name -> operations a call counts as, where it is not one


def finish():
    """Waits for the device whose operations are timed; a peer on a device puts its own in place."""


def row(name, setup, per=1):
    _rows[name], _per[name] = setup, per


def own_process(name, measure):
    _measures[name] = measure


def parse():
    p = argparse.ArgumentParser()
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--budget", type=float, default=0.15)
    p.add_argument("rows", nargs="?", default=".*")
    p.add_argument("--mode", default="")
    p.add_argument("--device", default="cpu")
    p.add_argument("--tiny", action="store_true")
    p.add_argument("--list", action="store_true")
    p.add_argument("--serve", action="store_true")
    p.add_argument("--here", action="store_true")
    return p.parse_args()


def status_bytes(field):
    with open("/proc/self/status") as f:
        return next(int(line.split()[1]) * 1024 for line in f if line.startswith(field))


def peak_of(work, per=1):
    with open("/proc/self/clear_refs", "w") as f:
        f.write("5")
    before, start = status_bytes("VmRSS"), time.perf_counter()
    work()
    first, peak = time.perf_counter() - start, status_bytes("VmHWM")
    start = time.perf_counter()
    work()
    ns = min(first, time.perf_counter() - start) * 1e9
    return {
        "bytes": round((peak - before) / per),
        "ns": ns / per,
        "first_ns": first * 1e9 / per,
        "process_bytes": peak,
    }


def time_row(operation, budget, per=1):
    clock = time.perf_counter

    def loop(n):
        start = clock()
        for _ in range(n):
            operation()
        finish()
        return clock() - start

    for _ in range(3):  # let compiled peers settle
        loop(1)
    inner = 1
    while (took := loop(inner)) < SAMPLE / 2:
        inner *= 8 if took < SAMPLE / 20 else 2
    inner = max(1, int(inner * SAMPLE / took))
    samples, start = [], clock()
    while (clock() - start < budget and len(samples) < 500) or len(samples) < 3:
        samples.append(loop(inner) / (inner * per) * 1e9)
        if clock() - start > 10 * budget:
            break
    samples.sort()
    n, median = len(samples), samples[len(samples) // 2]
    return {
        "median_ns": round(median, 1),
        "min_ns": round(samples[0], 1),
        "spread": round((samples[n - 1 - n // 4] - samples[n // 4]) / median, 3),
        "n": n * inner,
    }


def run_row(name, o):
    try:
        if name in _measures and not o.here:
            child = subprocess.run(
                [
                    "sh",
                    "-c",
                    'ulimit -s 8192; exec "$@"',
                    "sh",
                    sys.executable,
                    sys.argv[0],
                    "--mode",
                    o.mode,
                    "--here",
                    f"^{name}$",
                    "--threads",
                    str(o.threads),
                ],
                capture_output=True,
                text=True,
                check=False,
            )
            lines = [line for line in child.stdout.splitlines() if line.startswith('{"row"')]
            print(
                (
                    lines[-1]
                    if lines
                    else json.dumps({"row": name, "error": f"exit {child.returncode}"})
                ),
                flush=True,
            )
            return
        if name in _measures:
            fields = _measures[name]()
        else:
            if name not in _ready:
                _ready[name] = _rows[name]()
            fields = time_row(_ready[name], o.budget, _per[name])
    except Exception as e:  # a peer that lacks the operation is a result too
        fields = {"error": f"{type(e).__name__}: {str(e)[:200]}"}
    print(json.dumps({"row": name, **fields}), flush=True)


def run(o, **header):
    names = [*_rows, *_measures]
    if o.list:
        print("\n".join(names))
        return
    if not o.here:
        print(json.dumps({"header": True, "threads": o.threads, **header}), flush=True)
    if o.serve:
        for line in sys.stdin:
            run_row(line.strip(), o)
        return
    for name in names:
        if re.search(o.rows, name):
            run_row(name, o)
