"""The preload collector: availability check and recording of a command.

A trial checks that all I/O calls of this machine's C library are recorded: a recorded program
transfers known numbers of bytes before it has a thread, in a thread, and after the thread. A C
library that passed is not tried again until the next boot, as long as it and the preload library
are the same files.
"""

from __future__ import annotations

import functools
import hashlib
import os
import sys
import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from tracehint.collectors.base import Availability, RecordRequest, RecordResult
from tracehint.collectors.hostinfo import boot_id
from tracehint.collectors.preload.library import BLIND, LIBRARY, can_be_named
from tracehint.errors import NotBegunError, TracehintError
from tracehint.schemas.cache_directory import CacheDirectory

PASSED = CacheDirectory("preload", ".passed")
_MAX_CACHE = 4096  # bytes of the cache
_PHASES = ("before a thread", "in a thread", "after a thread")
_MIN_SIZE = 1000  # size of the first file; each further file has one byte more
# I/O functions of the trial: name in messages -> write and read back file `p` with the bytes `b`.
_CALLS = {
    "write, read": "f = opened(p); os.write(f, b); os.lseek(f, 0, 0); os.read(f, len(b))",
    "pwrite, pread": "f = opened(p); os.pwrite(f, b, 0); os.pread(f, len(b), 0)",
    "writev, readv": "f = opened(p); os.writev(f, [b]); os.lseek(f, 0, 0); os.readv(f, [b[:]])",
    "pwritev, preadv": "f = opened(p); os.pwritev(f, [b], 0); os.preadv(f, [b[:]], 0)",
    "fwrite, fread": "f = stream(p); c.fwrite(text, len(b), 1, f); c.rewind(f); "
    "c.fread(text, len(b), 1, f); f = c.fclose(f) or -1",
}
_PROGRAM = """
import ctypes, os, sys, threading
c = ctypes.CDLL(None)
c.fopen.restype = ctypes.c_void_p
c.fwrite.argtypes = c.fread.argtypes = (
    ctypes.c_char_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_void_p)
c.rewind.argtypes = c.fclose.argtypes = (ctypes.c_void_p,)
text = ctypes.create_string_buffer(4096)
least, ways = int(sys.argv[1]), sys.argv[2:]
def opened(p):
    return os.open(p, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
def stream(p):
    return c.fopen(p.encode(), b"w+")
def work(phase):
    for number, statements in enumerate(ways, phase * len(ways)):
        names = {**globals(), "p": f"file{number}", "b": bytearray(least + number)}
        exec(statements, names)
        if names["f"] >= 0:
            os.close(names["f"])
work(0)
one = threading.Thread(target=work, args=(1,))
one.start()
one.join()
work(2)
"""


@functools.cache
def find_unsupported_calls() -> str:
    """Return which C library calls are not recorded, as a message; empty: all are recorded.

    Raises OSError or TracehintError if the trial failed, or if nothing at all was recorded.
    """
    key = _hash_conditions()
    if PASSED.get(key) is not None:
        return ""
    missing = _find_losses()
    if missing:
        return (
            f"calls of this C library ({c_library()}) that are not recorded: {'; '.join(missing)}"
        )
    PASSED.put(key, _write_library_name, _MAX_CACHE)
    return ""


def _write_library_name(stream: BinaryIO) -> None:
    stream.write(c_library().encode())


def c_library() -> str:
    """Return the name and version of this process's C library, or `not glibc`."""
    try:
        return os.confstr("CS_GNU_LIBC_VERSION") or "not glibc"
    except (OSError, ValueError):
        return "not glibc"


def _hash_conditions() -> str:
    """Return a hash of what the result depends on: the files, the search path and the boot."""
    facts: list[object] = [sys.executable, os.environ.get("LD_LIBRARY_PATH", ""), boot_id()]
    lines = Path("/proc/self/maps").read_text(errors="surrogateescape").splitlines()
    mapped = {line.split(maxsplit=5)[5] for line in lines if "/lib" in line}
    libraries = [p for p in mapped if Path(p).name.startswith(("libc.so.", "libc-2.", "ld-"))]
    for path in (str(LIBRARY), *sorted(libraries)):
        info = Path(path).stat()
        facts += [path, info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns]
    return hashlib.sha256(repr(facts).encode(errors="surrogateescape")).hexdigest()


def _find_losses() -> list[str]:
    """Return the I/O functions whose bytes are not recorded, one entry per phase."""
    from tracehint.collectors.preload.record import record
    from tracehint.schemas.store import read_bundle

    with tempfile.TemporaryDirectory(prefix="tracehint-") as name:
        folder = Path(name)
        (folder / "work").mkdir()
        words = ("sh", "-c", 'cd "$0" && exec "$@"', str(folder / "work"), sys.executable)
        program = ("-I", "-S", "-c", _PROGRAM, str(_MIN_SIZE), *_CALLS.values())
        request = RecordRequest((*words, *program), folder / "run.trace")
        request.output.mkdir()
        ended = record(request)
        if ended.exit_status:
            raise NotBegunError(
                f"a program with the library exits with status {ended.exit_status}", ""
            )
        rows = read_bundle(request.output).tables["opens"].to_pylist()
    read, written = Counter[str](), Counter[str]()
    for row in rows:
        file = Path(os.fsdecode(row["path"])).name
        read[file] += row["read_bytes"]
        written[file] += row["write_bytes"]
    if not read.total():
        raise NotBegunError("a program with the library was not recorded", "")
    found = []
    for i, phase in enumerate(_PHASES):
        numbers = range(i * len(_CALLS), (i + 1) * len(_CALLS))
        ways = [
            way
            for number, way in zip(numbers, _CALLS, strict=True)
            if (read[f"file{number}"], written[f"file{number}"]) != (_MIN_SIZE + number,) * 2
        ]
        if ways:
            found.append(f"{phase} " + (", ".join(ways) if len(ways) < len(_CALLS) else "all"))
    return found


COST = (
    "about 20 ns per read or write, 0.7 us per open, 0.15 to 0.25 ms per program; for static and "
    "setuid programs only their execution is recorded"
)
_REMEDY = (
    "The C library must be glibc, its code must be writable by its own process (SELinux: execmod), "
    "and the directory for temporary files must have free space. Use --collector strace."
)
_FLAGS = {"constant_tsc", "nonstop_tsc"}


class PreloadCollector:
    """Records with libtracehint.so, which every dynamic program of the command loads."""

    name = "preload"
    blind_to = BLIND

    def check(self) -> Availability:
        """Check each requirement, then run the trial of the C library."""
        for test in (can_be_named, _version, _clock):
            reason, remedy = test()
            if remedy:
                return Availability(False, reason, remedy, BLIND, COST, broken=test is _version)
        try:
            incomplete = find_unsupported_calls()
        except (OSError, TracehintError) as error:
            return Availability(False, f"a trial failed: {error}", _REMEDY, BLIND, COST)
        reason = f"programs load the library; {c_library()}"
        return Availability(True, reason, "", BLIND, COST, incomplete=incomplete)

    def record(self, request: RecordRequest) -> RecordResult:
        """Run the command with the library and write the bundle."""
        from tracehint.collectors.preload.record import TRIED, record

        tried = {} if not find_unsupported_calls() else {TRIED: "no"}
        return record(replace(request, options={**request.options, **tried}))


def _version() -> tuple[str, str]:
    """Check that the library writes the arena version that this code reads."""
    from tracehint.collectors.preload.arena import ARENA_VERSION

    if b"tracehint arena %d;" % ARENA_VERSION in LIBRARY.read_bytes():
        return "the library's version matches", ""
    return (
        f"{LIBRARY.name} belongs to another version of tracehint",
        "Run `make tracer` in the source tree, or install the wheel again.",
    )


def _clock() -> tuple[str, str]:
    """Check that the time stamp counter, which dates all records, runs always and evenly."""
    try:
        with Path("/proc/cpuinfo").open(encoding="ascii", errors="replace") as lines:
            line = next((line for line in lines if line.startswith("flags")), "")
    except OSError:
        line = ""
    if not set(line.split()) >= _FLAGS:
        return "the processor's time stamp counter is not invariant", "Use --collector strace."
    return "the processor's time stamp counter is invariant", ""
