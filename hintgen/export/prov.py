"""W3C PROV as PROV-JSON: tasks are activities, file versions entities, hosts locations."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracehint.hintgen import export, query

if TYPE_CHECKING:
    import duckdb

    from tracehint.hintgen.inputs import Input

COLUMNS = {
    "tasks": "task name type command host start_s end_s attempt engine",
    "files": "file version path role size_bytes",
    "producers": "file task unique_bytes superseded",
    "consumers": "file task unique_bytes",
    "edges": "producer consumer",
}

_PREFIX = {"run": "urn:tracehint:run:", "th": "urn:tracehint:terms:"}
_INT = "{{'$': {0}::VARCHAR, 'type': 'xsd:long'}}"


def _int(column: str) -> str:
    return _INT.format(column)


# section -> SQL for its members, each `"id": {...}`
_SECTIONS = {
    "entity": f"""
        SELECT '"run:f' || file || '": ' || to_json({{
            'prov:label': path_text, 'th:role': role, 'th:version': {_int("version")},
            'th:bytes': {_int("coalesce(size_bytes, 0)")}}})
        FROM files WHERE data ORDER BY file""",
    "activity": f"""
        SELECT '"run:t' || task || '": ' || to_json({{
            'prov:startTime': strftime($start::TIMESTAMP + to_microseconds(
                (coalesce(start_s, 0) * 1e6)::BIGINT), '%Y-%m-%dT%H:%M:%S.%f') || 'Z',
            'prov:endTime': strftime($start::TIMESTAMP + to_microseconds(
                (coalesce(end_s, start_s, 0) * 1e6)::BIGINT), '%Y-%m-%dT%H:%M:%S.%f') || 'Z',
            'prov:label': coalesce(name, ''), 'prov:type': coalesce(type, ''),
            'th:command': coalesce(command, ''), 'th:host': coalesce(host, ''),
            'th:attempt': {_int("coalesce(attempt, 1)")}}})
        FROM tasks WHERE NOT engine ORDER BY task""",
    "used": f"""
        SELECT '"_:u' || row_number() OVER () || '": ' || to_json({{
            'prov:activity': 'run:t' || task, 'prov:entity': 'run:f' || file,
            'th:bytes': {_int("unique_bytes")}}})
        FROM consumers JOIN tasks USING (task) JOIN files USING (file)
        WHERE NOT engine AND data ORDER BY task, file""",
    "wasGeneratedBy": f"""
        SELECT '"_:g' || row_number() OVER () || '": ' || to_json({{
            'prov:entity': 'run:f' || file, 'prov:activity': 'run:t' || task,
            'th:bytes': {_int("unique_bytes")}}})
        FROM producers JOIN tasks USING (task) JOIN files USING (file)
        WHERE NOT engine AND data AND NOT superseded ORDER BY task, file""",
    "wasInformedBy": """
        SELECT '"_:i' || row_number() OVER () || '": ' || to_json({
            'prov:informed': 'run:t' || consumer, 'prov:informant': 'run:t' || producer})
        FROM (SELECT DISTINCT producer, consumer FROM edges) ORDER BY producer, consumer""",
}


def write(run: Input, target: Path) -> None:
    """Write one JSON file."""
    con = query.connect_plain(run.analysis)
    export.write(target, _document(run.analysis.run, con))


def _document(run: dict[str, Any], con: duckdb.DuckDBPyConnection) -> Iterator[str]:
    start = export.timestamp(run["started"])
    yield f'{{"prefix": {json.dumps(_PREFIX)}'
    for section, sql in _SECTIONS.items():
        yield f',\n"{section}": {{\n'
        yield from export.join_with_commas(export.rows(con, sql.replace("$start", f"'{start}'")))
        yield "\n}"
    yield "}\n"
