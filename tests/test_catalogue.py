"""The catalogue of patterns and the tables that have a line for each of them."""

from __future__ import annotations

import json

from tests.support.scratch import ROOT
from tracehint.analyzer.catalogue import CATALOGUE, GROUPED, NAMES
from tracehint.analyzer.patterns.numbers import GROUPS, SHAPES
from tracehint.hintgen.hints.mapping import PATTERN_HINTS
from tracehint.hintgen.hints.uses import BY_DEFINITION
from tracehint.hintgen.summary.words import WORDS


def test_every_pattern_has_its_numbers_words_and_place_in_the_contract() -> None:
    schema = json.loads((ROOT / "schemas" / "analysis.schema.json").read_text())
    contract = schema["$defs"]["pattern"]["properties"]["pattern"]["enum"]
    groups = schema["properties"]["groups"]["items"]["properties"]["pattern"]["enum"]
    for table in (contract, SHAPES, WORDS):
        assert sorted(table) == sorted(set(NAMES)) == sorted(NAMES)
    for table in (groups, GROUPS):
        assert sorted(table) == sorted(GROUPED)
    assert {p for p in BY_DEFINITION.values() if p} <= set(NAMES)


def test_what_a_pattern_asks_for_has_hints() -> None:
    assert set(PATTERN_HINTS) == {p.name for p in CATALOGUE if p.hint}
    assert all(0 < p.blind <= 1 and len(p.color) == 7 for p in CATALOGUE)
