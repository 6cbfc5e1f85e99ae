"""What each row is meant to reach, in one place, and the comparison of a row with it.

A goal is (regular expression of our row names, what it is measured against, the largest value that
meets it):
  peer      ratio to the fastest of all peers, compiled ones included
  limit     ratio to the hand-written kernel on reused buffers
  openblas  ratio to OpenBLAS called directly with its own threads
  torch     ratio to PyTorch's C++ API
  ns, s, bytes  the value itself
  a row's name  ratio to that row of ours
"""

import re
import statistics

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
    (r"mm\.(nt|tn|m32|tall|inner|gemv).*", "openblas", 1.05),
    (r"mm\.batched64", "peer", 1.0),
    (r"mm\.dot_3d", "mm.dot_2d", 1.05),
    (r"ew\.(tanh|pow|cast_.*|remainder|floor_divide)\.1e[57]", "peer", 1.0),
    (r"red\.argmax_ax1", "red.sum_ax1", 2.0),
    (r"red\.cumsum_ax1", "peer", 1.0),
    (r"red\.softmax_128x10", "peer", 0.4),
    (r"nn\.(softmax|sparse)_ce_1024x1000_fb", "peer", 0.7),
    (r"nn\.ctc_fb?", "torch", 0.6),
    (r"nn\.ctc_fb\.K", "peer", 0.3),
    (r"nn\.ctc_beam100", "peer", 0.5),
    (r"nn\.bn_56x64_[fb]\.c[lf]", "peer", 0.9),
    (r"idx\.(gather_b|transpose0231|transpose2d_4096)", "peer", 1.0),
    (r"sparse\.dot_1e4_1pct_128(_b)?", "torch", 1.0),
    (r"fft\..*", "torch", 1.2),
    (r"np\.(sort|argsort|sort_i32|top_k10)\..*", "torch", 0.8),
    (r"np\.(take|mask|scatter_add|segment_sum|cumsum)\.1e6", "torch", 0.9),
    (r"np\.(where|floor|erf|arctan2)\.1e7", "torch", 1.0),
    (r"np\.einsum\.64x64x64", "np.matmul.64x64x64", 1.1),
    (r"nn\.attention_(f|fb|causal_f)", "torch", 0.9),
    (r"small\.(where|take|at_set)", "ns", 150),
    (r"la\..*", "torch", 1.0),
    (r"train\.lstm_fb?", "peer", 1.2),
    (r"train\.lstm_fb?\.fn", "peer", 1.0),
    (r"train\.adam_1e7", "limit", 1.3),
    (r"(conv|pool)\.(?!.*_n\d).*", "peer", 1.3),
    (r"conv\..*_n\d.*", "peer", 1.4),
    (r"train\.cnn_b64", "torch", 0.8),
    (r"train\.cnn_b64\.fn", "peer", 0.8),
    (r"mem\.cnn_b64(\.fn)?", "torch", 1.0),
    (r"io\.(npz|safetensors|npy)", "io.copy", 1 / 0.7),
    (r"look\.print_1e7", "ns", 1e6),
    (r"compile\.hello", "s", 0.6),
    (r"repl\.hello", "s", 0.3),
    (r"chain\.1e6_fb", "torch", 0.08),
    (r"mem\.record_op\.t[12]", "bytes", 600),
    (r"mem\.mlp50_b1024", "torch", 1.0),
]

# (regular expression of our row names, largest geometric mean of their ratios to the fastest peer).
MEANS = [(r"(conv|pool)\..*", 1.0)]

# Rows of a CUDA device (ours/device.cpp): what they are measured against, and the bound.
#   torch  largest ratio to PyTorch, eager, in the same row without ".fn"
#   copy   smallest fraction of what a copy on the device reads and writes a second
DEVICE_GOALS = [
    (r"ew\..*", "copy", 0.85),
    (r"red\.(all|columns|rows|long_rows|nchw|max_rows|argmax_rows)", "copy", 0.85),
    (r"mm\..*", "torch", 1.05),
    (r"small\..*", "torch", 0.6),
    (r"train\.mlp\.fn", "torch", 0.5),
    (r"train\.(lstm|lenet)\.fn", "torch", 1.0),
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


def ratio(ours, cells, unit):
    """Ours against the smallest of the cells: the median over rounds of the ratio within a round.

    A machine that is slow for a while (or fast: memory is shared with neighbours) is so for all
    programs of a row and round.
    """
    mine = ours.get("median_ns", [])
    theirs = [c["median_ns"] for c in cells if mine and len(c.get("median_ns", [])) == len(mine)]
    if unit == "ns" and len(mine) > 1 and theirs:
        return statistics.median(m / min(t[i] for t in theirs) for i, m in enumerate(mine))
    known = [v for c in cells if (v := value(c, unit))]
    return value(ours, unit) / min(known) if known and value(ours, unit) is not None else None


def unit_of(row):
    return "bytes" if row.startswith("mem.") else "ns"


def references(rows, row):
    """What a row is measured against: {"peer": {name: cell}, "limit": ..., "openblas": ...}."""
    unit, cells = unit_of(row), rows.get(peer_row(row), {})
    cells = {n: c for n, c in cells.items() if n != "kassette" and value(c, unit) is not None}
    limits = [rows.get(peer_row(row) + end, {}).get("limits") for end in ("", ".stream")]
    peers = {n: c for n, c in cells.items() if n not in YARDSTICKS}
    best = min(peers, key=lambda n: value(peers[n], unit), default=None)
    return {
        "peer": {best: peers[best]} if best else {},
        "limit": {
            f"limits {i}": c for i, c in enumerate(limits) if c and value(c, unit) is not None
        },
        "openblas": {n: c for n, c in cells.items() if n.startswith("openblas")},
        "torch": {n: c for n, c in cells.items() if n == "torch"},
    }


def judge(rows, row):
    """[(text, met)] for every goal of the row; met is None where its yardstick is missing."""
    unit, ours, verdicts = unit_of(row), rows[row].get("kassette", {}), []
    have = value(ours, unit)
    for pattern, against, most in GOALS:
        if not re.fullmatch(pattern, row) or have is None:
            continue
        if against in ("ns", "s", "bytes"):
            figure = have / 1e9 if against == "s" else have
        elif against in rows:
            figure = ratio(ours, [rows[against].get("kassette", {})], unit)
        else:
            figure = ratio(ours, references(rows, row).get(against, {}).values(), unit)
        if figure is None:
            verdicts.append((f"? <= {most:g} {against}", None))
        else:
            verdicts.append((f"{figure:.3g} <= {most:g} {against}", figure <= most))
    return verdicts


def judge_means(rows):
    """[(regular expression, number of rows, mean, met)] for every goal of MEANS that has rows."""
    verdicts = []
    for pattern, most in MEANS:
        ratios = [
            r
            for row in rows
            if re.fullmatch(pattern, row)
            and (ours := rows[row].get("kassette"))
            and (r := ratio(ours, references(rows, row)["peer"].values(), unit_of(row)))
        ]
        if ratios:
            mean = statistics.geometric_mean(ratios)
            verdicts.append((pattern, len(ratios), mean, mean <= most))
    return verdicts
