"""All rows of the table, in its order."""

from __future__ import annotations

from scripts.bench.hints import blast, broadcast, bwa, montage, pipeline, reduce, scatter
from scripts.bench.hints.row import Row

ROWS: dict[str, Row] = {
    row.name: row
    for module in (pipeline, broadcast, reduce, scatter, montage, blast, bwa)
    for row in module.ROWS
}
