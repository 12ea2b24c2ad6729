"""The tasks of each file, or the files of each task: lists as columns, no object for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tracehint.analyzer.arrays import Ints, Shorts, ints, lookup, order_by, starts_of
from tracehint.hintgen.typesets import sets_of


@dataclass(frozen=True)
class Members:
    """The sorted distinct members of each of the sorted `groups`; `first` is one longer than they
    are: where the members of each begin, and the end."""

    groups: Ints
    first: Ints
    members: Ints

    def place(self, group: Ints) -> Ints:
        """Where each group is; -1: it has no members."""
        return lookup(self.groups, np.arange(len(self.groups)), group)

    def counts(self, group: Ints) -> Ints:
        """Members of each group."""
        return ints(np.append(np.diff(self.first), 0)[self.place(group)])

    def only(self, group: Ints) -> Ints:
        """The first member of each group; -1 where there is none."""
        return ints(np.append(self.members, -1)[np.append(self.first[:-1], -1)[self.place(group)]])

    def lists(self, group: Ints) -> pa.ListArray:
        """The members of each group."""
        ends = pa.array(np.append(self.first, len(self.members)), pa.int32())
        every = pa.ListArray.from_arrays(ends, pa.array(self.members))
        return every.take(pa.array(_or_last(self.place(group), len(self.groups))))


def members_of(group: Ints, member: Ints) -> Members:
    """Of a row per group and member, in any order and several times."""
    order = order_by(group, member)
    group, member = group[order], member[order]
    rows = starts_of(group, member)
    group, member = group[rows], member[rows]
    first = starts_of(group)
    return Members(group[first], np.append(first, len(group)), member)


def words_of(
    file: Ints, kind: Ints | Shorts, words: Sequence[str | None], wanted: Ints
) -> pa.ListArray:
    """The sorted distinct words of each wanted file, of a row per file and number of a word."""
    files, number, sets = sets_of(file, ints(kind))
    texts = pa.array([[words[k] for k in some] for some in [*sets, ()]], pa.list_(pa.string()))
    at = lookup(files, number, wanted)
    return texts.take(pa.array(_or_last(at, len(sets))))


def _or_last(at: Ints, last: int) -> Ints:
    return np.where(at < 0, last, at)
