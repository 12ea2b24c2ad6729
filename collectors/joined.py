"""Several bundles as one run, whose rows are moved and written part by part."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from tracehint.collectors import clocks
from tracehint.collectors.identity import recordings
from tracehint.collectors.join import join_manifests
from tracehint.collectors.parts import BundlePart, moved, offsets_of
from tracehint.collectors.same_files import FileTimes, one_file_each
from tracehint.schemas.ahead import one_ahead
from tracehint.schemas.tables import TABLES

if TYPE_CHECKING:
    from tracehint.schemas.writer import BundleWriter

AT_ONCE = 64 << 20  # bytes of a table that are written at one time, by whole parts


class Joined:
    """The bundles as one. In memory is what grows with files; other rows come and go.

    `losses` has those that no bundle states; they, the manifest and its notes may be added to.
    """

    def __init__(self, parts: Sequence[BundlePart]) -> None:
        self._parts = sorted(parts, key=lambda part: part.manifest.started_ns)
        self.manifest = join_manifests([part.manifest for part in self._parts])
        found = (identity for part in self._parts for identity in recordings(part))
        self.manifest.parts = list(dict.fromkeys(found))
        self.losses = TABLES["losses"].empty_table()
        self._offsets = offsets_of([part.highest for part in self._parts])
        self._shifts: dict[str, int] = {}
        files = pa.concat_tables(self._numbered("files"))
        first, last = (np.concatenate([part.used[i] for part in self._parts]) for i in (0, 1))
        self._united = one_file_each(files, FileTimes(first, last))

    def align(self) -> str:
        """Move the clocks of hosts where a file would be read before it was made; says which."""
        self._shifts = clocks.corrections(gathered(self._numbered("opens")), self.manifest)
        if not self._shifts:
            return ""
        said = clocks.statement(self._shifts)
        self.manifest.notes.append(said)
        return said

    def tables(self, name: str) -> Iterator[pa.Table]:
        """The rows of a table in pieces, by whole parts."""
        if name == "files":
            yield self._united.files
            return
        for table in self._numbered(name):
            yield clocks.shifted(self._united.renamed(table), self._shifts)
        if name == "losses":
            yield self.losses

    def write(self, writer: BundleWriter) -> None:
        """The tables that have rows, and the manifest last. Raises BundleError."""
        self.manifest.rows = {}
        for name, segment, table in one_ahead(self._pieces()):
            writer.write_table(name, table, segment)
            self.manifest.rows[name] = self.manifest.rows.get(name, 0) + table.num_rows
        writer.write_manifest(self.manifest)

    def _pieces(self) -> Iterator[tuple[str, int, pa.Table]]:
        """Tables that have rows: their name, the number of the segment, the rows."""
        for name in TABLES:
            for segment, table in enumerate(gathered(self.tables(name))):
                if table.num_rows:
                    yield name, segment, table

    def _numbered(self, name: str) -> Iterator[pa.Table]:
        """The rows of each part, with identifiers that are the run's."""
        for part, offsets in zip(self._parts, self._offsets, strict=True):
            yield moved(part.table(name), offsets)


def gathered(pieces: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """The pieces in their order, put together until they have `AT_ONCE` bytes."""
    held: list[pa.Table] = []
    size = 0
    for piece in pieces:
        held.append(piece)
        size += piece.nbytes
        if size >= AT_ONCE:
            yield _in_one(held)
            held, size = [], 0
    if held:
        yield _in_one(held)


def _in_one(pieces: list[pa.Table]) -> pa.Table:
    """Small tables as one, each column in one array: what is done to arrays is done once."""
    whole = pa.concat_tables(pieces)
    few = len(pieces) == 1 or whole.nbytes > 2 * AT_ONCE
    return whole if few else whole.combine_chunks()
