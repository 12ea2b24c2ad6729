"""Work for later runs that is done while a command runs, by a process that gives way to it."""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NoReturn

_PR_SET_PDEATHSIG = 1
_NICE = 10  # a tenth of what the command has, where that leaves no processor


@contextmanager
def done_beside(work: Callable[[], object]) -> Iterator[None]:
    """Do the work in a process of its own, which is ended where the command ends first. Nothing of
    it is seen; there must be no other thread when it begins. Raises OSError."""
    pid = os.fork()
    if not pid:
        _do(work)
    try:
        yield
    finally:
        with suppress(OSError):  # its programs as well
            os.killpg(pid, signal.SIGTERM)
        with suppress(OSError):
            os.kill(pid, signal.SIGTERM)
        with suppress(OSError):
            os.waitpid(pid, 0)


def _do(work: Callable[[], object]) -> NoReturn:
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
