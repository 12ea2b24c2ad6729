"""Time and memory of whole commands: `make bench-commands`, `bench-analyze`, `bench-merge`, ...,
or `python -m scripts.bench.bench_commands GROUP`.

Prints Markdown: start-up included, medians of commands that run several times; peak memory is that
of the largest process, with Spark also that of all together (Java and its workers). On a machine
with other load, only CPU s are meaningful. Real workflows are joined from the WfInstances below
TRACEHINT_DATA, and left out without them.
"""

from __future__ import annotations

import argparse
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scripts.bench.measure import median, run
from tests.support.darshan_logs import File, segments, write_log
from tests.support.hints import rule, save
from tests.support.tagger import target

from tracehint.adapters.engines.tag_table import encode
from tracehint.adapters.stores.registry import open_store
from tracehint.datasets import synthetic
from tracehint.schemas.manifest import Manifest, RecordingHost
from tracehint.schemas.writer import BundleWriter, write_bundle

TRACEHINT = (sys.executable, "-m", "tracehint")
HELPER = Path(__file__).parents[2] / "adapters" / "tag" / "bin" / "tracehint-tag"
FINDINGS = {"lint": (0, 1), "diff": (0, 1)}  # exit codes that report findings


def ensemble(folder: Path, tasks: int) -> Path | None:
    """Make a graph of at least `tasks` tasks from independent copies of real workflows."""
    source = Path(os.environ.get("TRACEHINT_DATA", "/nonexistent")) / "wfinstances"
    if not source.is_dir():
        return None
    graph = folder / "graph.json"
    maker = [sys.executable, source / "make_ensemble.py", "--tasks", str(tasks), "-o", graph]
    subprocess.run([*maker, *sorted(source.glob("*-001.json*"))], check=True, capture_output=True)
    return graph


def real(folder: Path, tasks: int) -> Path | None:
    """Make the bundle of such a graph."""
    graph, bundle = ensemble(folder, tasks), folder / "real.trace"
    if graph is None:
        return None
    run([*TRACEHINT, "import", graph, "-o", bundle], folder)
    graph.unlink()
    return bundle


def generated(folder: Path, tasks: int, pieces: int = 1) -> Path:
    """Make a bundle of about `tasks` tasks, with `pieces` extents per access."""
    units = max(1, tasks // synthetic.TASKS_PER_UNIT)
    return synthetic.write(folder / "generated.trace", units, pieces)


def hosts(folder: Path, count: int) -> Path:
    """Make a bundle of a thousand tasks for each of `count` hosts, in separate data directories."""
    tables = synthetic.tables(max(1, 1_000 // synthetic.TASKS_PER_UNIT))
    for number in range(count):
        name = f"node{number:04d}"
        manifest = Manifest(
            program="synthetic", collector="synthetic", command=["driver.sh"], cwd="/data",
            hosts=[RecordingHost(name)], recording=f"bench-{name}", complete=True,
        )  # fmt: skip  # a table
        moved = {key: _of_host(table, name) for key, table in tables.items()}
        write_bundle(BundleWriter(folder / "parts" / f"{name}.trace"), moved, manifest)
    return folder / "parts"


def _of_host(table: pa.Table, host: str) -> pa.Table:
    for at, field in enumerate(table.schema):
        if field.name == "host":
            column = pa.array([host] * table.num_rows, field.type)
        elif pa.types.is_binary(field.type):
            column = pc.replace_substring(table[field.name], b"/data/", f"/data/{host}/".encode())
        else:
            continue
        table = table.set_column(at, field, column)
    return table


def given(_: Path, path: Path) -> Path:
    """Return a bundle of the command line."""
    return path.resolve()


def one_log(folder: Path) -> Path:
    """Write a log of a million DXT segments in 16 files, at random offsets, none contiguous."""
    dice, path = np.random.default_rng(1), folder / "big.darshan"
    places = [segments(dice.integers(0, 1 << 30, 62_500), 4096) for _ in range(16)]
    write_log(path, [File(f"/scratch/f{k}", reads=reads) for k, reads in enumerate(places)])
    return path


def many_logs(folder: Path) -> Path:
    """Write 5,000 logs of jobs that read one common file and write one each."""
    logs = folder / "logs"
    logs.mkdir()
    common = File("/scratch/in", reads=segments(np.arange(20) * 4096, 4096))
    for k in range(5000):
        own = File(f"/scratch/out{k}", writes=segments(np.arange(10) * 4096, 4096))
        write_log(logs / f"u_app_id{k}-{1000 + k}_1-1-1-1_1.darshan", [common, own], jobid=k)
    return logs


def store(folder: Path) -> Path:
    """Make the inputs for setting hints: files and rules, a helper's table, a store, its nodes."""
    tasks = [[target(f"o{i}")] for i in range(10_000)]
    (folder / "table").write_bytes(encode(tasks, open_store("xattr"))[0])
    (folder / "hosts.toml").write_text('start = "here"\n[[host]]\nname = "node1"\nslots = 4\n')
    (folder / "store.toml").write_text('name = "near"\nlocation = "user.nodes"\n[hints]\n')
    for k in range(4):
        (folder / f"in{k}").write_bytes(b"x" * 100_000)
        os.setxattr(folder / f"in{k}", "user.nodes", b"node1")
    (folder / "data").mkdir()
    for i in range(10_000):
        (folder / "data" / f"f{i}").touch()
    return save(folder, rule("f{n}", DP="local"))


@dataclass(frozen=True)
class Row:
    """One source and the commands on it; `{run}` is the source, `{parts}` are its entries."""

    title: str
    make: Callable[[Path], Path | None]
    commands: tuple[str, ...]
    runs: int = 1


# Later commands read the output of earlier ones.
COMMANDS = (
    "analyze {run} --format parquet -o analysis --force", "hints {run} -o hints.json --force",
    "lint {run} -o lint.txt --force", "report {run} -o run.html --force",
    "graph {run} -o run.dot --force", "diff {run} {run} -o diff.txt --force",
    "emit hints.json --store xattr --like {run} -o hints.sh --force", "hints {run} --score {run}",
    "anonymize {run} -o other.trace --key k --force",
    "export {run} --to wfformat -o run.wf --force", "export {run} --to prov -o run.prov --force",
    "export {run} --to ro-crate -o crate --force",
    "export {run} --to perfetto -o run.perfetto --force",
    "export {run} --to graphml -o run.graphml --force",
    "export {run} --to parquet -o tables --force",
)  # fmt: skip  # a table
JSON, PARQUET = (
    f"analyze {{run}} --format {form} -o out.{form} --force" for form in ("json", "parquet")
)
SPARK = (f"{PARQUET} --backend local", f"{PARQUET} --backend spark")
IMPORT = ("import {run} -o b.trace --force --quiet",)
AS_ROOT = " --as-root" * (os.geteuid() == 0)
GROUPS: dict[str, tuple[Row, ...]] = {
    "commands": tuple(
        Row(f"{n:,} tasks", partial(real, tasks=n), COMMANDS) for n in (10_000, 40_000, 100_000)
    ),
    "analyze": (
        Row("280 tasks", partial(generated, tasks=280), (JSON,), 5),
        *(Row(f"{n:,} tasks", partial(generated, tasks=n), (PARQUET,), runs)
          for n, runs in ((10_000, 5), (30_000, 3), (100_000, 3), (300_000, 1), (1_000_000, 1))),
        Row("100,000 tasks", partial(generated, tasks=100_000), (JSON,), 3),
        Row("1,000,000 accesses, 10,000,000 extents", partial(generated, tasks=157_100, pieces=10),
            (f"{PARQUET} --memory-limit 1G",)),
        *(Row(f"{n:,} tasks, real", partial(real, tasks=n), (PARQUET,))
          for n in (10_000, 100_000, 1_000_000)),
    ),
    "merge": tuple(
        Row(f"{n:,} hosts", partial(hosts, count=n),
            ("merge {parts} -o run.trace --force --quiet",
             "analyze run.trace --format parquet -o analysis --force"))
        for n in (100, 1_000)
    ),
    "import": (
        Row("WfFormat, 1,000,000 tasks", partial(ensemble, tasks=1_000_000), IMPORT, 3),
        Row("Darshan, 1,000,000 DXT segments", one_log, IMPORT, 3),
        Row("Darshan, 5,000 logs", many_logs, IMPORT, 3),
    ),
    "spark": tuple(
        Row(f"{n:,} tasks, {pieces} extents an access", partial(generated, tasks=n, pieces=pieces),
            SPARK, 3)
        for n in (1_000, 30_000, 100_000) for pieces in (1, 30)
    ),
    "adapters": (
        Row("one task among 10,000", store, (f"{HELPER} set table 5000",), 200),
        Row("10,000 hints", store, (f"apply {{run}} data --store xattr --quiet{AS_ROOT}",), 5),
        Row("four inputs", store,
            ("place --quiet --hosts hosts.toml --store store.toml in0 in1 in2 in3 -- true",), 10),
    ),
}  # fmt: skip  # a table


def words_of(command: str, source: Path) -> list[str]:
    """Split the command into words; commands of tracehint are written without its name."""
    parts = [str(path) for path in sorted(source.iterdir())] if "{parts}" in command else []
    words = [
        word
        for part in command.split()
        for word in (parts if part == "{parts}" else [part.format(run=source)])
    ]
    return words if words[0].startswith("/") else [*TRACEHINT, *words]


def exponents(seconds: dict[str, list[tuple[int, float]]]) -> None:
    """Print the exponent of CPU time by tasks, from the first size to the last; the goal is 1.1."""
    print("\n| command | CPU s grow like tasks^ |\n|---|---|")
    for command, found in seconds.items():
        (few, least), (many, most) = found[0], found[-1]
        power = math.log(most / least) / math.log(many / few)
        print(f"| {command} | {power:.2f} |", flush=True)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("group", choices=GROUPS)
    parser.add_argument("--bundle", type=Path, action="append", help="measure these instead")
    parser.add_argument("--more", default="", help="further options of each command")
    args = parser.parse_args()
    os.environ["TRACEHINT_CACHE"] = "off"  # no command uses results of earlier ones
    rows = GROUPS[args.group]
    if args.bundle:
        commands = rows[0].commands
        rows = tuple(Row(path.name, partial(given, path=path), commands) for path in args.bundle)
    print("| run | command | wall s | CPU s | peak MiB | of all processes |\n" + "|---" * 6 + "|")
    seconds: dict[str, list[tuple[int, float]]] = {}
    for row in rows:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            source = row.make(folder)
            if source is None:
                print(f"| {row.title} | left out: TRACEHINT_DATA names no instances | | | | |")
                continue
            for command in row.commands:
                words = words_of(f"{command} {args.more}", source)
                ok, tree = FINDINGS.get(command.split()[0], (0,)), args.group == "spark"
                cost = median([run(words, folder, ok, tree=tree) for _ in range(row.runs)])
                print(
                    f"| {row.title} | {command} | {cost.wall_s:.3f} | {cost.cpu_s:.2f} "
                    f"| {cost.peak_mib:.0f} | {cost.all_mib:.0f} |",
                    flush=True,
                )
                size = "".join(filter(str.isdigit, row.title.partition(" ")[0]))
                seconds.setdefault(command, []).append((int(size or 1), cost.cpu_s))
    if args.group == "commands" and not args.bundle:
        exponents(seconds)


if __name__ == "__main__":
    main()
