"""Binary layout of the eBPF loader's spool: collectors/ebpf/layout.h as NumPy types.

tests/test_ebpf_layout.py compiles the C header and compares every offset.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

# enum th_record
EPISODE, SNAPSHOT, EXTENT, EXEC, EXIT, ALIVE, PATH, NAME = range(1, 9)
# enum th_episode_state
LIVE, IGNORED, PIPE, CREATED, TRUNCATED, INHERITED, PARTIAL, FAULTS = (1 << i for i in range(8))
# enum th_process_flag
EXECED, STOPPED, ADOPTED = 1, 2, 32

OPS = ("read", "write", "truncate", "deallocate")
HOWS = (
    "read",
    "write",
    "mmap",
    "copy_file_range",
    "sendfile",
    "splice",
    "io_uring",
    "aio",
    "clone",
    "fallocate",
    "open",
    "truncate",
)
NAME_OPS = ("rename", "exchange", "link", "unlink", "symlink", "mkdir", "rmdir", "truncate")
LOST_LIFECYCLE, LOST_EXTENTS = 0, 1
UNKNOWN_URING = 1000  # added to an operation of io_uring in `unknown_call`
UNKNOWN_LIBC = 2000  # in `unknown_call`: of a C library that the preload library does not know
META = 9
LOST = 7

_U64, _U32 = "<u8", "<u4"


def _struct(*fields: tuple[str, object] | tuple[str, object, tuple[int, ...]]) -> np.dtype:
    return np.dtype(list(fields), align=True)  # the C rules: no member is packed


RUN = _struct(
    ("start", _U64),
    ("length", _U64),
    ("stride", "<i8"),
    ("bytes", _U64),
    ("first_ns", _U64),
    ("last_ns", _U64),
    ("last_tick", _U32),
    ("moment", _U32),
    ("count", _U32),
    ("ops", _U32),
    ("op", "u1"),
    ("how", "u1"),
    ("inexact", "u1"),
    ("spare", "u1", (5,)),
)

EPISODE_DT = _struct(
    ("kind", _U32),
    ("state", _U32),
    ("open_id", _U64),
    ("file", _U64),
    ("inode", _U64),
    ("epoch", _U32),
    ("fd", "<i4"),
    ("tid", _U32),
    ("path", _U32),
    ("ino", _U64),
    ("dev", _U32),
    ("generation", _U32),
    ("magic", _U32),
    ("mode", _U32),
    ("flags", _U32),
    ("nlink", _U32),
    ("size_open", _U64),
    ("size_close", _U64),
    ("open_ns", _U64),
    ("close_ns", _U64),
    ("read_ops", _U64),
    ("read_bytes", _U64),
    ("write_ops", _U64),
    ("write_bytes", _U64),
    ("seq_ops", _U64),
    ("small_ops", _U64),
    ("lost_ops", _U64),
    ("first_ns", _U64),
    ("next", _U64),
    ("run_seq", _U32),
    ("spare", _U32),
    ("outer", RUN),
    ("inner", RUN),
)

EXTENT_DT = _struct(("kind", _U32), ("run_seq", _U32), ("open_id", _U64), ("run", RUN))

PROCESS_DT = _struct(
    ("kind", _U32),
    ("state", _U32),
    ("epoch", _U32),
    ("parent", _U32),
    ("prev", _U32),
    ("slot", _U32),
    ("pid", _U32),
    ("tgid", _U32),
    ("uid", _U32),
    ("flags", _U32),
    ("threads", _U32),
    ("hashed", _U32),
    ("start_ns", _U64),
    ("end_ns", _U64),
    ("exit_status", "<i4"),
    ("cwd", _U32),
    ("exe", _U32),
    ("opens", _U32),
    ("used", _U32),
    ("unknown_call", _U32),
    ("meta", _U32, (META,)),
    ("meta_errors", _U32, (META,)),
    ("lost", _U32, (LOST,)),
    ("ppid", _U32),
    ("ancestors", _U32, (4,)),
    ("moment", _U32),
    ("writes_kept", _U32),
    ("cpu_from", _U64),
    ("cpu_ns", _U64),
)

EXEC_DT = _struct(
    ("epoch", _U32),
    ("spare", _U32),
    ("argv_off", _U64),
    ("argv_len", _U32),
    ("env_len", _U32),
    ("env_off", _U64),
)

PATH_DT = _struct(("id", _U32), ("len", _U32), ("off", _U64))

NAME_DT = _struct(
    ("op", _U32),
    ("epoch", _U32),
    ("t_ns", _U64),
    ("off", _U64),
    ("new_off", _U64),
    ("len", _U32),
    ("new_len", _U32),
    ("ino", _U64),
    ("dev", _U64),
    ("size", _U64),
    ("mode", _U32),
    ("nlink", _U32),
)

LOSS_DT = _struct(("kind", _U32), ("epoch", _U32), ("count", _U64))

# C structure, NumPy type, file
STRUCTS = {
    "th_run": RUN,
    "th_episode": EPISODE_DT,
    "th_extent": EXTENT_DT,
    "th_process": PROCESS_DT,
    "th_spool_exec": EXEC_DT,
    "th_spool_path": PATH_DT,
    "th_spool_name": NAME_DT,
    "th_spool_loss": LOSS_DT,
}
FILES = {
    "episodes": EPISODE_DT,
    "extents": EXTENT_DT,
    "processes": PROCESS_DT,
    "execs": EXEC_DT,
    "paths": PATH_DT,
    "names": NAME_DT,
    "losses": LOSS_DT,
}


Records = NDArray[Any]


def filter_records(records: Records, mask: NDArray[np.bool_]) -> Records:
    """Return the records for which the mask is true."""
    return records.compress(mask)


def take_records(records: Records, places: NDArray[np.integer[Any]]) -> Records:
    """Return the records at these positions, in that order."""
    return records.take(places)


def concat_records(*parts: Records) -> Records:
    """Concatenate the records of all parts, which have one type."""
    kind = parts[0].dtype
    assert all(part.dtype == kind for part in parts)
    whole = np.dtype((np.void, kind.itemsize))
    return np.concatenate([np.ascontiguousarray(part).view(whole) for part in parts]).view(kind)


def firsts(ordered: NDArray[Any]) -> NDArray[np.bool_]:
    """Return where a value differs from the previous one."""
    first = np.ones(len(ordered), bool)
    first[1:] = ordered[1:] != ordered[:-1]
    return first


def distinct(values: NDArray[Any]) -> NDArray[Any]:
    """Return the sorted distinct values."""
    ordered = np.sort(values)
    return ordered[firsts(ordered)]


def is_in(values: NDArray[Any], among: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which of the values are in `among`, an array of the same type."""
    if not len(among):
        return np.zeros(len(values), bool)
    among = np.sort(among)
    at = np.minimum(np.searchsorted(among, values), len(among) - 1)
    found: NDArray[np.bool_] = among[at] == values
    return found


def number_rows(*columns: NDArray[Any]) -> NDArray[np.int64]:
    """Number the rows of the columns, equal rows equally; from 0 in sort order, with the first
    column the most significant."""
    order = np.lexsort(columns[::-1])
    new = np.zeros(len(order), bool)
    for column in columns:
        new |= firsts(column[order])
    number = np.empty(len(order), np.int64)
    number[order] = np.cumsum(new) - 1
    return number
