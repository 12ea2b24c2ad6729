"""Recover the tables of a bundle from the output of a recorder that did not finish.

Every reader of bundles uses this module, for all collectors. The readers of raw logs belong to
their collectors and are named, not imported, like the commands in cli.py.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING

from tracehint.errors import BundleError, TracehintError
from tracehint.schemas.manifest import Manifest, hide_command

if TYPE_CHECKING:
    import pyarrow as pa

SPOOL_DIR = "spool"
RAW_DIR = "raw"  # a log that is not converted yet
JOB_SUFFIX = ".job"  # of a job's recording in one file
_SPOOL = "tracehint.schemas.spool.convert"
# file in RAW_DIR -> module with `recover(root, manifest)`, which returns tables and problems and
# completes the manifest. It raises TracehintError if nothing can be read.
READERS = {
    "strace.log": "tracehint.collectors.strace.convert",
    "bpftrace.log": "tracehint.collectors.bpftrace.record",
    "darshan.conf": "tracehint.collectors.darshan.importer",
}


def is_unfinished(root: Path, manifest: Manifest) -> bool:
    """Whether the recording is not, or not completely, converted to the tables of the bundle.

    A recorder writes the manifest with the end of the run last.
    """
    if not any((root / name).is_dir() for name in (SPOOL_DIR, RAW_DIR)):
        return False
    return manifest.ended_ns is None or not (root / "processes").is_dir()


def recover_tables(
    root: Path, manifest: Manifest, tables: dict[str, pa.Table]
) -> tuple[dict[str, pa.Table], list[str]]:
    """Return problems and the tables recovered from the log; `tables` where it has no rows.

    Raises BundleError if the log cannot be read and no table has a row.
    """
    spooled = (root / SPOOL_DIR).is_dir()
    readers = [READERS[name] for name in READERS if (root / RAW_DIR / name).is_file()]
    if not spooled and not readers:
        return tables, [f"{RAW_DIR}: no log that is known"]
    try:
        reader = importlib.import_module(_SPOOL if spooled else readers[0])
        found, problems = reader.recover(root, manifest)
    except TracehintError as error:
        if not any(len(table) for table in tables.values()):
            raise BundleError(error.what, error.remedy) from error
        return tables, [f"{SPOOL_DIR if spooled else RAW_DIR}: {error.what}"]
    found = _without_secrets(found, manifest)
    if not manifest.complete:
        manifest.notes = [
            f"The recorder of {root.name} was killed or is still at work: "
            "its last accesses may be missing."
        ]
    return {name: found[name] if len(found[name]) else tables[name] for name in tables}, problems


def read_job(path: Path) -> tuple[Manifest, dict[str, pa.Table]]:
    """Read a batch job's recording (spool/packed.py). Raises BundleError, InputError."""
    manifest, found = importlib.import_module(_SPOOL).convert_packed(path)
    if not manifest.kept_args:
        hide_command(manifest)
    return manifest, _without_secrets(found, manifest)


def _without_secrets(tables: dict[str, pa.Table], manifest: Manifest) -> dict[str, pa.Table]:
    if manifest.kept_args:
        return tables
    from tracehint.schemas.redact.tables import Redactor

    redactor = Redactor(no_args=manifest.no_args)
    tables = {name: redactor.table(name, table) for name, table in tables.items()}
    manifest.redacted_args += redactor.take_count()
    return tables
