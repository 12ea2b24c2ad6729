"""The page of results of `make bench-sites`, from its rows."""

from __future__ import annotations

from itertools import combinations, groupby
from typing import Any

import numpy as np

from tracehint.analyzer.predict.metadata.model import STRATEGIES

Row = dict[str, Any]
_HEAD = """# Metadata over several sites, measured

Written by `make bench-sites`. Four sites of eight nodes; round trips of 25 ms between the two in
Europe, 30 ms between the two in America, 90 to 120 ms between them. The registries are four Redis
servers, each busy for a fixed time with an operation; clients wait half a round trip before and
after a request (in the client: no network emulator is needed). Measured seconds, and in
parentheses what `predict --metadata` says with the service times of an idle registry
({lookup:.1f} ms a lookup, {update:.1f} ms an update, measured first). Load of the machine
meanwhile: {least:.1f} to {most:.1f} on two cores.

Workloads, with so many operations a node: *synthetic* (half of the nodes enter files, the other
half look up any of them), *near-pipeline* (chains that stay on their node), *Montage* (neighbours
read each other's files, one task reads from all).

"""


def page(rows: list[Row], costs: tuple[float, float]) -> str:
    """The page as Markdown."""
    loads = [row["load"] for row in rows]
    head = _HEAD.format(
        lookup=costs[0] * 1000, update=costs[1] * 1000, least=min(loads), most=max(loads)
    )
    lines = [f"| workload | operations | {' | '.join(STRATEGIES)} |", "|---" * 6 + "|"]
    for (shape, count), group in groupby(rows, lambda r: (r["shape"], r["operations"])):
        cells = {
            row["strategy"]: f"{row['measured']:.1f} s ({row['predicted']:.1f})" for row in group
        }
        found = [cells.get(name, "-") for name in STRATEGIES]
        lines.append(f"| {shape} | {count:,} | {' | '.join(found)} |")
    return head + "\n".join([*lines, "", *_errors(rows)]) + "\n"


def _errors(rows: list[Row]) -> list[str]:
    errors = [abs(row["predicted"] / row["measured"] - 1) for row in rows]
    right, pairs = order(rows)
    return [
        f"Error of the prediction: median {np.median(errors):.1%}, worst {max(errors):.1%}, "
        f"{len(rows)} rows. Of {pairs} pairs of strategies that differ by more than 10 % as "
        f"measured, {right} are predicted in the right order."
    ]


def order(rows: list[Row]) -> tuple[int, int]:
    """(pairs predicted in the right order, pairs of one workload that differ by over 10 %)."""
    right = total = 0
    for _, group in groupby(rows, lambda r: (r["shape"], r["operations"])):
        for a, b in combinations(group, 2):
            if max(a["measured"], b["measured"]) <= 1.1 * min(a["measured"], b["measured"]):
                continue
            total += 1
            right += (a["measured"] < b["measured"]) == (a["predicted"] < b["predicted"])
    return right, total
