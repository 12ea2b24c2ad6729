"""Tasks that found no recorder on their node: counted as a loss and named in a note."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tracehint.schemas.plain import open_plain
from tracehint.schemas.redact.commands import redact_text
from tracehint.schemas.writer import safe_host

SUFFIX = ".missed"  # written by tracehint-join: TIME PID COMMAND per line
_MAX_NAMED = 20
_MAX_BYTES = 64 << 20


def add_missed(
    tables: dict[str, Any],
    notes: list[str],
    host: str,
    path: Path,
    *,
    keep: bool = False,
    no_args: bool = False,
) -> int:
    """Count the lines of the file as a loss, name the first ones in a note, and remove the file.

    keep: leave the file, as it is another user's. no_args: name only the programs. Returns the
    number of tasks.
    """
    try:
        commands = _read_commands(path, own=False) if keep else _read_and_remove(path)
    except FileNotFoundError:
        return 0
    except OSError as error:
        notes.append(f"Tasks of {host} may be missing: {path}: {error.strerror}")
        return 0
    if not commands:
        return 0
    if no_args:
        commands = [command.split(None, 1)[0] for command in commands if command.strip()]
    import pyarrow as pa

    from tracehint.schemas.tables import LOSSES

    row = {
        "host": host,
        "proc": None,
        "kind": "unfollowed_tasks",
        "count": len(commands),
        "detail": "no recorder answered them",
    }
    tables["losses"] = pa.concat_tables(
        [tables["losses"], pa.Table.from_pylist([row], schema=LOSSES)]
    )
    notes.append(
        f"Not followed on {host}: {', '.join(commands[:_MAX_NAMED])}"
        + (f" and {len(commands) - _MAX_NAMED} more" if len(commands) > _MAX_NAMED else "")
    )
    return len(commands)


def node_stem(host: str) -> str:
    """Return the prefix of the names of all files that a node's recorders leave."""
    return f"node.{safe_host(host)}"


def missed_file(bundles: Path, host: str) -> Path:
    """Return the file that names the tasks of a host that no recorder answered."""
    return bundles / f"{node_stem(host)}{SUFFIX}"


def folders_of(bundles: Iterable[Path]) -> list[Path]:
    """Return the directories of these bundles, each once."""
    return list(dict.fromkeys(path.absolute().parent for path in bundles))


def missed_in(folders: Iterable[Path], host: str) -> list[Path]:
    """Return the files of a host's missed tasks that no recorder has processed."""
    found = (missed_file(folder, host) for folder in folders)
    return [path for path in found if os.path.lexists(path)]


def _read_and_remove(path: Path) -> list[str]:
    """Read and remove the file; a task that appends meanwhile starts a new one or is still read."""
    os.close(open_plain(path))  # raises if it is not plain: do not move it then
    taken = path.with_name(f"{path.name}.{os.getpid()}")
    path.rename(taken)
    found = _read_commands(taken, own=True)
    taken.unlink()
    return found


def _read_commands(path: Path, *, own: bool) -> list[str]:
    """Return the redacted commands. Raises OSError: in a shared directory it may be anything."""
    with os.fdopen(open_plain(path, own=own), "rb") as stream:
        text = stream.read(_MAX_BYTES).decode("utf-8", "replace")
    commands = (line.split(" ", 2)[-1] for line in text.splitlines() if line)
    return [redact_text(c.encode())[0].decode("utf-8", "replace") for c in commands]
