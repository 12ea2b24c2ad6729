"""The capability matrix of all stores as a Markdown table, for docs/reference/stores.md."""

from __future__ import annotations

from tracehint.adapters.stores.base import VOCABULARY
from tracehint.adapters.stores.registry import names, open_store

ACTS = {
    "global": "for the whole store", "directory": "directory default", "creation": "at creation",
    "any": "any time",
}  # fmt: skip  # a table


def matrix() -> str:
    """One row per hint, one column per store: level, and when it acts."""
    stores = [open_store(name) for name in names()]
    head = ["hint", *(f"`{store.name}`" for store in stores)]
    rows = [
        [
            f"`{key}`",
            *(
                _cell(store.capabilities()[key].level, store.capabilities()[key].acts)
                for store in stores
            ),
        ]
        for key in VOCABULARY
    ]
    return _table([head, ["---"] * len(head), *rows])


def _cell(level: str, acts: tuple[str, ...]) -> str:
    when = ", ".join(ACTS[act] for act in acts)
    return f"{level} ({when})" if when else level


def remarks(name: str) -> str:
    """What one store makes of each hint that it cannot express exactly."""
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
