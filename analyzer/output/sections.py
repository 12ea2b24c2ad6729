"""The lists of the contract JSON, in blocks of rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tracehint.analyzer.arrays import Ints, ints
from tracehint.analyzer.columns import column, floats, in_order
from tracehint.analyzer.output.jsonlines import (
    blocks,
    commas,
    flag_of,
    listed,
    lists,
    number_of,
    one_of,
    pairs,
    piece,
    seconds_of,
    separators,
    string_of,
    strings,
    whole,
)
from tracehint.analyzer.output.rendered import Words, decimals, distinct, flags, joined, text

if TYPE_CHECKING:
    from tracehint.analyzer.model import Analysis

_TEXT = pa.large_string()


@dataclass(frozen=True)
class Section:
    """Blocks of rows, (first, one past the last), and what makes the text of one."""

    bounds: list[tuple[int, int]]
    text: Callable[[int, int], bytes]


def tasks(analysis: Analysis) -> Section:
    """One line per task."""
    table = in_order(analysis.tasks, "task")

    def block(low: int, high: int) -> bytes:
        part = table.slice(low, high - low)
        return piece(
            joined(
                separators(low, high),
                '{"id":"t',
                whole(column(part, "task")),
                *(
                    x
                    for name in ("name", "type", "command", "host", "site")
                    for x in (f'{_mark(name)}"{name}":', string_of(part, name, ""))
                ),
                ',"start_s":',
                seconds_of(part, "start_s", 0.0),
                ',"end_s":',
                seconds_of(part, "end_s"),
                ',"exit_status":',
                number_of(part, "exit_status"),
                ',"attempt":',
                number_of(part, "attempt", 1),
                ',"processes":',
                number_of(part, "processes", 0),
                ',"engine":',
                flag_of(part, "engine"),
                ',"source":',
                string_of(part, "source", "observed"),
                _rank(part),
                "}",
            )
        )

    return Section(list(blocks(table.num_rows)), block)


def files(analysis: Analysis) -> Section:
    """One line per file, with those who wrote and read it and its labels."""
    from tracehint.analyzer.output.names import names_table

    table = in_order(analysis.files, "file")
    names = names_table(table)
    ids = column(table, "file")
    sides = [
        _Lists(analysis.producers, "file", ids),
        _Lists(analysis.consumers, "file", ids),
        _Lists(_labels(analysis.patterns, own=True), "file", ids),
    ]
    ranges = analysis.options.ranges

    def block(low: int, high: int) -> bytes:
        part, name = table.slice(low, high - low), names.slice(low, high - low)
        share = floats(part, "exact_share")
        return piece(
            joined(
                separators(low, high),
                '{"id":"f',
                whole(ids[low:high]),
                '","path":',
                string_of(name, "path_text"),
                ',"path_bytes":',
                string_of(name, "path_code"),
                ',"version":',
                number_of(part, "version"),
                ',"other_paths":',
                strings(one_of(name, "other_text")),
                ',"other_path_bytes":',
                strings(one_of(name, "other_code")),
                ',"role":',
                string_of(part, "role"),
                ',"size_bytes":',
                number_of(part, "size_bytes"),
                ',"deleted":',
                flag_of(part, "deleted"),
                ',"lineage":',
                _lineage(part),
                ',"exact_share":',
                text(decimals(share, 6)),
                ',"producers":[',
                sides[0].lines(low, high, lambda rows: _side(rows, _producer(rows), ranges)),
                '],"consumers":[',
                sides[1].lines(low, high, lambda rows: _side(rows, _consumer(rows), ranges)),
                '],"patterns":[',
                sides[2].lines(low, high, _label_lines),
                "]}",
            )
        )

    return Section(list(blocks(len(ids), *(side.ends for side in sides))), block)


def edges(analysis: Analysis) -> Section:
    """One line per edge with its labels."""
    table = in_order(analysis.edges, "edge")
    ids = column(table, "edge")
    labels = _Lists(_labels(analysis.patterns, own=False), "edge", ids)

    def block(low: int, high: int) -> bytes:
        part = table.slice(low, high - low)
        return piece(
            joined(
                separators(low, high),
                '{"producer":"t',
                whole(column(part, "producer")),
                '","file":"f',
                whole(column(part, "file")),
                '","consumer":"t',
                whole(column(part, "consumer")),
                '","bytes":',
                number_of(part, "bytes", 0),
                ',"via":',
                string_of(part, "via"),
                ',"order":',
                string_of(part, "order"),
                ',"patterns":[',
                labels.lines(low, high, _label_lines),
                "]}",
            )
        )

    return Section(list(blocks(len(ids), labels.ends)), block)


def groups(analysis: Analysis) -> Section:
    """One line per group with its files."""
    table = in_order(analysis.groups, "group")
    members = one_of(table, "files")

    def block(low: int, high: int) -> bytes:
        part = table.slice(low, high - low)
        ends, values = listed(members.slice(low, high - low))
        lines = joined(commas(ends, len(values)), '"f', values.cast(_TEXT), '"')
        return piece(
            joined(
                separators(low, high),
                '{"id":"g',
                number_of(part, "group"),
                '","pattern":',
                string_of(part, "pattern"),
                ',"task":"t',
                number_of(part, "task"),
                '","bytes":',
                number_of(part, "bytes", 0),
                ',"primary":',
                flag_of(part, "primary"),
                ',"evidence":',
                one_of(part, "evidence").cast(_TEXT).fill_null("{}"),
                ',"files":[',
                lists(lines, ends),
                "]}",
            )
        )

    return Section(list(blocks(table.num_rows, members.offsets.to_numpy())), block)


class _Lists:
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


def _rank(tasks: pa.Table) -> pa.Array:
    """The program and number of a rank; other tasks do without these fields."""
    group = column(tasks, "group")
    fields = joined(',"group":"m', whole(group), '","rank":', number_of(tasks, "rank"))
    return pc.if_else(pa.array(group >= 0), fields, pa.scalar("", _TEXT))


def _mark(name: str) -> str:
    return '",' if name == "name" else ","


def _lineage(table: pa.Table) -> pa.Array:
    lineage = column(table, "lineage")
    return whole(np.where(lineage < 0, column(table, "file"), lineage))


def _producer(rows: pa.Table) -> list[Any]:
    return [
        ',"owned_bytes":',
        number_of(rows, "owned_bytes", 0),
        ',"superseded":',
        flag_of(rows, "superseded"),
    ]


def _consumer(rows: pa.Table) -> list[Any]:
    cover = decimals(np.clip(floats(rows, "cover"), 0, 1), 6)
    return [',"cover":', text(cover), ',"peek":', flag_of(rows, "peek")]


def _side(rows: pa.Table, own: list[Any], ranges: bool) -> pa.Array:
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


def _labels(patterns: pa.Table, *, own: bool) -> pa.Table:
    """The labels of the files, or those of the edges."""
    none = pc.is_null(patterns.column("edge"))
    return patterns.filter(none if own else pc.invert(none)).unify_dictionaries()


def _label_lines(rows: pa.Table) -> pa.Array:
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
