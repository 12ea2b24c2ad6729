"""A run recorded by several hosts, each its own tasks, equals the run recorded by one recorder.

Names carry no meaning: the analysis is the same with other names.
"""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.bundles import RunBuilder
from tests.support.flow_cut import bundle_of
from tracehint.analyzer.analyze import analyze
from tracehint.analyzer.model import Analysis, Options
from tracehint.collectors.join import Joined, in_memory
from tracehint.schemas.manifest import RecordingHost
from tracehint.schemas.store import Bundle
from tracehint.schemas.tables import TABLES

pytestmark = pytest.mark.slow

MORE = int(os.environ.get("TRACEHINT_EXAMPLES", "1"))  # factor for the number of examples
SIZE, TASKS, FILES = 40, 6, 3
SHARED = [
    {"path": "/data", "fstype": "nfs4", "source": "server:/x"},
    {"path": "/", "fstype": "ext4", "source": "/dev/sda"},
]

Access = tuple[str, int, int, int, int, int]
accesses = st.lists(
    st.tuples(
        st.sampled_from(["read", "read", "write", "write", "truncate"]),
        st.integers(0, TASKS - 1),
        st.integers(0, FILES - 1),
        st.integers(0, SIZE),
        st.integers(1, SIZE),
        st.integers(0, 5),
    ),
    max_size=24,
)
existing = st.tuples(*[st.booleans()] * FILES)
homes = st.lists(st.integers(0, 3), min_size=TASKS, max_size=TASKS)


@dataclass(frozen=True)
class Names:
    """Names of the tasks, files and program of a run."""

    tasks: tuple[str, ...] = tuple(f"t_{t}" for t in range(TASKS))
    files: tuple[str, ...] = tuple(f"f{f}" for f in range(FILES))
    program: str = "tool"


USUAL = Names()


class Node:
    """One host's recording: a script, the named tasks that run here, and their files."""

    def __init__(self, name: str, tasks: Sequence[int], names: Names) -> None:
        self.names = names
        self.run = RunBuilder(host=name)
        self.run.manifest.hosts = [RecordingHost(name=name, mounts=list(SHARED))]
        script = self.run.process(["sh", "job.sh"])
        self.procs = {
            t: self.run.process(
                [names.program, str(t)], parent=script, env={"TRACEHINT_TASK": names.tasks[t]}
            )
            for t in tasks
        }
        self.files: dict[int, int] = {}

    def file(self, number: int, *, existed: bool, made: bool, at: float) -> int:
        """Return the host's row of a file on the shared mount; its inode is the same everywhere."""
        if number not in self.files:
            self.files[number] = self.run.file(
                f"/data/{self.names.files[number]}", existed=existed or not made, ino=100 + number
            )
            self.run.rows["names"][-1]["t_ns"] += round(at * 1e9)
        return self.files[number]


def record(
    rows: list[Access], existed: tuple[bool, ...], home: list[int], names: Names = USUAL
) -> list[RunBuilder]:
    """Return one recording per host; `home` assigns tasks to hosts."""
    nodes = {
        h: Node(f"node{h}", [t for t in range(TASKS) if home[t] == h], names)
        for h in sorted(set(home))
    }
    there = {f for f in range(FILES) if existed[f]}
    opened: set[int] = set()
    for k, (op, task, number, start, length, lasts) in enumerate(rows):
        at, node = 10.0 + k, nodes[home[task]]
        made = number not in there and op != "read"
        if number not in there and not made:
            continue  # the file does not exist yet
        there.add(number)
        file = node.file(number, existed=existed[number], made=made, at=at)
        if op == "truncate":
            node.run.truncate(node.procs[task], file, start, at=at)
            continue
        node.run.access(
            op, node.procs[task], file, start, start + length, at=at, until=at + lasts / 2
        )
        if existed[number] and number not in opened:
            node.run.rows["opens"][-1]["size_at_open"] = SIZE
        opened.add(number)
    return [n.run for n in nodes.values()]


def merged(runs: list[RunBuilder]) -> Bundle:
    """Join the recordings as `tracehint merge` does."""
    whole = Joined([in_memory(bundle_of(run)) for run in runs])
    assert not whole.align()
    tables = {name: pa.concat_tables(whole.tables(name)) for name in TABLES}
    return Bundle(Path("run.trace"), whole.manifest, tables)


LABEL = (
    "pattern", "primary", "confidence", "placement", "saves_bytes", "saves_wait_bytes", "runner_up"
)  # fmt: skip  # a table
EDGE = ("bytes", "via", "order")


def told(analysis: Analysis, names: Names = USUAL) -> dict[str, Any]:
    """Return the analysis without identifiers and hosts, translated to the usual names."""
    task = dict(zip(names.tasks, USUAL.tasks, strict=True))
    path = {a.encode(): b.encode() for a, b in zip(names.files, USUAL.files, strict=True)}
    tasks = {t["task"]: task[t["name"]] for t in analysis.tasks.to_pylist() if not t["engine"]}
    files = {f["file"]: (path[f["path"]], f["version"]) for f in analysis.files.to_pylist()}

    def users(table: Any) -> list[Any]:
        return sorted(
            (files[r.pop("file")], tasks[r.pop("task")], repr(r)) for r in table.to_pylist()
        )

    labels = [
        (files[p["file"]], *(p[key] for key in LABEL))
        for p in analysis.patterns.to_pylist()
        if p["edge"] is None
    ]
    return {
        "tasks": sorted(tasks.values()),
        "files": sorted(
            (files[f["file"]], f["role"], f["size_bytes"], f["deleted"], f["concurrent"] or False)
            for f in analysis.files.to_pylist()
        ),
        "producers": users(analysis.producers),
        "consumers": users(analysis.consumers),
        "edges": sorted(
            (tasks[e["producer"]], files[e["file"]], tasks[e["consumer"]], *(e[k] for k in EDGE))
            for e in analysis.edges.to_pylist()
        ),
        "labels": sorted(labels, key=repr),
        "groups": sorted(
            (g["pattern"], tasks[g["task"]], sorted(files[f] for f in g["files"]), g["bytes"])
            for g in analysis.groups.to_pylist()
        ),
    }


def same(rows: list[Access], existed: tuple[bool, ...], home: list[int], dice: Any) -> None:
    options = Options(nodes=3, max_versions=4, call_cost_bytes=8, peek_bytes=4)
    whole = told(analyze(merged(record(rows, existed, [0] * TASKS)), options))
    parts = record(rows, existed, home)
    dice.shuffle(parts)
    assert told(analyze(merged(parts), options)) == whole


@settings(max_examples=25 * MORE, deadline=None)
@given(accesses, existing, homes, st.randoms(use_true_random=False))
def test_hosts_together_are_the_run(
    rows: list[Access], existed: tuple[bool, ...], home: list[int], dice: random.Random
) -> None:
    same(rows, existed, home, dice)


@settings(max_examples=15 * MORE, deadline=None)
@given(accesses, existing, st.permutations(range(TASKS)), st.permutations(range(FILES)))
def test_names_do_not_matter(
    rows: list[Access], existed: tuple[bool, ...], tasks: list[int], files: list[int]
) -> None:
    """Names with another sort order, in another folder, and with unusual characters."""
    other = Names(
        tuple(f"weird $(x)_{t}" for t in tasks),
        tuple(f"sub {f}/\u00e9'{9 - f}.bin" for f in files),
        "/opt/x/other",
    )
    options = Options(nodes=3, max_versions=4, call_cost_bytes=8, peek_bytes=4)
    home = [0] * TASKS
    found = told(analyze(merged(record(rows, existed, home, other)), options), other)
    assert found == told(analyze(merged(record(rows, existed, home)), options))


def test_a_chain_over_hosts_is_the_chain() -> None:
    """A fixed example that has edges between hosts, whatever is drawn above."""
    rows: list[Access] = [
        ("write", 0, 0, 0, 40, 0), ("read", 1, 0, 0, 40, 0), ("write", 1, 1, 0, 30, 0),
        ("read", 2, 1, 0, 30, 0), ("read", 3, 1, 0, 30, 0), ("write", 2, 0, 5, 10, 0),
        ("read", 4, 0, 0, 40, 0),
    ]  # fmt: skip  # a table
    home = [0, 1, 2, 3, 0, 1]
    same(rows, (False, False, True), home, random.Random(1))
    found = told(analyze(merged(record(rows, (False, False, True), home)), Options(nodes=3)))
    assert ("t_0", (b"f0", 0), "t_1", 40, "data", "certain") in found["edges"]
    assert {e[0] for e in found["edges"]} == {"t_0", "t_1", "t_2"}
