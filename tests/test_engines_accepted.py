"""Who accepted the emitted files: every emitter has a row, and every row names a test for it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tracehint.adapters.engines.registry import EMITTERS, Accepted

TESTS = Path(__file__).parent
ACCEPTED = {name: facts.accepted for name, facts in EMITTERS.items() if facts.accepted}


def _marks(row: Accepted) -> str:
    """Return the decorators of the row's test and the marks of its file."""
    name, _, function = row.test.partition("::")
    tree = ast.parse((TESTS / name).read_text())
    found = next(
        (x for x in tree.body if isinstance(x, ast.FunctionDef) and x.name == function), None
    )
    assert found is not None, f"{row.test} is gone"
    whole = [
        x.value
        for x in tree.body
        if isinstance(x, ast.Assign) and ast.unparse(x.targets[0]) == "pytestmark"
    ]
    return " ".join(ast.unparse(x) for x in (*found.decorator_list, *whole))


def test_every_emitter_has_a_row() -> None:
    assert ACCEPTED.keys() == EMITTERS.keys()


@pytest.mark.parametrize("name", ACCEPTED)
def test_what_runs_is_shown_by_a_test_with_the_engine(name: str) -> None:
    """`engine` and `store` tests fail in CI where the engine is missing, instead of skipping."""
    row, marks = ACCEPTED[name], _marks(ACCEPTED[name])
    real = any(f"mark.{kind}" in marks for kind in ("engine", "store"))
    assert real == (row.by != "grammar"), marks
    text = (TESTS / row.test.partition("::")[0]).read_text()
    assert name in text or name.replace("-", " ") in text.lower()
