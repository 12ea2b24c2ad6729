"""Computations on columns of files give the same results as plain Python, one by one."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from statistics import median

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.cli import inside
from tests.support.joined import declared
from tests.support.runs import parse_run
from tracehint.analyzer.arrays import (
    column,
    concat_numbers,
    distinct,
    ints,
    join_pairs,
    number_values,
    places,
    rank_values,
    slim,
)
from tracehint.analyzer.model import PATTERNS, Analysis, Options
from tracehint.hintgen import query
from tracehint.hintgen.compare.diff import profile
from tracehint.hintgen.file_users import last_readers, members_of, sets_of, users_of
from tracehint.hintgen.inputs import load_run
from tracehint.hintgen.learn.facts import medians
from tracehint.hintgen.lint.rules.kept_files import lines_of
from tracehint.hintgen.query import DigitRuns
from tracehint.hintgen.report.drawing import build
from tracehint.hintgen.report.panels import sankey
from tracehint.hintgen.text.masks import layouts_of, shapes_of
from tracehint.schemas.compact import in_one

PAIRS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 1000)))
NAMES = st.lists(st.text(st.sampled_from("ab0129/._-*ä"), max_size=12), min_size=1)


@given(st.lists(st.one_of(st.integers(0, 20), st.integers(0, 1 << 60))))
def test_numbers_of_values(values: list[int]) -> None:
    found, place = rank_values(ints(values))
    assert found.tolist() == sorted(set(values))
    assert [found[at] for at in place.tolist()] == values


@given(PAIRS)
def test_medians_of_groups(rows: list[tuple[int, int]]) -> None:
    group, value = (ints([row[k] for row in rows]) for k in (0, 1))
    groups, found = medians(group, value)
    wanted = {g: median([v for at, v in rows if at == g]) for g, _ in rows}
    assert dict(zip(groups.tolist(), found.tolist(), strict=True)) == wanted


@given(PAIRS, st.lists(st.integers(0, 12)))
def test_members_of_groups(rows: list[tuple[int, int]], asked: list[int]) -> None:
    members = members_of(*(ints([row[k] for row in rows]) for k in (0, 1)))
    wanted = [sorted({m for at, m in rows if at == g}) for g in asked]
    assert members.lists(ints(asked)).to_pylist() == wanted
    assert members.counts(ints(asked)).tolist() == [len(some) for some in wanted]
    assert members.only(ints(asked)).tolist() == [some[0] if some else -1 for some in wanted]


@given(NAMES, st.integers(0, 3))
def test_runs_of_digits_that_never_change(names: list[str], cut: int) -> None:
    """Also for a slice of an array, and with texts that have no digits."""
    cut = min(cut, len(names))
    runs = DigitRuns(pa.array(names, pa.string())[cut:])
    found = [re.findall("[0-9]+", name) for name in names[cut:]]
    assert runs.count.tolist() == [len(some) for some in found]
    rows = np.arange(len(found))
    wanted = {
        many: [part[0] if len(set(part)) == 1 else "*" for part in zip(*alike, strict=True)]
        for many in {len(some) for some in found}
        if (alike := [some for some in found if len(some) == many])
    }
    assert dict(runs.constant(rows, runs.count)) == wanted


@given(NAMES)
def test_a_shape_follows_from_the_layout(names: list[str]) -> None:
    """A layout has 0 for every digit, also for a slice of an array."""
    paths = pa.array(["cut", *names, None], pa.binary())[1:]
    layouts = layouts_of(paths)
    zeroed = [re.sub(rb"[0-9]", b"0", name.encode()) for name in names]
    assert layouts.known.take(layouts.code).to_pylist() == [*zeroed, None]
    assert shapes_of(paths).to_pylist()[-1] is None


CHAIN = """
    task one type=one
    task two type=two
    task three type=three
    file a 4M
    file b 2M
    file c 1M
    file d 1M
    write one a
    read two a
    write two b
    read three b
    write three c
    write one d
    read three d"""


def test_a_line_ends_where_nobody_reads() -> None:
    """A task that reads files of two producers continues no line."""
    assert lines(CHAIN.partition("    write one d")[0]) == {"a": "c", "b": "c", "c": "c", "d": "d"}
    assert lines(CHAIN) == {"c": "c"}


def lines(text: str) -> dict[str, str]:
    analysis = parse_run(text).analysis()
    begin, end = lines_of(users_of(analysis), column(analysis.files, "file"))
    files = analysis.files.select(["file", "path"]).to_pylist()
    names = {row["file"]: row["path"].decode() for row in files}
    return {names[f]: names[e] for f, e in zip(begin.tolist(), end.tolist(), strict=True)}


def test_the_last_reader_is_ordered_after_the_others() -> None:
    """Ordered by files passed between tasks, not by time alone."""
    text = """
        task make type=make
        task first type=first
        task last type=last
        task other type=other
        file a 1M
        file b 1M
        file c 1M
        write make a
        read first a
        write first b
        read last b
        read last a
        write make c
        read first c
        read other c
        task again type=last
        file d 1M
        write make d
        read last d
        read again d"""
    analysis = parse_run(text).analysis()
    users = users_of(analysis)
    names = {
        row["file"]: row["path"] for row in analysis.files.select(["file", "path"]).to_pylist()
    }
    files, kind = last_readers(users, analysis.edges)
    found = zip(files.tolist(), kind.tolist(), strict=True)
    assert {names[file]: users.kinds[k] for file, k in found} == {
        b"a": "last",
        b"b": "last",
        b"d": "last",
    }


@given(
    st.lists(st.integers(0, 6), max_size=20),
    st.lists(st.tuples(st.integers(0, 6), st.integers(-3, 9)), max_size=20),
)
def test_a_join_has_each_value_of_each_key(keys: list[int], pairs: list[tuple[int, int]]) -> None:
    of, value = ([pair[side] for pair in pairs] for side in (0, 1))
    row, found = join_pairs(ints(keys), ints(of), ints(value))
    wanted = [(at, v) for at, key in enumerate(keys) for k, v in pairs if k == key]
    assert sorted(zip(row.tolist(), found.tolist(), strict=True)) == sorted(wanted)


# -- Of two equally frequent patterns the same one is named, whatever the order of the rows


def backwards(table: pa.Table) -> pa.Table:
    return table.take(pa.array(range(table.num_rows - 1, -1, -1)))


def half_and_half(analysis: Analysis) -> Analysis:
    """Return the analysis with two patterns that alternate by file number."""
    files = analysis.patterns.column("file").to_pylist()
    words = pa.array(["reduce" if file % 2 else "distribute" for file in files])
    table = analysis.patterns.set_column(
        PATTERNS.get_field_index("pattern"),
        PATTERNS.field("pattern"),
        words.cast(PATTERNS.field("pattern").type),
    )
    return replace(analysis, patterns=table)


@pytest.mark.slow
def test_ties(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(json.dumps(declared(1)))
    assert inside("import", "run.json", "-o", "run.trace", cwd=tmp_path).returncode == 0
    first = half_and_half(load_run(tmp_path / "run.trace", Options()).analysis)
    second = replace(first, **{name: backwards(t) for name, t in first.tables().items()})
    assert profile(first).groups == profile(second).groups
    assert build(first, fold=True) == build(second, fold=True)
    assert sankey(query.connect(first)) == sankey(query.connect(second))


# -- Sets of types as numbers: distinct exactly where Python's own sets are


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 5))))
def test_sets_are_those_of_python(rows: list[tuple[int, int]]) -> None:
    group, member = (np.array([row[k] for row in rows], np.int64) for k in (0, 1))
    groups, number, sets = sets_of(group, member)
    wanted = {g: tuple(sorted({m for at, m in rows if at == g})) for g in {g for g, _ in rows}}
    assert {g: sets[n] for g, n in zip(groups.tolist(), number.tolist(), strict=True)} == wanted
    whole = [sets[n] for n in number.tolist()]
    assert len({*number.tolist()}) == len(set(whole))  # equal sets have the same number


def test_words_of_a_file() -> None:
    text = """
        task make type=make
        task sort type=sort
        task cut type=cut
        file f 1M
        file g 1M
        write make f
        read sort f
        read cut f
        write sort g
        read cut g"""
    con = query.connect(parse_run(text).analysis())
    rows = con.execute(
        """SELECT f.path_text, m.text, u.words FROM files f LEFT JOIN type_set s USING (file)
           LEFT JOIN type_words m ON m.number = s.made LEFT JOIN type_words u ON u.number = s.used
           ORDER BY 1"""
    ).fetchall()
    assert rows == [("f", "make", ["cut", "sort"]), ("g", "sort", ["cut"])]


# -- Slim columns keep their values; numbers by first occurrence equal dictionary codes


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
    np.testing.assert_array_equal(concat_numbers([slim(p) for p in parts]), np.concatenate(parts))
    equal = concat_numbers([slim(np.full(3, 2.5)), slim(np.full(2, 2.5))])
    assert equal.tolist() == [2.5] * 5
    assert equal.strides == (0,)


@pytest.mark.parametrize("most", [3, 50, 10**12])
@pytest.mark.parametrize("rows", [0, 1, 200])
def test_numbers_in_turn_and_distinct_ones(most: int, rows: int) -> None:
    values = np.random.default_rng(rows).integers(0, most, rows)
    number, first = number_values(values)
    known = pa.array(values).dictionary_encode()
    assert number.tolist() == known.indices.to_pylist()
    assert values[first].tolist() == known.dictionary.to_pylist()
    assert number_values(number)[0] is number or rows < 1
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
