"""What placements bring on real workflows, column by column; resumable.

    python -m scripts.bench.gain                                  # everything that is missing
    python -m scripts.bench.gain --row montage-2mass --scale data --pairs 1
    python -m scripts.bench.gain --report                         # the tables of what is there
    python -m scripts.bench.gain --report --page                  # and put them into the docs page

Results are in build/bench-gain/ROW-SCALE.json. Needs root, and TRACEHINT_DATA with wfinstances.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import sys
from pathlib import Path

from scripts.bench.gain.bedding import cluster_of, replayed, started
from scripts.bench.gain.cases import case_of
from scripts.bench.gain.columns import COLUMNS
from scripts.bench.gain.page import summary, tables
from scripts.bench.gain.placements import placement_of
from scripts.bench.gain.predicted import Cell, cells
from scripts.bench.gain.results import Results, Run, load
from scripts.bench.gain.rows import ROWS, SCALES
from scripts.bench.load import prefer
from scripts.bench.page import into_page
from scripts.bench.probe import measured
from tests.support import shaped

ROOT = Path(__file__).parents[3]
OUT = ROOT / "build" / "bench-gain"
PAGE = ROOT / "docs" / "reference" / "gain.md"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
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
    names, scales = args.row or list(ROWS), args.scale or list(SCALES)
    results = {
        (name, scale): _results(name, scale, fresh=args.fresh) for scale in scales for name in names
    }
    if not args.report:
        if why := shaped.missing():
            sys.exit(f"bench-gain: {why}")
        _run_all(corpus, results, args.column or list(COLUMNS), args.pairs)
    _report(corpus, results, page=args.page)


def _results(name: str, scale: str, *, fresh: bool) -> Results:
    key = dataclasses.asdict(ROWS[name]) | {"scale": scale}
    return load(OUT, f"{name}-{scale}", json.loads(json.dumps(key)), fresh=fresh)


def _run_all(
    corpus: Path, results: dict[tuple[str, str], Results], columns: list[str], pairs: int
) -> None:
    """What is missing: first one run of everything, then the second, ...; columns alternate."""
    preferred = prefer()
    for link in sorted({SCALES[scale].link for _, scale in results}, reverse=True):
        _run_on(
            corpus,
            {key: found for key, found in results.items() if SCALES[key[1]].link == link},
            columns, pairs, link, preferred=preferred,
        )  # fmt: skip  # a table


def _run_on(
    corpus: Path,
    results: dict[tuple[str, str], Results],
    columns: list[str],
    pairs: int,
    link: int,
    *,
    preferred: bool,
) -> None:
    """What is missing of the scales with such links."""
    with started(link) as bed:
        if not (target := _cluster(link)).exists():
            measured(bed, "moosefs", bed.folder / "hosts.toml", target)
        cluster = cluster_of(target)
        for number in range(pairs):
            for (name, scale), found in results.items():
                todo = [c for c in columns if number in found.missing(c, pairs)]
                case = case_of(ROWS[name], scale, corpus, OUT, cluster) if todo else None
                for column in todo:
                    assert case is not None
                    placement = placement_of(case, column, _kept(name, scale, column))
                    found.add(
                        run := replayed(bed, case, column, number, placement, preferred=preferred)
                    )
                    _tell(found.path.stem, run)


def _cluster(link: int) -> Path:
    """The measured cluster file of links of so many Mbit/s."""
    return OUT / f"cluster-{link}.toml"


def _kept(name: str, scale: str, column: str) -> Path:
    return OUT / f"{name}-{scale}-{column}.placement.json"


def _tell(name: str, run: Run) -> None:
    print(
        f"{name} {run.column} {run.number}: {run.bytes / 1e6:.0f} MB, {run.seconds:.1f} s; "
        f"processors: others {run.load['others']:.0%}, bench {run.load['own']:.0%}",
        file=sys.stderr,
        flush=True,
    )


def _report(corpus: Path, results: dict[tuple[str, str], Results], *, page: bool) -> None:
    found: dict[str, dict[str, list[Cell]]] = {scale: {} for scale in SCALES}
    for (name, scale), result in results.items():
        if result.runs:
            cluster = cluster_of(_cluster(SCALES[scale].link))
            case = case_of(ROWS[name], scale, corpus, OUT, cluster)
            found[scale][ROWS[name].title] = cells(
                case,
                result,
                {c: placement_of(case, c, _kept(name, scale, c)) for c in COLUMNS if result.of(c)},
            )
    texts = {scale: tables(rows) for scale, rows in found.items() if rows}
    texts["summary"] = summary(row for rows in found.values() for row in rows.values())
    for name, text in texts.items():
        print(f"{name}\n\n{text}\n")
        if page:
            into_page(PAGE, f"measured: {name}", text)


if __name__ == "__main__":
    main()
