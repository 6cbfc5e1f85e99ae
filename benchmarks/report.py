"""Results as text: the table of ratios, and every program's figure."""

import goals


def figure(amount, unit="ns"):
    if amount is None:
        return ""
    steps = {
        "ns": (("ns", 1), ("us", 1e3), ("ms", 1e6), ("s", 1e9)),
        "bytes": (("B", 1), ("kB", 1e3), ("MB", 1e6), ("GB", 1e9)),
    }[unit]
    for name, size in steps:
        if amount < 999.5 * size or name == steps[-1][0]:
            return f"{amount / size:.3g} {name}"


def shaky(cell):
    """No second round came near the best one."""
    rounds = sorted(cell.get("median_ns") or [])
    return len(rounds) > 1 and rounds[1] > 1.3 * rounds[0]


def smallest(cells, unit):
    return min((goals.value(c, unit) for c in cells.values()), default=None)


def ratio(ours, cells, unit):
    figure_ = goals.ratio(ours, cells.values(), unit)
    return "" if figure_ is None else f"{figure_:.2f}"


def table(rows):
    """Our rows beside the best peer and the limit, with goals."""
    out = [["row", "kassette", "best peer", "", "ratio", "limit", "ratio", "goals"]]
    for row in rows:
        cell, unit = rows[row].get("kassette"), goals.unit_of(row)
        if cell is None:
            continue
        reference = goals.references(rows, row)
        peer = reference["peer"]
        limit = reference["limit"] or reference["openblas"]
        goal = "; ".join(
            text + ("" if met is None else " met" if met else " MISSED")
            for text, met in goals.judge(rows, row)
        )
        ours = figure(goals.value(cell, unit), unit) + (" ~" if shaky(cell) else "")
        out.append(
            [
                row,
                "error: " + cell["error"] if "error" in cell else ours,
                figure(smallest(peer, unit), unit),
                "".join(peer),
                ratio(cell, peer, unit),
                figure(smallest(limit, unit), unit),
                ratio(cell, limit, unit),
                goal,
            ]
        )
    return out


def means(rows):
    """A line for each geometric mean that has a goal."""
    return [
        f"geometric mean of {count} ratios to the best peer, rows {pattern}: {mean:.2f}"
        + ("" if met else " MISSED")
        for pattern, count, mean, met in goals.judge_means(rows)
    ]


def everything(rows, programs):
    """Every program's figure in every row."""
    out = [["row"] + programs]
    for row, cells in rows.items():
        unit = goals.unit_of(row)
        out.append(
            [row]
            + [
                (
                    ""
                    if p not in cells
                    else (
                        "error"
                        if "error" in cells[p]
                        else figure(goals.value(cells[p], unit), unit)
                        + (" ~" if shaky(cells[p]) else "")
                    )
                )
                for p in programs
            ]
        )
    return out


def as_text(lines):
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    return "\n".join("  ".join(c.ljust(w) for c, w in zip(line, widths)).rstrip() for line in lines)


def as_markdown(lines):
    head, *rest = lines
    rule = "|".join(["---"] * len(head))
    return "\n".join(
        ["| " + " | ".join(head) + " |", f"|{rule}|"]
        + ["| " + " | ".join(line) + " |" for line in rest]
    )


def document(data):
    meta = data["meta"]
    said = []
    for name, h in data["headers"].items():
        keep = {
            k: v for k, v in h.items() if k not in ("header", "peer", "cpu", "features", "threads")
        }
        said.append(f"- {name}: " + ", ".join(f"{k} {v}" for k, v in keep.items()))
    rows = data["rows"]
    programs = [p for p in data["headers"]] + sorted(
        {p for c in rows.values() for p in c} - set(data["headers"])
    )
    return "\n".join(
        [
            f"# Benchmarks, {meta['date']}",
            "",
            f"`{meta['command']}` at {meta['commit']}",
            "",
            f"{meta['cpu']}; {meta['features']}; {meta['cores']} cores, {meta['threads']} threads, "
            f"{meta['rounds']} rounds, load before {meta['load']}.",
            "",
            *said,
            "",
            "A time is the median of the best round, `~` where no second round came within 1.3 of "
            "it; a ratio is the median over rounds of the ratio within a round. Memory rows (mem.*) "
            "are growth of the resident set at its peak.",
            "",
            as_markdown(table(rows)),
            "",
            *(line + "." for line in means(rows)),
            "",
            "## Every program",
            "",
            as_markdown(everything(rows, programs)),
            "",
        ]
    )
