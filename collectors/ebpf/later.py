"""Option `convert=later`: the bundle keeps the recorder's spool, and readers convert it."""

from __future__ import annotations

from typing import Any

from tracehint.collectors.base import RecordRequest
from tracehint.errors import BundleError, UsageError
from tracehint.schemas.manifest import Manifest
from tracehint.schemas.recovery import SPOOL_DIR
from tracehint.schemas.spool.redact import lost_in_spool, redact_spool
from tracehint.schemas.writer import BundleWriter

NOTE = (
    "The recorder's spool is converted when the bundle is read; `tracehint merge` writes the "
    "tables for other programs and versions."
)


def wants_later(request: RecordRequest) -> bool:
    """Whether the spool is to stay. Raises UsageError where that is not possible."""
    value = request.options.get("convert", "now")
    if value not in ("now", "later"):
        raise UsageError(f"--option convert={value}: not known", "Give now or later.")
    if value == "later" and (request.keep_args or request.follow is not None):
        what = "--keep-args" if request.keep_args else "following what runs already"
        raise UsageError(
            f"--option convert=later does not go with {what}", "Leave one of them out."
        )
    return value == "later"


def leave_spool(
    request: RecordRequest, writer: BundleWriter, manifest: Manifest, end: dict[str, Any]
) -> dict[str, int]:
    """Take the secrets out and complete the manifest; what was lost, by kind."""
    spool = request.output / SPOOL_DIR
    try:
        manifest.redacted_args += redact_spool(spool)
        lost = lost_in_spool(spool)
        if end.get("outlived"):
            lost["outliving_processes"] = int(end["outlived"])
    except OSError as error:
        raise BundleError(f"{spool}: {error.strerror}", "Free some space, then read it.") from None
    manifest.notes.append(NOTE)
    manifest.complete = bool(end)
    writer.write_manifest(manifest)
    return lost
