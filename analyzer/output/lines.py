"""What belongs to a file or an edge in the contract JSON: who wrote and read it, and its labels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tracehint.analyzer.arrays import Ints, ints
from tracehint.analyzer.columns import column, floats, in_order
from tracehint.analyzer.output.jsonlines import (
    commas,
    flag_of,
    lists,
    number_of,
    one_of,
    pairs,
    seconds_of,
    strings,
    whole,
)
from tracehint.analyzer.output.rendered import Words, decimals, distinct, flags, joined, text

_TEXT = pa.large_string()


class ChildRows:
    """Rows of a table that belong to rows of another one, in the order of these."""

    def __init__(self, table: pa.Table, key: str, ids: Ints) -> None:
        self.table = in_order(table, key)
        keys = column(self.table, key)
        known = np.isin(keys, ids) if len(keys) else keys != keys
        if not known.all():
            self.table, keys = self.table.filter(pa.array(known)), keys[known]
        self.ends = ints(np.append(np.searchsorted(keys, ids), len(keys)))

    def lines(self, low: int, high: int, make: Any) -> pa.Array:
        """For each of these rows its lines, joined."""
        first, last = int(self.ends[low]), int(self.ends[high])
        ends = self.ends[low : high + 1] - first
        rows = self.table.slice(first, last - first)
        return lists(joined(commas(ends, last - first), make(rows)), ends)


def producer(rows: pa.Table) -> list[Any]:
    """What only producers have."""
    return [
        ',"owned_bytes":',
        number_of(rows, "owned_bytes", 0),
        ',"superseded":',
        flag_of(rows, "superseded"),
    ]


def consumer(rows: pa.Table) -> list[Any]:
    """What only consumers have."""
    cover = decimals(np.clip(floats(rows, "cover"), 0, 1), 6)
    return [',"cover":', text(cover), ',"peek":', flag_of(rows, "peek")]


def side(rows: pa.Table, own: list[Any], ranges: bool) -> pa.Array:
    """Lines of producers or consumers; `own` is what only these have."""
    shown = [',"ranges":', pairs(one_of(rows, "ranges"))] if ranges else []
    return joined(
        '{"task":"t',
        whole(column(rows, "task")),
        '","bytes":',
        number_of(rows, "bytes", 0),
        ',"unique_bytes":',
        number_of(rows, "unique_bytes", 0),
        *own,
        *shown,
        ',"how":',
        strings(one_of(rows, "how")),
        ',"first_s":',
        seconds_of(rows, "first_s"),
        ',"last_s":',
        seconds_of(rows, "last_s"),
        "}",
    )


def labels_of(patterns: pa.Table, *, own: bool) -> pa.Table:
    """The labels of the files, or those of the edges."""
    none = pc.is_null(patterns.column("edge"))
    return patterns.filter(none if own else pc.invert(none)).unify_dictionaries()


def label_lines(rows: pa.Table) -> pa.Array:
    """One object per label: many are alike, and their text is made once."""
    words = {name: _words(rows, name) for name in ("pattern", "placement", "runner_up", "evidence")}
    group = column(rows, "group")
    confidence = decimals(np.clip(floats(rows, "confidence"), 0, 1), 4)
    primary = column(rows, "primary") == 1
    saves = [
        column(rows, name, 0)
        for name in ("saves_bytes", "saves_wait_bytes", "runner_up_saves_bytes")
    ]
    kinds, codes = distinct(
        [*(w.codes for w in words.values()), group, confidence, primary, *saves]
    )
    named = joined('"g', whole(group[kinds]), '"')
    lines = joined(
        '{"pattern":"',
        text(words["pattern"], kinds),
        '","primary":',
        text(flags(primary), kinds),
        ',"confidence":',
        text(confidence, kinds),
        ',"group":',
        pc.if_else(pa.array(group[kinds] >= 0), named, pa.scalar("null", _TEXT)),
        ',"evidence":',
        text(words["evidence"], kinds, _MISSING["evidence"]),
        ',"choice":{"placement":"',
        text(words["placement"], kinds, _MISSING["placement"]),
        '","saves_bytes":',
        whole(saves[0][kinds]),
        ',"saves_wait_bytes":',
        whole(saves[1][kinds]),
        ',"runner_up":"',
        text(words["runner_up"], kinds, _MISSING["runner_up"]),
        '","runner_up_saves_bytes":',
        whole(saves[2][kinds]),
        "}}",
    )
    return lines.take(pa.array(codes))


_MISSING = {"evidence": "{}", "placement": "default", "runner_up": "default"}


def _words(rows: pa.Table, name: str) -> Words:
    """A dictionary column; what is missing in it as in the contract."""
    values = one_of(rows, name)
    codes = values.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return Words(codes, values.dictionary)
