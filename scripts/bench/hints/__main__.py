"""What hints bring on a real store, four settings side by side; resumable.

    python -m scripts.bench.hints                                   # everything that is missing
    python -m scripts.bench.hints --row pipeline --setting ours --pairs 2
    python -m scripts.bench.hints --report                          # the table of what is there
    python -m scripts.bench.hints --report --page                   # and put it into the docs page

Results are in build/bench-hints/STORE-ROW.json. Needs root.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from scripts.bench.hints.results import RUNS, Results, Run, load, table
from scripts.bench.hints.row import Row
from scripts.bench.hints.rows import ROWS
from scripts.bench.hints.settings import SETTINGS, Prepared, archive, prepare, stage
from scripts.bench.hints.stores import STORES, Store, StoreBed
from scripts.bench.load import prefer
from scripts.bench.page import into_page
from tests.support.bed import HEAD
from tests.support.cluster_run import Result, run_workflow
from tests.support.needs import missing_for

ROOT = Path(__file__).parents[3]
OUT = ROOT / "build" / "bench-hints"
PAGE = ROOT / "docs" / "reference" / "hint-gains.md"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--store", choices=list(STORES), default="moosefs")
    parser.add_argument("--row", action="append", choices=list(ROWS), help="default: all")
    parser.add_argument("--setting", action="append", choices=list(SETTINGS), help="default: all")
    parser.add_argument("--pairs", type=int, help="runs of default and ours (default: per row)")
    parser.add_argument("--fresh", action="store_true", help="forget earlier results")
    parser.add_argument("--report", action="store_true", help="only print what is there")
    parser.add_argument("--page", action="store_true", help="also put the table into the docs")
    args = parser.parse_args()
    store = STORES[args.store]
    rows = [ROWS[name] for name in args.row or store.rows]
    settings = [s for s in args.setting or SETTINGS if s in store.settings]
    every = {row.name: load(OUT, args.store, row.name, row.size, fresh=args.fresh) for row in rows}
    todo = {row.name: _todo(every[row.name], settings, args.pairs or row.pairs) for row in rows}
    if any(todo.values()) and not args.report:
        programs = [program for row in rows if todo[row.name] for program in row.programs]
        if why := store.missing() or missing_for(programs):
            sys.exit(f"bench-hints: {why}")
        _run_all(store, {name: runs for name, runs in todo.items() if runs}, every)
    for section in dict.fromkeys(_section(store, row) for row in rows):
        text = table(
            [(row.title, every[row.name]) for row in rows if _section(store, row) == section]
        )
        print(f"{section}\n\n{text}\n")
        if args.page:
            into_page(PAGE, f"measured: {section}", text)


def _section(store: Store, row: Row) -> str:
    """Where the page has the row: real programs have a table of their own."""
    return f"{store.name}-programs" if row.programs else store.name


def _todo(results: Results, settings: Iterable[str], pairs: int) -> list[tuple[int, str]]:
    """(number, setting) in alternating order: all settings of the first number, and so on."""
    wanted = {s: pairs if s in ("default", "ours") else min(RUNS, pairs) for s in settings}
    return sorted(
        ((number, s) for s, count in wanted.items() for number in results.missing(s, count)),
        key=lambda pair: (pair[0], list(SETTINGS).index(pair[1])),
    )


def _run_all(
    store: Store, todo: dict[str, list[tuple[int, str]]], every: dict[str, Results]
) -> None:
    with tempfile.TemporaryDirectory(dir=_room()) as name:
        work = Path(name)
        (work / "store").mkdir()
        prefer()
        with store.start(work / "store") as bed:
            cluster = store.cluster(bed, OUT)
            for row, runs in todo.items():
                print(f"{row}: recording and learning", file=sys.stderr)
                wanted = {setting for _, setting in runs}
                prepared = prepare(ROWS[row], work, store.name, wanted, cluster)
                results = every[row]
                results.said = prepared.said or results.said
                for number, setting in runs:
                    done = run_once(bed, store.name, prepared, setting, number)
                    run = Run(setting, number, done.bytes, done.seconds, done.sums)
                    results.add(run)
                    print(
                        f"{row} {setting} {number}: {run.bytes / 1e6:.1f} MB, {run.seconds:.2f} s",
                        file=sys.stderr,
                    )
                shutil.rmtree(prepared.folder)


def _room() -> str | None:
    """Memory where there is enough: the disk is no part of the question."""
    shm = Path("/dev/shm")
    return str(shm) if shm.is_dir() and shutil.disk_usage(shm).free > 6 << 30 else None


def run_once(
    bed: StoreBed, store: str, prepared: Prepared, name: str, number: int, *, keep: bool = False
) -> Result:
    """One run in a fresh directory, ROW-SETTING-NUMBER, which is removed unless `keep`."""
    setting, row = SETTINGS[name], prepared.row
    folder = f"{row.name}-{name}-{number}"
    with archive(HEAD, row, tuple(bed.command())):
        bed.local_first(False)
        hinted = prepared.hinted[setting.tags] if setting.tags else None
        stage(prepared.folder, bed.mount / folder, hinted, store)
        bed.local_first(setting.local_first)
        done = run_workflow(
            bed,
            folder,
            prepared.workflow,
            located=setting.located,
            seed=number,
            tags=hinted.tags if hinted else None,
            parts=hinted.parts if hinted else {},
            bound=hinted.bound if hinted else False,
        )
    if not keep:
        shutil.rmtree(bed.mount / folder)
    return done


if __name__ == "__main__":
    main()
