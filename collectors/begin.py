"""The beginning of a recording, the same for every collector: the bundle, and what it is of."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

from tracehint.collectors import hostinfo
from tracehint.collectors.base import RecordRequest
from tracehint.collectors.run import working_directory
from tracehint.errors import BundleError, UsageError
from tracehint.schemas.manifest import Manifest
from tracehint.schemas.writer import BundleWriter
from tracehint.version import __version__


def new_manifest(
    request: RecordRequest,
    collector: str,
    *,
    blind_to: Sequence[str] = (),
    command: Sequence[bytes] | None = None,
    unfinished: str = "",
) -> Manifest:
    """The manifest of a recording that begins.

    command: where it is not the request's. unfinished: the note for who finds the bundle as it is
    now, because the recorder did not reach its end.
    """
    raw = [os.fsencode(a) for a in request.command] if command is None else list(command)
    return Manifest(
        program=f"tracehint {__version__}",
        collector=collector,
        command=[os.fsdecode(a) for a in raw],
        started_ns=time.time_ns(),
        cwd=str(working_directory()),
        hosts=[hostinfo.this_host(request.host)],
        data_roots=list(request.data_roots),
        blind_to=list(blind_to),
        recording=os.urandom(16).hex(),
        notes=[unfinished] if unfinished else [],
    )


def begin(
    request: RecordRequest, manifest: Manifest, folder: str, log: str = ""
) -> tuple[BundleWriter, Path]:
    """Make the bundle, in it the folder for what is recorded, in that an empty file `log`.

    Returns the bundle's writer, and the folder or file. Raises BundleError.
    """
    writer = BundleWriter(request.output, force=request.force, keep_args=request.keep_args)
    place = request.output / folder
    try:
        place.mkdir(mode=0o700, exist_ok=True)
        if log:
            place /= log
            place.touch(mode=0o600)
    except OSError as error:
        raise BundleError(
            f"{place}: cannot be written: {error.strerror}", "Choose another place with -o."
        ) from None
    writer.write_manifest(manifest)
    return writer, place


def linger_seconds(request: RecordRequest, default: float) -> float:
    """Option `linger`: milliseconds to wait for processes that outlive the command.

    Raises UsageError.
    """
    text = request.options.get("linger", "")
    if text and not text.isdigit():
        raise UsageError(
            f"linger={text}: not a number of milliseconds", "Give --option linger=5000"
        )
    return int(text) / 1000 if text else default
