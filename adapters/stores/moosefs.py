"""MooseFS: storage classes. A goal of n copies is the storage class named `n`.

Classes are set and read by MooseFS's own tools (attributes are stored but ignored). The tools
require paths, so the open descriptor is named by /proc/self/fd. Tested with 3.0.117.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracehint.adapters.stores.base import About, Capability, Gap, Location, Setting, capability_key
from tracehint.adapters.stores.commands import fd_path, run_tool
from tracehint.adapters.stores.grammar import number_of
from tracehint.adapters.stores.places import NAME, NO_DIRECTORY_DEFAULT, Placing
from tracehint.errors import UsageError

if TYPE_CHECKING:
    from tracehint.adapters.plan import Kind

KEY = "mfs:sclass"
MAX_COPIES = 9
_CHUNK = re.compile(r"^\s+chunk \d+: ", re.MULTILINE)
_FILE = re.compile(r"^(/proc/self/fd/\d+):$", re.MULTILINE)
_REMEDY = "Debian: apt-get install moosefs-client"
_COPY = re.compile(r"^\t\tcopy \d+: ([0-9A-Za-z.:_-]+):\d+ \(status:VALID\)", re.MULTILINE)


CAPABILITIES: dict[str, Capability] = {
    "DP=local": Capability(
        level="approximate",
        acts=("directory", "creation"),
        how="a storage class per node (--map); or for the whole system CREATIONS_RESPECT_TOPOLOGY",
    ),
    "DP=collocation": Capability(
        level="full", how="a storage class per node (--map)", acts=("directory", "creation")
    ),
    "DP=scatter": Capability(level="none", how="chunks are 64 MiB, always"),
    "DP=distribute": Capability(level="none", how="new chunks are spread anyway"),
    "Replication": Capability(
        level="full",
        acts=("directory", "any"),
        how="1 to 9 copies; clients read any of them, and the one on their own node first when "
        "mounted with -o mfspreflabels=LABEL of its chunk server",
    ),
    "ReplicationSemantics": Capability(
        level="approximate",
        acts=("directory", "creation"),
        how="all copies are written at once (pessimistic); optimistic needs a class with -C and -K",
    ),
    "BlockSize": Capability(level="none", how="chunks are 64 MiB, always"),
    "CacheSize": Capability(level="none", how="a setting of the mount"),
    "Access": Capability(level="none", how="no such setting"),
    "Lifetime": Capability(level="none", how="trash time is about deletion, not placement"),
    "LastReader": Capability(level="none", how="no such setting"),
    "Metadata": Capability(level="none", how="one master has all metadata"),
}


ABOUT = About(
    state="works",
    tried="3.0.117, November 2026",
    who="owner of the file or directory; classes are made by the administrator",
    read_back="`mfsgetsclass`, `mfsfileinfo`",
    undo="the former class",
    cost="one program a setting; tracehint-tag: one call",
    source="mfssetsclass(1)",
    tools=("mfssetsclass", "mfsgetsclass", "mfsfileinfo"),
)


@dataclass(frozen=True)
class MooseFs(Placing):
    """The MooseFS adapter; `places` names the storage classes of nodes."""

    name: str = "moosefs"
    title: str = "MooseFS (storage classes and goals)"
    about: About = ABOUT

    def capabilities(self) -> Mapping[str, Capability]:
        """One entry per row of the vocabulary."""
        return CAPABILITIES

    def translate(self, hints: Mapping[str, str], kind: Kind) -> tuple[list[Setting], list[Gap]]:
        """Return at most one storage class. If a file has a place and several copies, and the site
        has no class for both (`with_copies`), the copies decide: their readers run on all nodes,
        and a place would only determine the first copy."""
        gaps: list[Gap] = []
        wanted: dict[str, tuple[str, str]] = {}  # hint -> its row of the table, class
        for name, value in sorted(hints.items()):
            key = capability_key(name, value)
            place, row = self._place(key, value), CAPABILITIES.get(key)
            if key == "DP=local" and self.late and kind == "directory":
                gaps.append(Gap(hint=key, level="none", reason=NO_DIRECTORY_DEFAULT))
            elif place is not None and row is not None:
                wanted[f"{name}={value}"] = (key, place)
            elif key != "ReplicationSemantics" or value != "pessimistic":
                reason = row.how if row else "unknown hint"
                if row is not None and row.level != "none":
                    reason = f"no storage class known for {key} (--map)"
                gaps.append(Gap(hint=key, level="none", reason=reason))
        if not wanted:
            return [], gaps
        chosen, refused = self._choose_class(wanted)
        return [chosen], gaps + refused

    def _choose_class(self, wanted: Mapping[str, tuple[str, str]]) -> tuple[Setting, list[Gap]]:
        """Return the class for these hints, and the gaps."""
        copies = next((h for h, (key, n) in wanted.items() if key == "Replication"), None)
        placed = next((h for h, (key, n) in wanted.items() if key != "Replication"), None)
        number = wanted[copies][1] if copies else "1"
        gaps = []
        if copies and number != copies.partition("=")[2]:
            gaps.append(Gap(hint="Replication", level="approximate", reason=f"at most {number}"))
        if copies is None or placed is None:
            hint = placed or copies or ""
            return _to_setting(hint, wanted[hint][1]), gaps
        both = self.places.of_place_with(wanted[placed][1], int(number))
        if number == "1" or both is not None:
            return _to_setting(placed, both if number != "1" and both else wanted[placed][1]), gaps
        reason = f"{copies} decides the class; with_copies of --map names classes for both"
        return _to_setting(copies, number), [
            *gaps,
            Gap(hint=wanted[placed][0], level="none", reason=reason),
        ]

    def _place(self, key: str, value: str) -> str | None:
        if key == "Replication":
            copies = number_of(value)
            return None if copies is None else str(max(1, min(MAX_COPIES, copies)))
        if key == "DP=local":
            return self.places.of_host(late=self.late)
        if key == "DP=collocation":
            return self.places.of_group(value.partition("|")[2])
        return None

    def check_key(self, key: str, *, allow_trusted: bool) -> None:
        """Accept only storage classes."""
        if key != KEY:
            raise UsageError(
                f"{key[:80]!r} is not a setting of MooseFS", "Use the store that it is for."
            )

    def read(self, fd: int, key: str) -> bytes | None:
        """Return the storage class that `mfsgetsclass` reports."""
        return _run_on_descriptor(["mfsgetsclass"], fd).strip().strip("'").encode()

    def write(self, fd: int, key: str, value: bytes) -> None:
        """Assign a storage class."""
        name = value.decode("ascii", "replace")
        if not NAME.fullmatch(name):
            raise OSError(errno.EINVAL, "not a name of a storage class")
        _run_on_descriptor(["mfssetsclass", name], fd)

    def remove(self, fd: int, key: str) -> None:
        """Raise OSError: a file always has a class; undo sets the former one."""
        raise OSError(errno.ENOTSUP, "a storage class cannot be removed, only changed")

    def locate(self, fd: int) -> Location | None:
        """Return the chunk servers that hold valid copies, most copies first."""
        return _parse_location(_run_on_descriptor(["mfsfileinfo"], fd))

    def locate_all(self, fds: Sequence[int]) -> list[Location | None]:
        """Locate many files with one call of the tool."""
        paths = [fd_path(fd) for fd in fds]
        text = run_tool(["mfsfileinfo", *paths], fds=fds, remedy=_REMEDY)
        parts = _FILE.split(text)[1:]
        if parts[::2] != paths:
            raise OSError(errno.EIO, "mfsfileinfo does not answer for each file")
        return [_parse_location(part) for part in parts[1::2]]


def _to_setting(hint: str, place: str) -> Setting:
    return Setting(key=KEY, value=place.encode(), hint=hint, by_name=True)


def _parse_location(text: str) -> Location | None:
    copies = copies_of(text)
    nodes = sorted(dict.fromkeys(copies), key=lambda node: -copies.count(node))
    if not nodes:
        return None
    counts = {n: copies.count(n) for n in nodes}
    detail = {"copies": counts, "chunks": len(_CHUNK.findall(text))}
    return Location(nodes=tuple(nodes), detail=detail)


def copies_of(text: str) -> list[str]:
    """Return the addresses that `mfsfileinfo` prints, once per valid copy of a chunk."""
    return _COPY.findall(text)


def _run_on_descriptor(command: list[str], fd: int) -> str:
    """Run a tool on the descriptor; return its output after the path. Raises OSError."""
    path = fd_path(fd)
    answer = run_tool([*command, path], fd=fd, remedy=_REMEDY)
    return answer.removeprefix(f"{path}:")
