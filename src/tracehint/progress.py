"""Progress of a command: a line on the terminal, written by a background thread."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracehint.interrupts import start_without_signals
from tracehint.schemas.recovery import SPOOL_DIR
from tracehint.schemas.wording import plural

if TYPE_CHECKING:
    import numpy as np


FIRST_S, EVERY_S = 2.0, 0.5
_STDERR = 2
_BAR = 20
_CLEAR = "\r\x1b[K"


class Stages:
    """The latest progress, reported by any thread (see `Resources.tell`)."""

    def __init__(self) -> None:
        self._began = self._since = time.monotonic()
        self._stage, self._done, self._total, self._unit = "reading", 0, 0, ""

    def tell(self, stage: str, done: int, total: int, unit: str) -> None:
        """Record that `done` of `total` units of the stage are done; 0: the total is unknown."""
        if stage != self._stage:
            self._since = time.monotonic()
        self._stage, self._done, self._total, self._unit = stage, done, total, unit

    def line(self) -> str:
        """Return elapsed seconds, stage and, where known, a bar, the share done and the rate."""
        now = time.monotonic()
        parts = [f"tracehint: {now - self._began:.0f} s", self._stage]
        if self._total:
            share = min(1.0, self._done / self._total)
            full = int(share * _BAR)
            parts.append(f"[{'#' * full}{'.' * (_BAR - full)}] {share:.0%}")
        if self._done and now > self._since:
            rate = self._done / (now - self._since)
            parts.append(
                f"{rate:,.0f} {self._unit}/s" if rate >= 10 else f"{rate:.1f} {self._unit}/s"
            )
        return "  ".join(parts)


@contextlib.contextmanager
def stages() -> Iterator[Stages]:
    """Show the line after two seconds, if stderr is a terminal, until the block ends."""
    seen = Stages()
    if not os.isatty(_STDERR):
        yield seen
        return
    over = threading.Event()
    watcher = threading.Thread(target=_show, args=(seen, over), daemon=True)
    watcher.start()
    try:
        yield seen
    finally:
        over.set()
        watcher.join(1.0)  # a stopped terminal must not delay the end


@contextlib.contextmanager
def stage(name: str) -> Iterator[Stages]:
    """Show the line for work that consists of one stage."""
    with stages() as seen:
        seen.tell(name, 0, 0, "")
        yield seen


def _show(seen: Stages, over: threading.Event) -> None:
    if over.wait(FIRST_S):
        return
    with contextlib.suppress(OSError):
        while not over.is_set():
            width = (os.get_terminal_size(_STDERR).columns or 80) - 1
            os.write(_STDERR, (_CLEAR + seen.line()[: max(width, 20)]).encode())
            over.wait(EVERY_S)
        os.write(_STDERR, _CLEAR.encode())


FIRST_RECORDING_S, EVERY_RECORDING_S = 2.0, 5.0
_READ_BYTES = 8 << 20  # of new records per update
_STDOUT, _RECORDING_STDERR = 1, 2


def is_shown(*, quiet: bool) -> bool:
    """Whether stderr is a terminal that the command's own output does not go to."""
    try:
        return not quiet and os.isatty(_RECORDING_STDERR) and not os.isatty(_STDOUT)
    except OSError:
        return False


@contextlib.contextmanager
def progress(bundle: Path, *, shown: bool) -> Iterator[None]:
    """Print the progress of the recording into `bundle` to stderr until the block ends."""
    if not shown:
        yield
        return
    over = threading.Event()
    watcher = threading.Thread(target=_watch, args=(bundle, over), daemon=True)
    # With SIGTTOU blocked, a write by a background job does not stop the job either.
    start_without_signals(watcher)
    try:
        yield
    finally:
        over.set()
        watcher.join(1.0)  # a stopped terminal must not delay the end


def _watch(bundle: Path, over: threading.Event) -> None:
    began, pause, counts, printed = time.monotonic(), FIRST_RECORDING_S, Counts(bundle), ""
    while not over.wait(pause):
        pause = EVERY_RECORDING_S
        try:
            text = counts.text()
            if text and text != printed and not over.is_set():
                line = f"tracehint: {time.monotonic() - began:.0f} s: {text}\n"
                os.write(_RECORDING_STDERR, line.encode())
                printed = text
        except Exception:  # progress is optional: an error ends it silently
            return


class Counts:
    """Counts of what the recorder has written so far; each update reads new records only."""

    def __init__(self, bundle: Path) -> None:
        self.bundle = bundle
        self.offset = {"episodes": 0, "processes": 0}
        self.moved = self.lost = 0

    def text(self) -> str:
        """Return one line without its line end; empty while there is nothing to report."""
        if (self.bundle / SPOOL_DIR).is_dir():
            return self._of_spool()
        log = sum(f.stat().st_size for f in self.bundle.glob("raw/*.log"))
        return f"{_size(log)} of log" if log else ""

    def _of_spool(self) -> str:
        from tracehint.schemas.spool.layout import EPISODE, EXIT

        opens, ends = self._read_new_records("episodes"), self._read_new_records("processes")
        opens, ends = opens[opens["kind"] == EPISODE], ends[ends["kind"] == EXIT]
        self.moved += int(opens["read_bytes"].sum()) + int(opens["write_bytes"].sum())
        self.lost += int(opens["lost_ops"].sum()) + int(ends["lost"].sum())
        programs, paths = self._records("execs"), self._records("paths")
        if not programs:
            return ""
        lost = f", {plural(self.lost, 'event')} lost" if self.lost else ""
        return (
            f"{plural(programs, 'program')} started, {plural(paths, 'path')}, "
            f"{_size(self.moved)} read and written in closed files{lost}"
        )

    def _records(self, name: str) -> int:
        from tracehint.schemas.spool.layout import FILES

        size = (self.bundle / SPOOL_DIR / f"{name}.bin").stat().st_size
        return size // FILES[name].itemsize

    def _read_new_records(self, name: str) -> np.ndarray[Any, Any]:
        """Return the complete records added since the last update, at most 8 MiB of them."""
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


def prepare_for_analysis(*, sql: bool = False, keep: bool = True) -> None:
    """Keep freed memory and turn the garbage collector off: a run consists of a few large arrays
    and millions of live objects, without growing reference cycles.

    For commands, before numpy is imported. `sql`: the run is queried with DuckDB.
    Without `keep` freed memory is returned, for work that creates many small texts later.
    """
    import gc

    from tracehint.analyzer.memory import keep_memory
    from tracehint.schemas.arrow import skip_pandas

    if keep:
        keep_memory(sql=sql)
    skip_pandas()
    gc.disable()
