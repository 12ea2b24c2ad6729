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
    import duckdb
    import pyarrow as pa

    from tracehint.analyzer.model import Analysis

__all__ = ["from_json", "to_json", "write_json"]

_TASKS = """
select task, to_json({'id': 't' || task, 'name': coalesce(name, ''), 'type': coalesce(type, ''),
    'command': coalesce(command, ''), 'host': coalesce(host, ''), 'site': coalesce(site, ''),
    'start_s': round(coalesce(start_s, 0), 6), 'end_s': round(end_s, 6),
    'exit_status': exit_status, 'attempt': coalesce(attempt, 1),
    'processes': coalesce(processes, 0), 'engine': coalesce(engine, false),
    'source': coalesce(source, 'observed')}) as line
from tasks order by task
"""

_PATTERNS = """
create temp table pattern_json as
select file, edge, string_agg('{"pattern":"' || pattern || '","primary":' || "primary"
    || ',"confidence":' || round(greatest(0, least(1, confidence)), 4)
    || ',"group":' || coalesce('"g' || "group" || '"', 'null')
    || ',"evidence":' || coalesce(evidence, '{}')
    || ',"choice":{"placement":' || to_json(coalesce(placement, 'default'))
    || ',"saves_bytes":' || coalesce(saves_bytes, 0)
    || ',"saves_wait_bytes":' || coalesce(saves_wait_bytes, 0)
    || ',"runner_up":' || to_json(coalesce(runner_up, 'default'))
    || ',"runner_up_saves_bytes":' || coalesce(runner_up_saves_bytes, 0)
    || '}}', ',' order by "primary" desc, pattern, "group") as patterns
from patterns group by file, edge
"""

_SIDES = """
create temp table producer_json as
select file, string_agg(to_json({{'task': 't' || task, 'bytes': coalesce(bytes, 0),
    'unique_bytes': coalesce(unique_bytes, 0), 'owned_bytes': coalesce(owned_bytes, 0),
    {ranges} 'how': coalesce(how, []), 'superseded': coalesce(superseded, false),
    'first_s': round(first_s, 6), 'last_s': round(last_s, 6)}}), ',' order by task) as line
from producers group by file;
create temp table consumer_json as
select file, string_agg(to_json({{'task': 't' || task, 'bytes': coalesce(bytes, 0),
    'unique_bytes': coalesce(unique_bytes, 0),
    'cover': case when isnan(cover) then null else round(greatest(0, least(1, cover)), 6) end,
    'peek': coalesce(peek, false), {ranges} 'how': coalesce(how, []),
    'first_s': round(first_s, 6), 'last_s': round(last_s, 6)}}), ',' order by task) as line
from consumers group by file
"""

_FILES = """
select file, left(head, length(head) - 1)
    || ',"producers":[' || coalesce(p.line, '') || '],"consumers":[' || coalesce(c.line, '')
    || '],"patterns":[' || coalesce(x.patterns, '') || ']}' as line
from (
    select file, to_json({'id': 'f' || file, 'path': path_text, 'path_bytes': path_code,
        'version': version, 'other_paths': other_text, 'other_path_bytes': other_code,
        'role': role, 'size_bytes': size_bytes, 'deleted': coalesce(deleted, false),
        'lineage': coalesce(lineage, file), 'exact_share':
            case when isnan(exact_share) then null else round(exact_share, 6) end}) as head
    from files join names using (file)) f
left join producer_json p using (file) left join consumer_json c using (file)
left join (select file, patterns from pattern_json where edge is null) x using (file)
order by file
"""

_EDGES = """
select edge, '{"producer":"t' || producer || '","file":"f' || file || '","consumer":"t' || consumer
    || '","bytes":' || coalesce(bytes, 0) || ',"via":"' || via || '","order":"' || "order"
    || '","patterns":[' || coalesce(patterns, '') || ']}' as line
from edges left join (select edge, patterns from pattern_json where edge is not null) using (edge)
order by edge
"""

_GROUPS = """
with members as (
    select "group", string_agg('"f' || f || '"', ',' order by f) as files
    from (select "group", unnest(files) as f from groups) group by "group")
select "group", '{"id":"g' || "group" || '","pattern":"' || pattern || '","task":"t' || task
    || '","files":[' || coalesce(members.files, '') || '],"bytes":' || coalesce(bytes, 0)
    || ',"primary":' || "primary" || ',"evidence":' || coalesce(evidence, '{}') || '}' as line
from groups left join members using ("group") order by "group"
"""

_SECTIONS = (("tasks", _TASKS), ("files", _FILES), ("edges", _EDGES), ("groups", _GROUPS))


def write_json(analysis: Analysis) -> Iterator[bytes]:
    """The contract JSON in pieces, one line per task, file, edge and group."""
    from tracehint.analyzer.model import ANALYSIS_SCHEMA
    from tracehint.analyzer.sql import connect

    con = connect()
    try:
        for name, table in analysis.tables().items():
            con.register(name, table)
        con.register("names", names_table(analysis.files))
        con.execute(_PATTERNS)
        con.execute(_SIDES.format(ranges="'ranges': ranges," if analysis.options.ranges else ""))
        head = {"schema": ANALYSIS_SCHEMA, "run": analysis.run}
        yield json.dumps(head, allow_nan=False)[:-1].encode()
        for name, query in _SECTIONS:
            yield f',\n"{name}":['.encode()
            yield from _lines(con, query)
            yield b"]"
        yield b"}\n"
    finally:
        con.close()


def to_json(analysis: Analysis) -> dict[str, Any]:
    """The contract JSON as Python objects."""
    data: dict[str, Any] = json.loads(b"".join(write_json(analysis)))
    return data


def _lines(con: duckdb.DuckDBPyConnection, query: str) -> Iterator[bytes]:
    """The column `line`, comma separated, in pieces of some thousand rows."""
    first = True
    for chunk in con.sql(query).to_arrow_table().column("line").chunks:
        for start in range(0, len(chunk), 1 << 13):
            lines = chunk.slice(start, 1 << 13).to_pylist()
            yield ("\n" if first else ",\n").encode() + ",\n".join(lines).encode()
            first = False


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
