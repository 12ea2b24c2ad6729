"""Which type of task reads a file last, whatever the timing.

That is known where all readers are of one type, or where the reader that was last depends,
through the files of the run, on every reader of another type. Readers that know nothing of each
other end in any order: there is no last one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb

# A reader that only peeks does not count, unless all do.
_READERS = """
CREATE OR REPLACE TEMP TABLE whole_reader AS
  SELECT file, task, type, last_s FROM readers
  WHERE NOT coalesce(peek, false)
     OR file NOT IN (SELECT file FROM readers WHERE NOT coalesce(peek, false));
CREATE OR REPLACE TEMP TABLE last_of AS
  SELECT file, arg_max(task, (coalesce(last_s, -1), task)) AS task,
         arg_max(type, (coalesce(last_s, -1), task)) AS type, count(DISTINCT type) AS types
  FROM whole_reader GROUP BY file;
CREATE OR REPLACE TEMP TABLE before_last AS
  SELECT DISTINCT l.file, r.task AS reader, l.task AS last
  FROM last_of l JOIN whole_reader r USING (file) WHERE l.types > 1 AND r.type <> l.type;
"""
_PAIRS = """
SELECT DISTINCT reader, last FROM before_last b
WHERE NOT EXISTS (FROM edges e WHERE e.producer = b.reader AND e.consumer = b.last)
"""
_RESULT = """
CREATE OR REPLACE TEMP TABLE last_reader AS
  SELECT file, type FROM last_of WHERE file NOT IN (
    SELECT file FROM before_last JOIN free_pair USING (reader, last))
"""


def add_last_reader(con: duckdb.DuckDBPyConnection) -> None:
    """Make `last_reader` (file, type): files without a certain last reader are not in it.

    `con` has the views of hintgen/relation.py. Pairs that a graph is too large to order count as
    independent.
    """
    import pyarrow as pa

    from tracehint.analyzer.arrays import ints
    from tracehint.hintgen.reach import Reach

    con.execute(_READERS)
    pairs = con.sql(_PAIRS).to_arrow_table()
    if pairs.num_rows:
        links = con.execute("SELECT DISTINCT producer, consumer FROM edges").fetchnumpy()
        reach = Reach(ints(links["producer"]), ints(links["consumer"]))
        sides = (pairs.column(name).to_numpy() for name in ("reader", "last"))
        unordered, unknown = reach.split(*sides)
        pairs = pairs.filter(pa.array(unordered | unknown))
    con.register("free_pair", pairs)
    con.execute(_RESULT)
    con.unregister("free_pair")
