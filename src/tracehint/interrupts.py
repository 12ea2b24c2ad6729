"""Ctrl-C: one line on stderr and exit code 130, wherever it meets the program. Threads that take no
signals.

While modules are loaded and after the end it simply ends the process. In between it raises
KeyboardInterrupt; libraries in C turn that into errors of their own, so that whatever comes after
it counts as it.
"""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from threading import Thread
    from types import FrameType

EXIT_INTERRUPTED = 130
_DEFAULTS = (signal.SIG_DFL, signal.default_int_handler)


class Interrupts:
    """Whether there was one. KeyboardInterrupt within the block, unless somebody decided otherwise
    (nohup)."""

    def __init__(self) -> None:
        self.seen = False
        self._before: Any = None

    def __enter__(self) -> Interrupts:
        import threading  # not before `end_quietly`: each module loaded until then is a moment

        here = threading.current_thread() is threading.main_thread()
        if here and signal.getsignal(signal.SIGINT) in _DEFAULTS:
            self._before = signal.signal(signal.SIGINT, self._raise)
        return self

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def _raise(self, _number: int, _frame: FrameType | None) -> None:
        self.seen = True
        raise KeyboardInterrupt


def end_quietly() -> None:
    """Let it end the process, where nothing has to be put in order."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def start_without_signals(thread: Thread) -> None:
    """Start a thread beside a command that is waited for: signals are for the thread that waits,
    one that this thread took would be lost to it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        thread.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
