"""Copies strace's output from a FIFO to the log file, and never makes strace wait or fail.

Runs as a process of its own (`python -I -S drain.py FIFO LOG`), so that the
traced command is safe whatever becomes of the recorder: strace writes complaints
into the command's stderr when its log cannot be written, and stops the command
while nobody reads. When the disk is full the rest is counted and dropped.
Prints the number of lines that were dropped. STOP: drop everything from now. Lines are written
whole, so that a log that was stopped ends with one.
"""

import contextlib
import os
import signal
import sys
import time

_CHUNK = 1 << 20
_LONGEST = 16 << 20  # bytes of a line that are waited for
_F_SETPIPE_SZ = 1031
# A real-time signal: batch systems send SIGTERM, SIGUSR1 ... to every process of a job, and what
# the job does until its end is still to be kept.
STOP = signal.SIGRTMIN + 7
_NOT_MEANT = (
    signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGPIPE, signal.SIGTERM, signal.SIGUSR1,
    signal.SIGUSR2, signal.SIGXCPU, signal.SIGALRM,
)  # fmt: skip  # a table


def main(fifo: str, log: str) -> int:
    """Copy until the last writer has gone. Returns 0."""
    for ignored in _NOT_MEANT:
        signal.signal(ignored, signal.SIG_IGN)
    state = {"drop": False}
    signal.signal(STOP, lambda *_: state.update(drop=True))
    target = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    source = os.open(fifo, os.O_RDONLY | os.O_CLOEXEC)
    try:
        import fcntl

        fcntl.fcntl(source, _F_SETPIPE_SZ, _CHUNK)
    except OSError:
        pass  # a small pipe works too
    lost, held = 0, b""
    while data := os.read(source, _CHUNK):
        if not state["drop"]:
            held += data
            whole = len(held) if len(held) > _LONGEST else held.rfind(b"\n") + 1
            rest, held = memoryview(held)[:whole], held[whole:]
            lost += _write_whole(target, rest, state)
        else:
            lost += data.count(b"\n")
        if len(data) < _CHUNK // 4:
            time.sleep(0.002)  # let a batch come together: one wake-up per line would cost more
    if not state["drop"]:
        lost += _write_whole(target, memoryview(held), state)
    with contextlib.suppress(OSError):  # the recorder may have gone; the log is there
        os.write(1, b"%d\n" % lost)
    return 0


def _write_whole(target: int, rest: memoryview, state: dict[str, bool]) -> int:
    """Write it all; the number of lines for which there was no room, after which all is dropped."""
    try:
        while rest:
            rest = rest[os.write(target, rest) :]
    except OSError:
        state["drop"] = True
        return bytes(rest).count(b"\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
