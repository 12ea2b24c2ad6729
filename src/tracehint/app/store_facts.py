"""Facts on stores for `doctor --store`, and as Markdown for README and docs/reference/stores.md."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from tracehint.adapters.stores.base import VOCABULARY, Store
from tracehint.adapters.stores.registry import names, open_store

ACTS = {
    "global": "for the whole store",
    "directory": "directory default",
    "creation": "at creation",
    "any": "any time",
}
HEAD = ["`--store`", "store", "state", "tried with", "acts", "set by", "read back", "undo", "cost"]
STATES = {
    "works": "works: run and tested here",
    "translated": "translated: not run here",
    "nothing": "no hints per file",
}


def matrix() -> str:
    """Return a table of stores and hints with the support: full, approximate (~) or nothing."""
    marks = {"full": "full", "approximate": "~", "none": ""}
    rows = [
        [f"`{store.name}`", *(marks[store.capabilities()[key].level] for key in VOCABULARY)]
        for store in map(open_store, names())
    ]
    head = ["store", *(f"`{key}`" for key in VOCABULARY)]
    return _table([head, ["---"] * len(head), *rows])


def overview() -> str:
    """Return a table with one row per store: state, tests, when hints act, permissions, cost."""
    rows = [
        [
            f"`{store.name}`",
            store.title,
            STATES[store.about.state],
            store.about.tried,
            acts_of(store),
            store.about.who,
            store.about.read_back,
            store.about.undo,
            store.about.cost if not store.about.instead else f"instead: {store.about.instead}",
        ]
        for store in map(open_store, names())
    ]
    return _table([HEAD, ["---"] * len(HEAD), *rows])


def summary() -> str:
    """Return a table with one row per state and its stores."""
    stores = [open_store(name) for name in names()]
    rows = []
    for state, words in STATES.items():
        mine = [_store_name(store) for store in stores if store.about.state == state]
        rows.append([words, ", ".join(mine)])
    return _table([["stores", "`--store` (tried with)"], ["---"] * 2, *rows])


def _store_name(store: Store) -> str:
    tried = store.about.tried
    return f"`{store.name}`" if store.about.state != "works" else f"`{store.name}` ({tried})"


def acts_of(store: Store) -> str:
    """Return when the store's hints act, in words; "-" if it supports none."""
    acts = {act for row in store.capabilities().values() for act in row.acts}
    return ", ".join(words for act, words in ACTS.items() if act in acts) or "-"


def remarks(name: str) -> str:
    """Return a table of a store's hints that need a remark: how they are expressed, or why not."""
    rows = [
        [f"`{key}`", row.level, row.how]
        for key, row in open_store(name).capabilities().items()
        if row.how
    ]
    return _table([["hint", "level", "how, or why not"], ["---"] * 3, *rows])


def _table(rows: list[list[str]]) -> str:
    return "\n".join(
        "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows
    )


def facts(chosen: str, places: Path | None) -> list[dict[str, Any]]:
    """Return one record for the named store, or one per store (`all`). Raises UsageError."""
    stores = names() if chosen == "all" else [chosen]
    return [_record(open_store(name, places=places)) for name in stores]


def _record(store: Store) -> dict[str, Any]:
    about = store.about
    return {
        "name": store.name,
        "title": store.title,
        "state": about.state,
        "tried": about.tried,
        "acts": acts_of(store),
        "who": about.who,
        "read_back": about.read_back,
        "undo": about.undo,
        "cost": about.cost,
        "source": about.source,
        "instead": about.instead,
        "tools": {tool: shutil.which(tool) is not None for tool in about.tools},
        "hints": {
            row: {"level": support.level, "how": support.how, "acts": list(support.acts)}
            for row, support in store.capabilities().items()
        },
    }


def lines(record: dict[str, Any]) -> list[str]:
    """Format the record as lines of text."""
    out = [
        f"{record['name']}: {record['title']}",
        f"  {STATES[record['state']]} (tried: {record['tried']}; grammar: {record['source']})",
    ]
    if record["instead"]:
        return [*out, f"  instead: {record['instead']}"]
    words = {"acts": "acts", "who": "set by", "read_back": "read back", "undo": "undo"}
    out += [f"  {word}: {record[key]}" for key, word in words.items()]
    out.append(f"  cost: {record['cost']}")
    for tool, there in record["tools"].items():
        out.append(
            f"  {tool}: {'installed' if there else 'not installed: run it where the tools are'}"
        )
    for row, support in record["hints"].items():
        remark = f": {support['how']}" if support["how"] else ""
        out.append(f"  {support['level']:<12}{row}{remark}")
    return out
