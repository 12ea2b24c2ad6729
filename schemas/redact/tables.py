"""Redact the tables of a bundle. BundleWriter passes every table through this module.

Arrow filters the rows first (values.py); only rows that may contain a secret are processed one
by one, and equal ones once.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tracehint.schemas.redact.commands import redact_argv, redact_string, redact_text
from tracehint.schemas.redact.values import PAIR, suspicion

if TYPE_CHECKING:
    import pyarrow as pa

# Table -> columns that contain commands, or names that may be commands.
TEXTS: dict[str, tuple[str, ...]] = {
    "processes": ("argv", "env"),
    "marks": ("name",),
    "declared_tasks": ("task", "name", "type", "command", "parents"),
    "declared_io": ("task",),
}
_BLANK = r"\s"


class Redactor:
    """Redacts tables that belong together: equal identifiers stay equal in all of them.

    no_args: only the program of a command is kept, and only the first word of a name, with a hash
    that keeps different names different."""

    def __init__(self, *, no_args: bool = False) -> None:
        self.no_args = no_args
        self._hits = 0
        self._key = os.urandom(16)
        self._known: dict[Any, tuple[Any, int]] = {}

    def take_count(self) -> int:
        """Return the number of secrets replaced since the last call."""
        hits, self._hits = self._hits, 0
        return hits

    def table(self, name: str, table: pa.Table) -> pa.Table:
        """Redact the table; the number of rows and the types are unchanged."""
        for column in TEXTS.get(name, ()):
            index = table.schema.get_field_index(column)
            if index >= 0 and self.no_args and column in ("argv", "command"):
                new = _programs(table.column(index))
                table = table.set_column(index, table.schema.field(index), new)
            if index >= 0:
                new = self._column(column, table.column(index))
                if new is not None:
                    table = table.set_column(index, table.schema.field(index), new)
        return table

    def _column(self, name: str, column: pa.ChunkedArray) -> pa.ChunkedArray | None:
        """Redact the column; None: nothing in it changes."""
        import pyarrow as pa

        change = self._changer(name)
        more = _BLANK if self.no_args else None
        chunks = [_change_chunk(chunk, change, more) for chunk in column.chunks]
        if all(new is None for new in chunks):
            return None
        pairs = zip(chunks, column.chunks, strict=True)
        return pa.chunked_array([old if new is None else new for new, old in pairs], column.type)

    def _changer(self, name: str) -> Callable[[Any], Any]:
        by_column: dict[str, Callable[[Any], tuple[Any, int]]] = {
            "argv": _argv,
            "env": self._env,
            "parents": lambda row: _redact_each(row, self._identifier),
            "task": self._identifier,
            "type": self._type,
        }
        redact = by_column.get(name, self._text)

        def change(value: Any) -> Any:
            key = name, tuple(value) if name == "argv" else repr(value)
            if key not in self._known:
                self._known[key] = redact(value)
            new, hits = self._known[key]
            self._hits += hits
            return new

        return change

    def _identifier(self, value: str) -> tuple[str, int]:
        new, hits = self._text(value)
        return (f"{new}#{self._mark(value)}", hits) if hits else (new, 0)

    def _mark(self, value: str | bytes) -> str:
        import hashlib  # loads OpenSSL, and few runs have a secret in a name

        raw = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value
        return hashlib.blake2b(raw, key=self._key, digest_size=4).hexdigest()

    def _text(self, value: Any) -> tuple[Any, int]:
        """Redact a name, type or marker."""
        if value is None:
            return None, 0
        if self.no_args and len(words := value.split(None, 1)) > 1:
            first, hits = self._text(words[0])
            mark = f"#{self._mark(value)}"
            return first + (mark.encode() if isinstance(value, bytes) else mark), hits
        return redact_text(value) if isinstance(value, bytes) else redact_string(value)

    def _type(self, value: str) -> tuple[str, int]:
        return self._text(" ".join(value.split()[:1]) if self.no_args else value)

    def _env(self, row: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], int]:
        done = [self._text(item["value"]) for item in row]
        pairs = [{**item, "value": new} for item, (new, _) in zip(row, done, strict=True)]
        return pairs, sum(hits for _, hits in done)


def _programs(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the first word of each command."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_list(column.type):
        return pc.list_slice(column, 0, 1, return_fixed_size_list=False).cast(column.type)
    return pc.replace_substring_regex(column, r"(?s)^\s*([\w./+-]*).*$", r"\1")


def _change_chunk(
    chunk: pa.Array, change: Callable[[Any], Any], more: str | None = None
) -> pa.Array | None:
    """Change the suspicious rows, and rows that match `more`; None: no row changes."""
    import numpy as np
    import pyarrow as pa

    rows = _suspicious(chunk)
    if more is not None:
        rows = np.union1d(rows, _find_matches(*_values(chunk), more))
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
    """Return the positions of rows that may contain a secret, in order."""
    import numpy as np

    raw, rows = _values(chunk)
    found = _find_matches(raw, rows, suspicion())
    users = _find_matches(raw, rows, PAIR[0])
    if len(users):  # few commands name a user
        pairs = np.intersect1d(users, _find_matches(raw, rows, PAIR[1]), assume_unique=True)
        found = np.union1d(found, pairs)
    return found


def _values(chunk: pa.Array) -> tuple[pa.Array, Any]:
    """Return the texts of a column and the row of each text (None: one per row)."""
    import pyarrow as pa

    values, rows = chunk, None
    if pa.types.is_list(chunk.type):
        import pyarrow.compute as pc

        values, rows = chunk.flatten(), pc.list_parent_indices(chunk).to_numpy()
    if pa.types.is_struct(values.type):
        values = values.field("value")
    return values.cast(pa.binary()) if pa.types.is_string(values.type) else values, rows


def _find_matches(values: pa.Array, rows: Any, pattern: str) -> Any:
    import numpy as np
    import pyarrow.compute as pc

    found = pc.match_substring_regex(values, pattern, ignore_case=True).fill_null(False)
    at = np.flatnonzero(found.to_numpy(zero_copy_only=False))
    return at if rows is None else np.unique(rows[at])


def _argv(row: list[bytes]) -> tuple[list[bytes], int]:
    return redact_argv(row, asked=True)


def _redact_each(row: list[str], redact: Callable[[str], tuple[str, int]]) -> tuple[list[str], int]:
    done = [redact(value) for value in row]
    return [new for new, _ in done], sum(hits for _, hits in done)
