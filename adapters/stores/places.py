"""Where hints that name a node or a group really go: a small table that the site's admin writes.

local = "node_{host}"               # storage class or pool of a client's own node
groups = ["node_A", "node_B"]       # DP=collocation|g goes to one of these, chosen by g; a plan's
                                    # first part to the first: in the order of the host file
copies = { 2 = "data_2", 3 = "data_3" }   # pools with so many copies (CephFS)
with_copies = "{place}_{copies}"    # class of one of the above with so many copies (MooseFS)
reads_spread = true                 # clients read from all copies, not from the first only (CephFS)
ranks = 2                           # metadata servers that directories may be pinned to (CephFS)
sites = { paris = "0", lyon = "1" }  # metadata server of each site (CephFS: rank, Lustre: MDT)
small = 1048576                     # files up to it may lie on the metadata server (Lustre)
server = "head:9000"                # whom the tools of a store without mount ask
base = "/wf/run7"                   # where DIRECTORY lies in the name space of such a store
pool = "system"                     # where all other files go (Storage Scale)
port = 8080                         # of the data nodes (SeaweedFS)
"""

from __future__ import annotations

import re
import socket
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tracehint.errors import InputError
from tracehint.hintgen.hints.plan import part_of
from tracehint.hintgen.text.textfile import TextFile

NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,100}")
KEYS = {
    "local",
    "groups",
    "copies",
    "with_copies",
    "reads_spread",
    "ranks",
    "sites",
    "small",
    "server",
    "base",
    "pool",
    "port",
}
_SERVER = re.compile(r"([A-Za-z0-9][A-Za-z0-9.-]{0,200}(:[0-9]{1,5})?)?")
BASE = re.compile(r"(/[A-Za-z0-9_][A-Za-z0-9_.+-]{0,100}){0,40}")
_NUMBER = re.compile(r"0|[1-9][0-9]{0,4}")
MAX_RANKS = 256
SMALL_UNIT, MAX_SMALL = 64 << 10, 1 << 30  # bytes
_REMEDY = "The format of --map files is in docs/reference/stores.md."
_FILE = TextFile(kind="A map", limit="small-bytes", check="Check --map.", remedy=_REMEDY)


@dataclass(frozen=True)
class Places:
    """Names of classes or pools; empty: nothing is known about the site."""

    local: str = ""
    groups: tuple[str, ...] = ()
    copies: tuple[tuple[int, str], ...] = ()  # ascending
    reads_spread: bool = False
    ranks: int = 1
    sites: tuple[tuple[str, str], ...] = ()  # name and number of its metadata server
    small: int = 0
    server: str = ""
    base: str = ""
    pool: str = ""
    port: int = 8080
    with_copies: str = ""

    def of_place_with(self, place: str, copies: int) -> str | None:
        """The place that also keeps so many copies; None where the site names none."""
        if not self.with_copies:
            return None
        return self.with_copies.replace("{place}", place).replace("{copies}", str(copies))

    def of_copies(self, copies: int) -> str | None:
        """The place with at least so many copies, else with most; None where that is no use."""
        if not self.copies or not self.reads_spread:
            return None
        return next((name for n, name in self.copies if n >= copies), self.copies[-1][1])

    def of_site(self, site: str) -> str | None:
        """The metadata server of a site, by its number."""
        return dict(self.sites).get(site)

    def of_host(self, *, late: bool = False) -> str | None:
        """The place of the node that this runs on; with `late`, `@host` stands for its name."""
        if not self.local:
            return None
        if late:
            return self.local.replace("{host}", "@host")
        host = re.sub(r"[^A-Za-z0-9_.-]", "_", socket.gethostname().partition(".")[0])
        return self.local.replace("{host}", host)

    def is_local(self, place: bytes) -> bool:
        """Whether it is the place of some node: after a run every file has its writer's."""
        before, mark, after = self.local.partition("{host}")
        pattern = re.escape(before) + (NAME.pattern + re.escape(after) if mark else "")
        return bool(self.local) and re.fullmatch(pattern.encode(), place) is not None

    def of_group(self, group: str) -> str | None:
        """The place of a group: the same for the same name, spread over all places; of a part of a
        plan the one with its number, as its tasks get their node (place.parts)."""
        if not self.groups:
            return None
        part = part_of(group)
        number = zlib.crc32(group.encode()) if part is None else part
        return self.groups[number % len(self.groups)]


def load_places(path: Path | None) -> Places:
    """Read a map; raises InputError."""
    if path is None:
        return Places()
    data = _FILE.toml(path)
    local, groups, copies = data.get("local", ""), data.get("groups", []), data.get("copies", {})
    spread, ranks = data.get("reads_spread", False), data.get("ranks", 1)
    if set(data) - KEYS:
        raise InputError(f"{path}: only {', '.join(sorted(KEYS))} are known", _REMEDY)
    if not isinstance(spread, bool) or type(ranks) is not int or not 1 <= ranks <= MAX_RANKS:
        raise InputError(f"{path}: reads_spread is true or false, ranks a number", _REMEDY)
    names = [local.replace("{host}", "h") if isinstance(local, str) else None]
    names += groups if isinstance(groups, list) else [None]
    names += list(copies.values()) if isinstance(copies, dict) else [None]
    for name in names:
        if name != "" and not (isinstance(name, str) and NAME.fullmatch(name)):
            raise InputError(f"{path}: a place is no plain name", _REMEDY)
    if not all(re.fullmatch("[0-9]{1,3}", key) and int(key) for key in copies):
        raise InputError(f"{path}: copies are named by their number", _REMEDY)
    pools = tuple(sorted((int(key), name) for key, name in copies.items()))
    return Places(
        local, tuple(groups), pools, spread, ranks, _sites(path, data), **_server(path, data)
    )


def _sites(path: Path, data: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """The metadata servers of sites; raises InputError."""
    sites = data.get("sites", {})
    if not isinstance(sites, dict) or not all(
        NAME.fullmatch(name) and isinstance(number, str) and _NUMBER.fullmatch(number)
        for name, number in sites.items()
    ):
        raise InputError(f'{path}: sites are written name = "number"', _REMEDY)
    return tuple(sorted(sites.items()))


def _server(path: Path, data: Mapping[str, Any]) -> dict[str, Any]:
    """Where the store is; raises InputError."""
    server, base, small = data.get("server", ""), data.get("base", ""), data.get("small", 0)
    if not isinstance(server, str) or not _SERVER.fullmatch(server):
        raise InputError(f"{path}: server is HOST or HOST:PORT", _REMEDY)
    if not isinstance(base, str) or not BASE.fullmatch(base) or ".." in base:
        raise InputError(f"{path}: base is an absolute path of plain names", _REMEDY)
    if type(small) is not int or not 0 <= small <= MAX_SMALL or small % SMALL_UNIT:
        raise InputError(f"{path}: small is a multiple of 64 KiB, at most 1 GiB", _REMEDY)
    pool, port = data.get("pool", ""), data.get("port", 8080)
    if not isinstance(pool, str) or not (pool == "" or NAME.fullmatch(pool)):
        raise InputError(f"{path}: pool is a plain name", _REMEDY)
    if type(port) is not int or not 0 < port < 1 << 16:
        raise InputError(f"{path}: port is a number below 65536", _REMEDY)
    both = data.get("with_copies", "")
    if not isinstance(both, str) or (both and not _both(both)):
        raise InputError(
            f"{path}: with_copies is a plain name with {{place}} and {{copies}}", _REMEDY
        )
    return {
        "server": server, "base": base, "small": small, "pool": pool, "port": port,
        "with_copies": both,
    }  # fmt: skip  # a table


def _both(name: str) -> bool:
    """Whether it is a pattern of names of classes."""
    parts = "{place}" in name and "{copies}" in name
    return parts and bool(NAME.fullmatch(name.replace("{place}", "p").replace("{copies}", "2")))
