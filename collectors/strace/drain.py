"""Copy strace's output from a FIFO to the log file, without making strace block or fail.

Runs as a separate process (`python -I -S drain.py FIFO LOG`), so that the traced
command does not depend on the recorder: strace writes errors to the command's
stderr when its log cannot be written, and blocks the command while the FIFO is
not read. When the disk is full, the remaining lines are dropped and counted.
Prints the number of dropped lines. STOP: drop everything from now on. Lines are written whole,
so that a stopped log ends with a complete line.
"""

import contextlib
import os
import signal
import sys
import time

_CHUNK = 1 << 20
_LONGEST = 16 << 20  # bytes of an incomplete line that are buffered
_F_SETPIPE_SZ = 1031
# A real-time signal: batch systems send SIGTERM, SIGUSR1 ... to every process of a job, and the
# job's calls until its end must still be recorded.
STOP = signal.SIGRTMIN + 7
_IGNORED_SIGNALS = (
    signal.SIGINT,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGPIPE,
    signal.SIGTERM,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGXCPU,
    signal.SIGALRM,
)


def main(fifo: str, log: str) -> int:
    """Copy until the last writer has closed the FIFO. Returns 0."""
    for ignored in _IGNORED_SIGNALS:
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
            time.sleep(0.002)  # collect a batch: one wake-up per line would cost more
    if not state["drop"]:
        lost += _write_whole(target, memoryview(held), state)
    with contextlib.suppress(OSError):  # the recorder may have ended; the log is written
        os.write(1, b"%d\n" % lost)
    return 0


def _write_whole(target: int, rest: memoryview, state: dict[str, bool]) -> int:
    """Write all bytes; after an error drop all further output and return the lines not written."""
    try:
        while rest:
            rest = rest[os.write(target, rest) :]
    except OSError:
        state["drop"] = True
        return bytes(rest).count(b"\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
