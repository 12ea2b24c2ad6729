"""The tasks, or types, that each file has: lists as columns, without an object per file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tracehint.analyzer.arrays import Ints, ints, lookup, order_by, starts_of
from tracehint.hintgen.typesets import sets_of


@dataclass(frozen=True)
class Members:
    """The sorted distinct members of each of the sorted `files`; `first` is one longer than they
    are: where the members of each begin, and the end."""

    files: Ints
    first: Ints
    members: Ints

    def place(self, file: Ints) -> Ints:
        """Where each file is; -1: it has no members."""
        return lookup(self.files, np.arange(len(self.files)), file)

    def counts(self, file: Ints) -> Ints:
        """Members of each file."""
        return ints(np.append(np.diff(self.first), 0)[self.place(file)])

    def only(self, file: Ints) -> Ints:
        """The first member of each file; -1 where there is none."""
        return ints(np.append(self.members, -1)[np.append(self.first[:-1], -1)[self.place(file)]])

    def lists(self, file: Ints) -> pa.ListArray:
        """The members of each file."""
        ends = pa.array(np.append(self.first, len(self.members)), pa.int32())
        every = pa.ListArray.from_arrays(ends, pa.array(self.members))
        return every.take(pa.array(_or_last(self.place(file), len(self.files))))


def members_of(file: Ints, member: Ints) -> Members:
    """Of a row per file and member, in any order and several times."""
    order = order_by(file, member)
    file, member = file[order], member[order]
    rows = starts_of(file, member)
    file, member = file[rows], member[rows]
    first = starts_of(file)
    return Members(file[first], np.append(first, len(file)), member)


def words_of(file: Ints, kind: Ints, words: Sequence[str | None], wanted: Ints) -> pa.ListArray:
    """The sorted distinct words of each wanted file, of a row per file and number of a word."""
    files, number, sets = sets_of(file, kind)
    texts = pa.array([[words[k] for k in some] for some in [*sets, ()]], pa.list_(pa.string()))
    at = lookup(files, number, wanted)
    return texts.take(pa.array(_or_last(at, len(sets))))


def _or_last(at: Ints, last: int) -> Ints:
    return np.where(at < 0, last, at)
