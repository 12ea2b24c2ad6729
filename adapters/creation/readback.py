"""What became of the hints until the run's end: read back from the files that are still there."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from tracehint.adapters.stores.base import Store
from tracehint.errors import TracehintError

_ASKED = ("set", "missed")
_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC | os.O_NOFOLLOW


def read_back(rows: Sequence[dict[str, Any]], store: Store, seconds: float) -> int:
    """Rows that were set and are not so any more become `lost`, missed ones that are there all the
    same `set`: whoever set them found no place to note it. The number of files not read.

    A file that the run deleted had its hint as long as it was there. Of several rows of one name
    the last says what must be there. `seconds`: stores whose tools are slow are asked no longer.
    """
    last: dict[bytes, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        if row["state"] in _ASKED:
            kept = last[row["path"]]
            if kept and kept[0]["t_ns"] != row["t_ns"]:
                kept.clear()
            kept.append(row)
    until, unread = time.monotonic() + seconds, 0
    for path, settings in last.items():
        if time.monotonic() > until or not _read(path, settings, store):
            unread += 1
    return unread


def _read(path: bytes, rows: list[dict[str, Any]], store: Store) -> bool:
    """Whether the store could be asked about the file, or it is not there."""
    try:
        fd = os.open(path, _FLAGS)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    try:
        for row in rows:
            got = store.read(fd, row["key"])
            if got == row["value"]:
                row |= {"state": "set", "why": ""}
            elif row["state"] == "set":
                row |= {"state": "lost", "why": _why(got)}
    except (OSError, TracehintError):
        return False
    finally:
        os.close(fd)
    return True


def _why(got: bytes | None) -> str:
    if got is None:
        return "another file took its name, or the attribute was removed"
    return "another value stands there now"
