"""Files that the learner cannot tell apart, counted together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

SAMPLES = 400  # paths per file group kept for naming groups and for checks
Types = tuple[str, ...]


@dataclass(frozen=True)
class FileGroup:
    """Files with the same shape, types, use and pattern."""

    shape: bytes
    producers: Types
    consumers: Types
    use: str
    pattern: str
    files: int
    size_sum: int  # bytes of all files
    saves_bytes: int
    paying: int  # files for which the cost model finds a gain
    group_bytes: int  # of the largest group among them, 0: no groups
    confidence: float
    readers: int  # median
    min_readers: int
    max_readers: int
    size: int  # median
    size_min: int
    size_max: int
    region: int
    starts: tuple[int, ...]
    samples: tuple[tuple[bytes, int | None], ...]  # path, group
    traits: tuple[tuple[str, Any], ...]  # for advisory hints


_FILE_GROUPS = """
select shape, producer_types, consumer_types, use, pattern,
       count(*) as files, sum(size_bytes)::bigint as size_sum,
       sum(saves_bytes)::bigint as saves_bytes,
       count(*) filter (pays) as paying, coalesce(max(group_bytes), 0)::bigint as group_bytes,
       min(confidence) as confidence, median(len(consumers))::bigint as readers,
       min(len(consumers)) as min_readers, max(len(consumers)) as max_readers,
       median(size_bytes)::bigint as size, min(size_bytes)::bigint as size_min,
       max(size_bytes)::bigint as size_max,
       coalesce(median(region_bytes), 0)::bigint as region,
       any_value(starts) as starts,
       list({'path': path, 'grp': grp} order by path)[1:?] as samples,
       any_value(last_reader) as last_reader,
       count(distinct last_reader) = 1 and bool_and(last_reader is not null) as last_known,
       any_value(role) as role, count(distinct role) as roles, bool_and(random) as random,
       coalesce(median(reread), 1) as reread, bool_and(deleted) as deleted
from facts group by all order by shape, producer_types, consumer_types, use, pattern
"""
_TRAITS = ("last_reader", "last_known", "role", "roles", "random", "reread", "deleted", "size")


def file_groups_of(facts: pa.Table) -> list[FileGroup]:
    """Facts with shapes, grouped by (shape, types, use, pattern); see `facts.facts_of`."""
    import duckdb

    con = duckdb.connect()
    con.register("facts", facts)
    query = _FILE_GROUPS.replace("?", str(SAMPLES))
    rows = con.sql(query).to_arrow_table().to_pylist() if facts.num_rows else []
    con.close()
    return [_file_group(row) for row in rows]


def _file_group(row: dict[str, Any]) -> FileGroup:
    return FileGroup(
        producers=tuple(row["producer_types"]),
        consumers=tuple(row["consumer_types"]),
        starts=tuple(row["starts"] or ()),
        samples=tuple((s["path"], s["grp"]) for s in row["samples"]),
        traits=tuple((key, row[key]) for key in _TRAITS),
        **{
            key: row[key]
            for key in (
                "shape",
                "use",
                "pattern",
                "files",
                "size_sum",
                "saves_bytes",
                "paying",
                "group_bytes",
                "confidence",
                "readers",
                "min_readers",
                "max_readers",
                "size",
                "size_min",
                "size_max",
                "region",
            )
        },
    )
