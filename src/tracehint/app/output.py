"""Output of the commands that write one result to stdout or to a file."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from tracehint.errors import UsageError
from tracehint.schemas.plain import is_stream, replacing


def write_result(
    text: str | bytes, target: str | None, *, force: bool = False, mode: int = 0o666
) -> None:
    """Write to `target`, atomically and never over an existing file without `force`.

    `None` or `-` is stdout. `mode`: permissions of a new file, before the umask. Raises UsageError
    with the remedy.
    """
    data = text.encode("utf-8", "backslashreplace") if isinstance(text, str) else text
    if target is None or target == "-":
        write_output(
            [data if isinstance(text, bytes) or data.endswith(b"\n") else data + b"\n"], target
        )
        return
    refuse_existing(Path(target), force=force)
    write_output([data], target, mode)


def write_output(pieces: Iterable[bytes], target: str | None, mode: int = 0o666) -> None:
    """Write the pieces to stdout (`None` or `-`) or, atomically, to a file that may exist.

    Raises UsageError with the remedy.
    """
    if target is None or target == "-":
        for piece in pieces:
            sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()
        return
    path = Path(target)
    try:
        with replacing(path, mode) as fd, os.fdopen(fd, "wb", closefd=False) as stream:
            stream.writelines(pieces)
    except OSError as error:
        raise cannot_write(path, error) from None


def cannot_write(path: Path, error: OSError) -> UsageError:
    """Return the error for a path that cannot be written to."""
    return UsageError(
        f"{path}: cannot be written: {error.strerror or error}", "Choose another place with -o."
    )


def refuse_existing(path: Path, *, force: bool) -> None:
    """Raise UsageError if the path exists and must not be replaced. Call it before the work."""
    if os.path.lexists(path) and not force and not is_stream(path):
        raise UsageError(f"{path}: exists", "Give --force to replace it, or another -o.")


def refuse_own_input(output: Path | None, inputs: Sequence[Path | None]) -> None:
    """Raise UsageError if the output would replace one of its inputs, even with --force."""
    for given in inputs:
        if output is None or given is None or str(output) == "-":
            continue
        if given.exists() and output.exists() and output.samefile(given):
            raise UsageError(f"{output}: is also the input", "Give another -o.")


def terminal_width() -> int:
    """Return the number of columns of the terminal; 80 without a terminal."""
    return shutil.get_terminal_size((80, 24)).columns


def wants_color() -> bool:
    """Whether output is coloured: only on a terminal, and not with NO_COLOR."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


_MAX_REUSE_LENGTH = 100  # maximum length of a command that is shown for reuse


def format_for_reuse(ran: Sequence[str]) -> str:
    """Return the recorded command for reuse; COMMAND if it is empty, long or not printable."""
    command = shlex.join(ran)
    return command if 0 < len(command) <= _MAX_REUSE_LENGTH and command.isprintable() else "COMMAND"
