"""Workflow Run RO-Crate, Process Run profile: one CreateAction per task.

The crate is detached: it describes the files and holds none of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracehint.hintgen import export, query
from tracehint.hintgen.text.escape import text
from tracehint.version import __version__

if TYPE_CHECKING:
    import duckdb

    from tracehint.hintgen.inputs import Input

COLUMNS = {
    "tasks": "task name type command host start_s end_s exit_status engine",
    "files": "file version path role size_bytes",
    "producers": "file task superseded",
    "consumers": "file task",
}

_CONTEXT = [
    "https://w3id.org/ro/crate/1.1/context",
    "https://w3id.org/ro/terms/workflow-run/context",
]
_PROFILE = "https://w3id.org/ro/wfrun/process/0.5"
_HEAD = (
    {
        "@id": "ro-crate-metadata.json",
        "@type": "CreativeWork",
        "about": {"@id": "./"},
        "conformsTo": [{"@id": "https://w3id.org/ro/crate/1.1"}],
    },
    {"@id": _PROFILE, "@type": "CreativeWork", "name": "Process Run Crate", "version": "0.5"},
)
_FILES = """
    SELECT to_json({'@id': '#f' || file, '@type': 'CreativeWork', 'name': path_text,
                    'version': version::VARCHAR, 'contentSize': coalesce(size_bytes, 0)::VARCHAR,
                    'description': role})::VARCHAR
    FROM files WHERE data ORDER BY file"""
_PROGRAMS = """
    SELECT to_json({'@id': '#p' || dense_rank() OVER (ORDER BY type),
                    '@type': 'SoftwareApplication', 'name': type})::VARCHAR
    FROM (SELECT DISTINCT type FROM tasks WHERE NOT engine)"""
_ACTIONS = """
    WITH r AS (SELECT task, list({'@id': '#f' || file} ORDER BY file) AS files
               FROM (SELECT DISTINCT task, file FROM consumers JOIN files USING (file) WHERE data)
               GROUP BY task),
         w AS (SELECT task, list({'@id': '#f' || file} ORDER BY file) AS files
               FROM (SELECT DISTINCT task, file FROM producers JOIN files USING (file)
                     WHERE data AND NOT superseded) GROUP BY task),
         p AS (SELECT type, dense_rank() OVER (ORDER BY type) AS n
               FROM (SELECT DISTINCT type FROM tasks WHERE NOT engine))
    SELECT to_json({'@id': '#t' || t.task, '@type': 'CreateAction', 'name': coalesce(t.name, ''),
        'description': coalesce(t.command, ''), 'instrument': {'@id': '#p' || p.n},
        'actionStatus': {'@id': 'http://schema.org/' || CASE WHEN coalesce(exit_status, 0) = 0
                         THEN 'CompletedActionStatus' ELSE 'FailedActionStatus' END},
        'startTime': strftime('$start'::TIMESTAMP + to_microseconds(
            (coalesce(start_s, 0) * 1e6)::BIGINT), '%Y-%m-%dT%H:%M:%S.%f') || 'Z',
        'endTime': strftime('$start'::TIMESTAMP + to_microseconds(
            (coalesce(end_s, start_s, 0) * 1e6)::BIGINT), '%Y-%m-%dT%H:%M:%S.%f') || 'Z',
        'object': coalesce(r.files, []), 'result': coalesce(w.files, [])})::VARCHAR
    FROM tasks t JOIN p USING (type) LEFT JOIN r USING (task) LEFT JOIN w USING (task)
    WHERE NOT engine ORDER BY t.task"""
_ABOUT = """
    SELECT to_json({{'@id': '#{letter}' || {key}}})::VARCHAR FROM {table} WHERE {where}
    ORDER BY {key}"""


def write(run: Input, target: Path, name: str) -> None:
    """Write `ro-crate-metadata.json` to the directory."""
    _ = name
    con = query.connect_plain(run.analysis)
    export.write(target / "ro-crate-metadata.json", _document(run.analysis.run, con))


def _document(run: dict[str, Any], con: duckdb.DuckDBPyConnection) -> Iterator[str]:
    title = text(" ".join(run["command"])) or "run"
    tasks = _ABOUT.format(letter="t", key="task", table="tasks", where="NOT engine")
    files = _ABOUT.format(letter="f", key="file", table="files", where="data")
    yield f'{{"@context": {json.dumps(_CONTEXT)}, "@graph": [\n'
    yield from export.join_with_commas(json.dumps(entity) for entity in _HEAD)
    root = {
        "@id": "./",
        "@type": "Dataset",
        "name": title[:200],
        "datePublished": run["started"],
        "description": f"Tasks and files of a run, observed by tracehint {__version__}",
        "license": "No licence is stated for the described files",
        "conformsTo": {"@id": _PROFILE},
    }
    yield ",\n" + json.dumps(root)[:-1] + ', "mentions": ['
    yield from export.join_with_commas(export.rows(con, tasks))
    # The files are not part of the crate, so they are listed by `about`.
    yield '], "about": ['
    yield from export.join_with_commas(export.rows(con, files))
    yield "]}"
    start = export.timestamp(run["started"])
    for sql in (_PROGRAMS, _FILES, _ACTIONS.replace("$start", start)):
        for row in export.rows(con, sql):
            yield ",\n" + row
    yield "\n]}\n"
