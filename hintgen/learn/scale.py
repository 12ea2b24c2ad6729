"""How many readers a file has, from the number of files that its readers write.

A task that reads a table writes something of its own: so the names of the next run tell how many
tasks read the table there, although nothing declares them. Each task that reads a file of the set
S stands for one shape O of which it writes exactly one file. Then

    readers of one file of S = sum over the O: reads / files of O here * files of O there
                               / files of S there
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tracehint.hintgen.learn.shapes import template_of_shape

MAX_TERMS = 32
MAX_READS = 2_000_000  # of shared files, above which nobody counts

Term = tuple[str, float, float]  # template of O, reads per file of O, reads per file of S here

_READS = """
create or replace temp table shared as
select shape, task, count(*) as reads
from (select shape, unnest(consumers) as task from facts where "use" = 'shared')
group by shape, task
"""
# Of several shapes that a task writes one file of, the one that most such tasks write. Shapes are
# numbers, the shortest first.
_WRITES = """
with made as (
  select shape as other, task, count(*) as n
  from (select shape, unnest(producers) as task from facts) group by shape, task
), total as (select shape as other, count(*) as files from facts group by shape
), could as (
  select s.shape, s.task, s.reads, m.other,
         count(*) over (partition by s.shape, m.other) as covered
  from shared s join made m using (task) where m.n = 1
), best as (
  select shape, task, any_value(reads) as reads,
         arg_min(other, (-covered, other)) as other
  from could group by shape, task
)
select s.shape, b.other, sum(s.reads)::bigint as reads, any_value(t.files) as files
from shared s left join best b using (shape, task) left join total t using (other)
group by s.shape, b.other
"""


@dataclass(frozen=True)
class Scales:
    """Of one run: S -> its files, and O (None: no such shape) -> (reads, files of O)."""

    files: dict[bytes, int]
    reads: dict[bytes, dict[bytes | None, tuple[int, int]]]

    def terms(self, shapes: Collection[bytes]) -> tuple[Term, ...]:
        """The sum for the files of these shapes; empty where it cannot be told."""
        own = sum(self.files.get(shape, 0) for shape in shapes)
        reads: dict[bytes | None, int] = defaultdict(int)
        files: dict[bytes | None, int] = {}
        for shape in shapes:
            for other, (count, total) in self.reads.get(shape, {}).items():
                reads[other] += count
                files[other] = total
        if None in reads or not 0 < len(reads) <= MAX_TERMS:
            return ()
        return tuple(
            (template_of_shape(other).text, count / files[other], count / own)
            for other, count in sorted(reads.items())
            if other is not None
        )


NO_SCALES = Scales({}, {})


def scales_of(facts: pa.Table) -> Scales:
    """Scales of a run from its facts with shapes."""
    import duckdb

    shapes, coded = _coded(facts["shape"].combine_chunks())
    con = duckdb.connect()
    con.register(
        "facts", facts.select(["use", "producers", "consumers"]).append_column("shape", coded)
    )
    con.execute(_READS)
    ((many,),) = con.sql("select count(*) from shared").fetchall()
    reads: dict[bytes, dict[bytes | None, tuple[int, int]]] = defaultdict(dict)
    if 0 < many <= MAX_READS:
        for shape, other, count, files in con.sql(_WRITES).fetchall():
            reads[shapes[shape]][None if other is None else shapes[other]] = (count, files or 0)
    rows = con.sql("select shape, count(*) from facts group by shape").fetchall()
    con.close()
    return Scales({shapes[shape]: count for shape, count in rows}, dict(reads))


def _coded(column: pa.Array) -> tuple[list[bytes], pa.Array]:
    """The distinct shapes, the shortest first, and each row's number among them."""
    encoded = column.dictionary_encode()
    found = encoded.dictionary.to_pylist()
    order = sorted(range(len(found)), key=lambda at: (len(found[at]), found[at]))
    rank = np.empty(len(found), np.int64)
    rank[order] = np.arange(len(found))
    return [found[at] for at in order], pa.array(rank[encoded.indices.to_numpy()])
