"""Runs of digits in many texts at once: which of them are the same in all texts of a kind."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import numpy as np
import pyarrow as pa

from tracehint.analyzer.arrays import Bools, Ints, order_by, spread, starts_of

VARIES = "*"
AT_ONCE = 1 << 19  # runs: each of their digits takes 24 bytes while they are compared


class DigitRuns:
    """The runs of digits of each text. `count`: their number. `texts`: one array, no nulls."""

    def __init__(self, texts: pa.Array) -> None:
        _, ends, text = texts.buffers()
        place = np.frombuffer(ends, np.int32)[texts.offset :][: len(texts) + 1].astype(np.int64)
        self._bytes = np.frombuffer(text or b"", np.uint8)[: place[-1]]
        digit = (self._bytes >= ord("0")) & (self._bytes <= ord("9"))
        digit[: place[0]] = False
        first = np.zeros(len(digit) + 1, bool)
        first[place[:-1]] = True
        before = np.append(False, digit[:-1]) & ~first[:-1]
        after = np.append(digit[1:], False) & ~first[1:]
        self._start = np.flatnonzero(digit & ~before)
        self._length = np.flatnonzero(digit & ~after) + 1 - self._start
        text_of = np.searchsorted(place, self._start, "right") - 1
        self.count = np.bincount(text_of, minlength=len(texts))
        self._first = np.cumsum(self.count) - self.count

    def constant(self, rows: Ints, kind: Ints) -> Iterator[tuple[int, list[str]]]:
        """(kind, its runs of digits, VARIES where they differ) of texts with equally many.

        `kind`: that of each of the rows.
        """
        rows = rows[order_by(kind)]
        kind = np.sort(kind)
        first = starts_of(kind)
        model = np.repeat(rows[first], np.diff(np.append(first, len(rows))))
        run, other = self._runs(rows), self._runs(model)
        varies = np.zeros(len(self._start), bool)
        varies[other[~self._same(run, other)]] = True
        shown = iter(self._shown(self._runs(rows[first]), varies))
        for name, many in zip(kind[first].tolist(), self.count[rows[first]].tolist(), strict=True):
            yield name, list(islice(shown, many))

    def _runs(self, rows: Ints) -> Ints:
        return spread(self._first[rows], self.count[rows])

    def _same(self, run: Ints, other: Ints) -> Bools:
        same: Bools = self._length[run] == self._length[other]
        alike = np.flatnonzero(same)
        for begin in range(0, len(alike), AT_ONCE):
            some = alike[begin : begin + AT_ONCE]
            length = self._length[run[some]]
            left, right = (spread(self._start[side[some]], length) for side in (run, other))
            owner = np.repeat(some, length)
            same[owner[self._bytes[left] != self._bytes[right]]] = False
        return same

    def _shown(self, runs: Ints, varies: Bools) -> Iterator[str]:
        text = self._bytes.data
        ends = self._start[runs] + self._length[runs]
        for start, end, other in zip(
            self._start[runs].tolist(), ends.tolist(), varies[runs].tolist(), strict=True
        ):
            yield VARIES if other else str(text[start:end], "ascii")
