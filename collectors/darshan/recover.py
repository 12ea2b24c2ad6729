"""The tables of a recording with Darshan whose recorder was killed: the logs of what had ended."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tracehint.schemas.manifest import Manifest
from tracehint.schemas.recovery import RAW_DIR
from tracehint.schemas.store import Bundle, add_losses

if TYPE_CHECKING:
    import pyarrow as pa


def recover(root: Path, manifest: Manifest) -> tuple[dict[str, pa.Table], list[str]]:
    """The tables and no problems; completes the manifest. Raises TracehintError without a log.

    A process that had not ended has no log: nothing is known of it.
    """
    from tracehint.collectors.darshan.importer import gather

    tables, facts = gather([root / RAW_DIR])
    manifest.started_ns, manifest.blind_to = facts.started_ns, facts.blind_to
    manifest.notes = facts.notes
    bundle = Bundle(root, manifest, tables)
    add_losses(bundle, [("killed_recorder", 1, "processes that had not ended have no log")])
    return bundle.tables, []
