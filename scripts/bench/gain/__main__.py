"""What placements bring on real workflows, column by column; resumable.

    python -m scripts.bench.gain                                  # everything that is missing
    python -m scripts.bench.gain --row montage-2mass --scale data --pairs 1
    python -m scripts.bench.gain --store cephfs --pairs 2         # its rows on another store
    python -m scripts.bench.gain --report                         # the tables of what is there
    python -m scripts.bench.gain --report --page                  # and put them into the docs page

Results are in build/bench-gain/ROW-SCALE.json, of another store in a folder with its name. Needs root, and TRACEHINT_DATA with wfinstances.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import sys
from pathlib import Path

from scripts.bench.gain.bedding import cluster_of, replayed, running
from scripts.bench.gain.cases import case_of
from scripts.bench.gain.columns import BY_HAND, COLUMNS, Case
from scripts.bench.gain.page import summary, tables
from scripts.bench.gain.placements import placement_of
from scripts.bench.gain.predicted import Cell, cells
from scripts.bench.gain.results import Results, Run, load
from scripts.bench.gain.rows import ROWS, SCALES
from scripts.bench.gain.stores import STORES, Store
from scripts.bench.load import prefer
from scripts.bench.page import into_page
from scripts.bench.probe import measured

from tracehint.analyzer.predict.model import Placement

ROOT = Path(__file__).parents[3]
OUT = ROOT / "build" / "bench-gain"
PAGE = ROOT / "docs" / "reference" / "gain.md"
FIRST = "moosefs"  # the store whose results lie and stand without its name


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--store", choices=list(STORES), default=FIRST)
    parser.add_argument("--row", action="append", choices=list(ROWS), help="default: all")
    parser.add_argument("--scale", action="append", choices=list(SCALES), help="default: all")
    parser.add_argument("--column", action="append", choices=list(COLUMNS), help="default: all")
    parser.add_argument("--pairs", type=int, default=5, help="runs of each column")
    parser.add_argument("--fresh", action="store_true", help="forget earlier results")
    parser.add_argument("--report", action="store_true", help="only print what is there")
    parser.add_argument("--page", action="store_true", help="also put the tables into the docs")
    args = parser.parse_args()
    corpus = Path(os.environ.get("TRACEHINT_DATA", "")) / "wfinstances" / "corpus.tar.xz"
    if not corpus.is_file():
        sys.exit("bench-gain: TRACEHINT_DATA does not name a folder with wfinstances")
    work = Work(STORES[args.store], corpus)
    names, scales = args.row or list(work.store.rows), args.scale or list(SCALES)
    results = {
        (name, scale): _results(work, name, scale, fresh=args.fresh)
        for scale in scales
        for name in names
    }
    if not args.report:
        if why := work.store.missing():
            sys.exit(f"bench-gain: {why}")
        _run_all(work, results, args.column or list(COLUMNS), args.pairs)
    _report(work, results, page=args.page)


@dataclasses.dataclass(frozen=True)
class Work:
    """What is measured on, and where instances come from."""

    store: Store
    corpus: Path

    @property
    def folder(self) -> Path:
        """Where its results are."""
        return OUT if self.store.name == FIRST else OUT / self.store.name

    @property
    def cluster(self) -> Path:
        """The cluster file, measured."""
        return self.folder / "cluster.toml"

    def mark(self, name: str) -> str:
        """The table of the page that has this name."""
        return f"measured: {name if self.store.name == FIRST else f'{self.store.name} {name}'}"

    def placement(self, case: Case, name: str, scale: str, column: str) -> Placement:
        """The one that is replayed and predicted."""
        kept = self.folder / f"{name}-{scale}-{column}.placement.json"
        found = placement_of(case, column, kept)
        return found if column == BY_HAND else self.store.takes(found)


def _results(work: Work, name: str, scale: str, *, fresh: bool) -> Results:
    key = dataclasses.asdict(ROWS[name]) | {"scale": scale}
    return load(work.folder, f"{name}-{scale}", json.loads(json.dumps(key)), fresh=fresh)


def _run_all(
    work: Work, results: dict[tuple[str, str], Results], columns: list[str], pairs: int
) -> None:
    """What is missing: first one run of everything, then the second, ...; columns alternate."""
    preferred = prefer()
    with running(work.store) as bed:
        if not work.cluster.exists():
            measured(bed, work.store.name, bed.folder / "hosts.toml", work.cluster)
        cluster = cluster_of(work.cluster, work.store)
        for number in range(pairs):
            for (name, scale), found in results.items():
                todo = [c for c in columns if number in found.missing(c, pairs)]
                if not todo:
                    continue
                case = case_of(ROWS[name], scale, work.corpus, work.folder, cluster)
                for column in todo:
                    placement = work.placement(case, name, scale, column)
                    found.add(
                        run := replayed(bed, case, column, number, placement, preferred=preferred)
                    )
                    _tell(found.path.stem, run)


def _tell(name: str, run: Run) -> None:
    print(
        f"{name} {run.column} {run.number}: {run.bytes / 1e6:.0f} MB, {run.seconds:.1f} s; "
        f"processors: others {run.load['others']:.0%}, bench {run.load['own']:.0%}",
        file=sys.stderr,
        flush=True,
    )


def _report(work: Work, results: dict[tuple[str, str], Results], *, page: bool) -> None:
    cluster = cluster_of(work.cluster, work.store)
    found: dict[str, dict[str, list[Cell]]] = {scale: {} for scale in SCALES}
    for (name, scale), result in results.items():
        if result.runs:
            case = case_of(ROWS[name], scale, work.corpus, work.folder, cluster)
            found[scale][ROWS[name].title] = cells(
                case,
                result,
                {c: work.placement(case, name, scale, c) for c in COLUMNS if result.of(c)},
            )
    texts = {scale: tables(rows) for scale, rows in found.items() if rows}
    texts["summary"] = summary(row for rows in found.values() for row in rows.values())
    for name, text in texts.items():
        print(f"{name}\n\n{text}\n")
        if page:
            into_page(PAGE, work.mark(name), text)


if __name__ == "__main__":
    main()
