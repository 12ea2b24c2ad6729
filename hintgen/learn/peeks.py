"""Who only looks into a file: readers that an engine's graph declares and that read little.

A table of images reads their headers, and the graph names it as a reader of every image like
the task that reads them whole. Labels leave such readers aside (docs/patterns.md, peeks);
the graph of the next run has to be read in the same way, or a reduce becomes a broadcast.
"""

from __future__ import annotations

from collections.abc import Sequence

from tracehint.analyzer.model import Analysis
from tracehint.hintgen import relation

Pairs = frozenset[tuple[str, str]]  # (producing type, "" for inputs; consuming type)

# Files that all readers only peek into have no other reader: there the peeks decide.
_PAIRS = """
with read as (select file from readers where not coalesce(peek, false)),
used as (
  select file, type, coalesce(peek, false) as peek, file not in (from read) as all_peek
  from readers
)
select coalesce(made.type, '') as maker, used.type as reader
from used left join (select distinct file, type from writers) made using (file)
group by all having bool_and(peek and not all_peek)
"""


def peeks_of(analysis: Analysis) -> Pairs:
    """Pairs of types of which every reader only peeked, beside others that did not."""
    import duckdb
    import pyarrow.compute as pc

    if not pc.any(analysis.consumers["peek"]).as_py():
        return frozenset()
    con = duckdb.connect()
    for name in ("tasks", "producers", "consumers"):
        con.register(name, analysis.tables()[name])
    con.execute(relation.VIEWS)
    rows = con.sql(_PAIRS).fetchall()
    con.close()
    return frozenset((maker, reader) for maker, reader in rows if reader is not None)


def agreed(found: Sequence[Pairs]) -> tuple[tuple[str, str], ...]:
    """What all runs agree on, sorted."""
    return tuple(sorted(frozenset.intersection(*found))) if found else ()
