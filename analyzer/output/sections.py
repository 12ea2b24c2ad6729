"""Lists of the contract JSON, written in blocks of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tracehint.analyzer.arrays import Ints, column, floats, in_order, ints
from tracehint.analyzer.output.json_text import (
    Words,
    blocks,
    commas,
    decimals,
    distinct,
    flag_of,
    flags,
    format_integers,
    join_pieces,
    list_bounds,
    lists,
    number_of,
    one_of,
    pairs,
    piece,
    seconds_of,
    separators,
    string_of,
    strings,
    text,
)

if TYPE_CHECKING:
    from tracehint.analyzer.model import Analysis


_TEXT = pa.large_string()


class ChildRows:
    """Rows of a table, grouped by the parent rows (`ids`) to which they belong."""

    def __init__(self, table: pa.Table, key: str, ids: Ints) -> None:
        self.table = in_order(table, key)
        keys = column(self.table, key)
        known = np.isin(keys, ids) if len(keys) else keys != keys
        if not known.all():
            self.table, keys = self.table.filter(pa.array(known)), keys[known]
        self.ends = ints(np.append(np.searchsorted(keys, ids), len(keys)))

    def lines(self, low: int, high: int, make: Any) -> pa.Array:
        """Return the joined lines of each parent row in [low, high)."""
        first, last = int(self.ends[low]), int(self.ends[high])
        ends = self.ends[low : high + 1] - first
        rows = self.table.slice(first, last - first)
        return lists(join_pieces(commas(ends, last - first), make(rows)), ends)


def producer(rows: pa.Table) -> list[Any]:
    """Return the fields that only producers have."""
    return [
        ',"owned_bytes":',
        number_of(rows, "owned_bytes", 0),
        ',"superseded":',
        flag_of(rows, "superseded"),
    ]


def consumer(rows: pa.Table) -> list[Any]:
    """Return the fields that only consumers have."""
    cover = decimals(np.clip(floats(rows, "cover"), 0, 1), 6)
    return [',"cover":', text(cover), ',"peek":', flag_of(rows, "peek")]


def side(rows: pa.Table, own: list[Any], ranges: bool) -> pa.Array:
    """Return lines of producers or consumers; `own`: the fields specific to one of them."""
    shown = [',"ranges":', pairs(one_of(rows, "ranges"))] if ranges else []
    return join_pieces(
        '{"task":"t',
        format_integers(column(rows, "task")),
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
    """Return the labels of the files (`own`), or those of the edges."""
    none = pc.is_null(patterns.column("edge"))
    return patterns.filter(none if own else pc.invert(none)).unify_dictionaries()


def label_lines(rows: pa.Table) -> pa.Array:
    """Return one JSON object per label; equal labels are formatted once."""
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
    named = join_pieces('"g', format_integers(group[kinds]), '"')
    lines = join_pieces(
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
        format_integers(saves[0][kinds]),
        ',"saves_wait_bytes":',
        format_integers(saves[1][kinds]),
        ',"runner_up":"',
        text(words["runner_up"], kinds, _MISSING["runner_up"]),
        '","runner_up_saves_bytes":',
        format_integers(saves[2][kinds]),
        "}}",
    )
    return lines.take(pa.array(codes))


_MISSING = {"evidence": "{}", "placement": "default", "runner_up": "default"}


def _words(rows: pa.Table, name: str) -> Words:
    """Return a dictionary column as Words; missing values have code -1."""
    values = one_of(rows, name)
    codes = values.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return Words(codes, values.dictionary)


@dataclass(frozen=True)
class Section:
    """Blocks of rows, (first, one past the last), and the function that formats one block."""

    bounds: list[tuple[int, int]]
    text: Callable[[int, int], bytes]


def tasks(analysis: Analysis) -> Section:
    """Return one line per task."""
    table = in_order(analysis.tasks, "task")

    def block(low: int, high: int) -> bytes:
        part = table.slice(low, high - low)
        return piece(
            join_pieces(
                separators(low, high),
                '{"id":"t',
                format_integers(column(part, "task")),
                *(
                    x
                    for name in ("name", "type", "command", "host", "site")
                    for x in (f'{_comma(name)}"{name}":', string_of(part, name, ""))
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
                *_format_time_fields(part),
                "}",
            )
        )

    return Section(list(blocks(table.num_rows)), block)


def files(analysis: Analysis) -> Section:
    """Return one line per file, with its producers, consumers and labels."""
    from tracehint.analyzer.output.json_text import names_table

    table = in_order(analysis.files, "file")
    names = names_table(table)
    ids = column(table, "file")
    sides = [
        ChildRows(analysis.producers, "file", ids),
        ChildRows(analysis.consumers, "file", ids),
        ChildRows(labels_of(analysis.patterns, own=True), "file", ids),
    ]
    ranges = analysis.options.ranges

    def block(low: int, high: int) -> bytes:
        part, name = table.slice(low, high - low), names.slice(low, high - low)
        return piece(
            join_pieces(
                separators(low, high),
                '{"id":"f',
                format_integers(ids[low:high]),
                *_format_file_fields(part, name),
                ',"producers":[',
                sides[0].lines(low, high, lambda rows: side(rows, producer(rows), ranges)),
                '],"consumers":[',
                sides[1].lines(low, high, lambda rows: side(rows, consumer(rows), ranges)),
                '],"patterns":[',
                sides[2].lines(low, high, label_lines),
                "]}",
            )
        )

    return Section(list(blocks(len(ids), *(side.ends for side in sides))), block)


def _format_file_fields(part: pa.Table, name: pa.Table) -> list[Any]:
    """Return the fields of the file itself."""
    return [
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
        text(decimals(floats(part, "exact_share"), 6)),
    ]


def edges(analysis: Analysis) -> Section:
    """Return one line per edge, with its labels."""
    table = in_order(analysis.edges, "edge")
    ids = column(table, "edge")
    labelled = ChildRows(labels_of(analysis.patterns, own=False), "edge", ids)

    def block(low: int, high: int) -> bytes:
        part = table.slice(low, high - low)
        return piece(
            join_pieces(
                separators(low, high),
                '{"producer":"t',
                format_integers(column(part, "producer")),
                '","file":"f',
                format_integers(column(part, "file")),
                '","consumer":"t',
                format_integers(column(part, "consumer")),
                '","bytes":',
                number_of(part, "bytes", 0),
                ',"via":',
                string_of(part, "via"),
                ',"order":',
                string_of(part, "order"),
                ',"patterns":[',
                labelled.lines(low, high, label_lines),
                "]}",
            )
        )

    return Section(list(blocks(len(ids), labelled.ends)), block)


def groups(analysis: Analysis) -> Section:
    """Return one line per group, with its files."""
    table = in_order(analysis.groups, "group")
    members = one_of(table, "files")

    def block(low: int, high: int) -> bytes:
        part = table.slice(low, high - low)
        ends, values = list_bounds(members.slice(low, high - low))
        lines = join_pieces(commas(ends, len(values)), '"f', values.cast(_TEXT), '"')
        return piece(
            join_pieces(
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


def _rank(tasks: pa.Table) -> pa.Array:
    """Return group and rank of MPI ranks; other tasks do not have these fields."""
    group = column(tasks, "group")
    fields = join_pieces(
        ',"group":"m', format_integers(group), '","rank":', number_of(tasks, "rank")
    )
    return pc.if_else(pa.array(group >= 0), fields, pa.scalar("", _TEXT))


def _format_time_fields(tasks: pa.Table) -> Iterator[pa.Array]:
    """Yield CPU time and I/O wait of tasks; unknown fields are omitted."""
    for name in ("cpu_s", "io_wait_s"):
        known = pa.array(~np.isnan(floats(tasks, name)))
        text = join_pieces(f',"{name}":', seconds_of(tasks, name))
        yield pc.if_else(known, text, pa.scalar("", _TEXT))


def _comma(name: str) -> str:
    return '",' if name == "name" else ","


def _lineage(table: pa.Table) -> pa.Array:
    lineage = column(table, "lineage")
    return format_integers(np.where(lineage < 0, column(table, "file"), lineage))
