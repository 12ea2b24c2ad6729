"""The --map file of a site's administrator: classes, pools and servers for nodes and groups.

local = "node_{host}"               # storage class or pool of a client's own node
groups = ["node_A", "node_B"]       # DP=collocation|g selects one of these by g; part n of a
                                    # plan selects the n-th, in the order of the host file
copies = { 2 = "data_2", 3 = "data_3" }   # pools by number of copies (CephFS)
with_copies = "{place}_{copies}"    # class of a place above with that many copies (MooseFS)
reads_spread = true                 # clients read from all copies, not from the first only (CephFS)
ranks = 2                           # metadata servers that directories may be pinned to (CephFS)
sites = { paris = "0", lyon = "1" }  # metadata server of each site (CephFS: rank, Lustre: MDT)
small = 1048576                     # files up to this size may be on the metadata server (Lustre)
server = "head:9000"                # server for the tools of a store without mount
base = "/wf/run7"                   # path of DIRECTORY in the name space of such a store
pool = "system"                     # pool of all other files (Storage Scale)
port = 8080                         # of the data nodes (SeaweedFS)
"""

from __future__ import annotations

import re
import socket
import zlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Self

from msgspec import Meta, Struct

from tracehint.adapters.stores.base import Setting
from tracehint.hintgen.hints.vocabulary import part_of
from tracehint.hintgen.text.textfile import TextFile

NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,100}")
BASE = re.compile(r"(/[A-Za-z0-9_][A-Za-z0-9_.+-]{0,100}){0,40}")
MAX_RANKS = 256
SMALL_UNIT, MAX_SMALL = 64 << 10, 1 << 30  # bytes
_REMEDY = "The format of --map files is in docs/reference/stores.md."
_FILE = TextFile(kind="A map", limit="small-bytes", check="Check --map.", remedy=_REMEDY)


Name = Annotated[str, Meta(pattern=rf"\A{NAME.pattern}\Z")]
Number = Annotated[str, Meta(pattern=r"\A(0|[1-9][0-9]{0,4})\Z")]
_SERVER = re.compile(r"([A-Za-z0-9][A-Za-z0-9.-]{0,200}(:[0-9]{1,5})?)?")


class Places(Struct, frozen=True, forbid_unknown_fields=True):
    """Names of classes or pools; empty: nothing is known about the site."""

    local: str = ""
    groups: tuple[Name, ...] = ()
    copies: dict[Annotated[int, Meta(ge=1, le=999)], Name] = {}
    reads_spread: bool = False
    ranks: Annotated[int, Meta(ge=1, le=MAX_RANKS)] = 1
    sites: dict[Name, Number] = {}
    small: Annotated[int, Meta(ge=0, le=MAX_SMALL, multiple_of=SMALL_UNIT)] = 0
    server: str = ""
    base: str = ""
    pool: Annotated[str, Meta(pattern=rf"\A({NAME.pattern})?\Z")] = ""
    port: Annotated[int, Meta(gt=0, lt=1 << 16)] = 8080
    with_copies: str = ""

    def __post_init__(self) -> None:
        local = self.local.replace("{host}", "h")
        if local and not NAME.fullmatch(local):
            raise ValueError("local is a plain name, which may hold {host}")
        if not _SERVER.fullmatch(self.server):
            raise ValueError("server is HOST or HOST:PORT")
        if not BASE.fullmatch(self.base) or ".." in self.base:
            raise ValueError("base is an absolute path of plain names")
        both = self.with_copies.replace("{place}", "p").replace("{copies}", "2")
        named = "{place}" in self.with_copies and "{copies}" in self.with_copies
        if both and not (named and NAME.fullmatch(both)):
            raise ValueError("with_copies is a plain name with {place} and {copies}")

    def of_place_with(self, place: str, copies: int) -> str | None:
        """Return the variant of the place with that many copies; None: the site names none."""
        if not self.with_copies:
            return None
        return self.with_copies.replace("{place}", place).replace("{copies}", str(copies))

    def of_copies(self, copies: int) -> str | None:
        """Return the place with at least that many copies, else with most; None: no benefit."""
        if not self.copies or not self.reads_spread:
            return None
        enough = (n for n in sorted(self.copies) if n >= copies)
        return self.copies[next(enough, max(self.copies))]

    def of_site(self, site: str) -> str | None:
        """Return the number of a site's metadata server."""
        return self.sites.get(site)

    def of_host(self, *, late: bool = False) -> str | None:
        """Return the place of this node; with `late`, `@host` is the placeholder for its name."""
        if not self.local:
            return None
        if late:
            return self.local.replace("{host}", "@host")
        host = re.sub(r"[^A-Za-z0-9_.-]", "_", socket.gethostname().partition(".")[0])
        return self.local.replace("{host}", host)

    def is_local(self, place: bytes) -> bool:
        """Whether it is the place of any node: after a run every file has its writer's."""
        before, mark, after = self.local.partition("{host}")
        pattern = re.escape(before) + (NAME.pattern + re.escape(after) if mark else "")
        return bool(self.local) and re.fullmatch(pattern.encode(), place) is not None

    def of_group(self, group: str) -> str | None:
        """Return the place of a group by the checksum of its name; for a part of a plan, by the
        part's number, which also determines the node of its tasks (place.parts)."""
        if not self.groups:
            return None
        part = part_of(group)
        number = zlib.crc32(group.encode()) if part is None else part
        return self.groups[number % len(self.groups)]


def load_places(path: Path | None) -> Places:
    """Read a map file; None: an empty map. Raises InputError."""
    return Places() if path is None else _FILE.record(path, Places)


NO_DIRECTORY_DEFAULT = "every task has its own node: set on its files, not on a directory"


@dataclass(frozen=True)
class Placing:
    """Base of adapters with `places`: the names of classes or pools."""

    places: Places
    late: bool = False  # the script that runs on the host fills in its name

    def for_script(self) -> Self:
        """Return the store for a script that may run on any node."""
        return replace(self, late=True)

    def fits(self, setting: Setting, got: bytes | None) -> bool:
        """Whether the reported value satisfies the setting; any node's own place is local."""
        local = setting.hint == "DP=local" and got is not None and self.places.is_local(got)
        return local or got == setting.value
