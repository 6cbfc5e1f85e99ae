#!/usr/bin/env python3
"""Keras 2.3.1 on kassette beside tf.keras, and calls from Python beside C++, in one run: rounds of each in turn, best round of each.

    benchmarks/python/beside.py --python PY --tf PY --calls PROGRAM [--rounds N] [--out FILE.md] [--alone COMMAND]

PY is a Python with the wheel and Keras 2.3.1 (tests/keras/run.sh makes build/python/keras/env) and one with TensorFlow 2.15
(benchmarks/peers/install.sh DIR tf makes DIR/tf); PROGRAM is calls.cpp, compiled: g++ -O2 -std=c++17 calls.cpp $(./kassette flags).
COMMAND goes before each of the programs, such as `chrt 1`.
"""
import argparse
import datetime
import json
import os
import pathlib
import shlex
import subprocess
import tempfile

here = pathlib.Path(__file__).resolve().parent
# The share of TensorFlow's time, and microseconds above C++; milliseconds for the import.
FIT = {"tiny_mlp": 0.1, "mlp_784_512": 0.7, "lstm_64_t50": 0.6, "lenet": 0.8}
CALLS = {"square": 0.4, "add": 0.4, "function": 1.5}
IMPORT = 20


def answer(options, *command, backend=""):
    env = {k: v for k, v in os.environ.items() if k not in ("OPENBLAS_CORETYPE", "KERAS_BACKEND")}
    if backend:
        env["KERAS_BACKEND"] = backend
    env["KERAS_HOME"] = options.home
    out = subprocess.run([*shlex.split(options.alone), *map(str, command)], env=env, capture_output=True, text=True, check=True).stdout
    return json.loads(out.strip().splitlines()[-1])


def best(rounds):
    return {row: min(r[row] for r in rounds) for row in rounds[0]}


def verdict(value, limit, unit=""):
    return f"<= {limit}{unit}, {'met' if value <= limit else 'missed'}"


def table(fit, tf, python, cpp):
    yield "| `fit`, a step | Keras on kassette | tf.keras | ratio | goal |\n|---|---|---|---|---|"
    for row, limit in FIT.items():
        ratio = fit[row] / tf[row]
        yield f"| {row} | {fit[row] * 1e6:.4g} us | {tf[row] * 1e6:.4g} us | {ratio:.2g} | {verdict(ratio, limit)} |"
    yield "\n| a call | from Python | in C++ | above it | goal |\n|---|---|---|---|---|"
    for row, limit in CALLS.items():
        above = (python[row] - cpp[row]) * 1e6
        yield f"| {row} | {python[row] * 1e6:.3f} us | {cpp[row] * 1e6:.3f} us | {above:.2f} us | {verdict(above, limit, ' us')} |"
    yield f"\nImporting `kassette._core` after NumPy: {python['import'] * 1e3:.1f} ms; {verdict(python['import'] * 1e3, IMPORT, ' ms')}."


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("--python", "--tf", "--calls"):
        parser.add_argument(name, required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out")
    parser.add_argument("--alone", default="")
    options = parser.parse_args()
    answers = [[], [], [], []]
    with tempfile.TemporaryDirectory() as options.home:   # where Keras writes a keras.json
        for _ in range(options.rounds):
            answers[0].append(answer(options, options.python, here / "fit.py", backend="kassette.keras"))
            answers[1].append(answer(options, options.tf, here / "fit.py", "tf"))
            answers[2].append(answer(options, options.python, here / "calls.py"))
            answers[3].append(answer(options, options.calls))
    commit = subprocess.run(["git", "-C", here, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False).stdout.strip()
    cpu = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "")
    text = "\n".join([f"# Keras' fit, {datetime.date.today()}\n", f"`benchmarks/python/beside.py --rounds {options.rounds}` at {commit}; {cpu}, "
                      f"{len(os.sched_getaffinity(0))} cores. Batches of 64; the best of the rounds.\n", *table(*map(best, answers))]) + "\n"
    if options.out:
        pathlib.Path(options.out).write_text(text)
    print(text, end="")


if __name__ == "__main__":
    main()
