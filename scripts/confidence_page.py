#!/usr/bin/env python3
"""Write docs/reference/confidence.md from runs with injected losses.

Takes about a minute; run it in the repository's folder as `python -m scripts.confidence_page`
or with PYTHONPATH=. set. Seeds are fixed, so the same program writes the same page.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.support.calibration import SHARES, Bin, Given, bins, collect, error
from tests.support.losses import LOSSES

DOCS = Path(__file__).resolve().parent.parent / "docs" / "reference"
SEEDS, UNITS = (1, 2, 3), 200
MEANING = {
    "lose_records": "single access records, at random",
    "lose_bursts": "access records of whole stretches of time",
    "lose_opens": "open files with all their records, owner unknown",
    "lose_tables": "open files with all their records, owner known",
}
HEAD = """\
# Confidence, measured

A label given at confidence *x* should be right in about *x* of the cases. This page shows how near
that comes when a recorder loses records. {runs} runs of {units} small workflows each (broadcast,
scatter, partly shared, chains, reduce, distribute, gather; fixed seeds) are analyzed whole, and
again after {least:.0%} to {most:.0%} of the records were dropped in {kinds} ways, counted as the
collectors count losses. A label of the second analysis is right when the first one has it too:
{count:,} labels. Written by `python scripts/confidence_page.py`.

"""
FOOT = """
The *error* is the mean distance between confidence and share of right labels, over tenths of the
scale. `tests/test_calibration.py` fails when it exceeds 0.03 over all, or 0.05 for a kind of loss.

Where it is off: labels that rest on ranges (broadcast, partly shared) are right more often than
they say, because a reader whose ranges are lost is taken for a reader of the whole file, and
because the factor `threshold` counts nearness to a threshold also where nothing is missing. What
the factors are: [patterns](../patterns.md); why: [rationale](explanation/design.md).
"""


def table(title: str, rows: Sequence[tuple[str, Sequence[Given]]]) -> str:
    lines = [f"| {title} | labels | mean confidence | right | error |", "|---|---|---|---|---|"]
    for name, given in rows:
        mean = sum(g.confidence for g in given) / len(given)
        right = sum(g.right for g in given) / len(given)
        lines.append(f"| {name} | {len(given):,} | {mean:.3f} | {right:.3f} | {error(given):.3f} |")
    return "\n".join(lines) + "\n"


def scale(found: Sequence[Bin]) -> str:
    lines = ["| labels | mean confidence | right |", "|---|---|---|"]
    lines += [f"| {b.count:,} | {b.confidence:.2f} | {b.right:.2f} |" for b in found]
    return "\n".join(lines) + "\n"


def main() -> int:
    given = collect(SEEDS, UNITS)
    names = sorted({g.label for g in given})
    head = HEAD.format(
        runs=len(SEEDS),
        units=UNITS,
        least=SHARES[0],
        most=SHARES[-1],
        kinds=len(LOSSES),
        count=len(given),
    )
    parts = [
        scale(bins(given)),
        table("all", [("all labels", given),
                      ("below 0.95", [g for g in given if g.confidence < 0.95])]),
        table("lost", [(MEANING[k], [g for g in given if g.kind == k]) for k in LOSSES]),
        table("share lost", [(f"{s:.0%}", [g for g in given if g.share == s]) for s in SHARES]),
        table("label", [(n, [g for g in given if g.label == n]) for n in names]),
    ]  # fmt: skip  # a table
    (DOCS / "confidence.md").write_text(head + "\n".join(parts) + FOOT, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
