"""Temporary files of accesses: blocks of rows, each column after column."""

from __future__ import annotations

import pickle
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from tracehint.analyzer.flow.model import Access

# Columns of accesses as they lie in temporary files.
_STORED = {
    "obj": np.int32, "task": np.int32, "op": np.int8, "exact": np.bool_, "how": np.int32,
}  # fmt: skip  # a table
_TYPES = [(f.name, np.dtype(_STORED.get(f.name, np.int64))) for f in fields(Access)]
ROW_BYTES = sum(kind.itemsize for _, kind in _TYPES)


def append_rows(path: Path, access: Access, rows: slice) -> None:
    """Add rows to a file: their number, then column by column."""
    with path.open("ab") as stream:
        stream.write(np.int64(rows.stop - rows.start).tobytes())
        for name, kind in _TYPES:
            stream.write(getattr(access, name)[rows].astype(kind).data)


def taken_result(path: Path) -> Any:
    """What a partition came to; this process wrote it."""
    with path.open("rb") as stream:
        found = pickle.load(stream)
    path.unlink()
    return found


def size_of(path: Path) -> int:
    """Bytes of such a file; 0 where there is none."""
    return path.stat().st_size if path.exists() else 0


def read_rows(path: Path) -> Access:
    """All rows of such a file, in the order in which they were added."""
    found = Access.empty()
    if not path.exists():
        return found
    with path.open("rb") as stream:
        # their number is not known before; each block has eight bytes more than its rows
        most = path.stat().st_size // ROW_BYTES
        for name, kind in _TYPES:
            setattr(found, name, np.empty(most, bool if kind.kind == "b" else np.int64))
        at = 0
        while head := stream.read(8):
            count = int(np.frombuffer(head, np.int64)[0])
            for name, kind in _TYPES:
                getattr(found, name)[at : at + count] = np.fromfile(stream, kind, count)
            at += count
    return found if at == most else found.take(np.arange(at))
