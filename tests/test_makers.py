"""By which programs types are known: damaged process trees, and runs without any program."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from tracehint.analyzer.tasks.makers import makers_of
from tracehint.analyzer.tasks.tree import build_tree

ARGV = ([], [b""], [b"\xff"], [b"sh", b"-c", b"x"], [b"python3", b"a.py"], [b"x/mix"], [b"python3"])


def column(rnd: random.Random, count: int, some: list[Any], kind: pa.DataType) -> pa.Array:
    return pa.array([rnd.choice(some) for _ in range(count)], kind)


def found(rnd: random.Random, argvs: tuple[list[bytes], ...]) -> tuple[dict[str, Any], ...]:
    """Of a random tree, with cycles and links to nowhere."""
    count, whole = rnd.randrange(1, 40), pa.int64()
    ids = [rnd.randrange(1, count + 3) for _ in range(count)]
    processes = pa.table({
        "proc": pa.array(ids, whole), "parent": column(rnd, count, [None, *ids], whole),
        "prev": column(rnd, count, [None, *ids], whole),
        "start_ns": column(rnd, count, list(range(9)), whole), "end_ns": pa.nulls(count, whole),
        "argv": column(rnd, count, list(argvs), pa.list_(pa.binary())),
    })  # fmt: skip  # a table
    tasks = list(range(rnd.randrange(1, 6)))
    segmented: Any = SimpleNamespace(
        tasks=pa.table({
            "task": pa.array(tasks, whole),
            "type": column(rnd, len(tasks), [None, "", "a", "b"], pa.string()),
            "engine": column(rnd, len(tasks), [None, True, False], pa.bool_()),
        }),
        proc_task=pa.table({
            "proc": pa.array(ids, whole), "task": column(rnd, count, [*tasks, 99], whole),
        }),
    )  # fmt: skip  # a table
    rows = rnd.randrange(20)
    opens = pa.table({
        "proc": column(rnd, rows, [*ids, 77], whole), "file": pa.array(range(rows), whole),
        "created": column(rnd, rows, [True, False], pa.bool_()),
        "via": column(rnd, rows, ["open", "inherited"], pa.string()),
        "write_ops": column(rnd, rows, [0, 1, -1], whole),
    })  # fmt: skip  # a table
    bundle: Any = SimpleNamespace(tables={"processes": processes, "opens": opens})
    return makers_of(bundle, build_tree(processes), segmented)


@pytest.mark.parametrize("seed", range(20))
def test_damaged_trees(seed: int) -> None:
    rnd = random.Random(seed)
    for _ in range(10):
        for one in found(rnd, ARGV):
            assert one["type"] in ("a", "b")
            assert one["word"] in ("a.py", "mix")


def test_a_run_of_nothing_but_shell_texts() -> None:
    assert found(random.Random(1), ([], [b"sh", b"-c", b"x"])) == ()
