"""What every store adapter offers, in three narrow parts, and the records that pass between them.

A *setting* is a hint in the store's own words: a key (an attribute name, or a tool's property)
and its bytes. A store says as data what it can express (`capabilities`), turns hints into settings
(`Translator`), and reads, sets and takes back a setting on an open descriptor (`Setter`). Where a
store can tell the location of a file it is a `Locator` as well; callers test for it.
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
    """One row of the stores' table, in words for people."""

    state: State = "translated"
    tried: str = NOT_RUN  # version and month; NOT_RUN where this project never had the store
    who: str = ""
    read_back: str = ""
    undo: str = ""
    cost: str = ""
    source: str = ""  # where the grammar was taken from
    instead: str = ""  # what helps there where the store takes nothing
    tools: tuple[str, ...] = ()  # programs that are needed

    def warning(self, title: str) -> str:
        """What every output for such a store says first; "" for one that was run."""
        if self.tried != NOT_RUN or self.state == "nothing" or not self.source:
            return ""
        return f"{title}: {NOT_RUN} by this project, translated from {self.source}"


Level = Literal["full", "approximate", "none"]
Acts = Literal["global", "directory", "creation", "any"]

# The neutral vocabulary; DP has one row for each of its forms (docs/reference/stores.md).
VOCABULARY = (
    "DP=local", "DP=collocation", "DP=scatter", "DP=distribute", "Replication",
    "ReplicationSemantics", "BlockSize", "CacheSize", "Access", "Lifetime", "LastReader",
    "Metadata",
)  # fmt: skip  # a table


@dataclass(frozen=True, kw_only=True)
class Capability:
    """How well a store expresses one hint, and when it acts on it."""

    level: Level
    how: str = ""  # for people; empty only for "full" without remark
    acts: tuple[Acts, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One hint in the store's own words."""

    key: str
    value: bytes
    hint: str  # name=value of the neutral hint, for people
    by_name: bool = False  # in a script's table it stands as a plain name: for a tool, or @host


@dataclass(frozen=True, kw_only=True)
class Gap:
    """A hint that the store cannot express, or not exactly."""

    hint: str
    level: Level
    reason: str


@dataclass(frozen=True, kw_only=True)
class Location:
    """Where the bytes of a file lie."""

    nodes: tuple[str, ...]
    detail: Mapping[str, object]


class Translator(Protocol):
    """The part of a store that needs no store: names and capabilities."""

    @property
    def name(self) -> str:
        """What --store takes."""
        ...

    @property
    def title(self) -> str:
        """One line for people."""
        ...

    @property
    def about(self) -> About:
        """Whether it was run, who may set hints, how to read and take them back."""
        ...

    def capabilities(self) -> Mapping[str, Capability]:
        """Row of VOCABULARY -> what the store makes of it; a missing row means none."""
        ...

    def translate(self, hints: Mapping[str, str], kind: Kind) -> tuple[list[Setting], list[Gap]]:
        """The settings for one file or directory, and what the store cannot express."""
        ...

    def check_key(self, key: str, *, allow_trusted: bool) -> None:
        """Raise UsageError for a key that this store must never write (a journal is untrusted)."""
        ...


class Setter(Protocol):
    """Settings on an open descriptor, which cannot be swapped for another file meanwhile."""

    def read(self, fd: int, key: str) -> bytes | None:
        """The value that the store itself reports; None: not set. Raises OSError."""
        ...

    def write(self, fd: int, key: str, value: bytes) -> None:
        """Set it. Raises OSError."""
        ...

    def remove(self, fd: int, key: str) -> None:
        """Take it back; no error where it is not set. Raises OSError."""
        ...


class Store(Translator, Setter, Protocol):
    """A complete adapter."""


@runtime_checkable
class BatchLocator(Protocol):
    """A Locator whose store answers for many files as fast as for one."""

    def locate_all(self, fds: Sequence[int]) -> list[Location | None]:
        """`locate` for each. Raises OSError when any of them cannot be asked about."""
        ...


@runtime_checkable
class Judge(Protocol):
    """A store where several values mean the same hint."""

    def fits(self, setting: Setting, got: bytes | None) -> bool:
        """Whether the value that the store reports says what the setting asks for."""
        ...


@runtime_checkable
class Locator(Protocol):
    """A store that can tell where a file's bytes lie."""

    def locate(self, fd: int) -> Location | None:
        """The nodes of an open file; None: the store does not say for this one."""
        ...


@runtime_checkable
class NameLocator(Protocol):
    """A Locator whose store may have no mount: its files are asked for by name then."""

    @property
    def mounted(self) -> bool:
        """Whether files are opened as files of a file system."""
        ...

    def locate_name(self, name: str) -> Location | None:
        """`locate` by name. Raises OSError."""
        ...


@runtime_checkable
class NodeBound(Protocol):
    """A store that puts a file on nodes when it is made, by the host that makes it."""

    def for_script(self) -> Store:
        """The store for a script that may run on any host."""
        ...


@dataclass(frozen=True)
class Document:
    """A whole text for a store that takes no setting per file: a policy, rules, a list."""

    text: bytes
    records: int
    gaps: Mapping[Gap, int]


@runtime_checkable
class Documented(Protocol):
    """A store whose hints are one document, given to its administrator or its next run."""

    def document(self, hints: HintFile, plan: TagPlan) -> Document:
        """The document for all targets; raises UsageError where it has nothing to say."""
        ...


def prepare_for_script(store: Store) -> Store:
    """The store as a script needs it that may run on another node."""
    return store.for_script() if isinstance(store, NodeBound) else store


def too_late(store: Store, hints: Mapping[str, str]) -> dict[str, str]:
    """The hints that do nothing on a file that holds data: its bytes are not moved for them."""
    if not isinstance(store, NodeBound):
        return {}
    rows = store.capabilities()
    return {
        name: value
        for name, value in hints.items()
        if (row := rows.get(capability_key(name, value))) and row.acts and "any" not in row.acts
    }


def says(store: Store, key: str, value: bytes, got: bytes | None) -> bool:
    """Whether what the store reports is this very value, however the store puts it."""
    if isinstance(store, Judge):
        return store.fits(Setting(key=key, value=value, hint=""), got)
    return got == value


def script_value(setting: Setting) -> bytes:
    """The value as it stands in a script's table: hexadecimal, or a plain name."""
    return setting.value if setting.by_name else b"0x" + setting.value.hex().encode()


def capability_key(name: str, value: str) -> str:
    """The row of the vocabulary that a hint belongs to: `DP=scatter|4` -> `DP=scatter`."""
    return f"DP={value.partition('|')[0]}" if name == "DP" else name


def merge_gaps(gaps: Iterable[Gap]) -> dict[Gap, int]:
    """Each different gap and how often it occurred, in order of first occurrence."""
    counts: dict[Gap, int] = {}
    for gap in gaps:
        counts[gap] = counts.get(gap, 0) + 1
    return counts


Translated = tuple[list[Setting], list[Gap]]


def translate_once(store: Translator) -> Callable[[Target], Translated]:
    """`store.translate` of a target; equal hints have the same lists, which are not to be changed.

    It remembers as many answers as there are different hints.
    """
    known: dict[tuple[object, ...], Translated] = {}
    same: dict[
        tuple[str, int], tuple[Mapping[str, str], Translated]
    ] = {}  # the hints stay there as well

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
