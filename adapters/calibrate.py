"""Measure what a store costs: calls, and the rate of data. Nothing here is assumed or rounded up.

Rates come from one file that is written with fsync and, after its pages were dropped from the
cache, read again. Where the file system does not let the pages go, the read rate is null: a rate of
memory would be no rate of the store.
"""

from __future__ import annotations

import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tracehint.adapters.stores.base import Setting, Store
from tracehint.errors import InputError
from tracehint.hintgen.calibration import SCHEMA

BLOCK = 1 << 20
MAX_CALLS = 2000
_NEW = os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC  # the directory may be shared
SHARE_OF_CALLS = 0.4  # of the time; the rest is for data


def measure(directory: Path, store: Store, *, seconds: float, size: int) -> dict[str, Any]:
    """Calibration of the store below `directory`; raises InputError when nothing can be written."""
    if not directory.is_dir():
        raise InputError(f"{directory} is not a directory", "Name a directory on the store.")
    try:
        work = Path(tempfile.mkdtemp(prefix=".tracehint-calibrate-", dir=directory))
    except OSError as error:
        raise InputError(
            f"cannot write in {directory}: {error.strerror}", "Name one that you may write in."
        ) from error
    try:
        end = time.monotonic() + seconds
        calls = _calls(work, store, seconds * SHARE_OF_CALLS)
        rates = _rates(work, size, end)
    except OSError as error:
        raise InputError(
            f"measuring in {directory} failed: {error.strerror}",
            "Free some space, or give a smaller --size-mb.",
        ) from error
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return {"schema": SCHEMA, "store": store.name, "calls": calls, **rates}


def _calls(work: Path, store: Store, seconds: float) -> dict[str, Any]:
    """Seconds per call of each kind."""
    target = work / "target"
    os.close(os.open(target, _NEW, 0o600))
    settings, _ = store.translate({"DP": "local", "Replication": "2"}, "file")
    fd = os.open(target, os.O_RDONLY)
    try:
        jobs: dict[str, Callable[[int], object]] = {
            "create": lambda i: os.close(os.open(work / f"c{i}", _NEW, 0o600)),
            "open": lambda _: os.close(os.open(target, os.O_RDONLY)),
        }
        reason = (
            "the store sets nothing on a file" if not settings else _try(store, fd, settings[0])
        )
        if not reason:
            first = settings[0]
            jobs["set"] = lambda i: store.write(fd, first.key, _other(first, i))
            jobs["get"] = lambda _: store.read(fd, first.key)
        result: dict[str, Any] = {
            name: _time(job, seconds / len(jobs)) for name, job in jobs.items()
        }
    finally:
        os.close(fd)
    if reason:
        result |= {name: {"seconds": None, "reason": reason} for name in ("set", "get")}
    return result


def _other(setting: Setting, i: int) -> bytes:
    """A value that changes from call to call, where the store lets any value stand."""
    plain = setting.value.isalpha()
    return setting.value + b"%d" % (i % 10) if plain else setting.value


def _try(store: Store, fd: int, setting: Setting) -> str:
    """Why the store's settings cannot be set here; empty: they can."""
    try:
        store.write(fd, setting.key, setting.value)
    except OSError as error:
        return error.strerror or "error"
    return ""


def _time(job: Callable[[int], object], seconds: float) -> dict[str, Any]:
    """Median and middle half of the times of a call, over at most MAX_CALLS calls."""
    times: list[float] = []
    end = time.monotonic() + seconds
    while len(times) < MAX_CALLS and (time.monotonic() < end or len(times) < 5):
        start = time.perf_counter()
        job(len(times))
        times.append(time.perf_counter() - start)
    low, middle, high = statistics.quantiles(times, n=4)
    return {"seconds": middle, "low": low, "high": high, "samples": len(times)}


def _rates(work: Path, size: int, end: float) -> dict[str, Any]:
    """Bytes per second of writing with fsync and of reading back."""
    path = work / "data"
    block = os.urandom(BLOCK)  # compressing stores must not look fast
    written = 0
    fd = os.open(path, _NEW, 0o600)
    try:
        start = time.perf_counter()
        while written < size and (time.monotonic() < end - 1 or written == 0):
            written += os.write(fd, block)
        os.fsync(fd)
        write_seconds = time.perf_counter() - start
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        cached = _cached(fd, written)
        start = time.perf_counter()
        os.lseek(fd, 0, os.SEEK_SET)
        while os.read(fd, BLOCK):
            pass
        read_seconds = time.perf_counter() - start
    finally:
        os.close(fd)
    read: dict[str, Any] = {"bytes_per_s": None, "reason": "the file stays in memory"}
    if cached is not None and cached < 0.05:
        read = {"bytes_per_s": written / read_seconds, "bytes": written}
    elif cached is None:
        read["reason"] = "it cannot be seen whether the file left the page cache"
    return {"write": {"bytes_per_s": written / write_seconds, "bytes": written}, "read": read}


def _cached(fd: int, size: int) -> float | None:
    """Share of the file in the page cache; None: the kernel does not tell."""
    import ctypes

    pages = (size + 4095) // 4096
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [
        ctypes.c_void_p,
        ctypes.c_size_t,
        ctypes.c_int,
        ctypes.c_int,
        ctypes.c_int,
        ctypes.c_long,
    ]
    address = libc.mmap(None, size, 1, 1, fd, 0)  # PROT_READ, MAP_SHARED
    if address in (None, ctypes.c_void_p(-1).value):
        return None
    try:
        vector = (ctypes.c_ubyte * pages)()
        if libc.mincore(ctypes.c_void_p(address), ctypes.c_size_t(size), vector) != 0:
            return None
        return sum(byte & 1 for byte in bytes(vector)) / pages
    finally:
        libc.munmap(ctypes.c_void_p(address), ctypes.c_size_t(size))
