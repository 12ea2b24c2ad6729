"""Many small segments as a few tables: what is asked of a column is asked once of each piece, and a
run of a thousand hosts has a thousand segments of each table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from tracehint.schemas.compact import narrow

if TYPE_CHECKING:
    import pyarrow as pa

GROUP = 16 << 20  # bytes of segments that become one; larger ones stay as they are


def grouped(parts: Iterable[pa.Table], schema: pa.Schema | None = None) -> Iterator[pa.Table]:
    """The tables in their order, small ones put together, each of their columns in one piece.

    `schema`: whole numbers become as narrow as their values allow (`read_compact` leaves that for
    the columns of small files).
    """
    held: list[pa.Table] = []
    size = 0
    for part in parts:
        if held and size + part.nbytes > GROUP:
            yield _one(held, schema)
            held, size = [], 0
        held.append(part)
        size += part.nbytes
    if held:
        yield _one(held, schema)


def _one(parts: list[pa.Table], schema: pa.Schema | None) -> pa.Table:
    import pyarrow as pa

    whole = parts[0]
    if len(parts) > 1:
        whole = pa.concat_tables(parts, promote_options="permissive")
        whole = whole.unify_dictionaries().combine_chunks()
    if schema is None or (len(parts) == 1 and whole.nbytes > GROUP):
        return whole
    columns = [narrow(whole.column(name), schema.field(name).type) for name in schema.names]
    return pa.table(columns, names=schema.names)
