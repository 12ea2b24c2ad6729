"""What may be known of a file before the run, and what the rules say about it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, overload

from tracehint.hintgen.hints.model import Hint, Rule

if TYPE_CHECKING:
    from tracehint.analyzer.arrays import Ints


@dataclass(frozen=True)
class Declared:
    """Columns known before the run, one entry per path; None: the whole column is unknown.

    `producer_types[i]` is None for an input of the workflow. `consumers` and
    `producers` are task ids (any hashable, stable text). `sizes` only where
    the file exists already (inputs). What follows from the tasks of all files together, where
    somebody found it out already: `alike`, files with the same producers and consumers; `uses`
    (hints/uses.py); `readers`, consumers of each; `only_producer` and `only_consumer`, a number for
    the one task that each has there, -1 where it has none or several. `makers`: nothing is known
    but the type of the task that makes each file just now; None: it belongs to no task whose type
    is known.
    """

    producer_types: Sequence[str | None] | None = None
    consumer_types: Sequence[Sequence[str]] | None = None
    producers: Sequence[Sequence[str]] | None = None
    consumers: Sequence[Sequence[str]] | None = None
    sizes: Sequence[int | None] | None = None
    alike: Sequence[int] | Ints | None = None
    uses: Sequence[str] | None = None
    readers: Sequence[int] | Ints | None = None
    only_producer: Ints | None = None
    only_consumer: Ints | None = None
    makers: Sequence[str | None] | None = None


class Verdict(NamedTuple):
    """What the rules say about all paths for which they say the same; see `Match`."""

    rule: Rule | None
    hints: tuple[Hint, ...]
    pattern: str
    reason: str
    candidates: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Match:
    """What the rules say about one path.

    `reason`: fired, no_rule, excluded, types (the declared types contradict),
    needs_graph (the path alone does not tell), use (the rule says nothing for
    files that the graph declares to be used that way), small (the file is there and smaller
    than a call is worth), extra (more files between two tasks than were seen), names (the rule
    asks for names beside it that are not there, or that nobody gave), maker (it is for files that
    tasks of other types make), conflict, costly (the
    name would cost more than the limit match-work).
    """

    path: bytes
    rule: Rule | None
    hints: tuple[Hint, ...]  # with the values for this file
    pattern: str  # "" when no rule fired
    reason: str
    candidates: tuple[tuple[str, str], ...] = ()  # (rule id, why it did not win)

    @property
    def values(self) -> dict[str, str]:
        """Hint name -> value."""
        return {hint.name: hint.value for hint in self.hints}


T = TypeVar("T")


class Coded(Sequence[T]):
    """A column of `values`, of which each row has the one that `codes` says."""

    def __init__(self, values: Sequence[T], codes: Ints) -> None:
        self.values, self.codes = values, codes

    def __len__(self) -> int:
        return len(self.codes)

    @overload
    def __getitem__(self, at: int) -> T: ...
    @overload
    def __getitem__(self, at: slice) -> Coded[T]: ...
    def __getitem__(self, at: int | slice) -> T | Coded[T]:
        if isinstance(at, slice):
            return Coded(self.values, self.codes[at])
        return self.values[int(self.codes[at])]


def encode_values(values: Iterable[T], key: Callable[[T], Hashable] | None = None) -> Coded[T]:
    """The values, numbered in the order in which they come first. `key`: what tells those apart
    that have no hash."""
    seen: dict[Any, int] = {}
    kinds: list[T] = []
    codes: list[int] = []
    for value in values:
        code = seen.setdefault(value if key is None else key(value), len(kinds))
        if code == len(kinds):
            kinds.append(value)
        codes.append(code)
    return Coded(kinds, _numbers(codes))


def codes_of(column: Sequence[T], key: Callable[[T], Hashable] | None = None) -> Ints:
    """Equal numbers for equal values; `key` as of `encode_values`."""
    return column.codes if isinstance(column, Coded) else encode_values(column, key).codes


def _numbers(codes: list[int]) -> Ints:
    import numpy as np

    return np.array(codes, np.int64)
