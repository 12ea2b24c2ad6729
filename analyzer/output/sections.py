"""The lists of the contract JSON, in blocks of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tracehint.analyzer.columns import column, floats, in_order
from tracehint.analyzer.output.jsonlines import (
    blocks,
    commas,
    flag_of,
    listed,
    lists,
    number_of,
    one_of,
    piece,
    seconds_of,
    separators,
    string_of,
    strings,
    whole,
)
from tracehint.analyzer.output.lines import (
    ChildRows,
    consumer,
    label_lines,
    labels_of,
    producer,
    side,
)
from tracehint.analyzer.output.rendered import decimals, joined, text

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
                *_spent(part),
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
        ChildRows(analysis.producers, "file", ids),
        ChildRows(analysis.consumers, "file", ids),
        ChildRows(labels_of(analysis.patterns, own=True), "file", ids),
    ]
    ranges = analysis.options.ranges

    def block(low: int, high: int) -> bytes:
        part, name = table.slice(low, high - low), names.slice(low, high - low)
        return piece(
            joined(
                separators(low, high),
                '{"id":"f',
                whole(ids[low:high]),
                *_of_file(part, name),
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


def _of_file(part: pa.Table, name: pa.Table) -> list[Any]:
    """What a line says of the file itself."""
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
    """One line per edge with its labels."""
    table = in_order(analysis.edges, "edge")
    ids = column(table, "edge")
    labelled = ChildRows(labels_of(analysis.patterns, own=False), "edge", ids)

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
                labelled.lines(low, high, label_lines),
                "]}",
            )
        )

    return Section(list(blocks(len(ids), labelled.ends)), block)


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


def _rank(tasks: pa.Table) -> pa.Array:
    """The program and number of a rank; other tasks do without these fields."""
    group = column(tasks, "group")
    fields = joined(',"group":"m', whole(group), '","rank":', number_of(tasks, "rank"))
    return pc.if_else(pa.array(group >= 0), fields, pa.scalar("", _TEXT))


def _spent(tasks: pa.Table) -> Iterator[pa.Array]:
    """Where the time of a task went; fields that are not known are left out."""
    for name in ("cpu_s", "io_wait_s"):
        known = pa.array(~np.isnan(floats(tasks, name)))
        said = joined(f',"{name}":', seconds_of(tasks, name))
        yield pc.if_else(known, said, pa.scalar("", _TEXT))


def _mark(name: str) -> str:
    return '",' if name == "name" else ","


def _lineage(table: pa.Table) -> pa.Array:
    lineage = column(table, "lineage")
    return whole(np.where(lineage < 0, column(table, "file"), lineage))
