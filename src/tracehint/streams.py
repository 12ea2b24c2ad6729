"""The standard streams as this process finds them: closed, full, or without a reader.

A command that is run must find them as they were, no file of ours may get one of their numbers,
and what we say must never change an exit code.
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
        """As FileIO; what cannot be written counts as written."""
        try:
            return super().write(data) or 0
        except OSError:
            return memoryview(data).nbytes


def hold() -> None:
    """Keep the numbers of closed streams taken, and give Python's streams something to stand on.

    The placeholders are closed again in whatever is run. They are open the wrong way round, so
    that reading and writing them fails as it would without them.
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
        io.BufferedWriter(raw), sys.stderr.encoding if sys.stderr else "utf-8",
        "backslashreplace", line_buffering=True,
    )  # fmt: skip  # a table


def flush_stdout() -> bool:
    """Whether everything that was printed is written; says so where it is not."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:  # who read it has seen enough
        return False
    except (OSError, ValueError) as error:
        print(f"tracehint: the output cannot be written: {error}", file=sys.stderr)
        return False
    return True
