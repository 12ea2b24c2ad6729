"""The tables of a recording with strace whose recorder was killed: what its log tells."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tracehint.collectors.strace.lexer import Call, LexStats
from tracehint.errors import BundleError
from tracehint.schemas.manifest import Manifest
from tracehint.schemas.recovery import RAW_DIR

if TYPE_CHECKING:
    import pyarrow as pa

LOG_NAME = "strace.log"


def recover(root: Path, manifest: Manifest) -> tuple[dict[str, pa.Table], list[str]]:
    """The tables and no problems; completes the manifest. Raises BundleError: no log of use."""
    from tracehint.collectors.strace.sources import LogSet, calls_of

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
    """The tables of these calls. Nobody looked at the files after the run, so even where all
    processes have ended the recording is not whole."""
    import pyarrow.compute as pc

    from tracehint.collectors.strace.finish import finish
    from tracehint.collectors.strace.parse import Parser
    from tracehint.collectors.strace.settings import StraceSettings

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
    if not tables["processes"].num_rows:
        raise BundleError("no line of the log was understood", "Record the run again.")
    roots = tables["processes"].filter(pc.is_null(tables["processes"]["parent"])).to_pylist()
    last = [r for r in roots if r["exit_code"] is not None or r["exit_signal"]]
    if last:
        number = last[-1]["exit_signal"]
        manifest.exit_status = 128 + number if number else last[-1]["exit_code"]
    manifest.notes = []
    return tables
