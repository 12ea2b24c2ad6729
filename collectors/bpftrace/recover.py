"""The tables of a recording with bpftrace whose recorder was killed: what its output tells."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tracehint.collectors.strace.lexer import LexStats
from tracehint.errors import BundleError
from tracehint.schemas.manifest import Manifest
from tracehint.schemas.recovery import RAW_DIR

if TYPE_CHECKING:
    import pyarrow as pa

LOG_NAME = "bpftrace.log"


def recover(root: Path, manifest: Manifest) -> tuple[dict[str, pa.Table], list[str]]:
    """The tables and no problems; completes the manifest. Raises BundleError without a log."""
    from tracehint.collectors.bpftrace.translate import lost_in, translate
    from tracehint.collectors.strace.recover import tables_of

    clock = manifest.hosts[0].clock if manifest.hosts else {}
    log = root / RAW_DIR / LOG_NAME
    try:
        with log.open("rb") as stream:
            found = translate(stream, clock.get("real_ns", 0) - clock.get("boot_ns", 0))
    except OSError as error:
        raise BundleError(f"{log}: {error.strerror}", "Record the run again.") from None
    stats = LexStats(lines=len(found.calls), bad=found.bad)
    return tables_of(manifest, found.calls, stats, lost_in(found)), []
