"""Making the file that recorded programs write to, and samples of its clock."""

from __future__ import annotations

import ctypes
import json
import os
import struct
import time
from pathlib import Path
from typing import Any

from tracehint.collectors.hostinfo import boot_id
from tracehint.collectors.preload.blind import LIBRARY
from tracehint.collectors.preload.sites import write_sites
from tracehint.errors import NotBegunError
from tracehint.schemas.shared_memory import try_sharing
from tracehint.schemas.spool.version import VERSION

ARENA = "arena"
SITES = "sites"
# th_arena of arena.h, as schemas/spool/arena_layout.py has it; NumPy is loaded after the run
MAGIC, ARENA_VERSION, UNIT, UNITS, READY = 0x414E455241484E54, 5, 4 << 20, 8192, 2
HEAD = struct.Struct("<QIIQQQQ")  # up to `gap`
UNITS_AT, FIRST = 120, 12288  # where the states of units are; what the header takes
_SIZE = UNITS * UNIT  # of the sparse file: texts are found by 32 bits of 8 bytes
_FIRST_UNITS = 2  # that the recorder makes, where there is room
_GAP_S = 0.25  # a pause that ends a run, as of the eBPF collector
MEASURED_S = 0.01
_PIECE = 64 << 10  # ZEROS of record/arena.c


class _Sample(ctypes.Structure):
    _fields_ = [("ticks", ctypes.c_uint64), ("boot_ns", ctypes.c_uint64)]


class ArenaFolder:
    """The arena of one recording, in a directory that exists."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._library = ctypes.CDLL(str(LIBRARY))

    def sample(self) -> dict[str, int]:
        """The counter and CLOCK_BOOTTIME at one moment."""
        best: dict[str, int] = {}
        least = 1 << 62
        for _ in range(16):
            found = _Sample()
            before = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
            self._library.tracehint_clock(ctypes.byref(found))
            taken = time.clock_gettime_ns(time.CLOCK_BOOTTIME) - before
            if taken < least:
                least = taken
                best = {"ticks": int(found.ticks), "tick_boot_ns": int(found.boot_ns)}
        return best

    def make(self, *, launched: bool = True, measured_s: float = MEASURED_S) -> None:
        """The file, and start.json. launched: the first epoch is that of a program which becomes
        the command (forget_launcher). measured_s: for how long the counter's speed is measured.
        Raises NotBegunError where it cannot be or has no room."""
        first = self.sample()
        time.sleep(measured_s)
        second = self.sample()
        hertz = (second["ticks"] - first["ticks"]) * 1e9
        hertz /= second["tick_boot_ns"] - first["tick_boot_ns"]
        path = self.folder / ARENA
        try:
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            try:
                os.ftruncate(fd, _SIZE)
                head = HEAD.pack(
                    MAGIC, ARENA_VERSION, int(not launched), _SIZE, FIRST,
                    _make_units(fd) * UNIT, int(_GAP_S * hertz),
                )  # fmt: skip  # a table
                os.pwrite(fd, head, 0)
                try_sharing(fd)
            finally:
                os.close(fd)
        except OSError as error:
            raise NotBegunError(
                f"{path}: cannot be made: {error.strerror}",
                "Write the bundle to a local disk with room (-o), or use --collector strace.",
            ) from None
        boot, real = _boot_and_real()
        start = {
            "version": VERSION, "boot_ns": boot, "real_ns": real, "boot_id": boot_id(),
            "tick_hz": hertz, "command": 1, **first,
        }  # fmt: skip  # a table
        self.write("start.json", start)
        write_sites(self.folder / SITES)

    def cut(self) -> None:
        """To what was used; nobody may have it mapped any more. The changed code goes as well."""
        (self.folder / SITES).unlink(missing_ok=True)
        with (self.folder / ARENA).open("r+b") as stream:
            _, _, _, _, used, allocated, _ = HEAD.unpack(stream.read(HEAD.size))
            stream.truncate(min(max(used, FIRST), allocated))

    def write(self, name: str, data: dict[str, Any]) -> None:
        """One of the two JSON files."""
        (self.folder / name).write_text(json.dumps(data), encoding="ascii")


def _make_units(fd: int) -> int:
    """The first units, as record/arena.c makes the others; how many. Raises OSError: none."""
    made = 0
    while made < _FIRST_UNITS:
        try:
            os.posix_fallocate(fd, made * UNIT, UNIT)
        except OSError:
            if not made:
                raise
            break
        for piece in range(made * UNIT, made * UNIT + UNIT, _PIECE):
            os.pwrite(fd, bytes(_PIECE), piece)
        made += 1
    os.pwrite(fd, bytes([READY] * made), UNITS_AT)
    return made


def _boot_and_real() -> tuple[int, int]:
    """The two clocks at one moment."""
    found, least = (0, 0), 1 << 62
    for _ in range(16):
        a = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        real = time.clock_gettime_ns(time.CLOCK_REALTIME)
        b = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        if b - a < least:
            least, found = b - a, (a + (b - a) // 2, real)
    return found


def used_epochs(folder: Path) -> int:
    """How many process epochs began so far."""
    with (folder / ARENA).open("rb") as stream:
        return int(HEAD.unpack(stream.read(HEAD.size))[2])
