#!/usr/bin/env bash
# tests/checks/pairs.sh SOURCE BUILD - in autograd/ every header has the source of its name, and what a source defines for others is declared in the
# header of its name. Prints the files that break this.
set -euo pipefail
for tool in nm python3; do
  command -v $tool >/dev/null || { echo "skipped: there is no $tool"; exit 77; }
done
exec python3 - "$@" <<'PYTHON'
import pathlib, re, subprocess, sys

source, build = (pathlib.Path(p).resolve() for p in sys.argv[1:3])
files = {p.relative_to(source).as_posix() for p in (source / "autograd").rglob("*") if p.suffix in (".h", ".cpp")}
stems = sorted({name.rsplit(".", 1)[0] for name in files})
objects = {p.as_posix() for p in build.rglob("*.cpp.o") if "/autograd/" in p.as_posix() and "/tests/" not in p.as_posix()}


def defined(stem):
    """What the objects of a source offer to others: functions, variables, and classes with members."""
    names = set()
    for path in (o for o in objects if o.endswith(f"/{stem.removeprefix('autograd/')}.cpp.o")):
        for line in subprocess.run(["nm", "-C", "--defined-only", path], text=True, capture_output=True, check=True).stdout.splitlines():
            kind, name = line[17], line[19:]
            if kind in "TDBR" and name.startswith("kassette::"):
                names.add(re.sub(r"\(.*|\[abi:\w+\]|<.*", "", name).removeprefix("kassette::autograd::").split("::")[0])
    return names


broken = symbols = 0
for stem in stems:
    why = [f"there is no {stem}{suffix}" for suffix in (".h", ".cpp") if stem + suffix not in files]
    if not why:
        header = (source / f"{stem}.h").read_text()
        names = defined(stem)
        symbols += len(names)
        why = [f"{stem}.h does not declare {name}" for name in sorted(names) if not re.search(rf"\b{name}\b", header)]
        why += [] if names else [f"no object in {build} has a name that {stem}.cpp defines for others: is it compiled?"]
        first = re.search(r'#include (\S+)', (source / f"{stem}.cpp").read_text())
        if not first or first[1] != f'"{stem}.h"':
            why.append(f"{stem}.cpp does not begin with its header")
    broken += bool(why)
    print(*why, sep="\n", end="\n" if why else "")
print(f"{len(stems)} pairs, {broken} broken; {symbols} names declared where they are defined")
sys.exit(broken > 0 or symbols < 50)
PYTHON
