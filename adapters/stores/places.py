"""Where hints that name a node or a group really go: a small table that the site's admin writes.

local = "node_{host}"               # storage class or pool of a client's own node
groups = ["node_A", "node_B"]       # DP=collocation|g goes to one of these, chosen by g
"""

from __future__ import annotations

import re
import socket
import tomllib
import zlib
from dataclasses import dataclass
from pathlib import Path

from tracehint.errors import InputError

NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,100}")
_REMEDY = "The format of --map files is in docs/reference/stores.md."


@dataclass(frozen=True)
class Places:
    """Names of classes or pools; empty: nothing is known about the site."""

    local: str = ""
    groups: tuple[str, ...] = ()

    def of_host(self, *, late: bool = False) -> str | None:
        """The place of the node that this runs on; with `late`, `@host` stands for its name."""
        if not self.local:
            return None
        if late:
            return self.local.replace("{host}", "@host")
        host = re.sub(r"[^A-Za-z0-9_.-]", "_", socket.gethostname().partition(".")[0])
        return self.local.replace("{host}", host)

    def of_group(self, group: str) -> str | None:
        """The place of a group: the same for the same name, spread over all places."""
        if not self.groups:
            return None
        return self.groups[zlib.crc32(group.encode()) % len(self.groups)]


def load_places(path: Path | None) -> Places:
    """Read a map; raises InputError."""
    if path is None:
        return Places()
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}", "Check --map.") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not TOML", _REMEDY) from error
    local, groups = data.get("local", ""), data.get("groups", [])
    names = [local.replace("{host}", "h") if isinstance(local, str) else None]
    names += groups if isinstance(groups, list) else [None]
    for name in names:
        if name != "" and not (isinstance(name, str) and NAME.fullmatch(name)):
            raise InputError(f"{path}: a place is no plain name", _REMEDY)
    if set(data) - {"local", "groups"}:
        raise InputError(f"{path}: only `local` and `groups` are known", _REMEDY)
    return Places(local, tuple(groups))
