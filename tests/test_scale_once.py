"""Work on every name or byte is done once per run, however many callers need it."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.cli import inside
from tests.support.hints import fitted_names, hint_file, rule
from tests.support.joined import declared
from tracehint.adapters.engines.wfformat import graph as json_stream
from tracehint.adapters.engines.wfformat.graph import JsonStream
from tracehint.analyzer.arrays import group_equal_rows
from tracehint.analyzer.model import Analysis, Options
from tracehint.hintgen.compare.score import predict_hints
from tracehint.hintgen.hint_columns import prepare
from tracehint.hintgen.inputs import load_run
from tracehint.hintgen.learn.filegroups import first_of, sets_in
from tracehint.hintgen.learn.rules import learn
from tracehint.hintgen.match.known import Declared
from tracehint.hintgen.match.match import Matcher
from tracehint.hintgen.match.ruleindex import TemplateIndex, _Rules
from tracehint.limits import values_of


def test_values_of_a_stream_are_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short items in the same buffered text do not count it again."""
    seen: list[int] = []

    def noted(text: str) -> int:
        seen.append(len(text))
        return values_of(text)

    monkeypatch.setattr(json_stream, "CHUNK", 1 << 10)
    monkeypatch.setattr(json_stream, "values_of", noted)
    items = [{"id": f"task{n:05d}", "files": [f"f{n}"]} for n in range(5_000)]
    text = json.dumps({"w": items}).encode()
    stream = JsonStream(io.BytesIO(text), frozenset({"w"}), frozenset())
    assert [value for _, value in stream.events()] == items
    assert sum(seen) <= 3 * len(text)


def real(folder: Path) -> Analysis:
    """Import real workflows side by side from their declaration."""
    (folder / "run.json").write_text(json.dumps(declared(1)))
    assert inside("import", "run.json", "-o", "run.trace", cwd=folder).returncode == 0
    return load_run(folder / "run.trace", Options()).analysis


def test_rules_are_tried_without_counting_all_names_for_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    analysis = real(tmp_path)
    tried = fitted_names(monkeypatch, TemplateIndex)
    assert learn([analysis]).rules
    assert len(tried) <= analysis.files.num_rows


def test_names_are_fitted_once_whatever_is_known_of_the_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A score queries three times: by path, with all names, with the declared graph."""
    analysis = real(tmp_path)
    rules = learn([analysis])
    fitted = fitted_names(monkeypatch, _Rules)
    other, matcher = prepare(analysis), Matcher(rules)
    matcher.outcomes(other.paths)
    once = len(fitted)
    assert once > 10
    predict_hints(matcher, other, graph=False, names=True, nodes=4)
    assert len(fitted) == once
    predict_hints(matcher, other, graph=True, nodes=4)
    any_name = len([name for name in fitted[once:] if name not in fitted[:once]])
    assert any_name <= once // 10  # by rules for declared types, and other examples of a name


def test_a_name_near_the_limit_is_asked_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """The results cached for a name do not count towards its limit."""
    names = [b"proj/part_7.fits"]
    left_out = ("{dirs}part_{n}{n}.fits", "{dirs}{name}_{word}.fit")
    hints = hint_file(rule("{dirs}part_{n}.fits", DP="local", exclude=left_out))
    typed = Declared(producer_types=["make"], consumer_types=[["use"]])
    for most in range(5, 60):
        monkeypatch.setattr("tracehint.hintgen.match.match.limit", lambda _name, most=most: most)
        asked_before = Matcher(hints)
        asked_before.match(names)
        assert asked_before.match(names, typed) == Matcher(hints).match(names, typed)


@given(st.lists(st.lists(st.integers(0, 5), max_size=4, unique=True).map(sorted), max_size=30))
def test_lists_are_numbered_by_their_members(rows: list[list[int]]) -> None:
    rows += [list(range(n)) for n in (100, 100, 101)]
    column = pa.chunked_array([pa.array(rows, pa.list_(pa.int64()))])
    number = sets_in(column).tolist()
    for i, one in enumerate(rows):
        assert [n == number[i] for n in number] == [row == one for row in rows]
        assert (number[i] == 0) == (not one)
    first, code = group_equal_rows(sets_in(column), np.arange(len(rows)) % 2)
    kinds = [(tuple(row), i % 2) for i, row in enumerate(rows)]
    assert [kinds[first[k]] for k in code.tolist()] == kinds
    assert [int(at) for at in first] == [kinds.index(kinds[at]) for at in first.tolist()]
    assert first_of(column).tolist() == [row[0] if row else -1 for row in rows]
