#!/usr/bin/env bash
# tests/checks/notes.sh SOURCE [--write] - a rule that several files share is explained once, in a comment that begins with a line `// Note [Name]`, and
# referred to by that name. Each name that is referred to is explained exactly once, a file named beside it is the one that explains it, and
# docs/architecture/notes.md lists them all. --write writes that list.
set -euo pipefail
command -v python3 >/dev/null || { echo "skipped: there is no python3"; exit 77; }
exec python3 - "$@" <<'PYTHON'
import pathlib
import re
import sys

source = pathlib.Path(sys.argv[1]).resolve()
folders = ["include", "core", "devices", "ops", "autograd", "nn_backend", "python", "tools", "tests", "benchmarks"]
suffixes = {".h", ".cpp", ".cu", ".cuh", ".py", ".sh"}
explained, complaints, referred = {}, [], 0
texts = {}
for folder in folders:
    for path in sorted((source / folder).rglob("*")):
        name = path.relative_to(source).as_posix()
        if path.suffix in suffixes and name != "tests/checks/notes.sh":
            texts[name] = path.read_text(errors="replace")
for name, text in texts.items():
    for note in re.findall(r"(?m)^\s*(?:///?|#) Note \[([^\]]+)\]$", text):
        if note in explained:
            complaints.append(f"Note [{note}] is explained twice: in {explained[note]} and in {name}")
        explained[note] = name
for name, text in texts.items():
    # A comment may break between the words of a reference.
    flat = re.sub(r"\n\s*(?:///?|#) ", " ", text)
    for note, file in re.findall(r"Note \[([^\]]+)\](?:(?:,| in) \(?((?:\w+/)*\w+\.(?:h|cpp|cuh?|py)))?", flat):
        referred += 1
        if note not in explained:
            complaints.append(f"{name}: Note [{note}] is explained nowhere")
        elif file and file != explained[note] and file != pathlib.PurePath(explained[note]).name:
            complaints.append(f"{name}: Note [{note}] is in {explained[note]}, not in {file}")

page = source / "docs/architecture/notes.md"
head, line, _ = page.read_text().partition("| Note | file |\n|---|---|\n")
order = lambda note: (folders.index(explained[note].split("/")[0]), explained[note], note)
listed = head + line + "".join(f"| {note} | `{explained[note]}` |\n" for note in sorted(explained, key=order))
if sys.argv[2:] == ["--write"]:
    page.write_text(listed)
elif listed != page.read_text():
    complaints.append("docs/architecture/notes.md does not list the Notes as they are: tests/checks/notes.sh . --write")
print("\n".join([*complaints, f"{len(explained)} Notes, {referred} lines that name one, {len(complaints)} complaints"]))
sys.exit(bool(complaints))
PYTHON
