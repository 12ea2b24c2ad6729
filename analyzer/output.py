"""The contract JSON of an analysis (schemas/analysis.schema.json), out and in.

Writing is SQL that makes one line of JSON per task, file, edge and group, so its cost grows
with the output and not with Python objects. Names that are not UTF-8 are written with U+FFFD
and, exactly, as base64 beside it; numbers are never NaN.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from tracehint.analyzer.reading import from_json

if TYPE_CHECKING:
    import pyarrow as pa

    from tracehint.analyzer.model import Analysis

__all__ = ["from_json", "to_json", "write_json"]

_TASKS = """
select task as id, left(head, length(head) - 1) as head from (
    select task, to_json({'id': 't' || task, 'name': coalesce(name, ''), 'type': coalesce(type, ''),
    'command': coalesce(command, ''), 'host': coalesce(host, ''), 'site': coalesce(site, ''),
    'start_s': round(coalesce(start_s, 0), 6), 'end_s': round(end_s, 6),
    'exit_status': exit_status, 'attempt': coalesce(attempt, 1),
    'processes': coalesce(processes, 0), 'engine': coalesce(engine, false),
    'source': coalesce(source, 'observed')}) as head from tasks)
order by task
"""

# One line per label; the sort keeps an object's primary first.
_PATTERNS = """
select {key} as key, '{{"pattern":"' || pattern || '","primary":' || "primary"
    || ',"confidence":' || round(greatest(0, least(1, confidence)), 4)
    || ',"group":' || coalesce('"g' || "group" || '"', 'null')
    || ',"evidence":' || coalesce(evidence, '{{}}')
    || ',"choice":{{"placement":"' || coalesce(placement, 'default')
    || '","saves_bytes":' || coalesce(saves_bytes, 0)
    || ',"saves_wait_bytes":' || coalesce(saves_wait_bytes, 0)
    || ',"runner_up":"' || coalesce(runner_up, 'default')
    || '","runner_up_saves_bytes":' || coalesce(runner_up_saves_bytes, 0) || '}}}}' as line
from patterns where {which}
"""

_SIDE = """
'{{"task":"t' || task || '","bytes":' || coalesce(bytes, 0)
    || ',"unique_bytes":' || coalesce(unique_bytes, 0) {own}
    || {ranges} ',"how":' || coalesce(to_json(how), '[]')
    || ',"first_s":' || coalesce(round(first_s, 6)::varchar, 'null')
    || ',"last_s":' || coalesce(round(last_s, 6)::varchar, 'null') || '}}' as line
"""
_RANGES = "',\"ranges\":' || coalesce(to_json(ranges), '[]') ||"
_PRODUCER = """
    || ',"owned_bytes":' || coalesce(owned_bytes, 0)
    || ',"superseded":' || coalesce(superseded, false)
"""
_CONSUMER = """
    || ',"cover":' || coalesce(case when isnan(cover) then null
        else round(greatest(0, least(1, cover)), 6)::varchar end, 'null')
    || ',"peek":' || coalesce(peek, false)
"""

_FILES = """
select file as id, left(head, length(head) - 1) as head from (
    select file, to_json({'id': 'f' || file, 'path': path_text, 'path_bytes': path_code,
        'version': version, 'other_paths': other_text, 'other_path_bytes': other_code,
        'role': role, 'size_bytes': size_bytes, 'deleted': coalesce(deleted, false),
        'lineage': coalesce(lineage, file), 'exact_share':
            case when isnan(exact_share) then null else round(exact_share, 6) end}) as head
    from files join names using (file))
order by file
"""

_EDGES = """
select edge as id, '{"producer":"t' || producer || '","file":"f' || file || '","consumer":"t'
    || consumer || '","bytes":' || coalesce(bytes, 0) || ',"via":"' || via || '","order":"'
    || "order" || '"' as head
from edges order by edge
"""

_GROUPS = """
select "group" as id, '{"id":"g' || "group" || '","pattern":"' || pattern || '","task":"t' || task
    || '","bytes":' || coalesce(bytes, 0) || ',"primary":' || "primary"
    || ',"evidence":' || coalesce(evidence, '{}') as head
from groups order by "group"
"""
_MEMBERS = """
select "group" as key, '"f' || unnest(files) || '"' as line from groups
"""


def write_json(analysis: Analysis) -> Iterator[bytes]:
    """The contract JSON in pieces, one line per task, file, edge and group."""
    from tracehint.analyzer.jsonlines import Grouped, rows
    from tracehint.analyzer.model import ANALYSIS_SCHEMA
    from tracehint.analyzer.sql import connect

    con = connect()
    try:
        con.execute("set preserve_insertion_order = true")
        for name, table in analysis.tables().items():
            con.register(name, table)
        con.register("names", names_table(analysis.files))

        def lines(query: str) -> Grouped:
            table = con.sql(query).to_arrow_table()
            return Grouped(table.column("key"), table.column("line"))

        def labels(key: str, which: str) -> Grouped:
            return lines(_PATTERNS.format(key=key, which=which))

        def side(table: str, own: str) -> Grouped:
            ranges = _RANGES if analysis.options.ranges else ""
            return lines(f"select file as key, {_SIDE.format(own=own, ranges=ranges)} from {table}")

        def section(name: str, query: str, *parts: tuple[str, Grouped]) -> Iterator[bytes]:
            heads = con.sql(query).to_arrow_table()
            yield f',\n"{name}":['.encode()
            yield from rows(heads.column("id"), heads.column("head"), list(parts))
            yield b"]"

        yield json.dumps({"schema": ANALYSIS_SCHEMA, "run": analysis.run}, allow_nan=False)[
            :-1
        ].encode()
        yield from section("tasks", _TASKS)
        yield from section(
            "files", _FILES,
            ("producers", side("producers", _PRODUCER)),
            ("consumers", side("consumers", _CONSUMER)),
            ("patterns", labels("file", "edge is null")),
        )  # fmt: skip
        yield from section("edges", _EDGES, ("patterns", labels("edge", "edge is not null")))
        yield from section("groups", _GROUPS, ("files", lines(_MEMBERS)))
        yield b"}\n"
    finally:
        con.close()


def to_json(analysis: Analysis) -> dict[str, Any]:
    """The contract JSON as Python objects."""
    data: dict[str, Any] = json.loads(b"".join(write_json(analysis)))
    return data


def names_table(files: pa.Table) -> pa.Table:
    """Columns file, path_text, path_code, other_text, other_code (see analyzer.text)."""
    import pyarrow as pa

    from tracehint.analyzer.text import texts

    path_text, path_code = texts(files.column("path"))
    others = files.column("other_paths").combine_chunks()
    if isinstance(others, pa.ChunkedArray):
        others = pa.concat_arrays(others.chunks) if others.num_chunks else pa.array([], others.type)
    text, code = texts(pa.chunked_array([others.flatten()], pa.binary()))
    offsets = _offsets(others)
    return pa.table(
        {
            "file": files.column("file"),
            "path_text": path_text,
            "path_code": path_code,
            "other_text": pa.ListArray.from_arrays(offsets, text.combine_chunks()),
            "other_code": pa.ListArray.from_arrays(offsets, code.combine_chunks()),
        }
    )


def _offsets(lists: pa.ListArray) -> pa.Array:
    """Offsets into the flattened values; a null list is empty."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    sizes = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False)
    return pa.array(np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32))
