"""Tables in small types have the values of their files, or the damage is reported."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets.synthetic import tables

from tracehint.analyzer.arrays import column
from tracehint.analyzer.execution.bundle_files import NOT_NEEDED
from tracehint.schemas import store
from tracehint.schemas.compact import plain, wide
from tracehint.schemas.manifest import Manifest
from tracehint.schemas.store import (
    coalesce_tables,
    read_bundle,
    read_parts,
    segment_files,
    table_from_rows,
)
from tracehint.schemas.tables import OPENS
from tracehint.schemas.writer import BundleWriter

LEFT_OUT = ("host",)
NUMBERS = {  # one value per file: all files get the type that the widest value needs
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


# -- Small segments are combined when they are read: the same rows, in few chunks


SEGMENTS = 7


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """A bundle of tables with seven segments; file numbers of later segments need more bytes."""
    writer = BundleWriter(tmp_path / "b.trace")
    for name, table in tables(1).items():
        for number in range(SEGMENTS if table.num_rows else 0):
            at = table.schema.get_field_index("file")
            if at >= 0 and number:
                moved = pa.compute.add(table["file"], 100 ** (number % 4))
                table = table.set_column(at, table.schema.field(at), moved)
            writer.write_table(name, table, number)
    writer.write_manifest(Manifest(program="test", collector="synthetic", complete=True))
    return tmp_path / "b.trace"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["opens", "extents", "names", "processes"])
@pytest.mark.parametrize("whole", [True, False])
def test_the_rows_are_those_of_each_segment(bundle: Path, name: str, whole: bool) -> None:
    leave_out = () if whole else NOT_NEEDED.get(name, ("host",))
    problems: list[str] = []
    parts = [(str(file), file) for file in segment_files(bundle, name)]
    found = read_parts(name, parts, problems, leave_out)
    each = [read_parts(name, [part], problems, leave_out) for part in parts]
    assert (len(parts), problems) == (SEGMENTS, [])
    assert found.to_pylist() == [row for one in each for row in one.to_pylist()]
    assert max(column.num_chunks for column in found.columns) == 1


def test_a_damaged_segment_is_left_out(bundle: Path) -> None:
    damaged = segment_files(bundle, "opens")[3]
    whole = read_bundle(bundle).tables["opens"].num_rows
    damaged.write_bytes(b"no Parquet")
    found = read_bundle(bundle)
    assert found.tables["opens"].num_rows == whole // SEGMENTS * (SEGMENTS - 1)
    assert [text.split(":")[0] for text in found.problems] == [str(damaged.relative_to(bundle))]


def test_large_segments_stay_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = [pa.table({"n": [number] * 100}) for number in range(4)]
    monkeypatch.setattr(store, "GROUP", 2 * parts[0].nbytes)
    assert [len(part) for part in coalesce_tables(parts)] == [200, 200]
    monkeypatch.setattr(store, "GROUP", 1)
    assert [part is one for part, one in zip(coalesce_tables(parts), parts, strict=True)] == [
        True
    ] * 4


def test_numbers_are_as_narrow_as_all_of_them_allow() -> None:
    schema = pa.schema([("n", pa.int64()), ("word", pa.string())])
    words = pa.array(["a", "b"]).dictionary_encode()
    parts = [pa.table({"n": pa.array(n, pa.int64()), "word": words}) for n in ([1, 2], [3, 300])]
    (found,) = coalesce_tables(parts, schema)
    assert found.schema.field("n").type == pa.int16()
    assert found.to_pydict() == {"n": [1, 2, 3, 300], "word": ["a", "b", "a", "b"]}


# -- Rows of many hosts are written host by host, in their original order


def test_each_host_has_its_rows_in_order(tmp_path: Path) -> None:
    hosts = ["b", "a", "b", "c", "a", "b"]
    rows = [{"host": host, "kind": "x", "count": n} for n, host in enumerate(hosts)]
    table = table_from_rows("losses", rows)
    BundleWriter(tmp_path / "r.trace").write_table("losses", table)
    for host in "abc":
        path = tmp_path / "r.trace" / "losses" / f"host={host}" / "0.parquet"
        counts = pq.read_table(path, partitioning=None)["count"].to_pylist()
        assert counts == [n for n, name in enumerate(hosts) if name == host]


def test_no_rows_make_no_files(tmp_path: Path) -> None:
    table = table_from_rows("losses", [])
    BundleWriter(tmp_path / "r.trace").write_table("losses", table)
    assert not (tmp_path / "r.trace" / "losses").exists()
    assert isinstance(table, pa.Table)
