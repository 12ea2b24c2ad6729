"""The unfolded file/task graph as GraphML, made by SQL: networkx needs all of it in memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import MISSING, Field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracehint.hintgen import export, query
from tracehint.hintgen.report.drawing import LINKS, GraphNode, Link, lean, make_nodes

if TYPE_CHECKING:
    import duckdb

    from tracehint.hintgen.inputs import Input

_TYPES = {"str": "string", "int": "long", "bool": "boolean", "float": "double"}
_TYPES["float | None"] = "double"
_ENDS = ("id", "source", "target")
_MACRO = """
    CREATE MACRO data(key, value) AS coalesce('<data key="' || key || '">' || replace(replace(
        replace(value::VARCHAR, '&', '&amp;'), '<', '&lt;'), '>', '&gt;') || '</data>', '')"""
_NODES = "(FROM task_drawn UNION ALL BY NAME FROM file_drawn)"
# of several links between two nodes, the last is written, as in graph_export.to_networkx
_BETWEEN = f"""(SELECT * FROM ({LINKS})
    QUALIFY row_number() OVER (PARTITION BY source, target ORDER BY via DESC) = 1
    ORDER BY source, target)"""


def write(run: Input, target: Path) -> None:
    """Write one XML file."""
    analysis = lean(run.analysis)
    tasks = analysis.tasks
    for name in ("name", "type"):  # paths are visible text already
        shown = query.text_column(tasks[name])
        tasks = tasks.set_column(tasks.column_names.index(name), name, shown)
    con = query.connect(replace(analysis, tasks=tasks))
    make_nodes(con, fold=False)
    con.execute(_MACRO)
    export.write(target, _document(con))


def _document(con: duckdb.DuckDBPyConnection) -> Iterator[str]:
    yield "<?xml version='1.0' encoding='utf-8'?>\n"
    yield '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n'
    yield '  <key id="folded" for="graph" attr.name="folded" attr.type="boolean" />\n'
    for kind, record in (("node", GraphNode), ("edge", Link)):
        for field in _data_of(record):
            name, type_ = field.name, _TYPES[str(field.type)]
            yield f'  <key id="{kind}_{name}" for="{kind}" attr.name="{name}" '
            yield f'attr.type="{type_}" />\n'
    yield '  <graph edgedefault="directed">\n    <data key="folded">false</data>\n'
    yield from _elements(con, "node", "id=\"' || id || '\"", GraphNode, _NODES)
    ends = "source=\"' || source || '\" target=\"' || target || '\""
    yield from _elements(con, "edge", ends, Link, _BETWEEN)
    yield "  </graph>\n</graphml>\n"


def _data_of(record: type) -> list[Field[Any]]:
    return [field for field in fields(record) if field.name not in _ENDS]


def _elements(
    con: duckdb.DuckDBPyConnection, kind: str, ends: str, record: type, table: str
) -> Iterator[str]:
    """Yield the nodes or edges of a table, without nulls. `ends`: the XML attributes, in SQL."""
    data = []
    for field in _data_of(record):
        value = field.name
        if field.default not in (MISSING, None):
            value = f"coalesce({value}, {field.default!r})"
        data.append(f"data('{kind}_{field.name}', {value})")
    sql = f"SELECT '    <{kind} {ends}>' || {' || '.join(data)} || '</{kind}>' FROM {table}"
    for batch in query.arrow_batches(con, sql):
        yield "\n".join(batch.column(0).to_pylist()) + "\n"
