#!/usr/bin/env python3
"""Write docs/reference/confidence.md and its curve from runs with injected losses.

Takes about a minute; run it from the repository's folder as `python -m scripts.calibration_curve`
or with PYTHONPATH=. set. Seeds are fixed: the same program gives the same page.
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
SIDE, MARGIN = 360, 50
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
{count:,} labels. Written by `python scripts/calibration_curve.py`.

![Share of right labels by confidence](confidence.svg)

The dashed line is perfect; the area of a circle follows the number of labels.

"""
FOOT = """
The *error* is the mean distance between confidence and share of right labels, over tenths of the
scale. `tests/test_calibration.py` fails when it exceeds 0.03 over all, or 0.05 for a kind of loss.

Where it is off: labels that rest on ranges (broadcast, partly shared) are right more often than
they say, because a reader whose ranges are lost is taken for a reader of the whole file, and
because the factor `threshold` counts nearness to a threshold also where nothing is missing. What
the factors are: [patterns](../patterns.md); why: [rationale](../rationale/lost-accesses.md).
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


def curve(found: Sequence[Bin]) -> str:
    """The curve as SVG text; colours that read on light and dark pages."""
    size = SIDE + 2 * MARGIN
    most = max(b.count for b in found)

    def at(x: float, y: float) -> tuple[float, float]:
        return round(MARGIN + x * SIDE, 1), round(MARGIN + (1 - y) * SIDE, 1)

    def line(one: tuple[float, float], two: tuple[float, float], style: str) -> str:
        (a, b), (c, d) = at(*one), at(*two)
        return f'<line x1="{a}" y1="{b}" x2="{c}" y2="{d}" {style}/>'

    def words(x: float, y: float, text: str, more: str = "") -> str:
        return f'<text x="{x}" y="{y}" text-anchor="middle" {more}>{text}</text>'

    grey = 'stroke="#888" stroke-width="1"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size} {size}" width="{size}" '
        f'height="{size}" font-family="sans-serif" font-size="12" fill="#888">',
        "<title>Share of right labels by confidence</title>",
        line((0, 0), (1, 0), grey), line((0, 0), (0, 1), grey),
        line((0, 0), (1, 1), grey + ' stroke-dasharray="4 4"'),
    ]  # fmt: skip  # a table
    for k in range(0, 11, 2):
        x, y = at(k / 10, 0)
        parts.append(words(x, y + 16, f"{k / 10:.1f}"))
        parts.append(words(MARGIN - 16, at(0, k / 10)[1] + 4, f"{k / 10:.1f}"))
    points = [at(b.confidence, b.right) for b in found]
    path = " ".join(f"{x},{y}" for x, y in points)
    parts.append(f'<polyline points="{path}" fill="none" stroke="#2a7fbf" stroke-width="2"/>')
    for b, (x, y) in zip(found, points, strict=True):
        radius = round(3 + 9 * (b.count / most) ** 0.5, 1)
        parts.append(f'<circle cx="{x}" cy="{y}" r="{radius}" fill="#2a7fbf"/>')
    middle = size / 2
    upright = f'transform="rotate(-90 14 {middle})"'
    parts.append(words(middle, size - 10, "confidence"))
    parts += [words(14, middle, "share of right labels", upright), "</svg>"]
    return "\n".join(parts) + "\n"


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
    (DOCS / "confidence.svg").write_text(curve(bins(given)), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
