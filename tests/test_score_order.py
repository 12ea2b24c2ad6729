"""The wrong units that a score shows are the first ones, whatever Python's hash seed."""

from __future__ import annotations

import numpy as np

from tracehint.hintgen.compare.score import compare
from tracehint.hintgen.hint_columns import columns_of


def test_the_first_wrong_units_are_shown() -> None:
    paths = [b"f%03d" % n for n in range(200)]
    right, wrong = (("DP", "local", "pipeline"),), (("DP", "scatter|1", "scatter"),)
    said = columns_of(paths, [n % 2 for n in range(200)], [right, wrong])
    true = columns_of(paths, [0] * 200, [right])
    score = compare(said, true, np.full(200, 7))
    assert score.wrong == [(path, "DP", "scatter|1", "local") for path in paths[1:100:2]]
    assert score.total.units == {"hits": 100, "false_hits": 100, "missed": 100}
    assert score.per_pattern["pipeline"].sizes == {"hits": 700, "missed": 700}


def test_groups_are_equal_by_their_files() -> None:
    paths = [b"a", b"b", b"c", b"d"]
    said = columns_of(
        paths, [0, 0, 1, 2], [(("DP", f"collocation|g{n}", "reduce"),) for n in range(3)]
    )
    true = columns_of(
        paths, [0, 0, 0, 1], [(("DP", f"collocation|t{n}", "reduce"),) for n in range(2)]
    )
    score = compare(said, true, np.ones(4, np.int64))
    assert score.total.units == {"hits": 3, "false_hits": 1, "missed": 1}
    assert score.wrong == [(b"c", "DP", "collocation|g1", "collocation|t0")]


def test_of_equal_names_the_last_value_counts() -> None:
    said = columns_of([b"a"], [0], [(("DP", "x", "p"), ("DP", "y", "q"))])
    assert len(said) == 1
    assert said.texts[said.value[0]] == "y"
