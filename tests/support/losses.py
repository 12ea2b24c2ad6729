"""Runs of known shape, and the same runs after a collector lost part of its records."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from tests.support.bundles import RunBuilder
from tests.support.flow_cut import bundle_of

KB = 1 << 10
Ranges = list[tuple[int, int]]
Rows = dict[str, list[dict[str, Any]]]
RECORDS = (1, 1, 1, 2, 4, 16)  # records of one access: most are merged into one


class Workflows:
    """A run of many small workflows below one `make`."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.run = RunBuilder()
        self.root = self.run.process(["make"])
        self.count = 0

    def task(self, kind: str) -> int:
        self.count += 1
        return self.run.process([kind, str(self.count)], parent=self.root, start=1.0, end=900.0)

    def file(self, *, existed: bool = False, size: int | None = None) -> int:
        self.count += 1
        return self.run.file(f"/data/f{self.count}", existed=existed, size=size)

    def access(self, op: str, task: int, file: int, a: int, b: int, at: float) -> None:
        """Add one open file, its bytes in one or several records."""
        pieces = min(self.dice.choice(RECORDS), b - a)
        cuts = [a + (b - a) * k // pieces for k in range(pieces + 1)]
        self.run.access(op, task, file, cuts[0], cuts[1], at=at, until=at + 9)
        opened, extent = self.run.rows["opens"][-1], self.run.rows["extents"][-1]
        opened[f"{op}_ops"], opened[f"{op}_bytes"] = pieces, b - a
        for k in range(1, pieces):
            length = cuts[k + 1] - cuts[k]
            more = {"start": cuts[k], "length": length, "stride": length, "bytes": length}
            self.run.rows["extents"].append(extent | more)

    def written(self, size: int, writers: int = 1) -> int:
        """Return a file written by `writers` tasks, each its region; an input if there are none."""
        file = self.file(existed=not writers, size=size)
        for k in range(writers):
            part = (size * k // writers, size * (k + 1) // writers)
            self.access("write", self.task("make_it"), file, *part, at=10.0)
        return file

    def read(self, file: int, parts: Iterable[tuple[int, int]], kind: str = "use") -> None:
        for a, b in parts:
            self.access("read", self.task(kind), file, a, b, at=50.0)

    def size(self) -> int:
        return self.dice.choice((200, 1000, 4000)) * KB


def _parts(size: int, n: int, overlap: float = 0.0) -> Ranges:
    step = size / n
    return [(int(k * step), min(size, int((k + 1 + overlap) * step))) for k in range(n)]


def one_to_many(w: Workflows) -> None:
    """Add a broadcast, scatter or partly shared file, by a task or an input."""
    size, n = w.size(), w.dice.randint(2, 12)
    file = w.written(size, w.dice.choice((0, 1)))
    shape = w.dice.choice(("whole", "parts", "overlap"))
    parts = {"whole": [(0, size)] * n, "parts": _parts(size, n), "overlap": _parts(size, n, 1.0)}
    w.read(file, parts[shape])


def chain(w: Workflows) -> None:
    """Add a pipeline of some steps; the first file is an input."""
    size = w.size()
    before = w.written(size, 0)
    for step in range(w.dice.randint(2, 5)):
        task = w.task("step")
        w.access("read", task, before, 0, size, at=20.0 + 40 * step)
        before, size = w.file(), w.size()
        w.access("write", task, before, 0, size, at=40.0 + 40 * step)


def many_to_one(w: Workflows) -> None:
    """Add a reduce: a file by each producer, all read by one task, which leaves an output."""
    sink, size = w.task("join"), w.size()
    for _ in range(w.dice.randint(2, 10)):
        file = w.written(size)
        w.access("read", sink, file, 0, size, at=50.0)
    w.access("write", sink, w.file(), 0, size, at=60.0)


def one_splits(w: Workflows) -> None:
    """Add a distribute: one task writes a file for each reader."""
    maker, size = w.task("split"), w.size()
    for _ in range(w.dice.randint(2, 10)):
        file = w.file()
        w.access("write", maker, file, 0, size, at=10.0)
        w.read(file, [(0, size)])


def regions(w: Workflows) -> None:
    """Add a gather: several tasks write parts of a file; one or no reader."""
    size = w.size()
    file = w.written(size, w.dice.randint(2, 10))
    w.read(file, [(0, size)] * w.dice.choice((0, 1, 1)))


UNITS: tuple[Callable[[Workflows], None], ...] = (
    one_to_many, one_to_many, one_to_many, chain, many_to_one, one_splits, regions, regions,
)  # fmt: skip  # a table


def workflows(seed: int, units: int) -> RunBuilder:
    """Return a run of `units` small workflows of random kind and size."""
    w = Workflows(seed)
    for _ in range(units):
        w.dice.choice(UNITS)(w)
    return w.run


# -- losses -----------------------------------------------------------------------------------


def lose_records(rows: Rows, share: float, dice: random.Random) -> None:
    """Lose single access records, as a ring that is occasionally full: counted by process."""
    _drop_extents(rows, lambda _: dice.random() < share)


def lose_bursts(rows: Rows, share: float, dice: random.Random) -> None:
    """Lose the access records of parts of the recording, as a ring that stays full for a while."""
    width = max(1, len(rows["extents"]) // 50)
    bad = {k for k in range(51) if dice.random() < share}
    position = iter(range(len(rows["extents"])))
    _drop_extents(rows, lambda _: next(position) // width in bad)


def lose_opens(rows: Rows, share: float, dice: random.Random) -> None:
    """Lose open files with all their records; their process is unknown."""
    gone = {r["open"] for r in rows["opens"] if dice.random() < share}
    before = len(rows["opens"]) + len(rows["extents"])
    for table in ("opens", "extents"):
        rows[table] = [r for r in rows[table] if r["open"] not in gone]
    lost = before - len(rows["opens"]) - len(rows["extents"])
    _count(rows, None, "lifecycle_records", lost)


def lose_tables(rows: Rows, share: float, dice: random.Random) -> None:
    """Lose open files for which the recorder's table was full; counted by process."""
    gone = {r["open"]: r["proc"] for r in rows["opens"] if dice.random() < share}
    for table in ("opens", "extents"):
        rows[table] = [r for r in rows[table] if r["open"] not in gone]
    for proc, count in Counter(gone.values()).items():
        _count(rows, proc, "open_table_full", count)


LOSSES = {f.__name__: f for f in (lose_records, lose_bursts, lose_opens, lose_tables)}


def _drop_extents(rows: Rows, gone: Callable[[dict[str, Any]], bool]) -> None:
    kept, lost = [], Counter[int]()
    for row in rows["extents"]:
        if gone(row):
            lost[row["proc"]] += 1
        else:
            kept.append(row)
    rows["extents"] = kept
    for proc, count in lost.items():
        _count(rows, proc, "extent_records", count)


def _count(rows: Rows, proc: int | None, kind: str, count: int) -> None:
    if count:
        rows["losses"].append(
            {
                "host": rows["processes"][0]["host"],
                "proc": proc,
                "kind": kind,
                "count": count,
                "detail": None,
            }
        )


def lossy(run: RunBuilder, kind: str, share: float, seed: int) -> RunBuilder:
    """Return a copy of the run that lost about `share` of what `kind` loses."""
    copy = RunBuilder()
    copy.manifest = run.manifest
    copy.rows = {name: list(rows) for name, rows in run.rows.items()}
    LOSSES[kind](copy.rows, share, random.Random(seed))
    return copy


def labels(run: RunBuilder) -> dict[tuple[str, str], float]:
    """Map (path, label) to the confidence, of the first version of each file."""
    from tracehint.analyzer.analyze import analyze
    from tracehint.analyzer.model import Options

    found = analyze(bundle_of(run), Options(nodes=8))
    paths = {f["file"]: (f["path"].decode(), f["version"]) for f in found.files.to_pylist()}
    return {
        (paths[p["file"]][0], p["pattern"]): p["confidence"]
        for p in found.patterns.to_pylist()
        if p["edge"] is None and paths[p["file"]][1] == 0
    }
