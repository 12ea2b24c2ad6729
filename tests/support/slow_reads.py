"""A slow store: each read of a file in one directory is delayed.

The kernel asks a watcher to permit each read (fanotify's FAN_ACCESS_PERM), cached or not, and the
watcher delays the answer. Needs root.

    with slow_reads(folder, 0.02):
        ...
"""

from __future__ import annotations

import ctypes
import os
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_EVENT, _ANSWER = struct.Struct("<IBBHQii"), struct.Struct("<iI")
_CONTENT, _ADD, _ACCESS_PERM, _ON_CHILD, _ALLOW = 0x4, 0x1, 0x20000, 0x08000000, 1


@contextmanager
def slow_reads(folder: Path, seconds: float) -> Iterator[None]:
    """Delay each read of a file directly in `folder` by `seconds`, in this process too."""
    watcher = subprocess.Popen(
        [sys.executable, __file__, str(folder), str(seconds)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert watcher.stdout is not None
        assert watcher.stdout.readline() == b"ready\n"
        yield
    finally:
        watcher.kill()
        watcher.communicate()


def _watch(folder: str, seconds: float) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    group = libc.fanotify_init(_CONTENT, os.O_RDONLY)
    mask = ctypes.c_uint64(_ACCESS_PERM | _ON_CHILD)
    if group < 0 or libc.fanotify_mark(group, _ADD, mask, -1, os.fsencode(folder)) < 0:
        raise OSError(ctypes.get_errno(), "fanotify")
    print("ready", flush=True)
    while True:
        events = os.read(group, 1 << 16)
        for at in range(0, len(events), _EVENT.size):
            fd = _EVENT.unpack_from(events, at)[5]
            time.sleep(seconds)
            os.write(group, _ANSWER.pack(fd, _ALLOW))
            os.close(fd)


if __name__ == "__main__":
    _watch(sys.argv[1], float(sys.argv[2]))
