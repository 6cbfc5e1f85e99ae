#!/usr/bin/env bash
# tests/checks/mutation_lists.sh SOURCE BUILD - the lines that tests/mutation/planted.tsv and judged.tsv quote are in the sources.
set -euo pipefail
command -v python3 >/dev/null || { echo "skipped: there is no python3"; exit 77; }
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
python3 "$1/tests/mutation/mutants.py" plant --out "$out"
python3 - "$1" <<'PYTHON'
import sys
from pathlib import Path

root = Path(sys.argv[1])
rows = [line.split("\t") for line in (root / "tests/mutation/judged.tsv").read_text().splitlines() if line and not line.startswith("#")]
missing = [(file, text) for file, text, *_ in rows
           if text not in [line.strip() for line in (root / file).read_text().splitlines()]]
for file, text in missing:
    print(f"judged.tsv: {file} has no line: {text}")
print(f"{len(rows)} judged mutants, {len(missing)} of a line that is gone")
sys.exit(bool(missing))
PYTHON
