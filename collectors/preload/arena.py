"""Creation of the file that recorded programs write to, and samples of its clock."""

from __future__ import annotations

import ctypes
import errno
import json
import os
import struct
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tracehint.collectors.begin import ARENA as ARENA_VARIABLE
from tracehint.collectors.hostinfo import boot_id
from tracehint.collectors.node_local import is_local, open_node_local
from tracehint.collectors.preload.library import LIBRARY
from tracehint.errors import NotBegunError
from tracehint.schemas.plain import try_sharing
from tracehint.schemas.spool.constants import VERSION

SITES_VARIABLE = "TRACEHINT_SITES"  # hook/sites.h


def write_sites(path: Path) -> dict[str, str]:
    """Write this process's C library sites and patched code to `path`; return the environment
    variable that names the file.

    A program with the same library (by build identifier) maps this code over its own; a program
    with another library searches for sites itself.
    """
    path.unlink(missing_ok=True)  # programs of an earlier recording may still map the old file
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    try:
        fill_sites(fd)
    finally:
        os.close(fd)
    return {SITES_VARIABLE: str(path)}


@contextmanager
def sites_for(folder: Path) -> Iterator[dict[str, str]]:
    """Yield the environment that names a site file: in `folder` on a local disk, else an unnamed
    file for the programs of this node only. Programs on other nodes search for sites themselves."""
    if is_local(folder):
        yield write_sites(folder / SITES)
        return
    fd = os.memfd_create(SITES, os.MFD_CLOEXEC)
    try:
        os.fchmod(fd, 0o600)
        fill_sites(fd)
        yield {SITES_VARIABLE: f"/proc/{os.getpid()}/fd/{fd}"}
    finally:
        os.close(fd)


def fill_sites(fd: int) -> None:
    """Write the sites and the patched code to the empty open file `fd`."""
    if not ctypes.CDLL(str(LIBRARY)).tracehint_sites(fd):
        os.ftruncate(fd, 0)  # perhaps a full disk: leave the space to the recording


ARENA = "arena"
SITES = "sites"
# struct th_arena, as in schemas/spool/arena_layout.py: that needs NumPy, loaded after the run
MAGIC, ARENA_VERSION, UNIT, UNITS, READY = 0x414E455241484E54, 8, 4 << 20, 8192, 2
HEAD = struct.Struct("<QIIQQQQIIQ8x")  # fields before `lost`
UNITS_AT, FIRST = 144, 12288  # offset of the unit states; size of the header
_SIZE = UNITS * UNIT  # of the sparse file: 32-bit text ids count units of 8 bytes
_FIRST_UNITS = 2  # allocated by the recorder, if the disk has space
_GAP_S = 0.25  # a pause that ends a run of accesses, as in the eBPF collector
MEASURED_S = 0.01
_PIECE = 64 << 10  # as ZEROS of record/arena.c


class _Sample(ctypes.Structure):
    _fields_ = [("ticks", ctypes.c_uint64), ("boot_ns", ctypes.c_uint64)]


class ArenaFile:
    """The arena of one recording: in an existing directory or, without `folder`, an unnamed open
    file. Programs open that through this process's descriptor in /proc; it disappears when this
    process ends for any reason."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder
        self.start: dict[str, Any] = {}
        self._library = ctypes.CDLL(str(LIBRARY))
        self._fds: dict[str, int] = {}

    def sample(self) -> dict[str, int]:
        """Return the cycle counter and CLOCK_BOOTTIME at one moment: the best of 16 samples."""
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

    def make(self, *, launched: bool = True, tried: bool = True) -> None:
        """Create the file. launched: the first epoch is that of a program which then executes the
        command (forget_launcher). tried: the C library passed the trial of preload/collector.py;
        otherwise each program checks its own C library.
        Raises NotBegunError if the file cannot be created or the disk is full."""
        first = self.sample()
        time.sleep(MEASURED_S)
        second = self.sample()
        hertz = (second["ticks"] - first["ticks"]) * 1e9
        hertz /= second["tick_boot_ns"] - first["tick_boot_ns"]
        where = self.folder / ARENA if self.folder else Path("arena")
        try:
            size = self._open()
            fd = self._fds[ARENA]
            os.ftruncate(fd, size)
            units = _make_units(fd, _FIRST_UNITS if self.folder else 1)
            head = HEAD.pack(
                MAGIC,
                ARENA_VERSION,
                int(not launched),
                size,
                FIRST,
                units * UNIT,
                int(_GAP_S * hertz),
                *_mount_namespace(),
            )
            os.pwrite(fd, head, 0)
            try_sharing(fd)
        except OSError as error:
            raise NotBegunError(
                f"{where}: cannot be created: {error.strerror}",
                "Free space for temporary files on a disk of this node (TMPDIR), or use "
                "--collector strace.",
            ) from None
        boot, real = _sample_boot_and_real()
        self.start = {
            "version": VERSION,
            "boot_ns": boot,
            "real_ns": real,
            "boot_id": boot_id(),
            "tick_hz": hertz,
            "command": 1,
            "mounts": _mount_table(),
            **first,
        }
        if self.folder:
            self._write("start.json", self.start)
            if tried:
                write_sites(self.folder / SITES)
        elif tried:
            fill_sites(self._fds[SITES])

    def _open(self) -> int:
        """Open the files and return the maximum size of the arena in bytes."""
        if self.folder:
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            self._fds[ARENA] = os.open(self.folder / ARENA, flags, 0o600)
            return _SIZE
        # in memory: programs execute this code, and temporary disks may be mounted `noexec`
        self._fds[SITES] = os.memfd_create(SITES, os.MFD_CLOEXEC)
        os.fchmod(self._fds[SITES], 0o600)
        self._fds[ARENA], size = open_node_local(_SIZE)
        return max(size // UNIT, 1) * UNIT

    def environment(self) -> dict[str, str]:
        """Return the environment variables that name the files to the library."""
        if self.folder:
            return {ARENA_VARIABLE: str(self.folder), SITES_VARIABLE: str(self.folder / SITES)}
        place = f"/proc/{os.getpid()}/fd"
        return {
            ARENA_VARIABLE: f"{place}/{self._fds[ARENA]}",
            SITES_VARIABLE: f"{place}/{self._fds[SITES]}",
        }

    def note_end(self, end: Mapping[str, Any]) -> dict[str, Any]:
        """Return `end` with a sample of the clock. In a directory it is also written, and the
        arena is truncated to its used size if no process has it mapped any more."""
        whole = {**end, **self.sample()}
        if self.folder:
            self._write("end.json", whole)
            (self.folder / SITES).unlink(missing_ok=True)
            if not end["outlived"]:
                os.ftruncate(self._fds[ARENA], self._used_bytes())
        return whole

    def content(self) -> memoryview:
        """Return the used part of the file. Raises OSError.

        The file is read, not mapped: touching a hole of a mapped file may need a block of a full
        disk, which raises SIGBUS.
        """
        data = memoryview(bytearray(self._used_bytes()))
        at = 0
        while at < len(data):
            n = os.preadv(self._fds[ARENA], [data[at:]], at)
            if not n:
                raise OSError(errno.EIO, "the recording is shorter than its header states")
            at += n
        return data

    def keep(self, folder: Path, end: Mapping[str, Any]) -> None:
        """Copy an unnamed arena and its facts to the new directory `folder`, so that a failed
        conversion can be repeated later. Raises OSError."""
        folder.mkdir(mode=0o700)
        (folder / ARENA).write_bytes(self.content())
        self.folder = folder
        self._write("start.json", self.start)
        self._write("end.json", dict(end))

    def close(self) -> None:
        """Close the files."""
        while self._fds:
            os.close(self._fds.popitem()[1])

    def _used_bytes(self) -> int:
        used, allocated = HEAD.unpack(os.pread(self._fds[ARENA], HEAD.size, 0))[4:6]
        return int(min(max(used, FIRST), allocated))

    def _write(self, name: str, data: dict[str, Any]) -> None:
        assert self.folder is not None
        (self.folder / name).write_text(json.dumps(data), encoding="ascii")


def _make_units(fd: int, wanted: int) -> int:
    """Allocate up to `wanted` units as record/arena.c does; return how many. OSError: none."""
    made = 0
    while made < wanted:
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


def _mount_table() -> str:
    try:
        return os.fsdecode(Path("/proc/self/mountinfo").read_bytes())
    except OSError:
        return ""


def _mount_namespace() -> tuple[int, int, int]:
    """Return its inode, and the mount id and inode of the root directory; zeros if unknown."""
    try:
        number = Path("/proc/self/ns/mnt").stat().st_ino
        fd = os.open("/", os.O_PATH | os.O_CLOEXEC)
        try:
            facts = Path(f"/proc/self/fdinfo/{fd}").read_text(encoding="ascii")
            mount = int(facts.split("mnt_id:")[1].split()[0])
            return number, mount, os.fstat(fd).st_ino
        finally:
            os.close(fd)
    except (OSError, ValueError, IndexError):
        return 0, 0, 0


def _sample_boot_and_real() -> tuple[int, int]:
    """Return CLOCK_BOOTTIME and CLOCK_REALTIME at one moment: the best of 16 samples."""
    found, least = (0, 0), 1 << 62
    for _ in range(16):
        a = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        real = time.clock_gettime_ns(time.CLOCK_REALTIME)
        b = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        if b - a < least:
            least, found = b - a, (a + (b - a) // 2, real)
    return found
