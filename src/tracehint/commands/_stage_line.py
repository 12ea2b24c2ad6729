"""How far a long analysis is: one line on the terminal that is written over, gone at the end."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterator

FIRST_S, EVERY_S = 2.0, 0.5
_STDERR = 2
_BAR = 20
_CLEAR = "\r\x1b[K"


class Stages:
    """Remembers what it is told (see `Resources.tell`), from any thread."""

    def __init__(self) -> None:
        self._began = self._since = time.monotonic()
        self._stage, self._done, self._total, self._unit = "reading", 0, 0, ""

    def tell(self, stage: str, done: int, total: int, unit: str) -> None:
        """`done` of `total` things are done in this stage; a total of 0 is not known."""
        if stage != self._stage:
            self._since = time.monotonic()
        self._stage, self._done, self._total, self._unit = stage, done, total, unit

    def line(self) -> str:
        """Seconds, stage, and as far as known a bar, the share that is done and the rate."""
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
        watcher.join(1.0)  # a terminal that is stopped must not hold up the end


@contextlib.contextmanager
def stage(name: str) -> Iterator[Stages]:
    """The same for work that is one stage."""
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
