"""Runs the notebooks of examples/notebooks and compares what they show with what is stored in them: words exactly, numbers up to
the rounding of another CPU, pictures by their kind. A cell with the tag `varies` shows the same kinds of things.

notebooks_test.py [--accept] [NOTEBOOK...]; --accept stores what is shown now."""
import os
import pathlib
import re
import sys

import nbformat
from nbclient import NotebookClient

NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?")
ROUNDING = 1e-4
SECONDS = 600   # for a cell, on a busy machine


def shown(cell):
    """What a cell shows, as (kind, mime types, text)."""
    for output in cell.outputs:
        if output.output_type == "stream":
            yield output.name, [], output.text
        elif output.output_type == "error":
            yield "error", [output.ename], re.sub(r"\x1b\[[\d;]*m", "", "\n".join(output.traceback))
        else:
            yield output.output_type, sorted(output.data), output.data.get("text/plain", "")


def same_text(a, b):
    """Whether words are equal, and numbers up to rounding. Braille and blocks are a picture."""
    a, b = (re.sub("[\u2580-\u259f\u2800-\u28ff ]+", " ", s) for s in (a, b))
    if NUMBER.sub("#", a) != NUMBER.sub("#", b):
        return False
    for x, y in zip(map(float, NUMBER.findall(a)), map(float, NUMBER.findall(b))):
        if abs(x - y) > ROUNDING * max(abs(x), abs(y), 1):
            return False
    return True


def differences(stored, run):
    for number, (old, new) in enumerate(zip(stored.cells, run.cells)):
        if old.cell_type != "code":
            continue
        before, now = list(shown(old)), list(shown(new))
        kinds = [s[:2] for s in before] == [s[:2] for s in now]
        # The text of a progress bar has times.
        same = all(same_text(x[2], y[2]) or "\u2595" in x[2] for x, y in zip(before, now))
        if not kinds or not (same or "varies" in old.metadata.get("tags", [])):
            yield f"cell {number}: shown before:\n{before}\nnow:\n{now}"


def main():
    accept = "--accept" in sys.argv
    folder = pathlib.Path(os.environ["KASSETTE_NOTEBOOKS"])
    names = [pathlib.Path(n) for n in sys.argv[1:] if n != "--accept"] or sorted(folder.glob("*.ipynb"))
    failed = 0
    for name in names:
        stored, run = nbformat.read(name, 4), nbformat.read(name, 4)
        client = NotebookClient(run, timeout=SECONDS, kernel_name="kassette", record_timing=False, resources={"metadata": {"path": str(name.parent)}})
        try:
            client.execute()
        except Exception as e:  # an error of a cell that should have none
            print(f"{name.name}: {e}")
            failed = 1
            continue
        found = [] if accept else list(differences(stored, run))
        for difference in found:
            print(f"{name.name}: {difference}")
        failed = failed or bool(found)
        if accept:
            nbformat.write(run, name)
    sys.exit(failed)


if __name__ == "__main__":
    main()
