"""Path identifiers of a spool and their texts."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from tracehint.schemas.spool.read import Records, Spool
from tracehint.schemas.spool.rows import picked


def path_lookup(spool: Spool) -> Callable[[Records], pa.Array]:
    """A function from path identifiers to the paths' text, null where it is not known."""
    table = spool.records["paths"]
    table = picked(table, np.argsort(table["id"], kind="stable"))
    texts = spool.texts(table["off"], table["len"])

    def text(ids: Records) -> pa.Array:
        at = np.searchsorted(table["id"], ids)
        inside = np.minimum(at, max(len(table) - 1, 0))
        known = (at < len(table)) & (len(table) > 0)
        if len(table):
            known &= table["id"][inside] == ids
        return texts.take(pa.array(inside, mask=~known))

    return text
