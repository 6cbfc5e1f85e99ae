#!/usr/bin/env python3
"""tests/repl/repl_cling.py KASSETTE SOURCE - the golden sessions of tests/repl in real cling, through `kassette repl --cling`.

What a session shows as a value, cling has to show too, behind the type in brackets that it puts there; what our prompt says of
an exception has to be in cling's message. Errors of the compiler are each clang's own, and commands of our prompt (.time, ?name)
are not cling's: they are left out. A line that ends with `// not cling` is one that cling cannot do.
Without cling: exit code 77. It comes with Python's package `root`: KASSETTE_PYTHON names a Python that has it.
"""
import re
import subprocess
import sys
from pathlib import Path

TYPE = re.compile(r"^\([A-Za-z_][^()]*(\([^()]*\))?[^()]*\) ")


def entries(session):
    """(typed, shown) of each line, which may go over several."""
    found = []
    for line in session.read_text().split("\n"):
        if line.startswith("kassette>"):
            found.append(([line[10:]], []))
        elif line.startswith("     ...>"):
            found[-1][0].append(line[10:])
        elif found:
            found[-1][1].append(line)
    return [("\n".join(typed), "\n".join(shown).strip("\n")) for typed, shown in found]


def same(expected, got):
    """Numbers in any notation."""
    try:
        return abs(float(got.rstrip("f")) - float(expected)) <= 1e-6 * abs(float(expected))
    except ValueError:
        return got == expected


def for_cling(typed, shown):
    if typed.startswith((".", "?", "help(")) or typed.rstrip().endswith(("// not cling", "?")):
        return False
    return not re.search(r"^(fatal )?error: |\^C|^segmentation fault", shown, re.M) and "^C" not in typed


def play(kassette, session):
    kept = [(typed, shown) for typed, shown in entries(session) if for_cling(typed, shown)]
    lines = []
    for i, (typed, _) in enumerate(kept):
        lines += [typed, f'(void)(std::printf("\\n@@{i}\\n"), std::fflush(stdout));']
    done = subprocess.run([kassette, "repl", "--cling"], input="\n".join(lines) + "\n", capture_output=True, text=True, timeout=300)
    if "there is no cling here" in done.stderr:
        print("skipped: there is no cling; Python's package `root` has one (KASSETTE_PYTHON, or KASSETTE_TEST_CLING=fetch)")
        sys.exit(77)
    bad = 0
    for i, (typed, expected) in enumerate(kept):
        begin = f"\n@@{i - 1}\n" if i else ""
        got = done.stdout.partition(begin)[2] if i else done.stdout
        got = got.partition(f"\n@@{i}\n")[0]
        got = "\n".join(TYPE.sub("", line).rstrip() for line in got.strip("\n").split("\n"))
        thrown = re.match(r"(\w+::\w+): (.*)", expected)
        if thrown:
            right = thrown[2] in done.stderr
        else:
            right = not expected or same(expected, got)
        if not right:
            bad += 1
            print(f"{session.name}: {typed}\n--- expected\n{expected}\n--- cling\n{got}\n")
    return len(kept), bad


def main():
    kassette, source = sys.argv[1], Path(sys.argv[2])
    lines = bad = 0
    for session in sorted((source / "tests/repl").glob("*.txt")):
        if session.stem in ("compiler", "pasted", "again", "commands"):   # what our own prompt does with clang's faults, and beyond C++
            continue
        n, wrong = play(kassette, session)
        lines, bad = lines + n, bad + wrong
    print(f"{lines} lines in cling, {bad} not as in our prompt")
    sys.exit(1 if bad else 0)


main()
