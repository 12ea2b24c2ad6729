"""What the commands share that write one result to stdout or to a file."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from pathlib import Path

from tracehint.errors import UsageError


def write_result(text: str | bytes, target: str | None, *, force: bool = False) -> None:
    """Write to `target`, atomically and never over an existing file without `force`.

    `None` or `-` is stdout. Raises UsageError with the remedy.
    """
    data = text.encode("utf-8", "backslashreplace") if isinstance(text, str) else text
    if target is None or target == "-":
        stream = sys.stdout.buffer
        stream.write(data if isinstance(text, bytes) or data.endswith(b"\n") else data + b"\n")
        stream.flush()
        return
    path = Path(target)
    refuse_existing(path, force=force)
    temporary = path.with_name(f".{path.name[:200]}.{os.getpid()}.tmp")
    try:
        temporary.write_bytes(data)
        temporary.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise UsageError(
            f"{target}: cannot be written: {error.strerror}", "Choose another place with -o."
        ) from None


def refuse_existing(path: Path, *, force: bool) -> None:
    """Raises UsageError where something is that must not be replaced: before work, not after it."""
    if os.path.lexists(path) and not force:
        raise UsageError(f"{path}: exists", "Give --force to replace it, or another -o.")


def terminal_width() -> int:
    """Columns of the terminal; 80 where there is none."""
    return shutil.get_terminal_size((80, 24)).columns


def wants_color() -> bool:
    """Colour only on a terminal, and not with NO_COLOR."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")
