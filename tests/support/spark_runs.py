"""Runs on which both backends must agree, written as bundles: name -> builder of a directory."""

from __future__ import annotations

import itertools
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq

from tests.support.bundles import RunBuilder
from tests.support.flow_cut import manifest_mounts
from tests.support.hostile import HOSTILE_NAMES
from tracehint.datasets import synthetic
from tracehint.schemas.manifest import RecordingHost
from tracehint.schemas.store import table_from_rows
from tracehint.schemas.writer import BundleWriter


def generated(path: Path) -> Path:
    """All six patterns, three extents per access."""
    return synthetic.write(path, 12, 3)


def hostile(path: Path) -> Path:
    """Names that are not UTF-8, with newlines, quotes, markup."""
    run = RunBuilder()
    driver = run.process(["sh", "wf.sh"])
    for i, name in enumerate(HOSTILE_NAMES):
        maker = run.process(["gen", str(i)], parent=driver)
        user = run.process(["use", str(i)], parent=driver)
        file = run.file(b"/data/" + name, existed=False)
        run.write(maker, file, 0, 100 + i, at=1.0 + i)
        run.read(user, file, 0, 50, at=400.0 + i)
    return run.save(path)


def empty(path: Path) -> Path:
    """An empty run."""
    return RunBuilder().save(path)


def without_accesses(path: Path) -> Path:
    """Processes and files without extents."""
    run = RunBuilder()
    run.process(["true"], parent=run.process(["sh", "wf.sh"]))
    run.file("/data/x", existed=True, size=5)
    return run.save(path)


def copied(path: Path) -> Path:
    """An engine that copies whole files in chains of three; the copies of the last file are one
    byte short, so no copies."""
    run = RunBuilder()
    engine = run.process(["make", "-j4"])
    for i in range(6):
        maker = run.process(["simulate", str(i)], parent=engine)
        user = run.process(["plot", str(i)], parent=engine)
        files = [run.file(f"/data/{i}/{name}/out.dat", existed=False) for name in "abc"]
        size = 1000 + i
        run.write(maker, files[0], 0, size, at=1.0 + i)
        for k, (old, new) in enumerate(itertools.pairwise(files)):
            run.read(engine, old, 0, size, at=20.0 + i + 10 * k)
            run.write(engine, new, 0, size - (i == 5), at=20.5 + i + 10 * k)
        run.read(user, files[-1], 0, size // 2, at=100.0 + i)
    return run.save(path)


def mixed(path: Path, seed: int = 1) -> Path:
    """Random reads, writes, truncations and strides of eight tasks on eight files: cycles of tasks,
    many versions, upper bounds, losses, damaged records, an unknown end."""
    dice = random.Random(seed)
    run = RunBuilder(ended_ns=None, complete=False)
    driver = run.process(["sh", "wf.sh"])
    tasks = [run.process([f"step{i % 3}", str(i)], parent=driver) for i in range(8)]
    files = [
        run.file(f"/data/f{i}.dat", existed=dice.choice([True, False, None])) for i in range(8)
    ]
    for i in range(300):
        task, file = dice.choice(tasks), dice.choice(files)
        start = dice.randrange(0, 4000, 100)
        at = float(i) + dice.random()
        if dice.random() < 0.05:
            run.truncate(task, file, start, at=at)
            continue
        run.access(
            dice.choice(["read", "write"]),
            task,
            file,
            start,
            start + dice.randint(1, 900),
            at=at,
            until=at + dice.random() * 3,
            exact=dice.random() < 0.9,
            count=dice.choice([1, 1, 1, 4]),
            stride=dice.choice([0, 0, 1000]),
        )
    run.access("write", tasks[0], files[0], -5, 10, at=1.0)
    run.loss("extent_records", 7, tasks[1])
    run.loss("lifecycle_records", 3)
    return run.save(path)


def two_hosts(path: Path) -> Path:
    """Two hosts with a shared mount and different clocks, two segments each."""
    writer = None
    for segment in range(2):
        for host in ("node1", "node 2/b"):
            run = RunBuilder(host=host)
            run._next = 1 + 1000 * segment + (500 if host != "node1" else 0)
            run.manifest.hosts = [RecordingHost("node1"), RecordingHost("node 2/b")]
            manifest_mounts(run.manifest, "nfs4", "server:/x")
            driver = run.process(["sh", "wf.sh"])
            late = 0.0 if host == "node1" else -50.0
            for i in range(5):
                task = run.process([f"t{segment}", str(i)], parent=driver)
                file = run.file(f"/data/{segment}_{i}", existed=False, ino=7 + 10 * segment + i)
                act = run.write if host == "node1" else run.read
                act(task, file, 0, 1 << 20, at=100.0 + i + late)
            if writer is None:
                writer = BundleWriter(path)
                writer.write_manifest(run.manifest)
            for name, rows in run.rows.items():
                if rows:
                    writer.write_table(name, table_from_rows(name, rows), segment)
    return path


def _segmented(path: Path) -> Path:
    """The mixed run with its extents in four files."""
    mixed(path, 2)
    folder = path / "extents" / "host=node1"
    table = pq.ParquetFile(folder / "0.parquet").read()
    step = table.num_rows // 4 + 1
    for i in range(4):
        pq.write_table(table.slice(i * step, step), folder / f"{i}.parquet", row_group_size=20)
    return path


def broken_footer(path: Path) -> Path:
    """One file of extents and one of opens that are not Parquet."""
    _segmented(path)
    (path / "extents" / "host=node1" / "1.parquet").write_bytes(b"PAR1 junk")
    shutil.copy(path / "opens/host=node1/0.parquet", path / "opens/host=node1/1.parquet")
    (path / "opens/host=node1/1.parquet").write_bytes(b"")
    return path


def broken_page(path: Path) -> Path:
    """A file of extents with an intact footer and damaged pages."""
    _segmented(path)
    _without_pages(path / "extents" / "host=node1" / "2.parquet")
    return path


def _without_pages(file: Path) -> None:
    data = bytearray(file.read_bytes())
    for i in range(8, len(data) // 2):
        data[i] = 0xFF
    file.write_bytes(bytes(data))


def missing_column(path: Path) -> Path:
    """Files of extents that lack a column: a nullable one and one that is not."""
    _segmented(path)
    for segment, name in (("0", "open"), ("3", "how")):
        file = path / "extents" / "host=node1" / f"{segment}.parquet"
        pq.write_table(pq.ParquetFile(file).read().drop_columns([name]), file)
    return path


def odd_files(path: Path) -> Path:
    """Files next to the segments that are none: hidden, linked, deeper; and a strange host."""
    _segmented(path)
    folder = path / "extents" / "host=node1"
    (folder / ".9.parquet").write_bytes(b"half")
    (folder / "notes.txt").write_text("x")
    (folder / "deeper").mkdir()
    shutil.copy(folder / "0.parquet", folder / "deeper" / "0.parquet")
    (folder / "8.parquet").symlink_to(folder / "0.parquet")
    other = path / "extents" / "host=a b%20[c]{d}*"
    other.mkdir()
    (folder / "3.parquet").rename(other / "0 %41.parquet")
    return path


def damaged(path: Path) -> Path:
    """All this damage in one run: of four segments, only that of the strange host is readable."""
    folder = odd_files(path) / "extents" / "host=node1"
    table = pq.ParquetFile(folder / "0.parquet").read()
    pq.write_table(table.drop_columns(["how"]), folder / "0.parquet")
    (folder / "1.parquet").write_bytes(b"PAR1 junk")
    _without_pages(folder / "2.parquet")
    (path / "opens/host=node1/1.parquet").write_bytes(b"")
    return path


def spool_left(path: Path) -> Path:
    """A spool next to converted tables: extents come from memory."""
    mixed(path, 3)
    (path / "spool").mkdir()
    return path


RUNS: dict[str, Callable[[Path], Path]] = {
    f.__name__: f
    for f in (
        generated,
        hostile,
        empty,
        without_accesses,
        copied,
        mixed,
        two_hosts,
        broken_footer,
        broken_page,
        missing_column,
        odd_files,
        damaged,
        spool_left,
    )
}
# Each kind of damage alone; `damaged` has them all in one run.
ALONE = ("broken_footer", "broken_page", "missing_column", "odd_files")
