"""Every fact in a store's table is covered by a test: any change is detected.

Each text, number and list of each TOML file is changed, one at a time. Then the tests of the rows
run again, and those of the tables of the documentation.
"""

from __future__ import annotations

import copy
import tomllib
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests import test_stores_attributes as attributes
from tests import test_stores_calls as calls
from tests import test_stores_readback as readback
from tests import test_stores_traits as traits
from tracehint.adapters.stores import registry
from tracehint.adapters.stores.registry import TABLES, open_store
from tracehint.app import store_facts
from tracehint.errors import TracehintError

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "docs" / "reference" / "stores.md", ROOT / "README.md"]
FREE = {"note", "how", "source"}  # descriptions for people
Key = tuple[str | int, ...]


def _leaves(value: Any, at: Key = ()) -> Iterator[tuple[Key, Any]]:
    """Yield the places of texts, numbers and lists, with their values in a mutant."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if name not in FREE:
                yield from _leaves(inner, (*at, name))
    elif isinstance(value, list):
        yield at, value[:-1]
        for number, inner in enumerate(value):
            yield from _leaves(inner, (*at, number))
    elif isinstance(value, bool):
        yield at, not value
    elif isinstance(value, int):
        yield at, value * 2
    else:
        yield at, value + "x"


def _at(table: Any, place: Key) -> Any:
    for step in place:
        table = table[step]
    return table


def _mutants(table: dict[str, Any]) -> Iterator[tuple[Key, dict[str, Any]]]:
    nothing = table["about"].get("state") == "nothing"
    for at, new in _leaves(table):
        if new == _at(table, at) or (nothing and at == ("about", "cost")):
            continue  # no change, or a cost that no table shows
        mutant = copy.deepcopy(table)
        _at(mutant, at[:-1])[at[-1]] = new
        yield at, mutant
    for row, said in table["hints"].items():
        if said.get("level") == "none":
            continue  # its text only explains why the store does not support it
        mutant = copy.deepcopy(table)
        del mutant["hints"][row]
        yield ("hints", row, "gone"), mutant


class _Tables:
    """Replaces the reading of files: `changed` is the table of one store."""

    def __init__(self, name: str, changed: dict[str, Any]) -> None:
        self.name, self.changed = name, changed

    def record(self, path: Path, kind: type[Any]) -> Any:
        table = self.changed if path.stem == self.name else _table(path)
        return msgspec.convert(table, kind)


@cache
def _table(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text())


def _checks(name: str, folder: Path, patch: pytest.MonkeyPatch) -> Iterator[Callable[[], object]]:
    """Yield the tests of one store's rows and of the tables of the documentation."""
    yield lambda: open_store(name)
    for row in calls.CALLS:
        if row[0] == name:
            yield lambda row=row: calls.test_a_row_is_said_by_these_arguments(folder, *row)
    for at in attributes.SETS.get(name, {}):
        yield lambda at=at: attributes.test_a_row_sets_these_attributes(name, at)
    yield lambda: calls.test_a_store_says_what_the_table_of_stores_needs(name)
    yield lambda: traits.test_a_table_promises_this(name)
    yield lambda: _documented(name)
    yield calls.test_every_row_that_a_store_says_stands_above
    yield attributes.test_every_row_of_every_table_of_attributes_stands_above
    if name in {row[0] for row in readback.READS}:
        yield lambda: readback.test_every_command_is_asked_and_read_as_its_tool_prints(folder)
        yield lambda: readback.test_every_word_that_can_be_read_stands_above(folder)
        yield lambda: readback.test_what_takes_back_is_this_call(folder)
        yield lambda: readback.test_every_call_that_locates_and_its_answer(folder, patch)


@cache
def _pages() -> str:
    return "\n".join(page.read_text() for page in PAGES)


def _documented(name: str) -> None:
    text = _pages()
    rows = [store_facts.matrix(), store_facts.overview(), store_facts.summary()]
    mine = [line for part in rows for line in part.splitlines() if f"`{name}`" in line]
    assert all(line in text for line in mine)
    assert store_facts.remarks(name) in text or f"generated: {name} " not in text


def _noticed(name: str, folder: Path) -> bool:
    with pytest.MonkeyPatch.context() as patch:
        for check in _checks(name, folder, patch):
            try:
                check()
            except (AssertionError, TracehintError, KeyError, ValueError, TypeError):
                return True
    return False


@pytest.mark.full
@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(path.stem for path in TABLES.glob("*.toml")))
def test_whatever_is_changed_in_a_table_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    table = _table(TABLES / f"{name}.toml")
    monkeypatch.setattr(registry, "_FILE", _Tables(name, table))
    assert not _noticed(name, tmp_path), "the table as it is"
    missed = []
    for at, mutant in _mutants(table):
        monkeypatch.setattr(registry, "_FILE", _Tables(name, mutant))
        if not _noticed(name, tmp_path):
            missed.append(at)
    assert not missed, missed
