"""Each rule of the two pages of definitions has a number, and each number a test that names it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
DOCS = TESTS.parent / "docs"
_NUMBER = re.compile(r"\*\*([PF]\d+)\*\*")
# page -> sections in which every list item and every table row is a rule
RULES = {
    "patterns.md": (
        "Who counts",
        "Readers per byte",
        "The labels",
        "The cost model",
        "Confidence",
        "Limits",
    ),
    "reference/flow.md": ("Files", "Versions", "Edges", "Ranges and what is exact", "Roles"),
}


def numbers() -> list[str]:
    return [n for page in RULES for n in _NUMBER.findall((DOCS / page).read_text("utf-8"))]


def named() -> dict[str, list[str]]:
    """Return the tests that carry each rule as a marker, by rule."""
    found: dict[str, list[str]] = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef):
                for mark in node.decorator_list:
                    if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.rule":
                        assert node.name.startswith("test_"), f"{path}: {node.name} is no test"
                        for rule in mark.args:
                            assert isinstance(rule, ast.Constant)
                            found.setdefault(str(rule.value), []).append(node.name)
    return found


def test_numbers_are_unique() -> None:
    found = numbers()
    assert len(found) == len(set(found))
    assert len(found) >= 90


@pytest.mark.slow
def test_every_rule_has_a_test() -> None:
    assert sorted(set(numbers()) - named().keys()) == []


@pytest.mark.slow
def test_every_test_is_of_a_rule() -> None:
    assert sorted(named().keys() - set(numbers())) == []


@pytest.mark.parametrize("page", RULES)
def test_everything_on_the_page_is_numbered(page: str) -> None:
    """No test can name a list item or table row without a number."""
    section, bare = "", []
    lines = (DOCS / page).read_text(encoding="utf-8").splitlines()
    for line, after in zip(lines, [*lines[1:], ""], strict=True):
        if line.startswith("## "):
            section = line.removeprefix("## ")
        if section not in RULES[page] or line.startswith("|---") or after.startswith("|---"):
            continue
        if line.startswith(("- ", "|")) and not _NUMBER.match(line.lstrip("-| ")):
            bare.append(line)
    assert set(RULES[page]) <= {x.removeprefix("## ") for x in lines}
    assert bare == []
