"""A thread beside the command that is waited for."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def beside_the_command(
    work: Callable[[threading.Event], None], patience_s: float | None
) -> Iterator[None]:
    """`work` in a thread until the block ends, which its event tells; then it is waited for, at
    most so long (None: until it returns)."""
    over = threading.Event()
    thread = threading.Thread(target=work, args=(over,), daemon=True)
    # Signals are for the thread that waits for the command: one that this thread took would be
    # lost to it. Blocked, a write from the background does not stop the job either (SIGTTOU).
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        thread.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    try:
        yield
    finally:
        over.set()
        thread.join(patience_s)
