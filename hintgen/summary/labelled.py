"""The file versions of a run by their primary label, summed up for people.

A file's bytes are those that all its readers read, or, where nobody reads, its size. A *kind* is
a name with `*` for each number. Files that go the same way are told together, as one *flow*.
"""

from __future__ import annotations

import json
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tracehint.analyzer.arrays import Bools, Ints, numbered, positions
from tracehint.analyzer.columns import column, floats
from tracehint.analyzer.text import texts
from tracehint.hintgen.summary.tallies import summed
from tracehint.hintgen.text.masks import RANDOM_PART, layouts_of, shown
from tracehint.hintgen.typesets import numbers_of

if TYPE_CHECKING:
    from tracehint.analyzer.model import Analysis


class Labelled:
    """Columns of equal length, one element per file version with a primary label. What needs a
    look at every name or access is made when it is asked for."""

    def __init__(self, analysis: Analysis) -> None:
        found = analysis.patterns
        found = found.filter(pc.and_(pc.is_null(found.column("edge")), found.column("primary")))
        self._analysis = analysis
        self.pattern, self.patterns = _coded(found.column("pattern").cast(pa.string()))
        self.placement = found.column("placement")
        self.evidence = found.column("evidence")
        self.confidence = floats(found, "confidence")
        self.saves = column(found, "saves_bytes", null=0)
        self.waits = column(found, "saves_wait_bytes", null=0)
        self.file = column(found, "file")
        self.group = column(found, "group") + 1  # 0: none

    @cached_property
    def _row(self) -> Ints:
        """The row of each file version in the table of files."""
        return positions(column(self._analysis.files, "file"), self.file)

    @cached_property
    def bytes(self) -> Ints:
        """What all its readers read, or its size."""
        return _read_bytes(self._analysis)[self._row]

    @cached_property
    def path(self) -> pa.ChunkedArray:
        """Its name as text."""
        return texts(self._analysis.files.column("path").take(pa.array(self._row)))[0]

    @cached_property
    def _kinds(self) -> tuple[Ints, list[str], Bools]:
        """(the number of its kind, the kinds, whether its name has a random part)."""
        layouts = layouts_of(self.path.combine_chunks())
        shapes, layout = layouts.shapes, layouts.code.to_numpy()
        kind, kinds = _coded(pa.chunked_array([shown(shapes).cast(pa.string())]))
        random = pc.match_substring_regex(shapes, RANDOM_PART).to_numpy(zero_copy_only=False)
        return kind[layout], kinds, random[layout]

    def mix(self) -> list[dict[str, Any]]:
        """pattern, files, bytes, saves and waits of each pattern, most bytes first."""
        count = len(self.patterns)
        sums = {
            "files": np.bincount(self.pattern, minlength=count),
            "bytes": summed(self.pattern, self.bytes, count),
            "saves": summed(self.pattern, self.saves, count),
            "waits": summed(self.pattern, self.waits, count),
        }
        rows = [
            {"pattern": name, **{k: int(v[i]) for k, v in sums.items()}}
            for i, name in enumerate(self.patterns)
        ]
        return sorted(rows, key=lambda r: (-r["bytes"], r["pattern"]))

    def best(self, top: int) -> list[dict[str, Any]]:
        """The files whose hint saves most."""
        placed = pc.fill_null(pc.not_equal(self.placement.cast(pa.string()), "default"), False)
        return self._top(placed.to_numpy(), self.saves + self.waits, top)

    def largest(self, top: int) -> list[dict[str, Any]]:
        """The files with most bytes, results aside."""
        handed = np.array([name != "stage_out" for name in self.patterns], bool)[self.pattern]
        return self._top(handed, self.bytes, top)

    @cached_property
    def _flow(self) -> Ints:
        """A number for each flow: one pattern between the same types of tasks, and the same
        directory and ending; in groups (reduce, distribute) what the group has in common."""
        analysis, (kind, kinds, _) = self._analysis, self._kinds
        writers = _types(analysis, analysis.producers)[self._row]
        readers = _types(analysis, analysis.consumers)[self._row]
        places = pa.chunked_array([[_place(name) for name in kinds]], pa.string())
        place = _coded(places)[0][kind]
        grouped = self.group > 0
        reduce = np.array([name == "reduce" for name in self.patterns], bool)[self.pattern]
        writers = np.where(grouped & reduce, -1, writers)
        readers = np.where(grouped & ~reduce, -1, readers)
        place = np.where(grouped, -1, place)
        flow = self.pattern
        for part in (writers, readers, place):
            _, flow = numbered(flow * (part.max(initial=0) + 2) + part + 1)
        return flow

    def _top(self, among: Bools, weight: Ints, top: int) -> list[dict[str, Any]]:
        """The heaviest flows, one row each."""
        own = np.flatnonzero(among)
        if not own.size:
            return []
        flows, at = np.unique(self._flow[own], return_inverse=True)
        total = summed(at, weight[own], len(flows))
        kind = self._main_kind(own, at)
        order = np.lexsort((kind, -total))[:top]
        kinds = self._kinds[1]
        return [self._told(own[at == i], kinds[kind[i]]) for i in order]

    def _main_kind(self, own: Ints, flow: Ints) -> Ints:
        """For each flow, the kind that has most bytes."""
        every, kinds, _ = self._kinds
        pair, at = np.unique(flow * len(kinds) + every[own], return_inverse=True)
        moved = summed(at, self.bytes[own], len(pair))
        of, kind = np.divmod(pair, len(kinds))
        order = np.lexsort((kind, -moved, of))
        found: Ints = kind[order][np.unique(of[order], return_index=True)[1]]
        return found

    def _told(self, own: Ints, kind: str) -> dict[str, Any]:
        every, _, random = self._kinds
        gains = self.saves[own] + self.waits[own]
        paths = self.path.take(pa.array(own))
        first = int(own[np.lexsort((paths.to_numpy(zero_copy_only=False), -gains))[0]])
        return {
            "template": kind,
            "others": len(np.unique(every[own])) - 1,
            "groups": len(np.unique(self.group[own])),
            "pattern": self.patterns[self.pattern[first]],
            "files": len(own),
            "bytes": int(self.bytes[own].sum()),
            "saves": int(self.saves[own].sum()),
            "waits": int(self.waits[own].sum()),
            "name": kind if len(own) > 1 or random[own].any() else pc.min(paths).as_py(),
            "evidence": json.loads(self.evidence[first].as_py()),
            "placement": self.placement[first].as_py(),
            "confidence": float(self.confidence[own].min()),
        }


def _place(path: str) -> str:
    """The directory and the ending of a path.

    >>> _place("a/b.c/x.tar.gz"), _place("a/x"), _place("x")
    ('a/b.c/.gz', 'a/', '')
    """
    folder, slash, name = path.rpartition("/")
    _, dot, ending = name.rpartition(".")
    return folder + slash + (dot + ending if dot else "")


def _coded(column: pa.ChunkedArray) -> tuple[Ints, list[str]]:
    """Texts as numbers into the sorted list of the different ones."""
    coded = pc.dictionary_encode(column.cast(pa.string()).combine_chunks())
    order = pc.sort_indices(coded.dictionary).to_numpy()
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return rank[coded.indices.to_numpy()], coded.dictionary.take(pa.array(order)).to_pylist()


def _read_bytes(analysis: Analysis) -> Ints:
    """For each file version the bytes that its readers read, else its size."""
    files, readers = analysis.files, analysis.consumers
    at = positions(column(files, "file"), column(readers, "file"))
    read = summed(at, column(readers, "unique_bytes", null=0), files.num_rows)
    count = np.bincount(at, minlength=files.num_rows)
    found: Ints = np.where(count > 0, read, column(files, "size_bytes", null=0))
    return found


def _types(analysis: Analysis, side: pa.Table) -> Ints:
    """For each file version a number for the set of types of tasks that write (or read) it."""
    type_of, _ = _coded(analysis.tasks.column("type"))
    at = positions(column(analysis.tasks, "task"), column(side, "task"))
    file = positions(column(analysis.files, "file"), column(side, "file"))
    count = int(type_of.max(initial=0)) + 1
    files, number, made = numbers_of(file, type_of[at])
    many = int(type_of[at].max(initial=0)) + 1
    found = np.where(made < many, made, count)[number]  # one type: its number
    _, first, place = np.unique(number[found == count], return_index=True, return_inverse=True)
    found[found == count] += np.argsort(np.argsort(first))[place]
    sets = np.full(analysis.files.num_rows, -1, np.int64)
    sets[files] = found
    return sets
