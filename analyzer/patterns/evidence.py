"""The numbers that decided, as JSON text: in full at the file, in short at its edges.

Temporary table made here:
    grp_text       grp, evidence
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

_BATCH = 1 << 17  # labels whose text is in memory before it is encoded


def _json(fields: dict[str, str]) -> str:
    """SQL of a JSON object: name -> SQL expression, in this order."""
    return "to_json({" + ", ".join(f"'{name}': {sql}" for name, sql in fields.items()) + "})"


_PEEKED = {"peeks": "coalesce(peeks, 0)", "peeks_decide": "coalesce(peeks > 0 and decides, false)"}
_NUMBERS = {"n": "n", "m": "round(m, 4)"}
_READ = {
    **_NUMBERS,
    "header_bytes": "header",
    **_PEEKED,
    "cover": "{'min': round(cover_min, 4), 'mean': round(cover_mean, 4),"
    " 'max': round(cover_max, 4)}",
    "concurrent_readers": "coalesce(rt.together, 1)",
}


def _shape(table: str) -> dict[str, str]:
    names = ("region_bytes", "region_min", "region_max", "stride", "regular", "alignment")
    return {name: f"{table}.{name}" for name in ("regions", *names)}


_REDUCE = {
    "fan_in": "files",
    "producers": "partners",
    "bytes": "bytes::bigint",
    "share": "round(share, 4)",
    "largest_producer_bytes": "largest::bigint",
}
_DISTRIBUTE = {
    "fan_out": "files",
    "consumers": "partners",
    "bytes": "bytes::bigint",
    "balance_cov": "round(spread, 4)",
    "largest_consumer_bytes": "largest::bigint",
}
_CHAIN = {"position": "position", "length": "length"}

# pattern -> (in full, in short)
SHAPES: dict[str, tuple[dict[str, str], dict[str, str]]] = {
    "broadcast": (_READ, _NUMBERS),
    "scatter": (
        {
            **_READ, **_shape("rr"), "gaps": "gaps", "gap_bytes": "gap_bytes",
            "all_to_all": "a2a.files > 1", "all_to_all_files": "a2a.files",
        },
        {**_NUMBERS, "region_bytes": "rr.region_bytes"},
    ),
    "partly_shared": (
        {**_READ, **{k: k for k in ("shared_bytes", "shared_total", "shared_ranges")}},
        {**_NUMBERS, "shared_bytes": "shared_bytes"},
    ),
    "gather": (
        {
            "writers": "np", "overlap": "round(overlap, 4)", **_shape("wg"),
            "mode": "case when wt.together > 1 then 'concurrent'"
            " when appended then 'appended in turn' else 'in turn' end",
            "concurrent_writers": "wt.together", "n": "coalesce(n, 0)",
        },
        {"writers": "np", "overlap": "round(overlap, 4)"},
    ),
    "pipeline": ({"bytes": "u_sum::bigint", **_CHAIN, **_PEEKED}, _CHAIN),
    "stage_in": ({"bytes": "u_sum::bigint", "cover": "round(cover_mean, 4)", **_PEEKED}, {}),
    "stage_out": ({"bytes": "s", "writers": "coalesce(np, 0)"}, {}),
    "concurrently_shared": (
        {"tasks": "tasks", "reason": "reason"},
        {"tasks": "tasks", "reason": "reason"},
    ),
    "reduce": (_REDUCE, {"fan_in": "files", "producers": "partners"}),
    "distribute": (_DISTRIBUTE, {"fan_out": "files", "consumers": "partners"}),
}  # fmt: skip

# pattern -> tables that its numbers come from, besides the label, its cost and its confidence
_OF_READERS = "join fs using (file) left join pk using (file) left join rt using (file)"
_SOURCES = {
    "broadcast": _OF_READERS,
    "scatter": f"{_OF_READERS} left join rr using (file) left join a2a using (file)",
    "partly_shared": f"{_OF_READERS} left join shares using (file)",
    "gather": "join ws using (file) left join wt using (file) left join wg using (file)"
    " left join fs using (file)",
    "pipeline": "join fs using (file) left join chain using (file) left join pk using (file)",
    "stage_in": "join fs using (file) left join pk using (file)",
    "stage_out": "join sz using (file) left join ws using (file)",
    "concurrently_shared": "join cyc using (file)",
    "reduce": "join grp on grp.grp = lab.grp",
    "distribute": "join grp on grp.grp = lab.grp",
}

_FACTORS = _json(
    {
        "exact": "round(exact, 4)", "kept": "round(kept, 4)", "threshold": "round(near, 4)",
        "peeks": "round(conf.peeks, 4)", "order": "round(sure_order, 4)",
        "collector": "round(seen, 4)",
    }
)  # fmt: skip
# Most labels are certain: their text is made once.
_ALL_SURE = '{"exact":1.0,"kept":1.0,"threshold":1.0,"peeks":1.0,"order":1.0,"collector":1.0}'
_SURE = f"case when confidence = 1 then '{_ALL_SURE}' else {_FACTORS} end"
_COST = _json(
    {
        "default_network": "net0", "default_wait": "wait0", "placement": "asked",
        "network": "net", "wait": "wait", "copies": "copies",
    }
)  # fmt: skip

_ONE = """
select k, left(own, length(own) - 1) || ',"factors":' || {factors} || ',"cost":' || {cost} || '}}'
    as evidence, short
from (select k, {full} as own, {short} as short
    from label lab {sources} where lab.pattern = '{pattern}') lab
join chosen using (k) join conf using (k)
"""

_GROUPS = """
create temp table grp_text as
with saved as (
    select grp, sum(saves_bytes)::bigint as saves_bytes, sum(saves_wait_bytes)::bigint as waits
    from chosen where grp is not null group by grp)
select grp, case pattern when 'reduce' then {reduce} else {distribute} end as evidence
from grp join saved using (grp)
"""
_SAVED = {"saves_bytes": "saves_bytes", "saves_wait_bytes": "waits"}


def write(con: duckdb.DuckDBPyConnection) -> pa.Table:
    """Make the table above, and return the texts of all labels: columns k, evidence, short.

    The texts are dictionaries: most labels of a large run have one of a few texts.
    """
    import pyarrow as pa

    from tracehint.analyzer.patterns import regions

    regions.measure(con)
    found = con.execute("select distinct pattern from label").fetchall()
    texts = [
        pa.schema([("k", pa.int64()), ("evidence", _word()), ("short", _word())]).empty_table()
    ]
    for pattern, (full, short) in SHAPES.items():
        if (pattern,) not in found:
            continue
        query = _ONE.format(
            pattern=pattern, sources=_SOURCES[pattern], full=_json(full),
            short=_json(short) if short else "'{}'", factors=_SURE, cost=_COST,
        )  # fmt: skip
        texts += _encoded(con.sql(query).to_arrow_reader(_BATCH))
    con.execute(
        _GROUPS.format(
            reduce=_json({**_REDUCE, **_SAVED}), distribute=_json({**_DISTRIBUTE, **_SAVED})
        )
    )
    return pa.concat_tables(texts).unify_dictionaries().combine_chunks()


def _word() -> pa.DataType:
    import pyarrow as pa

    return pa.dictionary(pa.int32(), pa.string())


def _encoded(batches: pa.RecordBatchReader) -> list[pa.Table]:
    """The batches with their texts as dictionaries."""
    import pyarrow as pa

    done = []
    for batch in batches:
        k, *texts = batch.columns
        words = [text.cast(pa.string()).dictionary_encode() for text in texts]
        done.append(pa.table([k, *words], names=batch.schema.names))
    return done
