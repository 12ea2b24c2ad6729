"""Columns of texts that are kept once each, in Arrow dictionaries that are made one at the end."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tracehint.adapters.engines.graph_base import MAX_WORD, clean
from tracehint.limits import check

if TYPE_CHECKING:
    import pyarrow as pa

Ints = npt.NDArray[Any]  # numbers of texts and tasks have 32 bits, times and sizes 64
_BATCH = 1 << 15
_RELEASE = 64  # batches after which freed memory goes back


class TextColumn:
    """A column of texts."""

    def __init__(self) -> None:
        self.count = 0
        self._batch: list[str] = []
        self._chunks: list[pa.Array] = []

    def extend(self, texts: list[str]) -> None:
        """Append. Raises InputError beyond the limit rows."""
        self._batch += texts
        self.count += len(texts)
        if len(self._batch) >= _BATCH:
            self._pack()
            check("rows", "the workflow", self.count)

    def _pack(self) -> None:
        import pyarrow as pa

        texts = self._batch
        self._batch = []
        if max(map(len, texts), default=0) > MAX_WORD:
            texts = [clean(t) for t in texts]
        try:
            packed = pa.array(texts, pa.string())
        except UnicodeEncodeError:  # surrogates that JSON spelled out
            packed = pa.array([clean(t) for t in texts], pa.string())
        self._chunks.append(packed.dictionary_encode())
        if len(self._chunks) % _RELEASE == 0:
            give_back()

    def chunks(self) -> list[pa.Array]:
        """The dictionary-encoded batches; the column is empty afterwards."""
        if self._batch or not self._chunks:
            self._pack()
        chunks, self._chunks = self._chunks, []
        return chunks


def united(*columns: TextColumn) -> tuple[list[Ints], pa.Array]:
    """The numbers of each column's texts in one dictionary, and the dictionary."""
    import pyarrow as pa

    counts = [c.count for c in columns]
    whole = pa.chunked_array([chunk for c in columns for chunk in c.chunks()])
    whole = whole.unify_dictionaries()
    numbers = np.concatenate([c.indices.to_numpy(zero_copy_only=False) for c in whole.chunks])
    texts = whole.chunk(0).dictionary
    del whole
    give_back()
    return np.split(numbers, np.cumsum(counts)[:-1]), texts


def give_back() -> None:
    """Return freed memory to the system: what follows would otherwise come on top of it."""
    import pyarrow as pa

    pa.default_memory_pool().release_unused()


class TextLists:
    """A list of texts per task."""

    def __init__(self) -> None:
        self.texts, self.ends = TextColumn(), array("q")

    def add(self, texts: list[str]) -> None:
        self.texts.extend(texts)
        self.ends.append(self.texts.count)

    def owners(self) -> Ints:
        """The task of every entry."""
        ends = np.frombuffer(self.ends, np.int64)
        counts = ends - np.concatenate([[0], ends[:-1]])
        return np.repeat(np.arange(len(ends), dtype=np.int32), counts)
