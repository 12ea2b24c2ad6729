"""Small segments are put together when they are read: the same rows, in few pieces."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from datasets.synthetic import tables

from tracehint.analyzer.execution.bundle_files import NOT_NEEDED
from tracehint.schemas import segments
from tracehint.schemas.manifest import Manifest
from tracehint.schemas.segments import grouped
from tracehint.schemas.store import read_bundle, read_parts, segment_files
from tracehint.schemas.writer import BundleWriter

SEGMENTS = 7


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """One whose tables have seven segments each; identifiers of the later ones need more bytes."""
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
    monkeypatch.setattr(segments, "GROUP", 2 * parts[0].nbytes)
    assert [len(part) for part in grouped(parts)] == [200, 200]
    monkeypatch.setattr(segments, "GROUP", 1)
    assert [part is one for part, one in zip(grouped(parts), parts, strict=True)] == [True] * 4


def test_numbers_are_as_narrow_as_all_of_them_allow() -> None:
    schema = pa.schema([("n", pa.int64()), ("word", pa.string())])
    words = pa.array(["a", "b"]).dictionary_encode()
    parts = [pa.table({"n": pa.array(n, pa.int64()), "word": words}) for n in ([1, 2], [3, 300])]
    (found,) = grouped(parts, schema)
    assert found.schema.field("n").type == pa.int16()
    assert found.to_pydict() == {"n": [1, 2, 3, 300], "word": ["a", "b", "a", "b"]}
