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


def ratio(ours, reference):
    return f"{ours / reference:.2f}" if ours is not None and reference else ""


def table(rows):
    """Our rows beside the best peer and the limit, with goals."""
    head = ["row", "kassette", "best peer", "", "ratio", "limit", "ratio", "goals"]
    out = []
    for row in rows:
        cell, unit = rows[row].get("kassette"), goals.unit_of(row)
        if cell is None:
            continue
        ours = goals.value(cell, unit)
        reference = goals.references(rows, row)
        peer, peer_name = reference["peer"]
        limit, limit_name = (
            reference["limit"] if reference["limit"][0] is not None else reference["openblas"]
        )
        verdicts = goals.judge(rows, row)
        words = "; ".join(
            f"{text}{'' if met is None else ' met' if met else ' MISSED'}" for text, met in verdicts
        )
        note = (
            "error: " + cell["error"]
            if "error" in cell
            else figure(ours, unit) + (" ~" if shaky(cell) else "")
        )
        where = (
            ""
            if limit is None
            else figure(limit, unit) + ("" if limit_name == "limits" else f" {limit_name}")
        )
        out.append(
            [
                row,
                note,
                figure(peer, unit),
                peer_name or "",
                ratio(ours, peer),
                where,
                ratio(ours, limit),
                words,
            ]
        )
    return [head] + out


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
            "it. Memory rows (mem.*) are growth of the resident set at its peak.",
            "",
            as_markdown(table(rows)),
            "",
            "## Every program",
            "",
            as_markdown(everything(rows, programs)),
            "",
        ]
    )
