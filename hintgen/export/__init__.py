"""A run for other tools: format name -> module with `write(run, con, target)`.

`con` is query.connect's database. Each module writes one file, or one
directory where `DIRECTORY` is true, and builds its JSON in SQL, so the cost
follows the output.
"""

from __future__ import annotations

import errno
import importlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tracehint.errors import UsageError
from tracehint.hintgen import query
from tracehint.schemas.plain import is_own_folder, is_stream, replacing

if TYPE_CHECKING:
    from tracehint.hintgen.inputs import Input


@dataclass(frozen=True)
class Format:
    """`suffix` of the default name; `directory`: the result is a directory."""

    module: str
    suffix: str
    text: str
    directory: bool = False


FORMATS: dict[str, Format] = {
    "wfformat": Format("wfformat", ".json", "WfFormat 1.5 instance (WfCommons)"),
    "prov": Format("prov", ".json", "W3C PROV as PROV-JSON"),
    "ro-crate": Format("crate", "", "Process Run RO-Crate (a directory)", directory=True),
    "perfetto": Format("perfetto", ".json", "trace events for Perfetto and chrome://tracing"),
    "graphml": Format("graphml", ".graphml", "the file/task graph, unfolded"),
    "parquet": Format("tables", "", "the tables of the analysis (a directory)", directory=True),
    "arrow": Format("tables", "", "as parquet, in Arrow IPC files", directory=True),
}


def export(run: Input, name: str, target: Path, *, force: bool = False) -> None:
    """Write the run to `target`, never over anything without `force`, and whole or not at all.

    Raises UsageError.
    """
    chosen = FORMATS[name]
    stream = is_stream(target) and not chosen.directory
    if (target.exists() or target.is_symlink()) and not force and not stream:
        raise UsageError(f"{target}: exists", "Give --force to replace it, or another -o.")
    if target.exists() and target.is_dir() != chosen.directory:
        raise UsageError(f"{target}: is in the way", "Choose another name with -o.")
    module = importlib.import_module(f"tracehint.hintgen.export.{chosen.module}")
    con = query.connect(run.analysis)
    try:
        if chosen.directory:
            target.mkdir(parents=True, exist_ok=True)
            if not is_own_folder(target):
                raise PermissionError(errno.EPERM, "it belongs to another user")
            module.write(run, con, target, name)
        else:
            with replacing(target) as fd:
                module.write(run, con, Path(f"/proc/self/fd/{fd}"))
    except OSError as error:
        raise UsageError(
            f"{target}: cannot be written: {error.strerror}", "Choose another place with -o."
        ) from None
