"""The page of bytes between two sites, from the rows of data.py."""

from __future__ import annotations

import statistics
from collections import Counter
from itertools import groupby
from typing import Any

Row = dict[str, Any]
_HEAD = """# Data over two sites, measured

Written by `make bench-sites`. MooseFS on five nodes with links of 200 Mbit, two of them behind one
link of 50 Mbit; Montage replayed, sizes divided by 16. Medians of {runs} runs; in parentheses what
was predicted. Bytes are those that crossed the link between the sites during the run, both ways,
with the messages of the store. Other programs took {least:.0%} to {most:.0%} of the processors
meanwhile. *planned, sites not told*: the planner knew the nodes, not where they are.

"""


def page(rows: list[Row], columns: list[str]) -> str:
    """The page as Markdown."""
    loads = [row["others"] for row in rows]
    counts = Counter((row["title"], row["column"]) for row in rows)
    runs = min(counts.values())
    lines = ["| | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|"]
    ends = []
    for title, group in groupby(rows, lambda row: row["title"]):
        found = list(group)
        cells = {c: [row for row in found if row["column"] == c] for c in columns}
        for words, key, unit in (("MB between sites", "bytes", 1e6), ("seconds", "seconds", 1)):
            told = [_cell(cells[c], key, unit) for c in columns]
            lines.append(f"| {title}: {words} | {' | '.join(told)} |")
        ends.append(_end(title, cells))
    head = _HEAD.format(runs=runs, least=min(loads), most=max(loads))
    return head + "\n".join([*lines, "", *ends]) + "\n"


def _middle(rows: list[Row], key: str) -> float:
    return float(statistics.median(row[key] for row in rows))


def _cell(rows: list[Row], key: str, unit: float) -> str:
    return f"{_middle(rows, key) / unit:.1f} ({_middle(rows, f'predicted_{key}') / unit:.1f})"


def _end(title: str, cells: dict[str, list[Row]]) -> str:
    planned = _middle(cells["planned"], "bytes")
    shares = [
        f"{planned / _middle(rows, 'bytes'):.2f} of {column}"
        for column, rows in cells.items()
        if column != "planned"
    ]
    outputs = {row["outputs"] for rows in cells.values() for row in rows}
    said = "identical" if len(outputs) == 1 else f"DIFFERENT in {len(outputs)} ways"
    return f"{title}: planned sends {', '.join(shares)}. Outputs are {said} in all runs."
