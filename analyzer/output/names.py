"""The names of files as the JSON of an analysis has them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


def names_table(files: pa.Table) -> pa.Table:
    """Columns file, path_text, path_code, other_text, other_code (see analyzer.text)."""
    import pyarrow as pa

    from tracehint.analyzer.text import texts

    path_text, path_code = texts(files.column("path"))
    others = files.column("other_paths").combine_chunks()
    if isinstance(others, pa.ChunkedArray):
        others = pa.concat_arrays(others.chunks) if others.num_chunks else pa.array([], others.type)
    text, code = texts(pa.chunked_array([others.flatten()], pa.binary()))
    offsets = _offsets(others)
    return pa.table(
        {
            "file": files.column("file"),
            "path_text": path_text,
            "path_code": path_code,
            "other_text": pa.ListArray.from_arrays(offsets, text.combine_chunks()),
            "other_code": pa.ListArray.from_arrays(offsets, code.combine_chunks()),
        }
    )


def _offsets(lists: pa.ListArray) -> pa.Array:
    """Offsets into the flattened values; a null list is empty."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    sizes = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False)
    return pa.array(np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32))
