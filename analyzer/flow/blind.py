"""Whether what was not seen of an observed task can have happened all the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from tracehint.schemas.store import Bundle

# Blind spots behind which a whole read or write of a followed task can hide.
_HIDING = frozenset({"copy_file_range", "static_binaries", "go_binaries", "opens"})
_LOSSES = ("lifecycle_records", "open_table_full", "log_lines", "damaged_segment", "spool_write",
    "missing_rows", "unreadable_log", "killed_recorder",
)  # fmt: skip  # a table


def may_hide_reads(bundle: Bundle) -> bool:
    """Whether an access of an observed task can have escaped the collector."""
    if _HIDING & set(bundle.manifest.blind_to) or not bundle.manifest.complete:
        return True
    kinds = bundle.tables["losses"].column("kind")
    return bool(pc.any(pc.is_in(kinds, pa.array(_LOSSES))).as_py())
