"""Sets of types as numbers: those that Python's own sets tell apart."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.support.runs import parse_run
from tracehint.hintgen import query
from tracehint.hintgen.typesets import sets_of


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 5))))
def test_sets_are_those_of_python(rows: list[tuple[int, int]]) -> None:
    group, member = (np.array([row[k] for row in rows], np.int64) for k in (0, 1))
    groups, number, sets = sets_of(group, member)
    wanted = {g: tuple(sorted({m for at, m in rows if at == g})) for g in {g for g, _ in rows}}
    assert {g: sets[n] for g, n in zip(groups.tolist(), number.tolist(), strict=True)} == wanted
    whole = [sets[n] for n in number.tolist()]
    assert len({*number.tolist()}) == len(set(whole))  # equal sets have one number


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
