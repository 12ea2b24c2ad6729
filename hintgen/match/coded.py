"""Columns in which few values occur many times: the values, and which of them each row has."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, overload

if TYPE_CHECKING:
    from tracehint.analyzer.arrays import Ints

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


def coded(values: Iterable[T], key: Callable[[T], Hashable] | None = None) -> Coded[T]:
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
    """Equal numbers for equal values; `key` as of `coded`."""
    return column.codes if isinstance(column, Coded) else coded(column, key).codes


def _numbers(codes: list[int]) -> Ints:
    import numpy as np

    return np.array(codes, np.int64)
