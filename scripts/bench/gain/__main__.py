"""Gain of placements on real workflows, column by column; resumable.

    python -m scripts.bench.gain                                  # all missing runs
    python -m scripts.bench.gain --row montage-2mass --scale data --pairs 1
    python -m scripts.bench.gain --store cephfs --pairs 2         # the rows of another store
    python -m scripts.bench.gain --report                         # tables of stored results
    python -m scripts.bench.gain --report --page                  # also write the docs page

Results are stored in build/bench-gain/ROW-SCALE.json, those of another store in a folder with its
name. Needs root, and TRACEHINT_DATA with wfinstances.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from scripts.bench.gain.bedding import replay_run, run_store
from scripts.bench.gain.columns import COLUMNS
from scripts.bench.gain.page import summary, tables
from scripts.bench.gain.predicted import Cell, cells
from scripts.bench.gain.results import Results, Run
from scripts.bench.gain.rows import ROWS, SCALES
from scripts.bench.gain.stores import STORES
from scripts.bench.gain.work import FIRST, ROOT, Work
from scripts.bench.load import prefer
from scripts.bench.page import into_page
from scripts.bench.probe import calibrate

PAGE = ROOT / "docs" / "reference" / "gain.md"

Found = Mapping[tuple[str, str], Results]  # (row, scale) -> measured runs


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--store", choices=list(STORES), default=FIRST)
    parser.add_argument("--row", action="append", choices=list(ROWS), help="default: the store's")
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
    names, scales = args.row or work.store.rows, args.scale or work.store.scales
    results = {
        (name, scale): work.results(name, scale, fresh=args.fresh)
        for scale in scales
        for name in names
    }
    if not args.report:
        if why := work.store.missing():
            sys.exit(f"bench-gain: {why}")
        _run_all(work, results, args.column or list(COLUMNS), args.pairs)
    _report(work, results, page=args.page)


def _run_all(work: Work, results: Found, columns: list[str], pairs: int) -> None:
    """Measure missing runs: the first run of all rows, then the second, ...; columns alternate."""
    preferred = prefer()
    for link in sorted({SCALES[scale].link for _, scale in results}, reverse=True):
        part = {key: found for key, found in results.items() if SCALES[key[1]].link == link}
        _run_on(work, part, columns, pairs, link, preferred=preferred)


def _run_on(
    work: Work, results: Found, columns: list[str], pairs: int, link: int, *, preferred: bool
) -> None:
    """Measure the missing runs of the scales with links of `link` Mbit/s."""
    with run_store(work.store, link) as bed:
        if not (target := work.cluster(link)).exists():
            calibrate(bed, work.store.name, bed.folder / "hosts.toml", target)
        for number in range(pairs):
            for (name, scale), found in results.items():
                todo = [c for c in columns if number in found.missing(c, pairs)]
                if not todo:
                    continue
                case = work.case(name, scale)
                for column in todo:
                    placed = work.placement(case, scale, column)
                    run = replay_run(bed, case, column, number, placed, preferred=preferred)
                    found.add(run)
                    _tell(found.path.stem, run)


def _tell(name: str, run: Run) -> None:
    print(
        f"{name} {run.column} {run.number}: {run.bytes / 1e6:.0f} MB, {run.seconds:.1f} s; "
        f"processors: others {run.load['others']:.0%}, bench {run.load['own']:.0%}",
        file=sys.stderr,
        flush=True,
    )


def _report(work: Work, results: Found, *, page: bool) -> None:
    found: dict[str, dict[str, list[Cell]]] = {scale: {} for scale in SCALES}
    for (name, scale), result in results.items():
        if result.runs:
            case = work.case(name, scale)
            placed = {c: work.placement(case, scale, c) for c in COLUMNS if result.of(c)}
            told = {c: work.search(case, scale, c) for c in placed}
            found[scale][ROWS[name].title] = cells(case, result, placed, told)
    texts = {scale: tables(rows) for scale, rows in found.items() if rows}
    texts["summary"] = summary(row for rows in found.values() for row in rows.values())
    for name, text in texts.items():
        print(f"{name}\n\n{text}\n")
        if page:
            into_page(PAGE, work.mark(name), text)


if __name__ == "__main__":
    main()
