"""Tables in small types hold what the files hold, or say what is wrong with them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tracehint.analyzer.columns import column
from tracehint.schemas.compact import plain, wide
from tracehint.schemas.store import read_parts
from tracehint.schemas.tables import OPENS

LEFT_OUT = ("host",)
NUMBERS = {  # one value per file: what the widest needs, all files need
    "int8": (pa.int8(), (0, 127, -128)),
    "int16": (pa.int16(), (1, 128, -32768)),
    "int32": (pa.int32(), (1 << 31) - 1),
    "int64": (pa.int64(), (1 << 31, 0, -1)),
}


def row(**changes: Any) -> dict[str, Any]:
    values = {
        field.name: (
            None
            if field.nullable
            else b"p"
            if field.name == "path"
            else "read"
            if pa.types.is_string(field.type)
            else False
            if pa.types.is_boolean(field.type)
            else 1
        )
        for field in OPENS
    }
    return {**values, **changes}


def files(folder: Path, *parts: list[dict[str, Any]]) -> list[tuple[str, Path]]:
    found = []
    for i, rows in enumerate(parts):
        where = folder / f"{i}.parquet"
        pq.write_table(pa.Table.from_pylist(rows, schema=OPENS), where)
        found.append((where.name, where))
    return found


def both(parts: list[tuple[str, Path]]) -> tuple[pa.Table, pa.Table]:
    problems: list[str] = []
    whole = read_parts("opens", parts, problems).drop_columns(list(LEFT_OUT))
    small = read_parts("opens", parts, problems, LEFT_OUT)
    assert not problems
    return whole, small


@pytest.mark.parametrize("width", NUMBERS)
def test_numbers_are_as_wide_as_the_widest_file_needs(tmp_path: Path, width: str) -> None:
    kind, given = NUMBERS[width]
    values = given if isinstance(given, tuple) else (given,)
    whole, small = both(files(tmp_path, *[[row(proc=v), row(proc=0)] for v in values]))
    assert small.schema.field("proc").type == kind
    assert small.column("proc").num_chunks == 1
    assert wide(small.column("proc")).to_pylist() == whole.column("proc").to_pylist()


def test_every_column_holds_the_same(tmp_path: Path) -> None:
    parts = files(
        tmp_path,
        [
            row(open=i, path=b"/w/%d" % (i % 300), size_at_open=None if i % 3 else i)
            for i in range(1000)
        ],
        [row(open=1 << 40, path=b"\xff\n", open_ns=1 << 60)],
    )
    whole, small = both(parts)
    assert small.schema.names == whole.schema.names
    for name in small.schema.names:
        assert plain(small.column(name)).to_pylist() == whole.column(name).to_pylist(), name
    assert small.nbytes < whole.nbytes


def test_few_texts_are_numbered_by_a_byte_and_many_are_not(tmp_path: Path) -> None:
    _, few = both(files(tmp_path, [row(path=b"%d" % i) for i in range(127)]))
    _, many = both(files(tmp_path, [row(path=b"%d" % i) for i in range(128)]))
    assert few.schema.field("path").type.index_type == pa.int8()
    assert many.schema.field("path").type.index_type == pa.int32()


def test_no_rows_and_no_files(tmp_path: Path) -> None:
    whole, small = both(files(tmp_path, [], []))
    assert small.num_rows == 0 and small.schema.names == whole.schema.names
    assert both([])[1].num_rows == 0


def test_a_value_that_must_be_there_and_a_column_that_is_not(tmp_path: Path) -> None:
    (good,) = files(tmp_path, [row()])
    table = pq.ParquetFile(good[1]).read()
    at = table.schema.get_field_index("proc")
    holes = table.set_column(at, "proc", pa.array([None], pa.int64()))
    pq.write_table(holes, tmp_path / "holes.parquet")
    pq.write_table(table.drop_columns(["path"]), tmp_path / "short.parquet")
    parts = [good, *((n, tmp_path / n) for n in ("holes.parquet", "short.parquet"))]
    problems: list[str] = []
    assert read_parts("opens", parts, problems, LEFT_OUT).num_rows == 1
    assert [p.partition(":")[0] for p in problems] == ["holes.parquet", "short.parquet"]


@pytest.mark.parametrize("kind", [pa.int8(), pa.int16(), pa.int64()])
@pytest.mark.parametrize("null", [-1, np.iinfo(np.int64).min])
def test_what_stands_for_no_value_need_not_fit_the_column(kind: pa.DataType, null: int) -> None:
    table = pa.table({"x": pa.array([1, None], kind)})
    assert column(table, "x", null).tolist() == [1, null]
