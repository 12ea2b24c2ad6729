"""The file/task graph as a drawing: folded by task type and file template, or one node for each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracehint.analyzer.catalogue import CATALOGUE
from tracehint.hintgen import query

if TYPE_CHECKING:
    import duckdb

    from tracehint.analyzer.model import Analysis


@dataclass(frozen=True)
class GraphNode:
    """A task, a file, or a fold of `count` of them."""

    id: str
    kind: str  # task, file
    label: str  # visible text: task name or type, path or template
    count: int
    bytes: int  # of the files; for tasks, bytes read and written
    role: str = ""  # files: input, intermediate, output
    pattern: str = ""  # files: the primary label
    confidence: float = 1.0
    saves_bytes: int = 0
    start_s: float | None = None  # tasks
    end_s: float | None = None
    kinds: int = 1  # templates in a fold of files
    type: str = ""  # tasks: the task type


@dataclass(frozen=True)
class Link:
    """Data flow from a task to a file (write) or from a file to a task (read)."""

    source: str
    target: str
    bytes: int
    count: int  # (task, file) pairs
    pattern: str = ""
    via: str = "data"  # data, engine_copy, declared
    peek: bool = False  # only header reads


@dataclass(frozen=True)
class Drawing:
    """A bipartite graph ready to be drawn."""

    nodes: tuple[GraphNode, ...]
    links: tuple[Link, ...]
    folded: bool
    left_out: dict[str, int]  # what is not shown -> count


def title(run: Mapping[str, Any], source: Path | None = None) -> str:
    """Return the command, its program without directories; for imported runs without a command the
    name of the bundle (or its JSON)."""
    program, *arguments = run["command"] or ("",)
    command = " ".join([program.rstrip("/").rpartition("/")[2] or program, *arguments])
    return command or (source.name if source else "") or "a run"


PATTERN_COLOR: dict[str, str] = {p.name: p.color for p in CATALOGUE}
NO_PATTERN = "#8A8A8A"


def color(pattern: str) -> str:
    """Return the pattern's colour; grey for none."""
    return PATTERN_COLOR.get(pattern, NO_PATTERN)


def tint(pattern: str, strength: float = 0.15) -> str:
    """Return the pattern's colour mixed into white, as a background for black text.

    >>> tint("reduce", 1.0), tint("reduce", 0.0)
    ('#0072b2', '#ffffff')
    """
    base = color(pattern)
    parts = (int(base[i : i + 2], 16) for i in (1, 3, 5))
    return "#" + "".join(f"{round(255 + (p - 255) * strength):02x}" for p in parts)


FOLD_ABOVE = 60  # tasks
FOLD_NODES = 120  # tasks plus files: a wider stage is illegible
MAX_FOLDED_TASKS = 80  # task types; above, the rarest share one node
MAX_FOLDED_FILES = 40  # kinds of files; above, kinds of one flow are folded
MAX_FLOWS = 400  # flows; above, files of one role and pattern are folded

# The node of each file by its kind; kinds with equal `by` share a node.
_BY_KIND = """
    CREATE OR REPLACE TABLE file_node AS
      WITH ranked AS (SELECT *, 'f' || dense_rank() OVER (ORDER BY {by}) AS node FROM kind)
      SELECT file, node, template AS label, shape AS kind
      FROM flow JOIN ranked USING (shape, role, maker, user, pattern)"""
# Rows with the same key are one node of the drawing. Keys consist of numbers, so that names from
# the trace cannot collide.
_KEYS = {
    False: """
        CREATE OR REPLACE TABLE task_node AS
          SELECT task, 't' || task AS node, name AS label FROM work;
        CREATE OR REPLACE TABLE file_node AS
          SELECT file, 'f' || file AS node,
                 path_text || CASE WHEN version > 0 THEN ' v' || version ELSE '' END AS label,
                 0 AS kind
          FROM shown;""",
    True: """
        CREATE OR REPLACE TABLE task_node AS
          WITH kind AS (SELECT type, count(*) AS n FROM work GROUP BY type),
               ranked AS (SELECT type, row_number() OVER (ORDER BY n DESC, type) AS rank,
                                 dense_rank() OVER (ORDER BY type) AS number,
                                 count(*) OVER () AS kinds FROM kind),
               kept AS (SELECT type, CASE WHEN kinds <= {types} OR rank < {types} THEN number
                                     ELSE 0 END AS number, kinds FROM ranked)
          SELECT task, 't' || number AS node,
                 CASE WHEN number = 0 THEN kinds - {types} + 1 || ' other types' ELSE type END
                 AS label FROM work JOIN kept USING (type);
        CREATE OR REPLACE TABLE node_set AS
          WITH drawn AS (SELECT DISTINCT type, node FROM task_node JOIN work USING (task))
          SELECT number, list_sort(list(DISTINCT node)) AS nodes
          FROM (SELECT number, unnest(words) AS type FROM type_words) JOIN drawn USING (type)
          GROUP BY number;
        CREATE OR REPLACE TABLE flow AS
          SELECT s.file, s.shape, s.role, coalesce(t.made, -1) AS maker,
                 coalesce(t.used, -1) AS user, coalesce(l.pattern, '') AS pattern
          FROM shown s LEFT JOIN type_set t USING (file)
               LEFT JOIN (SELECT file, min(pattern) AS pattern FROM label GROUP BY file) l
               USING (file);
        CREATE OR REPLACE TABLE kind AS
          SELECT k.*, m.nodes AS made, u.nodes AS used, f.template
          FROM (SELECT DISTINCT shape, role, maker, user, pattern FROM flow) k
               JOIN (SELECT shape, any_value(template) AS template FROM shown GROUP BY shape) f
               USING (shape) LEFT JOIN node_set m ON m.number = k.maker
               LEFT JOIN node_set u ON u.number = k.user;
        """
    + _BY_KIND.format(by="template, made, used, pattern"),
}
_SHOWN = """
    CREATE OR REPLACE VIEW label AS SELECT file, pattern, confidence, saves_bytes FROM patterns
      WHERE edge IS NULL AND "primary";
    CREATE OR REPLACE VIEW shown AS SELECT * FROM files WHERE role NOT IN ('software', 'scratch')
      AND file IN (SELECT file FROM type_set);"""
# Coarser folding of too many kinds: (maximum number of nodes, columns of the coarser node).
_COARSER_FOLDS = ((MAX_FOLDED_FILES, "made, used, pattern"), (MAX_FLOWS, "role, pattern"))

_TASKS = """
    SELECT n.node AS id, 'task' AS kind, coalesce(nullif(min(n.label), ''), '?') AS label,
           coalesce(min(t.type), '') AS type, count(*) AS count,
           min(t.start_s) AS start_s, max(t.end_s) AS end_s,
           coalesce(sum(io.bytes), 0)::BIGINT AS bytes
    FROM task_node n JOIN tasks t USING (task)
    LEFT JOIN (SELECT task, sum(bytes) AS bytes FROM
                 (SELECT task, bytes FROM producers UNION ALL SELECT task, bytes FROM consumers)
               GROUP BY task) io USING (task)
    GROUP BY n.node ORDER BY min(t.start_s), n.node"""
_FILES = """
    SELECT n.node AS id, 'file' AS kind, coalesce(nullif(min(n.label), ''), '?') AS label,
           count(DISTINCT n.kind) AS kinds,
           count(DISTINCT s.named) AS count, coalesce(sum(s.size_bytes), 0)::BIGINT AS bytes,
           mode(s.role ORDER BY s.role) AS role,
           coalesce(mode(l.pattern ORDER BY l.pattern), '') AS pattern,
           coalesce(avg(l.confidence), 1.0) AS confidence,
           coalesce(sum(l.saves_bytes), 0)::BIGINT AS saves_bytes
    FROM file_node n JOIN shown s USING (file) LEFT JOIN label l USING (file)
    GROUP BY n.node ORDER BY n.node"""
LINKS = """
    WITH raw AS (
      SELECT t.node AS source, f.node AS target, p.bytes, f.file,
             CASE WHEN p.how = ['engine_copy'] THEN 'engine_copy' ELSE 'data' END AS via,
             false AS peek
      FROM producers p JOIN task_node t USING (task) JOIN file_node f USING (file)
      WHERE NOT coalesce(p.superseded, false)
      UNION ALL
      SELECT f.node, t.node, c.bytes, f.file, 'data', c.peek
      FROM consumers c JOIN task_node t USING (task) JOIN file_node f USING (file)
      UNION ALL
      SELECT f.node, t.node, e.bytes, f.file, e.via, false
      FROM edges e JOIN task_node t ON t.task = e.consumer JOIN file_node f USING (file)
      WHERE e.via <> 'data' AND NOT EXISTS
        (FROM consumers c WHERE c.file = e.file AND c.task = e.consumer)),
         part AS (SELECT source, target, via, l.pattern, sum(bytes)::BIGINT AS bytes,
                         count(*) AS count, bool_and(peek) AS peek
                  FROM raw LEFT JOIN label l USING (file) GROUP BY ALL)
    SELECT source, target, via, sum(bytes)::BIGINT AS bytes, sum(count)::BIGINT AS count,
           coalesce(arg_min(pattern, (-count, pattern)) FILTER (pattern IS NOT NULL), '')
           AS pattern, bool_and(peek) AS peek
    FROM part GROUP BY source, target, via"""
_LEFT_OUT = """
    SELECT (SELECT count(*) FROM tasks WHERE engine) AS engine_tasks,
           (SELECT count(*) FROM files WHERE role = 'software') AS software_files,
           (SELECT count(*) FROM files WHERE role = 'scratch') AS scratch_files"""


def lean(analysis: Analysis) -> Analysis:
    """Return the run without ranges and edge labels: much of a large run, unused in drawings."""
    import pyarrow.compute as pc

    own = analysis.patterns.filter(pc.is_null(analysis.patterns.column("edge")))
    used = {
        name: getattr(analysis, name).drop_columns(["ranges"])
        for name in ("producers", "consumers")
    }
    return replace(analysis, patterns=own, **used)


def build(
    analysis: Analysis, fold: bool | None = None, con: duckdb.DuckDBPyConnection | None = None
) -> Drawing:
    """Return the drawing of a run. `fold` None: folded if there are more than FOLD_ABOVE tasks or
    more than FOLD_NODES tasks and files. `con`: an open connection of query.connect."""
    con = con or query.connect(analysis)
    if fold is None:
        tasks, files = con.execute(
            """SELECT (SELECT count(*) FROM tasks WHERE NOT engine),
                      (SELECT count(*) FROM files WHERE role NOT IN ('software', 'scratch'))"""
        ).fetchone() or (0, 0)
        fold = tasks > FOLD_ABOVE or tasks + files > FOLD_NODES
    return build_on(con, fold)


def build_on(con: duckdb.DuckDBPyConnection, fold: bool) -> Drawing:
    """Return the drawing from the tables of query.connect; adds task_node and file_node, which map
    tasks and files to nodes."""
    make_nodes(con, fold)
    left_out = {name: n for name, n in query.rows(con, _LEFT_OUT)[0].items() if n}
    return Drawing(tuple(nodes_of(con)), tuple(links_of(con)), fold, left_out)


def make_nodes(con: duckdb.DuckDBPyConnection, fold: bool) -> None:
    """Create task_node and file_node, which map tasks and files to nodes, and task_drawn and
    file_drawn: the nodes in order, with the columns of GraphNode."""
    con.execute(_SHOWN)
    con.execute(_KEYS[fold].format(types=MAX_FOLDED_TASKS))
    for most, by in _COARSER_FOLDS if fold else ():
        row = con.execute("SELECT count(DISTINCT node) FROM file_node").fetchone()
        if row and row[0] > most:
            con.execute(_BY_KIND.format(by=by))
    con.execute(f"CREATE OR REPLACE TABLE task_drawn AS {_TASKS}")
    con.execute(f"CREATE OR REPLACE TABLE file_drawn AS {_FILES}")
    for name in ("flow", "kind", "node_set") if fold else ():
        con.execute(f"DROP TABLE {name}")


def nodes_of(con: duckdb.DuckDBPyConnection) -> Iterator[GraphNode]:
    """Yield the nodes of make_nodes, tasks first; another query on `con` ends the iteration."""
    for kind in ("task", "file"):
        yield from (GraphNode(**row) for row in query.each(con, f"FROM {kind}_drawn"))


def links_of(con: duckdb.DuckDBPyConnection) -> Iterator[Link]:
    """Yield the links between these nodes, sorted by their ends."""
    order = "SELECT * FROM link ORDER BY source, target, via"
    return (Link(**r) for r in query.each(con, f"WITH link AS ({LINKS}) {order}"))
