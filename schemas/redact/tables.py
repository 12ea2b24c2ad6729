"""The tables of a bundle without secrets. BundleWriter passes every table through here.

Rows are looked at by Arrow first (suspicion.py); only those that may hold a secret are read one
by one, and equal ones once.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tracehint.schemas.redact.commands import redact_argv, redact_string, redact_text
from tracehint.schemas.redact.suspicion import pattern

if TYPE_CHECKING:
    import pyarrow as pa

# Table -> columns that hold commands, or names that may be commands.
TEXTS: dict[str, tuple[str, ...]] = {
    "processes": ("argv", "env"),
    "marks": ("name",),
    "declared_tasks": ("task", "name", "type", "command", "parents"),
    "declared_io": ("task",),
}
# Identifiers: two that differ in the secret only must stay two.
_IDENTIFIERS = frozenset({"task", "parents"})


class Redactor:
    """Redacts tables that belong together: equal identifiers stay equal in all of them."""

    def __init__(self) -> None:
        self._hits = 0
        self._key = os.urandom(16)
        self._known: dict[Any, tuple[Any, int]] = {}

    def taken(self) -> int:
        """How many secrets were replaced since this was asked last."""
        hits, self._hits = self._hits, 0
        return hits

    def table(self, name: str, table: pa.Table) -> pa.Table:
        """The table without secrets; rows and types stay."""
        for column in TEXTS.get(name, ()):
            index = table.schema.get_field_index(column)
            if index >= 0:
                new = self._column(column, table.column(index))
                if new is not None:
                    table = table.set_column(index, table.schema.field(index), new)
        return table

    def _column(self, name: str, column: pa.ChunkedArray) -> pa.ChunkedArray | None:
        """The column; None: nothing in it changes."""
        import pyarrow as pa

        change = self._changer(name)
        chunks = [_changed(chunk, change) for chunk in column.chunks]
        if all(new is None for new in chunks):
            return None
        pairs = zip(chunks, column.chunks, strict=True)
        return pa.chunked_array([old if new is None else new for new, old in pairs], column.type)

    def _changer(self, name: str) -> Callable[[Any], Any]:
        by_column: dict[str, Callable[[Any], tuple[Any, int]]] = {
            "argv": _argv, "env": _env, "parents": lambda row: _each(row, self._identifier),
            "task": self._identifier,
        }  # fmt: skip  # a table
        redact = by_column.get(name, _any_text)

        def change(value: Any) -> Any:
            key = name, tuple(value) if name == "argv" else repr(value)
            if key not in self._known:
                self._known[key] = redact(value)
            new, hits = self._known[key]
            self._hits += hits
            return new

        return change

    def _identifier(self, value: str) -> tuple[str, int]:
        new, hits = _any_text(value)
        if not hits:
            return value, 0
        import hashlib  # OpenSSL with it: few runs have a secret in a name

        mark = hashlib.blake2b(value.encode("utf-8", "surrogatepass"), key=self._key, digest_size=4)
        return f"{new}#{mark.hexdigest()}", hits


def _changed(chunk: pa.Array, change: Callable[[Any], Any]) -> pa.Array | None:
    """The chunk with its suspicious rows changed; None: none of them changes."""
    import numpy as np
    import pyarrow as pa

    rows = _suspicious(chunk)
    if not len(rows):
        return None
    old = chunk.take(pa.array(rows)).to_pylist()
    new = [change(value) for value in old]
    moved = [at for at, value in enumerate(new) if value != old[at]]
    if not moved:
        return None
    take = np.arange(len(chunk))
    take[rows[moved]] = len(chunk) + np.arange(len(moved))
    added = pa.array([new[at] for at in moved], chunk.type)
    return pa.concat_arrays([chunk, added]).take(pa.array(take))


def _suspicious(chunk: pa.Array) -> Any:
    """Positions of rows in which a secret can be, in order."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    values, parents = chunk, None
    if pa.types.is_list(chunk.type):
        values, parents = chunk.flatten(), pc.list_parent_indices(chunk)
    if pa.types.is_struct(values.type):
        values = values.field("value")
    raw = values.cast(pa.binary()) if pa.types.is_string(values.type) else values
    found = pc.match_substring_regex(raw, pattern(), ignore_case=True).fill_null(False)
    at = np.flatnonzero(found.to_numpy(zero_copy_only=False))
    return at if parents is None else np.unique(parents.to_numpy()[at])


def _any_text(value: Any) -> tuple[Any, int]:
    if value is None:
        return None, 0
    return redact_text(value) if isinstance(value, bytes) else redact_string(value)


def _argv(row: list[bytes]) -> tuple[list[bytes], int]:
    return redact_argv(row)


def _env(row: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], int]:
    done = [_any_text(item["value"]) for item in row]
    pairs = [{**item, "value": new} for item, (new, _) in zip(row, done, strict=True)]
    return pairs, sum(hits for _, hits in done)


def _each(row: list[str], redact: Callable[[str], tuple[str, int]]) -> tuple[list[str], int]:
    done = [redact(value) for value in row]
    return [new for new, _ in done], sum(hits for _, hits in done)
