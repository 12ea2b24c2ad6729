"""Darshan logs of any size, written by the library of the `darshan` wheel itself.

The library exports the functions that write, but the wheel does not declare them; the record
structures are those that the wheel declares.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

_WRITERS = """
void *darshan_log_create(const char *name, int compression, int partial);
int darshan_log_put_job(void *log, void *job);
int darshan_log_put_exe(void *log, char *text);
int darshan_log_put_mounts(void *log, void *mounts, int count);
int darshan_log_put_namehash(void *log, void *first);
int darshan_log_put_mod(void *log, int module, void *buffer, int size, int version);
void darshan_log_close(void *log);
struct name_record { uint64_t id; char name[]; };
struct name_ref { struct name_record *record; void *table, *prev; struct name_ref *next;
                  void *hash_prev, *hash_next, *key; unsigned length, value; };
struct job { int64_t uid, start_s, start_ns, end_s, end_ns, nprocs, jobid; char metadata[1024]; };
struct mount { char type[3015]; char path[3015]; };
"""
_POSIX, _DXT = (1, 4), (10, 1)  # module and version of its records
_COUNTERS, _TIMES = 69, 17
_SEGMENT = np.dtype([("offset", "<i8"), ("length", "<i8"), ("first", "<f8"), ("last", "<f8")])
_HEAD = np.dtype(
    [
        ("id", "<u8"),
        ("rank", "<i8"),
        ("shared", "<i8"),
        ("host", "S64"),
        ("writes", "<i8"),
        ("reads", "<i8"),
    ]
)
_RECORD = np.dtype(
    [("id", "<u8"), ("rank", "<i8"), ("counters", "<i8", _COUNTERS), ("times", "<f8", _TIMES)]
)
_START = 1_700_000_000


@dataclass(frozen=True)
class File:
    """A file and its accesses: rows of (offset, length, first, last), times in s from the start."""

    name: str
    writes: np.ndarray[Any, Any] | None = None
    reads: np.ndarray[Any, Any] | None = None


def segments(offsets: Any, length: int, step_s: float = 1e-5) -> np.ndarray[Any, Any]:
    """Return consecutive accesses of one length."""
    out = np.zeros(len(offsets), _SEGMENT)
    out["offset"], out["length"] = offsets, length
    out["first"] = 0.5 + np.arange(len(offsets)) * step_s
    out["last"] = out["first"] + step_s / 2
    return out


def write_log(
    path: Path,
    files: Sequence[File],
    *,
    jobid: int = 1,
    exe: str = "/bin/app",
    spoil: Callable[[bytes], bytes] = bytes,
) -> None:
    """Write one log with POSIX counters and DXT segments of each file. Raises RuntimeError.

    spoil: applied to the records of each module before they are packed.
    """
    import cffi

    ffi = cffi.FFI()
    ffi.cdef(_WRITERS)
    lib = _library(ffi)
    log = lib.darshan_log_create(str(path).encode(), 0, 0)
    if log == ffi.NULL:
        raise RuntimeError(f"{path}: cannot be created")
    job = ffi.new("struct job *")
    job.uid, job.start_s, job.end_s, job.nprocs, job.jobid = 1000, _START, _START + 3600, 1, jobid
    keep: list[Any] = []
    done = [
        lib.darshan_log_put_job(log, job),
        lib.darshan_log_put_exe(log, ffi.new("char[]", exe.encode())),
        lib.darshan_log_put_mounts(log, _mount(ffi, keep), 1),
        lib.darshan_log_put_namehash(log, _names(ffi, files, keep)),
        _put(ffi, lib, log, _POSIX, spoil(b"".join(_counters(k, f) for k, f in _numbered(files)))),
        _put(ffi, lib, log, _DXT, spoil(b"".join(_dxt(k, f) for k, f in _numbered(files)))),
    ]
    lib.darshan_log_close(log)
    if any(code < 0 for code in done):
        raise RuntimeError(f"{path}: {done}")


def _library(ffi: Any) -> Any:
    """Return the library that the wheel has already loaded."""
    from darshan.backend import cffi_backend

    assert cffi_backend.libdutil is not None
    with Path("/proc/self/maps").open(encoding="utf-8") as maps:
        name = next(line.split()[-1] for line in maps if "libdarshan-util" in line)
    return ffi.dlopen(name)


def _numbered(files: Sequence[File]) -> list[tuple[int, File]]:
    return [(k + 1, file) for k, file in enumerate(files)]


def _mount(ffi: Any, keep: list[Any]) -> Any:
    mount = ffi.new("struct mount *")
    mount.type, mount.path = b"nfs", b"/scratch"
    keep.append(mount)
    return mount


def _names(ffi: Any, files: Sequence[File], keep: list[Any]) -> Any:
    following = ffi.NULL
    for number, file in reversed(_numbered(files)):
        record = ffi.new("struct name_record *", {"id": number, "name": file.name.encode() + b"\0"})
        ref = ffi.new("struct name_ref *", {"record": record, "next": following})
        keep += [record, ref]
        following = ref
    return following


def _put(ffi: Any, lib: Any, log: Any, kind: tuple[int, int], raw: bytes) -> int:
    return int(lib.darshan_log_put_mod(log, kind[0], ffi.from_buffer(raw), len(raw), kind[1]))


def _counters(number: int, file: File) -> bytes:
    from darshan.backend import cffi_backend

    names = cffi_backend.counter_names("POSIX")
    row = np.zeros(1, _RECORD)
    row["id"] = number
    for word, moved, done in (("WRITES", "WRITTEN", file.writes), ("READS", "READ", file.reads)):
        if done is not None and len(done):
            row["counters"][0, names.index(f"POSIX_{word}")] = len(done)
            row["counters"][0, names.index(f"POSIX_BYTES_{moved}")] = done["length"].sum()
            last = (done["offset"] + done["length"]).max() - 1
            row["counters"][0, names.index(f"POSIX_MAX_BYTE_{moved}")] = last
    row["counters"][0, names.index("POSIX_OPENS")] = 1
    return row.tobytes()


def _dxt(number: int, file: File) -> bytes:
    none = np.zeros(0, _SEGMENT)
    writes = none if file.writes is None else file.writes
    reads = none if file.reads is None else file.reads
    head = np.zeros(1, _HEAD)
    head["id"], head["host"] = number, b"node1"
    head["writes"], head["reads"] = len(writes), len(reads)
    return head.tobytes() + writes.tobytes() + reads.tobytes()
