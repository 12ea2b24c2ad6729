"""How far a recorded run has come: a line on the terminal now and then, while the command runs.

Only looks at what the recorder has written so far. Whole lines, no cursor movements, so that
nothing the command wrote is ever overwritten; only where its stdout is no terminal.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracehint.commands._beside import beside_the_command
from tracehint.schemas.recovery import SPOOL_DIR

if TYPE_CHECKING:
    import numpy as np

FIRST_S, EVERY_S = 2.0, 5.0
_READ_BYTES = 8 << 20  # of new records at one look
_STDOUT, _STDERR = 1, 2


def wanted(*, quiet: bool) -> bool:
    """Whether stderr is a terminal that the command's own output does not go to."""
    try:
        return not quiet and os.isatty(_STDERR) and not os.isatty(_STDOUT)
    except OSError:
        return False


@contextlib.contextmanager
def progress(bundle: Path, *, shown: bool) -> Iterator[None]:
    """Tell on stderr how far the recording into `bundle` has come, until the block ends."""
    if not shown:
        yield
        return
    with beside_the_command(partial(_watch, bundle), 1.0):  # one that is stopped holds up nothing
        yield


def _watch(bundle: Path, over: threading.Event) -> None:
    began, pause, counts, said = time.monotonic(), FIRST_S, Counts(bundle), ""
    while not over.wait(pause):
        pause = EVERY_S
        try:
            text = counts.text()
            if text and text != said and not over.is_set():
                line = f"tracehint: {time.monotonic() - began:.0f} s: {text}\n"
                os.write(_STDERR, line.encode())
                said = text
        except Exception:  # a look that failed concerns nobody
            return


class Counts:
    """What the recorder has written so far; each look reads only what is new."""

    def __init__(self, bundle: Path) -> None:
        self.bundle = bundle
        self.offset = {"episodes": 0, "processes": 0}
        self.moved = self.lost = 0

    def text(self) -> str:
        """One line without its end; empty while there is nothing to tell."""
        if (self.bundle / SPOOL_DIR).is_dir():
            return self._of_spool()
        log = sum(f.stat().st_size for f in self.bundle.glob("raw/*.log"))
        return f"{_size(log)} of log" if log else ""

    def _of_spool(self) -> str:
        from tracehint.schemas.spool.layout import EPISODE, EXIT

        opens, ends = self._new("episodes"), self._new("processes")
        opens, ends = opens[opens["kind"] == EPISODE], ends[ends["kind"] == EXIT]
        self.moved += int(opens["read_bytes"].sum()) + int(opens["write_bytes"].sum())
        self.lost += int(opens["lost_ops"].sum()) + int(ends["lost"].sum())
        programs, paths = self._records("execs"), self._records("paths")
        if not programs:
            return ""
        lost = f", {self.lost:,} events lost" if self.lost else ""
        return (
            f"{programs:,} programs started, {paths:,} paths, {_size(self.moved)} read and written"
            f" in closed files{lost}"
        )

    def _records(self, name: str) -> int:
        from tracehint.schemas.spool.layout import FILES

        size = (self.bundle / SPOOL_DIR / f"{name}.bin").stat().st_size
        return size // FILES[name].itemsize

    def _new(self, name: str) -> np.ndarray[Any, Any]:
        """The whole records that were added since the last look, at most 8 MiB of them."""
        import numpy as np

        from tracehint.schemas.spool.layout import FILES

        dtype = FILES[name]
        with (self.bundle / SPOOL_DIR / f"{name}.bin").open("rb") as stream:
            stream.seek(self.offset[name])
            data = stream.read(_READ_BYTES)
        count = len(data) // dtype.itemsize
        self.offset[name] += count * dtype.itemsize
        return np.frombuffer(data, dtype, count)


def _size(count: int) -> str:
    from tracehint.analyzer.text import human_bytes

    return human_bytes(count)
