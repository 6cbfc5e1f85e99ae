"""What each row is meant to reach, in one place, and the comparison of a row with it.

A goal is (regular expression of our row names, what it is measured against, the largest value that
meets it):
  peer      ratio to the fastest of all peers, compiled ones included
  limit     ratio to the hand-written kernel on reused buffers
  openblas  ratio to OpenBLAS called directly with its own threads
  torch     ratio to PyTorch's C++ API
  ns, s, bytes  the value itself
"""

import re

GOALS = [
    (r"small\.(add|add_tracked|sum4|matmul2)", "peer", 0.12),
    (r"small\.add", "ns", 40),
    (r"small\.add_tracked", "ns", 80),
    (r"small\.reshape", "peer", 0.2),
    (r"small\.create4", "peer", 0.6),
    (r"small\.add_mul_sum_fb", "peer", 0.15),
    (r"train\.mlp_b32", "peer", 0.6),
    (r"train\.mlp_b32\.fn", "peer", 0.5),
    (r"ew\.(add|mul|relu|exp)\.1e3", "peer", 0.2),
    (r"ew\.(add|mul|relu|exp)\.1e[57]", "limit", 1.2),
    (r"ew\.chain10\.1e7\.fn", "peer", 1.0),
    (r"mm\.sq(512|1024)", "openblas", 1.05),
    (r"compile\.hello", "s", 0.6),
    (r"repl\.hello", "s", 0.3),
    (r"chain\.1e6_fb", "torch", 0.08),
    (r"mem\.record_op\.t[12]", "bytes", 600),
]

# Programs that are no peers: the machine itself, and OpenBLAS without a tensor library around it.
YARDSTICKS = ("limits", "openblas-system", "openblas-wheel")


def peer_row(row):
    """The peers' name of our row: .fn says only that ours goes through K::function."""
    return row.removesuffix(".fn")


def value(cell, unit="ns"):
    """A cell's figure: the best round's median, or bytes. Inside a round the median guards against
    a lucky call; between rounds disturbances only slow down."""
    if unit == "bytes":
        return cell.get("bytes")
    return min(cell["median_ns"]) if cell.get("median_ns") else cell.get("ns")


def unit_of(row):
    return "bytes" if row.startswith("mem.") else "ns"


def fastest(cells, names, unit):
    """(value, name) of the smallest among the named programs' cells, or (None, None)."""
    found = [
        (value(cells[n], unit), n)
        for n in names
        if n in cells and value(cells[n], unit) is not None
    ]
    return min(found) if found else (None, None)


def references(rows, row):
    """{"peer": (value, name), "limit": ..., "openblas": ..., "torch": ...} for one of our rows."""
    unit, cells = unit_of(row), rows.get(peer_row(row), {})
    limits = [rows.get(peer_row(row) + end, {}).get("limits") for end in ("", ".stream")]
    limits = [value(c, unit) for c in limits if c and value(c, unit) is not None]
    return {
        "peer": fastest(cells, [n for n in cells if n not in YARDSTICKS and n != "kassette"], unit),
        "limit": (min(limits), "limits") if limits else (None, None),
        "openblas": fastest(cells, ["openblas-system", "openblas-wheel"], unit),
        "torch": fastest(cells, ["torch"], unit),
    }


def judge(rows, row):
    """[(text, met)] for every goal of the row; met is None where its yardstick is missing."""
    unit = unit_of(row)
    ours = value(rows[row].get("kassette", {}), unit)
    verdicts = []
    for pattern, against, most in GOALS:
        if not re.fullmatch(pattern, row) or ours is None:
            continue
        if against in ("ns", "s", "bytes"):
            have = ours / 1e9 if against == "s" else ours
            verdicts.append((f"{have:.3g} <= {most:g} {against}", have <= most))
            continue
        reference, _ = references(rows, row)[against]
        if reference is None:
            verdicts.append((f"? <= {most:g} {against}", None))
        else:
            verdicts.append(
                (f"{ours / reference:.3g} <= {most:g} {against}", ours / reference <= most)
            )
    return verdicts
