"""The label of each file version, and the regions of files that are used in parts."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tracehint.analyzer.arrays import order_by, starts_of
from tracehint.analyzer.columns import column, floats
from tracehint.analyzer.model import Analysis

# From what scatter readers read, or gather writers wrote.
_REGIONS = """
with r as (
  select c.file, unnest(c.ranges) as r from consumers c join label using (file)
  where pattern = 'scatter' and not coalesce(c.peek, false)
  union all
  select p.file, unnest(p.ranges) as r from producers p join label using (file)
  where pattern = 'gather' and not coalesce(p.superseded, false)
)
select file, median(r[2] - r[1])::bigint as region_bytes,
       list_sort(list(distinct r[1])) as starts
from r where r[2] > r[1] group by file
"""
_NO_REGIONS = pa.schema(
    [("file", pa.int64()), ("region_bytes", pa.int64()), ("starts", pa.list_(pa.int64()))]
)


def labels_of(patterns: pa.Table) -> pa.Table:
    """file, pattern (the surest), confidence, saves_bytes, grp, pays: a row per labelled file."""
    rows = np.flatnonzero(column(patterns, "primary", 0) > 0)
    rows = rows[order_by(column(patterns, "file")[rows])]
    file = column(patterns, "file")[rows]
    first = starts_of(file)
    sure = np.nan_to_num(floats(patterns, "confidence")[rows])
    saves, group = column(patterns, "saves_bytes", 0)[rows], column(patterns, "group")[rows]
    placed = pc.fill_null(pc.not_equal(patterns["placement"].cast(pa.string()), "default"), True)
    pays = placed.to_numpy()[rows]
    if len(first) < len(rows):
        most = np.maximum.reduceat(sure, first)
        best = sure == np.repeat(most, np.diff(np.append(first, len(rows))))
        rows = rows[best][starts_of(file[best])]
        sure = most
        saves, group = (np.maximum.reduceat(values, first) for values in (saves, group))
        pays = np.logical_or.reduceat(pays, first)
    return pa.table(
        {
            "file": file[first],
            "pattern": patterns["pattern"].take(pa.array(rows)).cast(pa.string()),
            "confidence": sure,
            "saves_bytes": saves,
            "grp": pa.array(group, mask=group < 0),
            "pays": pays,
        }
    )


def regions_of(analysis: Analysis, label: pa.Table) -> pa.Table:
    """file, region_bytes (median), starts: a row per file that is used in parts."""
    import duckdb

    parted = pc.is_in(label["pattern"], pa.array(["scatter", "gather"]))
    label = label.filter(parted)
    if not label.num_rows:
        return _NO_REGIONS.empty_table()
    con = duckdb.connect()
    con.register("label", label.select(["file", "pattern"]))
    con.register("producers", analysis.producers)
    con.register("consumers", analysis.consumers)
    found: pa.Table = con.sql(_REGIONS).to_arrow_table()
    con.close()
    return found
