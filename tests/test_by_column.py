"""What is computed in columns of files: the same as one by one in plain Python."""

from __future__ import annotations

import re
from statistics import median

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tests.support.runs import parse_run
from tracehint.analyzer.arrays import ints, joined, numbered
from tracehint.analyzer.columns import column
from tracehint.hintgen.last_reader import last_readers
from tracehint.hintgen.learn.reading import medians
from tracehint.hintgen.lines import lines_of
from tracehint.hintgen.members import members_of
from tracehint.hintgen.text.digit_runs import DigitRuns
from tracehint.hintgen.text.masks import layouts_of, shapes_of
from tracehint.hintgen.users import users_of

PAIRS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 1000)))
NAMES = st.lists(st.text(st.sampled_from("ab0129/._-*ä"), max_size=12), min_size=1)


@given(st.lists(st.one_of(st.integers(0, 20), st.integers(0, 1 << 60))))
def test_numbers_of_values(values: list[int]) -> None:
    found, place = numbered(ints(values))
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
    """Also of a part of an array, and beside texts without any."""
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
    """Every digit is 0 in a layout, wherever the names lie in memory."""
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
    """A task that reads two files that others made continues no line."""
    assert lines(CHAIN.partition("    write one d")[0]) == {"a": "c", "b": "c", "c": "c", "d": "d"}
    assert lines(CHAIN) == {"c": "c"}


def lines(text: str) -> dict[str, str]:
    analysis = parse_run(text).analysis()
    begin, end = lines_of(users_of(analysis), column(analysis.files, "file"))
    files = analysis.files.select(["file", "path"]).to_pylist()
    names = {row["file"]: row["path"].decode() for row in files}
    return {names[f]: names[e] for f, e in zip(begin.tolist(), end.tolist(), strict=True)}


def test_the_last_reader_is_ordered_after_the_others() -> None:
    """By files that go from task to task, not by time alone."""
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
    row, found = joined(ints(keys), ints(of), ints(value))
    wanted = [(at, v) for at, key in enumerate(keys) for k, v in pairs if k == key]
    assert sorted(zip(row.tolist(), found.tolist(), strict=True)) == sorted(wanted)
