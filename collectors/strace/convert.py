"""Convert the calls of a command recorded on this machine to the tables of its bundle."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from tracehint.collectors.strace.lexer import Call, LexStats
from tracehint.collectors.strace.live import initial_table
from tracehint.errors import BundleError
from tracehint.schemas.losses import losses_of
from tracehint.schemas.manifest import Manifest
from tracehint.schemas.recovery import RAW_DIR
from tracehint.schemas.writer import BundleWriter, write_bundle

if TYPE_CHECKING:
    import pyarrow as pa

    from tracehint.collectors.strace.model import StraceSettings


def convert_calls(
    writer: BundleWriter,
    manifest: Manifest,
    log: Path,
    calls: Iterable[Call],
    stats: LexStats,
    *,
    facts: Mapping[int, tuple[bytes, int, int]],
    losses: Mapping[tuple[str, str], int],
    notes: list[str],
    ends_known: bool = False,
) -> dict[str, int]:
    """Write the tables and the manifest of the complete run, remove the folder of the log, and
    return the losses by kind.

    facts: the descriptors that the command inherited (`live.inherited_descriptors`). losses: (kind,
    detail) -> count, in addition to the losses found in the calls. ends_known: every process has
    ended, so a log without their ends was cut off. Raises BundleError when the tables cannot be
    written; the log is then kept.
    """
    from tracehint.collectors.strace.finish import finish, look_at
    from tracehint.collectors.strace.parse import Parser

    state = Parser(_settings(manifest, facts), stats).feed(calls)
    for loss, count in losses.items():
        if count:
            state.losses[loss] += count
    if ends_known and state.running > 0:
        state.losses["killed_recorder", "it ended before the processes that it followed"] += 1
    tables = finish(state, stats, look=look_at, started_ns=manifest.started_ns)
    found = losses_of(tables["losses"])
    manifest.notes, manifest.complete = notes, "killed_recorder" not in found
    write_bundle(writer, tables, manifest)
    shutil.rmtree(log.parent, ignore_errors=True)
    return found


def _settings(manifest: Manifest, facts: Mapping[int, tuple[bytes, int, int]]) -> StraceSettings:
    from tracehint.collectors.strace.model import StraceSettings

    table, files = initial_table(facts)
    return StraceSettings(
        host=manifest.hosts[0].name,
        uid=os.getuid(),
        cwd=os.fsencode(manifest.cwd),
        started_ns=manifest.started_ns,
        initial=table,
        initial_files=files,
        real_dir=lru_cache(65536)(_real),
        complete=True,
    )


def _real(folder: bytes) -> bytes:
    try:
        return os.path.realpath(folder)
    except (OSError, ValueError):
        return folder


LOG_NAME = "strace.log"


def recover(root: Path, manifest: Manifest) -> tuple[dict[str, pa.Table], list[str]]:
    """Return tables and no problems; complete the manifest. Raises BundleError: unusable log."""
    from tracehint.collectors.strace.importer import LogSet, calls_of

    log, stats = root / RAW_DIR / LOG_NAME, LexStats()
    try:
        return tables_of(manifest, calls_of(LogSet((log,), (0,)), stats), stats, {}), []
    except OSError as error:
        raise BundleError(f"{log}: {error.strerror}", "Record the run again.") from None


def tables_of(
    manifest: Manifest,
    calls: Iterable[Call],
    stats: LexStats,
    losses: Mapping[tuple[str, str], int],
) -> dict[str, pa.Table]:
    """Return the tables of these calls, empty for an empty log. The files were not inspected
    after the run, so the recording is incomplete even if all processes have ended.

    Raises BundleError if the log has lines but none of them belongs to a process.
    """
    import pyarrow.compute as pc

    from tracehint.collectors.strace.finish import finish
    from tracehint.collectors.strace.model import StraceSettings
    from tracehint.collectors.strace.parse import Parser

    settings = StraceSettings(
        host=manifest.hosts[0].name if manifest.hosts else "unknown",
        cwd=os.fsencode(manifest.cwd),
        started_ns=manifest.started_ns,
        complete=True,
    )
    state = Parser(settings, stats).feed(calls)
    state.losses.update({loss: n for loss, n in losses.items() if n})
    state.losses["killed_recorder", "the machine was not asked what files there were"] += 1
    tables = finish(state, stats)
    if not tables["processes"].num_rows and stats.lines:
        raise BundleError("no line of the log was understood", "Record the run again.")
    roots = tables["processes"].filter(pc.is_null(tables["processes"]["parent"])).to_pylist()
    last = [r for r in roots if r["exit_code"] is not None or r["exit_signal"]]
    if last:
        number = last[-1]["exit_signal"]
        manifest.exit_status = 128 + number if number else last[-1]["exit_code"]
    manifest.notes = []
    return tables
