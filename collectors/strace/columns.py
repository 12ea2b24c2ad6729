"""Rows to Arrow: tuples are collected per table and turned into record batches as they come."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from tracehint.schemas.tables import TABLES

BATCH = 1 << 16


class Columns:
    """Typed rows of one host's tables, in the order of the schema without `host`."""

    def __init__(self, host: str) -> None:
        self._host = host
        self._rows: dict[str, list[tuple[Any, ...]]] = {name: [] for name in TABLES}
        self._batches: dict[str, list[pa.RecordBatch]] = {name: [] for name in TABLES}
        self.extents = self._rows["extents"]  # the two that grow with the run
        self.opens = self._rows["opens"]

    def add(self, table: str, row: tuple[Any, ...]) -> None:
        """Append one row."""
        rows = self._rows[table]
        rows.append(row)
        if len(rows) >= BATCH:
            self._flush(table)

    def spill(self) -> None:
        """Turn long lists into record batches."""
        for table in ("extents", "opens"):
            if len(self._rows[table]) >= BATCH:
                self._flush(table)

    def _flush(self, table: str) -> None:
        rows = self._rows[table]
        if not rows:
            return
        schema = TABLES[table]
        columns = [pa.array([self._host] * len(rows), schema.field(0).type)]
        for field, values in zip(list(schema)[1:], zip(*rows, strict=True), strict=True):
            columns.append(pa.array(values, field.type))
        self._batches[table].append(pa.RecordBatch.from_arrays(columns, schema=schema))
        rows.clear()

    def tables(self) -> dict[str, pa.Table]:
        """All tables. The collected rows are handed over."""
        for name in TABLES:
            self._flush(name)
        return {
            name: pa.Table.from_batches(self._batches[name], schema=schema)
            for name, schema in TABLES.items()
        }
