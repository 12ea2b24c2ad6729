"""Bytes over the links on stores that are reached by commands, column by column; resumable.

    python -m scripts.bench.gain_stores                                # everything that is missing
    python -m scripts.bench.gain_stores --store hdfs --row pipeline --runs 1
    python -m scripts.bench.gain_stores --report --page                # the tables, into the docs

Results are in build/bench-gain-stores/STORE-ROW.json. Needs root, and TRACEHINT_DATA with
wfinstances.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

from scripts.bench.gain.bedding import room
from scripts.bench.gain_stores.page import table
from scripts.bench.gain_stores.results import Results
from scripts.bench.gain_stores.rows import ROWS, case_of
from scripts.bench.gain_stores.table import STORES, Store, Task
from scripts.bench.page import into_page

from tracehint.analyzer.predict.cluster_file import read_cluster

ROOT = Path(__file__).parents[3]
OUT = ROOT / "build" / "bench-gain-stores"
PAGE = ROOT / "docs" / "reference" / "gain-stores.md"
CLUSTER = Path(__file__).with_name("cluster.toml")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--store", action="append", choices=list(STORES), help="default: all")
    parser.add_argument("--row", action="append", choices=list(ROWS), help="default: all")
    parser.add_argument("--column", action="append", help="default: all of the store")
    parser.add_argument("--runs", type=int, default=3, help="of each column")
    parser.add_argument("--report", action="store_true", help="only print what is there")
    parser.add_argument("--page", action="store_true", help="also put the tables into the docs")
    args = parser.parse_args()
    stores = [STORES[name] for name in args.store or STORES]
    for store in stores:
        if not args.report:
            _measure(store, args.row or list(ROWS), args.column, args.runs)
        found = {row.title: results_of(store, name) for name, row in ROWS.items()}
        text = table(store, found)
        print(f"{store.title}\n\n{text}\n")
        if args.page:
            into_page(PAGE, f"measured: {store.name}", text)


def results_of(store: Store, row: str) -> Results:
    """The stored runs of a row on a store."""
    return Results(OUT / f"{store.name}-{row}.json")


def _measure(store: Store, names: list[str], wanted: list[str] | None, runs: int) -> None:
    """What is missing: first one run of everything, then the second, ...; columns alternate."""
    bench = store.bench()
    if why := bench.missing():
        sys.exit(f"{store.title}: {why}")
    columns = wanted or list(bench.COLUMNS)
    todo = [
        (name, column)
        for number in range(runs)
        for name in names
        for column in columns
        if len(results_of(store, name).of(column)) <= number
        and (store.lists or not ROWS[name].unread)
    ]
    if not todo:
        return
    with tempfile.TemporaryDirectory(dir=room()) as folder, bench.started(Path(folder)) as running:
        tasks = {name: task_of(name) for name in dict.fromkeys(name for name, _ in todo)}
        for name, column in todo:
            moved = running.run(tasks[name], column)
            results_of(store, name).add(moved)
            print(f"{store.name} {name} {moved}", file=sys.stderr, flush=True)


def task_of(name: str) -> Task:
    """A row, ready to be run. Exits where the corpus is not there."""
    corpus = Path(os.environ.get("TRACEHINT_DATA", "")) / "wfinstances" / "corpus.tar.xz"
    if ROWS[name].instance is None and not corpus.is_file():
        sys.exit("gain_stores: TRACEHINT_DATA does not name a folder with wfinstances")
    return Task(ROWS[name], case_of(ROWS[name], corpus, OUT, read_cluster(CLUSTER)), OUT)


if __name__ == "__main__":
    main()
