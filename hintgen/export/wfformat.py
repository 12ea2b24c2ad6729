"""WfFormat 1.5, the exchange format of WfCommons: tasks, files, dependencies, execution.

Its identifiers consist of letters, digits, `-`, `_` and `.`: other characters of
a path become `_`, with the file's number appended if the result is not unique.
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
    "tasks": "task name type command host start_s end_s engine",
    "files": "file version path role size_bytes",
    "producers": "file task bytes superseded",
    "consumers": "file task bytes",
    "edges": "producer consumer",
}

_IDS = """
    CREATE TEMP TABLE tid AS
      SELECT task, regexp_replace(left(type, 60), '[^0-9A-Za-z._-]', '_', 'g') || '_ID'
             || lpad((row_number() OVER (ORDER BY start_s, task))::VARCHAR, 6, '0') AS id
      FROM tasks WHERE NOT engine;
    CREATE TEMP TABLE fid AS
      WITH named AS (SELECT file, regexp_replace(path_text, '[^0-9A-Za-z._-]', '_', 'g')
                            || CASE WHEN version > 0 THEN '.v' || version ELSE '' END AS base
                     FROM files WHERE data)
      SELECT file, CASE WHEN count(*) OVER (PARTITION BY base) > 1 OR base = ''
                        THEN base || '_f' || file ELSE base END AS id FROM named;
    CREATE TEMP TABLE link AS
      SELECT DISTINCT producer AS parent, consumer AS child FROM edges
      WHERE producer IN (SELECT task FROM tid) AND consumer IN (SELECT task FROM tid)
        AND producer <> consumer;"""
_SPECIFICATION = """
    WITH up AS (SELECT l.child AS task, list(t.id ORDER BY t.id) AS ids
                FROM link l JOIN tid t ON t.task = l.parent GROUP BY 1),
         down AS (SELECT l.parent AS task, list(t.id ORDER BY t.id) AS ids
                  FROM link l JOIN tid t ON t.task = l.child GROUP BY 1),
         r AS (SELECT task, list(DISTINCT id ORDER BY id) AS ids
               FROM consumers JOIN fid USING (file) GROUP BY task),
         w AS (SELECT task, list(DISTINCT id ORDER BY id) AS ids
               FROM producers JOIN fid USING (file) WHERE NOT superseded GROUP BY task)
    SELECT to_json({'name': CASE WHEN coalesce(t.name, '') = '' THEN tid.id ELSE t.name END,
                    'id': tid.id, 'parents': coalesce(up.ids, []),
                    'children': coalesce(down.ids, []), 'inputFiles': coalesce(r.ids, []),
                    'outputFiles': coalesce(w.ids, [])})::VARCHAR
    FROM tid JOIN tasks t USING (task) LEFT JOIN up USING (task) LEFT JOIN down USING (task)
         LEFT JOIN r USING (task) LEFT JOIN w USING (task) ORDER BY tid.id"""
_FILES = """
    SELECT to_json({'id': id, 'sizeInBytes': coalesce(size_bytes, 0)})::VARCHAR
    FROM fid JOIN files USING (file) ORDER BY file"""
_EXECUTION = """
    WITH r AS (SELECT task, sum(bytes)::BIGINT AS n FROM consumers GROUP BY task),
         w AS (SELECT task, sum(bytes)::BIGINT AS n FROM producers GROUP BY task)
    SELECT to_json({'id': tid.id,
                    'runtimeInSeconds': round(greatest(0, coalesce(end_s, start_s) - start_s), 6),
                    'command': {'program': CASE WHEN t.type = '' THEN 'unknown' ELSE t.type END,
                                'arguments': CASE WHEN coalesce(t.command, '') = ''
                                             THEN []::VARCHAR[] ELSE [t.command] END},
                    'readBytes': coalesce(r.n, 0), 'writtenBytes': coalesce(w.n, 0),
                    'machines': [CASE WHEN host = '' THEN 'unknown' ELSE host END]})::VARCHAR
    FROM tid JOIN tasks t USING (task) LEFT JOIN r USING (task) LEFT JOIN w USING (task)
    ORDER BY tid.id"""
_MACHINES = """
    SELECT DISTINCT to_json({'nodeName': CASE WHEN host = '' THEN 'unknown' ELSE host END})::VARCHAR
    FROM tasks JOIN tid USING (task) ORDER BY 1"""


def write(run: Input, target: Path) -> None:
    """Write one JSON file."""
    con = query.connect_plain(run.analysis)
    con.execute(_IDS)
    _cut_cycles(con)
    export.write(target, _document(run.analysis.run, con))


def _document(run: dict[str, Any], con: duckdb.DuckDBPyConnection) -> Iterator[str]:
    head = {
        "name": text(" ".join(run["command"]))[:200] or "run",
        "description": "Observed by tracehint: files and bytes as the tasks read and wrote them",
        "createdAt": run["started"],
        "schemaVersion": "1.5",
        "runtimeSystem": {"name": "tracehint", "version": __version__},
    }
    execution = {"makespanInSeconds": run["duration_s"], "executedAt": run["started"] or "unknown"}
    yield json.dumps(head)[:-1] + ',\n"workflow": {"specification": {"tasks": [\n'
    yield from export.join_with_commas(export.rows(con, _SPECIFICATION))
    yield '\n], "files": [\n'
    yield from export.join_with_commas(export.rows(con, _FILES))
    yield "\n]}, " + f'"execution": {json.dumps(execution)[:-1]}, "tasks": [\n'
    yield from export.join_with_commas(export.rows(con, _EXECUTION))
    yield '\n], "machines": ['
    yield from export.join_with_commas(export.rows(con, _MACHINES))
    yield "]}}}\n"


def _cut_cycles(con: duckdb.DuckDBPyConnection) -> None:
    """Remove backward links from cycles of tasks: tasks that feed each other have no order."""
    ((backward,),) = con.execute(
        """SELECT count(*) FROM link JOIN tasks p ON p.task = parent JOIN tasks c ON c.task = child
           WHERE (p.start_s, p.task) >= (c.start_s, c.task)"""
    ).fetchall()
    if not backward:
        return
    import networkx as nx

    graph: nx.DiGraph[int] = nx.DiGraph(con.execute("SELECT parent, child FROM link").fetchall())
    cycles = [c for c in nx.strongly_connected_components(graph) if len(c) > 1]
    con.execute("CREATE TEMP TABLE knot (task BIGINT, knot BIGINT)")
    for number, knot in enumerate(cycles):
        con.execute("INSERT INTO knot SELECT unnest($1::BIGINT[]), $2", [list(knot), number])
    con.execute(
        """DELETE FROM link USING knot a, knot b, tasks p, tasks c
           WHERE a.task = link.parent AND b.task = link.child AND a.knot = b.knot
             AND p.task = link.parent AND c.task = link.child
             AND (p.start_s, p.task) >= (c.start_s, c.task)"""
    )
