"""Columns in less memory are the same columns, and numbers in turn are those of a dictionary."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from tracehint.analyzer.arrays import distinct, in_turn, places, slim, together
from tracehint.schemas.compact import in_one

COLUMNS = {
    "small": np.array([3, -1, 7, 7]),
    "the ends of 32 bits": np.array([-(1 << 31), (1 << 31) - 1]),
    "beyond 32 bits": np.array([1 << 31, 0]),
    "equal": np.full(5, 1 << 40),
    "one": np.array([9]),
    "none": np.array([], np.int64),
    "zeros of two signs": np.array([0.0, -0.0, 0.0]),
    "no numbers": np.full(4, np.nan),
    "floats": np.array([0.1, 2.5]),
    "flags": np.array([True, True]),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_slim_columns_have_the_same_values(name: str) -> None:
    values = COLUMNS[name]
    found = slim(values)
    np.testing.assert_array_equal(found.astype(values.dtype), values)
    if values.dtype.kind == "f":
        np.testing.assert_array_equal(np.signbit(found), np.signbit(values))
    assert found.dtype.itemsize >= min(4, values.dtype.itemsize)  # quotients stay exact


def test_slim_columns_are_joined_with_all_their_values() -> None:
    parts = [np.array([1, 2]), np.full(3, 5), np.array([], np.int64), np.array([1 << 40, 0])]
    np.testing.assert_array_equal(together([slim(p) for p in parts]), np.concatenate(parts))
    equal = together([slim(np.full(3, 2.5)), slim(np.full(2, 2.5))])
    assert equal.tolist() == [2.5] * 5
    assert equal.strides == (0,)


@pytest.mark.parametrize("most", [3, 50, 10**12])
@pytest.mark.parametrize("rows", [0, 1, 200])
def test_numbers_in_turn_and_distinct_ones(most: int, rows: int) -> None:
    values = np.random.default_rng(rows).integers(0, most, rows)
    number, first = in_turn(values)
    known = pa.array(values).dictionary_encode()
    assert number.tolist() == known.indices.to_pylist()
    assert values[first].tolist() == known.dictionary.to_pylist()
    assert in_turn(number)[0] is number or rows < 1
    assert distinct(values).tolist() == sorted(set(values.tolist()))
    assert distinct(-values).tolist() == sorted(set((-values).tolist()))


def test_texts_in_parts_get_one_dictionary() -> None:
    parts = [pa.array(part).dictionary_encode() for part in (["a", "b"], ["c", "a", None])]
    table = pa.table({"n": pa.chunked_array([[1, 2], [3, 4, 5]]), "text": pa.chunked_array(parts)})
    assert in_one(table, ["n"]).column("text").num_chunks == 2
    found = in_one(table, ["text"])
    assert found.column("text").num_chunks == 1
    assert found.to_pylist() == table.to_pylist()


@pytest.mark.parametrize("ids", [[0, 1, 2], [0, 1, 3], [1, 2, 3], [0, 2, 3]])
def test_places_of_known_ids(ids: list[int]) -> None:
    wanted = np.array([ids[2], ids[0], ids[1], ids[2]])
    assert places(np.array(ids), wanted).tolist() == [2, 0, 1, 2]
