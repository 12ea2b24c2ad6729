"""Declared tasks in columns: the same as a row at a time, whatever a graph says."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from tracehint.analyzer.model import TASKS
from tracehint.analyzer.tasks.declared import _row, declared_only
from tracehint.schemas.manifest import Manifest, RecordingHost
from tracehint.schemas.store import Bundle
from tracehint.schemas.tables import TABLES

TEXT = st.text(st.sampled_from("ab é\n\x1b/"), max_size=4)
TIME = st.none() | st.integers(-(1 << 63), (1 << 63) - 1)
ROW = st.fixed_dictionaries(
    {
        "task": st.sampled_from(["a", "b", "c", "d"]),
        "name": TEXT,
        "type": TEXT,
        "command": TEXT.map(str.encode) | st.just(b"\xff x") | st.just(b"cd /a; sort b"),
        "host": st.sampled_from(["", "n1", "n2"]),
        "start_ns": TIME,
        "end_ns": TIME,
        "exit_status": st.none() | st.integers(0, 255),
        "attempt": st.integers(0, 3),
        "parents": st.just([]),
        "engine": st.just(""),
    }
)


def _one_by_one(rows: list[dict[str, Any]], started: int) -> list[dict[str, Any]]:
    rows = list({row["task"]: row for row in reversed(rows)}.values())[::-1]
    known = [row["start_ns"] for row in rows if row["start_ns"] is not None]
    origin = started or (min(known) if known else 0)
    made = [_row(row, number, origin, {"n1": "s"}) for number, row in enumerate(rows)]
    return pa.Table.from_pylist(made, TASKS).to_pylist()


@settings(deadline=None, max_examples=200)
@given(rows=st.lists(ROW, max_size=6), started=st.sampled_from([0, 5, 1_700_000_000 * 10**9]))
def test_columns_say_what_rows_say(rows: list[dict[str, Any]], started: int) -> None:
    manifest = Manifest(collector="test", started_ns=started, hosts=[RecordingHost("n1", site="s")])
    tables = {name: schema.empty_table() for name, schema in TABLES.items()}
    tables["declared_tasks"] = pa.Table.from_pylist(rows, TABLES["declared_tasks"])
    cut = declared_only(Bundle(None, manifest, tables))  # type: ignore[arg-type]
    assert cut.tasks.to_pylist() == _one_by_one(rows, started)
    assert cut.declared_task.column("task").to_pylist() == list(range(cut.tasks.num_rows))
