"""Groups of the file versions of a run by primary label, for the summary and the report.

A file's bytes are the sum over its readers of the bytes read or, without readers, its size. A
*kind* is a name with `*` for each number.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tracehint.analyzer.arrays import Bools, Ints, column, floats, positions, rank_values
from tracehint.analyzer.text import texts
from tracehint.hintgen.file_users import numbers_of
from tracehint.hintgen.summary.tallies import sum_groups
from tracehint.hintgen.text.masks import RANDOM_PART, layouts_of, show_shapes

if TYPE_CHECKING:
    from tracehint.analyzer.model import Analysis


class Labelled:
    """Columns of equal length, one element per file version with a primary label. Columns that
    need all names or accesses are computed lazily."""

    def __init__(self, analysis: Analysis) -> None:
        found = analysis.patterns
        found = found.filter(pc.and_(pc.is_null(found.column("edge")), found.column("primary")))
        self._analysis = analysis
        self.pattern, self.patterns = _code_column(found.column("pattern").cast(pa.string()))
        self.placement = found.column("placement")
        self.evidence = found.column("evidence")
        self.confidence = floats(found, "confidence")
        self.file = column(found, "file")
        self.group = column(found, "group") + 1  # 0: none

    @cached_property
    def _row(self) -> Ints:
        """Row of each file version in the table of files."""
        return positions(column(self._analysis.files, "file"), self.file)

    @cached_property
    def bytes(self) -> Ints:
        """Bytes read by all readers of each file version, or its size."""
        return _read_bytes(self._analysis)[self._row]

    @cached_property
    def path(self) -> pa.ChunkedArray:
        """Path of each file version as text."""
        return texts(self._analysis.files.column("path").take(pa.array(self._row)))[0]

    @cached_property
    def _kinds(self) -> tuple[Ints, list[str], Bools]:
        """(number of each one's kind, the kinds, whether its name has a random part)."""
        layouts = layouts_of(self.path.combine_chunks())
        shapes, layout = layouts.shapes, layouts.code.to_numpy()
        kind, kinds = _code_column(pa.chunked_array([show_shapes(shapes).cast(pa.string())]))
        random = pc.match_substring_regex(shapes, RANDOM_PART).to_numpy(zero_copy_only=False)
        return kind[layout], kinds, random[layout]

    def mix(self) -> list[dict[str, Any]]:
        """Return pattern, files and bytes of each pattern, most bytes first."""
        count = len(self.patterns)
        sums = {
            "files": np.bincount(self.pattern, minlength=count),
            "bytes": sum_groups(self.pattern, self.bytes, count),
        }
        rows = [
            {"pattern": name, **{k: int(v[i]) for k, v in sums.items()}}
            for i, name in enumerate(self.patterns)
        ]
        return sorted(rows, key=lambda r: (-r["bytes"], r["pattern"]))

    @cached_property
    def _group(self) -> Ints:
        """Group number: equal for the same pattern, kind of name, and task types."""
        analysis, (kind, _, _) = self._analysis, self._kinds
        key = self.pattern
        for part in (
            kind,
            _types(analysis, analysis.producers)[self._row],
            _types(analysis, analysis.consumers)[self._row],
        ):
            _, key = rank_values(key * (part.max(initial=0) + 2) + part + 1)
        return key

    def groups(self, files: Ints) -> list[Ints]:
        """Group these files by pattern, kind of name and types of their tasks, most bytes
        first."""
        return [self.file[own] for own in self._largest(np.isin(self.file, files))]

    def rows(self, groups: Sequence[Ints]) -> list[dict[str, Any]]:
        """Return the rows that the summary and the report show for these groups."""
        return [self._describe(positions(self.file, files)) for files in groups]

    def largest(self, top: int) -> list[dict[str, Any]]:
        """Return the rows of the groups with most bytes, without results of the run."""
        read = np.array([name != "stage_out" for name in self.patterns], bool)[self.pattern]
        return [self._describe(own) for own in self._largest(read)[:top]]

    def _largest(self, among: Bools) -> list[Ints]:
        """Return the rows of each group within a mask, most bytes first."""
        own = np.flatnonzero(among)
        if not own.size:
            return []
        _, at = np.unique(self._group[own], return_inverse=True)
        count = np.bincount(at)
        total = sum_groups(at, self.bytes[own], len(count))
        parts = np.split(own[np.argsort(at, kind="stable")], np.cumsum(count)[:-1])
        return [parts[i] for i in np.argsort(-total, kind="stable")]

    def _describe(self, own: Ints) -> dict[str, Any]:
        kind, kinds, random = self._kinds
        paths = self.path.take(pa.array(own))
        first = int(own[np.argsort(paths.to_numpy(zero_copy_only=False))[0]])
        return {
            "template": kinds[kind[first]],
            "groups": len(np.unique(self.group[own])),
            "pattern": self.patterns[self.pattern[first]],
            "files": len(own),
            "bytes": int(self.bytes[own].sum()),
            "name": kinds[kind[first]]
            if len(own) > 1 or random[own].any()
            else pc.min(paths).as_py(),
            "evidence": json.loads(self.evidence[first].as_py()),
            "placement": self.placement[first].as_py(),
            "confidence": float(self.confidence[own].min()),
        }


def _code_column(column: pa.ChunkedArray) -> tuple[Ints, list[str]]:
    """Encode texts as indices into the sorted list of distinct texts."""
    coded = pc.dictionary_encode(column.cast(pa.string()).combine_chunks())
    order = pc.sort_indices(coded.dictionary).to_numpy()
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return rank[coded.indices.to_numpy()], coded.dictionary.take(pa.array(order)).to_pylist()


def _read_bytes(analysis: Analysis) -> Ints:
    """Return, for each file version, the bytes that its readers read, or its size."""
    files, readers = analysis.files, analysis.consumers
    at = positions(column(files, "file"), column(readers, "file"))
    read = sum_groups(at, column(readers, "unique_bytes", null=0), files.num_rows)
    count = np.bincount(at, minlength=files.num_rows)
    found: Ints = np.where(count > 0, read, column(files, "size_bytes", null=0))
    return found


def _types(analysis: Analysis, side: pa.Table) -> Ints:
    """Return, for each file version, a number for the set of task types of one side."""
    type_of, _ = _code_column(analysis.tasks.column("type"))
    at = positions(column(analysis.tasks, "task"), column(side, "task"))
    file = positions(column(analysis.files, "file"), column(side, "file"))
    count = int(type_of.max(initial=0)) + 1
    files, number, made = numbers_of(file, type_of[at])
    many = int(type_of[at].max(initial=0)) + 1
    found = np.where(made < many, made, count)[number]  # sets of one type keep its number
    _, first, place = np.unique(number[found == count], return_index=True, return_inverse=True)
    found[found == count] += np.argsort(np.argsort(first))[place]
    sets = np.full(analysis.files.num_rows, -1, np.int64)
    sets[files] = found
    return sets
