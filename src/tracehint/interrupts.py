"""Handling of Ctrl-C at any time (one line on stderr, exit code 130); threads without signals.

During imports and after the command, SIGINT simply ends the process. In between it raises
KeyboardInterrupt; C libraries convert that into their own errors, so any error after an interrupt
counts as the interrupt.
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
    """Raise KeyboardInterrupt on SIGINT within the block and record it in `seen`, unless SIGINT is
    ignored (nohup) or has another handler."""

    def __init__(self) -> None:
        self.seen = False
        self._before: Any = None

    def __enter__(self) -> Interrupts:
        import threading  # imported late: before `end_quietly`, Ctrl-C prints a traceback

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
    """Let SIGINT end the process from here on, as there is nothing to clean up."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def start_without_signals(thread: Thread) -> None:
    """Start a thread with all signals blocked. Signals must reach the thread that waits for a
    command; one delivered to this thread would be lost."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        thread.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
