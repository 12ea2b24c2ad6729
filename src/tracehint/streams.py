"""Standard streams that may be closed, full or without a reader.

A recorded command must inherit them unchanged, no file of tracehint may get one of their
descriptor numbers, and output of tracehint must never change an exit code.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class _Unfailing(io.FileIO):
    """A descriptor whose writes never fail: output that cannot be written is dropped."""

    def write(self, data: ReadableBuffer, /) -> int:
        """Write as FileIO does; data that cannot be written counts as written."""
        try:
            return super().write(data) or 0
        except OSError:
            return memoryview(data).nbytes


def hold() -> None:
    """Open placeholders for closed standard descriptors, and set up Python's stdout and stderr.

    Placeholders are not inherited by child programs. They are opened in the opposite direction,
    so that reads and writes fail as on a closed descriptor.
    """
    for fd in range(3):
        try:
            os.fstat(fd)
        except OSError:
            with contextlib.suppress(OSError):
                os.open(os.devnull, os.O_RDONLY if fd else os.O_WRONLY)
    if sys.stdout is None:
        sys.stdout = io.TextIOWrapper(io.BufferedWriter(io.FileIO(1, "w", closefd=False)), "utf-8")
    raw = _Unfailing(2, "w", closefd=False)
    sys.stderr = io.TextIOWrapper(
        io.BufferedWriter(raw),
        sys.stderr.encoding if sys.stderr else "utf-8",
        "backslashreplace",
        line_buffering=True,
    )


def flush_stdout() -> bool:
    """Flush stdout; return whether all output was written. Prints errors except a closed pipe."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:  # the reader has closed the pipe
        return False
    except (OSError, ValueError) as error:
        print(f"tracehint: the output cannot be written: {error}", file=sys.stderr)
        return False
    return True
