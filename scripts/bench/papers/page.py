"""The tables of docs/reference/published.md: published and predicted values.

python -m scripts.bench.papers.page
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from scripts.bench.page import into_page
from scripts.bench.papers import blast, energy, montage, patterns

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "published.md"
SIZES = (19, 25, 50, 100)


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table as Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def traffic() -> str:
    """Return network bytes of the four patterns."""

    def row(pattern: patterns.Pattern) -> list[str]:
        _, found = patterns.predicted(pattern)
        pairs = zip(pattern.published, map(patterns.gib, found), strict=True)
        return [pattern.name, *(f"{said:.2f} / {got:.2f}" for said, got in pairs)]

    head = ["GiB, published / predicted", "NFS", "default", "hinted"]
    return table(head, map(row, patterns.PATTERNS))


def speeds() -> str:
    """Return the speed-up of the hinted run."""

    def row(pattern: patterns.Pattern) -> list[str]:
        work, found = patterns.predicted(pattern)
        whole = [one.seconds for one in found]
        inner = [patterns.between_stages(work, one) for one in found]
        ratios = [f"{t[0] / t[2]:.1f} and {t[1] / t[2]:.1f}" for t in (whole, inner)]
        return [pattern.name, pattern.said or "not stated", *ratios]

    head = ["hinted run against NFS and default", "published", "predicted", "without staging"]
    return table(head, map(row, patterns.PATTERNS))


def scaled() -> str:
    """Return seconds without staging, with work proportional to the number of nodes."""
    rows = []
    for pattern in patterns.PATTERNS:
        cells = []
        for nodes in SIZES:
            work, found = patterns.predicted(pattern, nodes)
            times = [patterns.between_stages(work, one) for one in found]
            cells.append(" / ".join(f"{t:.1f}" for t in times))
        rows.append([pattern.name, *cells])
    head = ["seconds, NFS / default / hinted", *(f"{n} nodes" for n in SIZES)]
    return table(head, rows)


def copies() -> str:
    """Return times of BLAST with copies of its database."""
    rows = []
    for number, said in blast.PUBLISHED.items():
        found = blast.copied(number)
        got = (*blast.stages(found), found.seconds)
        rows.append([number, *(f"{a} / {b:.0f}" for a, b in zip(said, got, strict=True))])
    return table(["copies; s, published / predicted", "staging in", "searching", "in all"], rows)


def splits() -> str:
    """Return times of BLAST on 20 nodes."""
    found = {(s.servers, s.chunk_kb): s.seconds for s in blast.splits()}
    rows = [
        [servers, *(f"{found[servers, chunk]:.0f}" for chunk in blast.CHUNKS_KB)]
        for servers in blast.SERVERS
    ]
    head = ["nodes for storage; predicted s", *(f"chunks of {c} KiB" for c in blast.CHUNKS_KB)]
    return table(head, rows)


def stages() -> str:
    """Return times of Montage by stage."""
    found = montage.stage_seconds()
    rows = []
    for stage in montage.STAGES:
        got = [one[stage.name] for one in found]
        gains = f"{stage.default - stage.hinted:.1f} / {got[0] - got[1]:.1f}"
        rows.append(
            [
                stage.name,
                f"{stage.default:.1f} / {got[0]:.1f}",
                f"{stage.hinted:.1f} / {got[1]:.1f}",
                gains,
            ]
        )
    head = ["s, published / predicted", "default", "hinted (fitted)", "gain"]
    return table(head, rows)


def joules() -> str:
    """Return energy at three frequencies."""
    said = {"BLAST": "1.86 at 1.2 GHz", "pipeline": "no more"}
    rows = []
    for name, work in energy.workloads().items():
        alike, falling = (energy.ratios(work, power_falls=falls) for falls in (False, True))
        cells = [f"{alike[ghz]:.2f} / {falling[ghz]:.2f}" for ghz in energy.GHZ]
        rows.append([name, said[name], *cells])
    head = ["energy against 2.3 GHz", "published", *(f"{ghz} GHz" for ghz in energy.GHZ)]
    return table(head, rows)


TABLES: dict[str, Callable[[], str]] = {
    "traffic": traffic, "speeds": speeds, "scaled": scaled, "copies": copies, "splits": splits,
    "stages": stages, "joules": joules,
}  # fmt: skip  # a table

if __name__ == "__main__":
    for name, made in TABLES.items():
        into_page(PAGE, name, made())
