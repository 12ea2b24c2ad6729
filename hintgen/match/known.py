"""Inputs and results of matching: facts known about files before a run, and verdicts of rules."""

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
    `producers` are task ids (any hashable, stable text). `sizes`: only of files
    that exist already (inputs). Optional precomputed values that depend on the tasks of all files:
    `alike`, number of files with the same producers and consumers; `uses` (hints/uses.py);
    `readers`, number of consumers; `only_producer` and `only_consumer`, a number for the only task
    on that side, -1 for none or several. `makers`: the type of the task that is creating each file,
    if nothing else is known; None: a task of unknown type.
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
    """Result of matching, shared by all paths with the same one; see `Match`."""

    rule: Rule | None
    hints: tuple[Hint, ...]
    pattern: str
    reason: str
    candidates: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Match:
    """Result of matching one path.

    `reason`: fired, no_rule, excluded, types (the declared types contradict),
    needs_graph (the path alone is ambiguous), use (the rule has no hints for the use
    that the graph declares), small (the file exists and is too small to repay a call),
    extra (more files between two tasks than observed), names (required sibling names are
    missing or were not passed), maker (the rule matches files made by tasks of other types),
    conflict, costly (matching the name exceeds the limit match-work).
    """

    path: bytes
    rule: Rule | None
    hints: tuple[Hint, ...]  # with the values for this file
    pattern: str  # "" if no rule fired
    reason: str
    candidates: tuple[tuple[str, str], ...] = ()  # (rule id, why it did not win)

    @property
    def values(self) -> dict[str, str]:
        """Hint name -> value."""
        return {hint.name: hint.value for hint in self.hints}


T = TypeVar("T")


class Coded(Sequence[T]):
    """A dictionary-encoded column: row i is `values[codes[i]]`."""

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
    """Dictionary-encode values, numbered by first occurrence. `key`: hashable key of a value, for
    unhashable values."""
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
    """Return equal numbers for equal values; `key` as for `encode_values`."""
    return column.codes if isinstance(column, Coded) else encode_values(column, key).codes


def _numbers(codes: list[int]) -> Ints:
    import numpy as np

    return np.array(codes, np.int64)
