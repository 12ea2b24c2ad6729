"""Time and memory of `merge` and `analyze` of the bundles of many hosts; `make bench-merge`.

Prints Markdown: whole processes, start-up included, one run each. Every host has a directory of
its own and about a thousand tasks (`--tasks`); `--hosts` may be given several times, to see how
the cost grows.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from scripts.bench.measure import run

from tracehint.datasets import synthetic
from tracehint.schemas.manifest import Manifest, RecordingHost
from tracehint.schemas.writer import BundleWriter
from tracehint.schemas.writing import write_bundle

TRACEHINT = (sys.executable, "-m", "tracehint")
COMMANDS = {
    "merge": "merge {parts} -o run.trace --force --quiet",
    "analyze": "analyze run.trace --format parquet -o analysis --force",
}


def parts(folder: Path, hosts: int, tasks: int) -> list[Path]:
    """A bundle per host."""
    tables = synthetic.tables(max(1, tasks // synthetic.TASKS_PER_UNIT))
    found = []
    for number in range(hosts):
        name = f"node{number:04d}"
        path = folder / f"{name}.trace"
        manifest = Manifest(
            program="synthetic", collector="synthetic", command=["driver.sh"], cwd="/data",
            hosts=[RecordingHost(name)], recording=f"bench-{name}", complete=True,
        )  # fmt: skip  # a table
        write_bundle(BundleWriter(path), {k: of_host(t, name) for k, t in tables.items()}, manifest)
        found.append(path)
    return found


def of_host(table: pa.Table, host: str) -> pa.Table:
    """The rows as another host would have recorded them, below a directory of its own."""
    for at, field in enumerate(table.schema):
        if field.name == "host":
            column = pa.array([host] * table.num_rows, field.type)
        elif pa.types.is_binary(field.type):
            column = pc.replace_substring(table[field.name], b"/data/", f"/data/{host}/".encode())
        else:
            continue
        table = table.set_column(at, field, column)
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hosts", type=int, action="append", help="default: 100 and 1000")
    parser.add_argument("--tasks", type=int, default=1_000, help="of each host")
    args = parser.parse_args()
    os.environ["TRACEHINT_CACHE"] = "off"
    print("| hosts | command | wall s | CPU s | peak MiB |\n|---|---|---|---|---|")
    for hosts in args.hosts or [100, 1_000]:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            names = [path.name for path in parts(folder, hosts, args.tasks)]
            for command, text in COMMANDS.items():
                words = [
                    w for part in text.split() for w in (names if part == "{parts}" else [part])
                ]
                cost = run([*TRACEHINT, *words], folder)
                print(
                    f"| {hosts:,} | {command} | {cost.wall_s:.1f} | {cost.cpu_s:.1f} "
                    f"| {cost.peak_mib:.0f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
