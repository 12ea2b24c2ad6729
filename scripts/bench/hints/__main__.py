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
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from scripts.bench.hints.results import RUNS, Results, Run, load, table
from scripts.bench.hints.rows import ROWS
from scripts.bench.hints.settings import SETTINGS, Prepared, archive, prepare
from scripts.bench.hints.stores import STORES, Store, StoreBed
from scripts.bench.page import into_page
from tests.support.bed import HEAD
from tests.support.cluster_run import Result, run_workflow

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
        why = store.missing()
        if why:
            sys.exit(f"bench-hints: {why}")
        _run_all(store, {name: runs for name, runs in todo.items() if runs}, every)
    text = table([(row.title, every[row.name]) for row in rows])
    print(text)
    if args.page:
        into_page(PAGE, f"measured: {args.store}", text)


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
        prepared = {}
        for row, runs in todo.items():
            print(f"{row}: recording and learning", file=sys.stderr)
            prepared[row] = prepare(ROWS[row], work, store.name, {s for _, s in runs})
        with store.start(work / "store") as bed:
            for row, runs in todo.items():
                results = every[row]
                results.said = prepared[row].said or results.said
                for number, setting in runs:
                    done = run_once(bed, prepared[row], setting, number)
                    run = Run(setting, number, done.bytes, done.seconds, done.sums)
                    results.add(run)
                    print(
                        f"{row} {setting} {number}: {run.bytes / 1e6:.1f} MB, {run.seconds:.2f} s",
                        file=sys.stderr,
                    )


def _room() -> str | None:
    """Memory where there is enough: the disk is no part of the question."""
    shm = Path("/dev/shm")
    return str(shm) if shm.is_dir() and shutil.disk_usage(shm).free > 6 << 30 else None


def run_once(
    bed: StoreBed, prepared: Prepared, name: str, number: int, *, keep: bool = False
) -> Result:
    """One run in a fresh directory, ROW-SETTING-NUMBER, which is removed unless `keep`."""
    setting, row = SETTINGS[name], prepared.row
    folder = f"{row.name}-{name}-{number}"
    with archive(HEAD, row, tuple(bed.command())):
        bed.local_first(False)
        subprocess.run(["cp", "-r", prepared.folder, bed.mount / folder], check=True)
        bed.local_first(setting.local_first)
        done = run_workflow(
            bed,
            folder,
            prepared.workflow,
            located=setting.located,
            seed=number,
            tags=prepared.tags[setting.tags] if setting.tags else None,
        )
    if not keep:
        shutil.rmtree(bed.mount / folder)
    return done


if __name__ == "__main__":
    main()
