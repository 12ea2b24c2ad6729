"""`tracehint doctor --store`: what a store takes, who may, and whether its tools are here."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from tracehint.adapters.stores.base import Store
from tracehint.adapters.stores.matrix import STATES, acts_of
from tracehint.adapters.stores.registry import names, open_store


def facts(chosen: str, places: Path | None) -> list[dict[str, Any]]:
    """One record for the named store, or for every one (`all`). Raises UsageError."""
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
            row: {"level": said.level, "how": said.how, "acts": list(said.acts)}
            for row, said in store.capabilities().items()
        },
    }


def lines(record: dict[str, Any]) -> list[str]:
    """The record for people."""
    out = [
        f"{record['name']}: {record['title']}",
        f"  {STATES[record['state']]} (tried: {record['tried']}; grammar: {record['source']})",
    ]
    if record["instead"]:
        return [*out, f"  what helps there: {record['instead']}"]
    words = {"acts": "acts", "who": "who may", "read_back": "read back", "undo": "undo"}
    out += [f"  {word}: {record[key]}" for key, word in words.items()]
    out.append(f"  cost: {record['cost']}")
    for tool, there in record["tools"].items():
        out.append(f"  {tool}: {'is here' if there else 'is not here: run it where the tools are'}")
    for row, said in record["hints"].items():
        remark = f": {said['how']}" if said["how"] else ""
        out.append(f"  {said['level']:<12}{row}{remark}")
    return out
