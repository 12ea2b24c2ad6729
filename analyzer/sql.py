"""A DuckDB connection for one analysis step: in memory, spills to a private directory, no network.

Numbers go into statements by `str.format` of Python ints and floats only; names and other
text of a trace are values in tables, never part of a statement.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa


def connect() -> duckdb.DuckDBPyConnection:
    """A fresh in-memory connection; it sees nothing but what is registered on it."""
    import duckdb

    con = duckdb.connect(
        ":memory:",
        config={
            "preserve_insertion_order": "false",
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
        },
    )
    # In a notebook without ipywidgets it is off, and even setting it to off is an error.
    shown = con.execute("select current_setting('enable_progress_bar')").fetchall()
    if shown[0][0]:
        con.execute("set enable_progress_bar = false")
    return con


def to_arrow(con: duckdb.DuckDBPyConnection, query: str, schema: pa.Schema) -> pa.Table:
    """The query's result with exactly these columns, in this order and of these types."""
    return con.sql(query).to_arrow_table().select(schema.names).cast(schema)
