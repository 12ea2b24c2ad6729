"""Which labels hold for a file by itself (groups come later), and how near to a threshold.

Temporary table made here:
    fed   file, pw, cw, bytes       edges into the only reader of a file
    lab   file, pattern, grp (null here), near   `near`: 0.5 at the threshold, 1 far from it
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb

    from tracehint.analyzer.model import Options

# What each producer handed to the one reader that counts.
_FED = """
create temp table fed as
select e.file, pw, cw, sum(coalesce(e.bytes, 0)) as bytes
from e join fs on e.file = fs.file and e.cw = fs.reader where fs.n = 1 group by all
"""

_FILES = """
create temp table fv as
select sz.file, role, sz.s, coalesce(n, 0) as n, coalesce(np, 0) as np, m, overlap, u_sum,
    writer, coalesce(exists_edge, false) as fed
from sz join files_in using (file)
left join fs using (file) left join ws using (file)
left join (select distinct file, true as exists_edge from fed) using (file)
where role <> 'scratch'
"""

# pattern, condition, nearness; over fv. The names in braces are options.
_RULES = (
    (
        "broadcast",
        "n >= 2 and m >= 1 + {slope} * (n - 1)",
        "(m - 1) / (2 * {slope} * (n - 1))",
    ),
    (
        "scatter",
        "n >= 2 and m <= {scatter} and m < 1 + {slope} * (n - 1)",
        "1 - 0.5 * (m - 1) / ({scatter} - 1)",
    ),
    (
        "partly_shared",
        "n >= 2 and m > {scatter} and m < 1 + {slope} * (n - 1)",
        "0.5 + least(m - {scatter}, 1 + {slope} * (n - 1) - m)"
        " / (1 + {slope} * (n - 1) - {scatter})",
    ),
    ("gather", "np >= 2 and overlap <= {overlap}", "1 - 0.5 * overlap / {overlap}"),
    ("pipeline", "n = 1 and np = 1 and fed", "1"),
    ("stage_in", "n = 1 and role = 'input'", "1"),
    ("stage_out", "role = 'output'", "1"),
)


def find(con: duckdb.DuckDBPyConnection, options: Options) -> None:
    """Make `fv` (one row per file version that can have a label) and `lab`."""
    con.execute(_FED)
    con.execute(_FILES)
    numbers = {
        "slope": max(options.broadcast_slope, 1e-9),
        "scatter": max(options.scatter_max_m, 1 + 1e-9),
        "overlap": max(options.gather_max_overlap, 1e-9),
    }
    con.execute("create temp table lab (file bigint, pattern varchar, grp bigint, near double)")
    con.execute(
        "insert into lab select file, 'concurrently_shared', null, 1 from cyc semi join fv"
        " using (file)"
    )
    for pattern, holds, near in _RULES:
        con.execute(
            f"insert into lab select file, '{pattern}', null,"
            f" coalesce(greatest(0.5, least(1, {near.format(**numbers)})), 1)"
            f" from fv anti join cyc using (file) where {holds.format(**numbers)}"
        )
