"""The interface of store adapters, in three narrow parts, and the records that they exchange.

A *setting* is a hint in the store's terms: a key (an attribute name, or a tool's property) and its
bytes. A store lists what it can express (`capabilities`), translates hints to settings
(`Translator`), and reads, sets and removes a setting on an open descriptor (`Setter`). A store
that reports the location of a file is also a `Locator`; callers test for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

from msgspec import Struct

if TYPE_CHECKING:
    from tracehint.adapters.plan import Kind, TagPlan, Target
    from tracehint.hintgen.hints.model import HintFile


State = Literal["works", "translated", "nothing"]
NOT_RUN = "not run"


class About(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One row of the stores' table, as text for users."""

    state: State = "translated"
    tried: str = NOT_RUN  # version and month; NOT_RUN: never run by this project
    who: str = ""
    read_back: str = ""
    undo: str = ""
    cost: str = ""
    source: str = ""  # source of the grammar
    instead: str = ""  # alternative for a store without hints
    tools: tuple[str, ...] = ()  # required programs

    def warning(self, title: str) -> str:
        """Return the first line of outputs for a store that was never run; "" otherwise."""
        if self.tried != NOT_RUN or self.state == "nothing" or not self.source:
            return ""
        return f"{title}: {NOT_RUN} by this project, translated from {self.source}"


Level = Literal["full", "approximate", "none"]
Acts = Literal["global", "directory", "creation", "any"]

# The neutral vocabulary; DP has one row for each of its forms (docs/reference/stores.md).
VOCABULARY = (
    "DP=local",
    "DP=collocation",
    "DP=scatter",
    "DP=distribute",
    "Replication",
    "ReplicationSemantics",
    "BlockSize",
    "CacheSize",
    "Access",
    "Lifetime",
    "LastReader",
    "Metadata",
)


@dataclass(frozen=True, kw_only=True)
class Capability:
    """How well a store expresses one hint, and when it acts on it."""

    level: Level
    how: str = ""  # remark as text; may be empty for "full"
    acts: tuple[Acts, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One hint in the store's terms."""

    key: str
    value: bytes
    hint: str  # name=value of the neutral hint, for messages
    by_name: bool = False  # a plain name in a script's table: for a tool, or with @host


@dataclass(frozen=True, kw_only=True)
class Gap:
    """A hint that the store cannot express, or not exactly."""

    hint: str
    level: Level
    reason: str


@dataclass(frozen=True, kw_only=True)
class Location:
    """The location of a file's bytes."""

    nodes: tuple[str, ...]
    detail: Mapping[str, object]


class Translator(Protocol):
    """The part of an adapter that works without a running store."""

    @property
    def name(self) -> str:
        """Name for --store."""
        ...

    @property
    def title(self) -> str:
        """Title of one line."""
        ...

    @property
    def about(self) -> About:
        """Whether it was run, who may set hints, how to read and undo them."""
        ...

    def capabilities(self) -> Mapping[str, Capability]:
        """Map rows of VOCABULARY to the store's support; a missing row means none."""
        ...

    def translate(self, hints: Mapping[str, str], kind: Kind) -> tuple[list[Setting], list[Gap]]:
        """Return the settings of one file or directory, and what the store cannot express."""
        ...

    def check_key(self, key: str, *, allow_trusted: bool) -> None:
        """Raise UsageError for a key that this store must never write (a journal is untrusted)."""
        ...


class Setter(Protocol):
    """Settings on an open descriptor, which cannot be swapped for another file meanwhile."""

    def read(self, fd: int, key: str) -> bytes | None:
        """Return the value that the store reports; None: not set. Raises OSError."""
        ...

    def write(self, fd: int, key: str, value: bytes) -> None:
        """Set the value. Raises OSError."""
        ...

    def remove(self, fd: int, key: str) -> None:
        """Remove the setting; no error if it is not set. Raises OSError."""
        ...


class Store(Translator, Setter, Protocol):
    """A complete adapter."""


@runtime_checkable
class BatchLocator(Protocol):
    """A Locator that locates many files as fast as one."""

    def locate_all(self, fds: Sequence[int]) -> list[Location | None]:
        """Locate each file. Raises OSError if the store cannot be asked about any of them."""
        ...


@runtime_checkable
class Judge(Protocol):
    """A store in which several values satisfy the same setting."""

    def fits(self, setting: Setting, got: bytes | None) -> bool:
        """Whether the value that the store reports satisfies the setting."""
        ...


@runtime_checkable
class Locator(Protocol):
    """A store that reports the location of a file's bytes."""

    def locate(self, fd: int) -> Location | None:
        """Return the nodes of an open file; None: not reported for this one."""
        ...


@runtime_checkable
class NameLocator(Protocol):
    """A Locator whose store may have no mount: its files are then located by name."""

    @property
    def mounted(self) -> bool:
        """Whether files are accessible through a mounted file system."""
        ...

    def locate_name(self, name: str) -> Location | None:
        """Locate a file by name. Raises OSError."""
        ...


@runtime_checkable
class NodeBound(Protocol):
    """A store that places a file at its creation, depending on the creating host."""

    def for_script(self) -> Store:
        """Return the store for a script that may run on any host."""
        ...


@dataclass(frozen=True)
class Document:
    """One text for a store without settings per file: a policy, rules, a list."""

    text: bytes
    records: int
    gaps: Mapping[Gap, int]


@runtime_checkable
class Documented(Protocol):
    """A store whose hints are one document, for its administrator or its next run."""

    def document(self, hints: HintFile, plan: TagPlan) -> Document:
        """Return the document for all targets; raises UsageError if it would be empty."""
        ...


def prepare_for_script(store: Store) -> Store:
    """Return the store for a script, which may run on another node."""
    return store.for_script() if isinstance(store, NodeBound) else store


def too_late(store: Store, hints: Mapping[str, str]) -> dict[str, str]:
    """Return the hints without effect on a file that holds data: its bytes are not moved."""
    if not isinstance(store, NodeBound):
        return {}
    rows = store.capabilities()
    return {
        name: value
        for name, value in hints.items()
        if (row := rows.get(capability_key(name, value))) and row.acts and "any" not in row.acts
    }


def reports_value(store: Store, key: str, value: bytes, got: bytes | None) -> bool:
    """Whether the store reports this value, in any of its forms."""
    if isinstance(store, Judge):
        return store.fits(Setting(key=key, value=value, hint=""), got)
    return got == value


def script_value(setting: Setting) -> bytes:
    """Return the value as written in a script's table: hexadecimal, or a plain name."""
    return setting.value if setting.by_name else b"0x" + setting.value.hex().encode()


def capability_key(name: str, value: str) -> str:
    """Return the row of the vocabulary for a hint: `DP=scatter|4` -> `DP=scatter`."""
    return f"DP={value.partition('|')[0]}" if name == "DP" else name


def merge_gaps(gaps: Iterable[Gap]) -> dict[Gap, int]:
    """Count each distinct gap, in order of first occurrence."""
    counts: dict[Gap, int] = {}
    for gap in gaps:
        counts[gap] = counts.get(gap, 0) + 1
    return counts


Translated = tuple[list[Setting], list[Gap]]


def translate_once(store: Translator) -> Callable[[Target], Translated]:
    """Return a cached `store.translate`; equal hints share lists, which must not be changed.

    The cache holds one result per kind and distinct hints.
    """
    known: dict[tuple[object, ...], Translated] = {}
    same: dict[
        tuple[str, int], tuple[Mapping[str, str], Translated]
    ] = {}  # with the hints: their ids stay unique

    def translated(target: Target) -> Translated:
        place = target.kind, id(target.hints)
        if place in same:  # most targets share their hints with others
            return same[place][1]
        key = (target.kind, *sorted(target.hints.items()))
        found = known.get(key)
        if found is None:
            found = known[key] = store.translate(target.hints, target.kind)
        same[place] = target.hints, found
        return found

    return translated
