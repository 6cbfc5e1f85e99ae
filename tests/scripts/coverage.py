#!/usr/bin/env python3
"""tests/scripts/coverage.py SOURCE BUILD - the lines and branches that gcov counted in a build of tests/scripts/coverage.sh.

A line counts if some object has code for it, and is reached if one of them ran it: a template's line once, a kernel's line once for all CPU
levels, a function of a header once for the CPU and the emulated device. The objects of the tests are read too: of an inline function that
several objects have, the linker keeps the first one's, and the others' counters stay 0. A branch is one way out of a condition. Left out are the ways that only an exception takes, with the ordinary way beside them: g++
gives each call that may throw such a pair. The same condition in several instantiations of a template counts once: the ways that any of them took.
So it does where a line is inlined: gcov lists the copies of it in one function behind each other. A line has as many ways as most functions say, or
the largest part of that number that its text allows: two for each if, for, while, case, &&, || and ?, and two for the end of a chain of && or ||.
Of a function that lists a multiple, each so many-th belong together; one whose number is no multiple, because constants decided some conditions
there, says nothing.
"""
import collections
import concurrent.futures
import json
import re
import subprocess
import sys
from pathlib import Path

source, build = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
FOLDERS = ("include", "core", "ops", "autograd")
CONDITION = re.compile(r"\b(?:if|for|while|case)\b|&&|\|\||\?")

lines = collections.defaultdict(lambda: collections.defaultdict(int))       # file -> line -> runs
branches = collections.defaultdict(lambda: collections.defaultdict(list))    # file -> line -> the runs of each way, a list for each function


def decisions(of_line):
    """The branches of a line that are no throw edges, and not the ordinary way beside one."""
    kept, i = [], 0
    while i < len(of_line):
        here = of_line[i]
        after = of_line[i + 1] if i + 1 < len(of_line) else None
        if after and here["throw"] != after["throw"]:
            i += 2
        elif here["throw"]:
            i += 1
        else:
            kept.append(here["count"])
            i += 1
    return kept


def read(data):
    for file in data["files"]:
        path = Path(file["file"])
        path = (path if path.is_absolute() else Path(data["current_working_directory"]) / path).resolve()
        if not path.is_relative_to(source) or path.relative_to(source).parts[0] not in FOLDERS:
            continue
        name = str(path.relative_to(source))
        for line in file["lines"]:
            number = line["line_number"]
            lines[name][number] += line["count"]
            ways = decisions(line["branches"])
            if ways:
                branches[name][number].append(ways)


def folded(functions, text):
    """How often each way of a line was taken."""
    numbers = collections.Counter(map(len, functions))
    n = min(numbers) if "switch" in text else max(numbers, key=lambda k: (numbers[k], -k))
    if n % 2 == 0 and "switch" not in text:
        found = CONDITION.findall(text.split("//")[0])
        most = 2 * max(1, len(found) + ("&&" in found or "||" in found))
        n = max(k for k in range(2, most + 1, 2) if n % k == 0)
    return [sum(ways[i] for f in functions if len(f) % n == 0 for ways in [f[k:k + n] for k in range(0, len(f), n)]) for i in range(n)]


def gcov(objects):
    return subprocess.run(["gcov", "--json-format", "--branch-probabilities", "--stdout", *objects], cwd=build, capture_output=True, text=True).stdout


def main():
    objects = sorted(str(p) for p in build.rglob("*.gcno"))
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for said in pool.map(gcov, ([name] for name in objects)):
            for text in said.splitlines():
                if text.startswith("{"):
                    read(json.loads(text))

    texts = {name: (source / name).read_text().splitlines() for name in lines}
    taken = {name: {number: folded(functions, texts[name][number - 1]) for number, functions in of.items()} for name, of in branches.items()}

    def count(name):
        of = lines[name]
        ways = [n for at in taken.get(name, {}).values() for n in at]
        return len(of), sum(n > 0 for n in of.values()), len(ways), sum(n > 0 for n in ways)

    table = {name: count(name) for name in lines}
    uncovered = open(build / "uncovered.txt", "w")
    for name in sorted(table):
        text = texts[name]
        for number in sorted(lines[name]):
            if lines[name][number] == 0:
                print(f"{name}:{number}: {text[number - 1].strip()}", file=uncovered)
            else:
                ways = taken.get(name, {}).get(number, [])
                for i, n in enumerate(ways):
                    if n == 0:
                        print(f"{name}:{number}: way {i + 1} of {len(ways)}: {text[number - 1].strip()}", file=uncovered)

    def show(title, names):
        a, b, c, d = (sum(table[n][i] for n in names) for i in range(4))
        print(f"{title:34} {b:6} of {a:6} lines {100 * b / max(a, 1):6.1f} %   {d:6} of {c:6} branches {100 * d / max(c, 1):6.1f} %")

    for name in sorted(table):
        if table[name][0] != table[name][1] or table[name][2] != table[name][3]:
            show(name, [name])
    print()
    for folder in FOLDERS:
        show(folder, [n for n in table if n.startswith(folder + "/") and not re.search(r"\.cuh?$", n)])
    show("CUDA kernels, run by the host", [n for n in table if re.search(r"\.cuh?$", n)])
    show("all but these", [n for n in table if not re.search(r"\.cuh?$", n)])
    print(f"what is not reached: {build / 'uncovered.txt'}")


main()
