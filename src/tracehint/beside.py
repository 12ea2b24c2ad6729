"""Background work for later runs, done by a low-priority process while a command runs."""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NoReturn

_PR_SET_PDEATHSIG = 1
_NICE = 10  # a tenth of the command's CPU share where no processor is idle


@contextmanager
def run_in_background(work: Callable[[], object]) -> Iterator[None]:
    """Do the work in a child process, which is terminated when the block ends. Its output is
    discarded. It is forked, so no other thread may be running. Raises OSError."""
    pid = os.fork()
    if not pid:
        _run_and_exit(work)
    try:
        yield
    finally:
        with suppress(OSError):  # the process group: programs that it started too
            os.killpg(pid, signal.SIGTERM)
        with suppress(OSError):
            os.kill(pid, signal.SIGTERM)
        with suppress(OSError):
            os.waitpid(pid, 0)


def _run_and_exit(work: Callable[[], object]) -> NoReturn:
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        os.setpgid(0, 0)
        os.nice(_NICE)
        nothing = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(nothing, fd)
        work()
    finally:
        os._exit(0)
