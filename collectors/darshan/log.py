"""Read one Darshan log with the library in the `darshan` wheel.

The library may crash the process on a damaged log, so this module runs in
worker processes only (pool.py). Segments are read as one array per record: the
wheel's own reader makes a Python object of each.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tracehint.collectors.darshan.runs import RUN, SEGMENT, Runs, coalesce, from_counters

MAX_NAMES = 5_000_000
_DXT_HEADER = 16 + 8 + 64 + 16  # struct dxt_file_record
_PID_IN_NAME = re.compile(r"_id(\d+)-(\d+)_")
_STREAMS = (b"<STDIN>", b"<STDOUT>", b"<STDERR>")


@dataclass
class LogFacts:
    """What one log says. Times in `opens` and `runs` are seconds from `start_ns`."""

    path: str
    jobid: int = 0
    pid: int | None = None
    uid: int = 0
    nprocs: int = 1
    start_ns: int = 0
    end_ns: int | None = None
    hostname: str = ""
    exe: bytes = b""
    metadata: dict[str, str] = field(default_factory=dict)
    mounts: list[tuple[str, str]] = field(default_factory=list)
    names: list[bytes] = field(default_factory=list)
    opens: list[dict[str, Any]] = field(default_factory=list)
    runs: Runs = field(default_factory=lambda: np.zeros(0, RUN))
    attributes: list[tuple[bytes, str, str]] = field(default_factory=list)
    losses: list[tuple[str, int, str]] = field(default_factory=list)


class UnreadableLogError(Exception):
    """The library could not open or read the log."""


def read_log(path: str) -> LogFacts:
    """All facts of a log. Raises UnreadableLogError."""
    from darshan.backend import cffi_backend as backend

    lib, ffi = backend.libdutil, backend.ffi
    handle = lib.darshan_log_open(path.encode("utf-8", "surrogateescape"))
    if handle == ffi.NULL:
        raise UnreadableLogError("not a Darshan log, or cut short in its header")
    try:
        facts = LogFacts(path)
        _read_job(lib, ffi, handle, facts)
        _read_mounts(lib, ffi, handle, facts)
        names = _read_names(lib, ffi, handle)
        modules = _read_modules(lib, ffi, handle, facts)
        _Records(lib, ffi, handle, facts, names, backend).read(modules)
        return facts
    finally:
        lib.darshan_log_close(handle)


def _read_job(lib: Any, ffi: Any, handle: Any, facts: LogFacts) -> None:
    job = ffi.new("struct darshan_job *")
    if lib.darshan_log_get_job(handle, job) < 0:
        raise UnreadableLogError("its job record is damaged")
    facts.jobid, facts.uid, facts.nprocs = job.jobid, job.uid, max(1, job.nprocs)
    facts.start_ns = job.start_time_sec * 1_000_000_000 + job.start_time_nsec
    end = job.end_time_sec * 1_000_000_000 + job.end_time_nsec
    facts.end_ns = end if end >= facts.start_ns else None
    text = ffi.string(job.metadata, 1024).decode("utf-8", "replace")
    facts.metadata = dict(kv.split("=", 1) for kv in text.split("\n") if "=" in kv)
    exe = ffi.new("char[]", 1 << 16)
    if lib.darshan_log_get_exe(handle, exe) >= 0:
        facts.exe = ffi.string(exe).rstrip(b" \n")
    if match := _PID_IN_NAME.search(Path(facts.path).name):
        facts.pid = int(match[2])
    facts.hostname = facts.metadata.get("hostname", "")
    if facts.end_ns is None or ".converted" in facts.path:
        facts.losses.append(
            ("killed_process", 1, "the process was killed: recovered counters, no byte ranges")
        )


def _read_mounts(lib: Any, ffi: Any, handle: Any, facts: LogFacts) -> None:
    mounts, count = ffi.new("struct darshan_mnt_info **"), ffi.new("int *")
    if lib.darshan_log_get_mounts(handle, mounts, count) < 0:
        facts.losses.append(("log_limits", 1, "no mount table"))
        return
    for k in range(min(count[0], 4096)):
        path = ffi.string(mounts[0][k].mnt_path).decode("utf-8", "replace")
        kind = ffi.string(mounts[0][k].mnt_type).decode("utf-8", "replace")
        facts.mounts.append((path, kind))
    if count[0]:
        lib.darshan_free(mounts[0])


def _read_names(lib: Any, ffi: Any, handle: Any) -> dict[int, bytes]:
    records, count = ffi.new("struct darshan_name_record **"), ffi.new("int *")
    lib.darshan_log_get_name_records(handle, records, count)
    number = count[0]
    if number < 0 or number > MAX_NAMES:
        raise UnreadableLogError(f"it claims {number} file names")
    names = {}
    for k in range(number):
        names[int(records[0][k].id)] = ffi.string(records[0][k].name)
        lib.darshan_free(records[0][k].name)
    if number:
        lib.darshan_free(records[0])
    return names


def _read_modules(lib: Any, ffi: Any, handle: Any, facts: LogFacts) -> dict[str, int]:
    modules, count = ffi.new("struct darshan_mod_info **"), ffi.new("int *")
    lib.darshan_log_get_modules(handle, modules, count)
    found = {}
    for k in range(count[0]):
        name = ffi.string(modules[0][k].name).decode("ascii", "replace")
        found[name] = modules[0][k].idx
        if modules[0][k].partial_flag:
            facts.losses.append(
                ("log_limits", 1, f"{name}: its record or memory limit was reached")
            )
    if count[0]:
        lib.darshan_free(modules[0])
    return found


# Module -> (struct, prefix of its counters): those whose bytes are counted, in this order.
_COUNTED = {
    "POSIX": ("struct darshan_posix_file **", "POSIX"),
    "STDIO": ("struct darshan_stdio_file **", "STDIO"),
    "MPI-IO": ("struct darshan_mpiio_file **", "MPIIO"),
}
_ATTRIBUTES = {"H5F": "hdf5.file", "H5D": "hdf5.dataset", "PNETCDF_FILE": "pnetcdf.file",
               "PNETCDF_VAR": "pnetcdf.variable"}  # fmt: skip


class _Records:
    """Reads the records of one log's modules into its facts."""

    def __init__(
        self, lib: Any, ffi: Any, handle: Any, facts: LogFacts, names: dict[int, bytes],
        backend: Any,
    ) -> None:  # fmt: skip
        self.lib, self.ffi, self.handle, self.facts = lib, ffi, handle, facts
        self.names, self.backend = names, backend
        self.index: dict[int, int] = {}
        self.parts: list[Runs] = []
        # (record id, rank, write) -> operations that DXT has segments for
        self.segment_ops: dict[tuple[int, int, bool], tuple[int, int]] = {}
        self.posix: set[tuple[int, bool]] = set()  # records and directions with POSIX bytes

    def read(self, modules: dict[str, int]) -> None:
        """All modules, segments first, so that counters fill in only what segments lack."""
        if "DXT_POSIX" in modules:
            self._segments(modules["DXT_POSIX"])
        for name, (struct, prefix) in _COUNTED.items():
            if name in modules:
                self._counters(modules[name], name, struct, prefix)
        if "LUSTRE" in modules:
            self._lustre(modules["LUSTRE"])
        for name, attribute in _ATTRIBUTES.items():
            if name in modules:
                self._attribute(modules[name], attribute)
        if self.parts:
            self.facts.runs = np.concatenate(self.parts)

    def _buffers(self, module: int) -> Any:
        """Raw records of a module, freed after use."""
        while True:
            buffer = self.ffi.new("void **")
            if self.lib.darshan_log_get_record(self.handle, module, buffer) < 1:
                return
            yield buffer
            self.lib.darshan_free(buffer[0])

    def _file(self, record: int) -> int | None:
        """Index of the record's file in facts.names; None for streams and unnamed records."""
        name = self.names.get(record)
        if name is None or name in _STREAMS:
            return None
        if record not in self.index:
            self.index[record] = len(self.facts.names)
            self.facts.names.append(name)
        return self.index[record]

    def _segments(self, module: int) -> None:
        for buffer in self._buffers(module):
            head = self.ffi.cast("struct dxt_file_record *", buffer[0])
            host = self.ffi.string(head.hostname, 64).decode("utf-8", "replace")
            self.facts.hostname = self.facts.hostname or host
            record, rank = int(head.base_rec.id), int(head.base_rec.rank)
            file = self._file(record)
            writes, reads = int(head.write_count), int(head.read_count)
            if file is None or writes < 0 or reads < 0:
                continue
            size = (writes + reads) * SEGMENT.itemsize
            start = self.ffi.cast("char *", buffer[0]) + _DXT_HEADER
            data = np.frombuffer(self.ffi.buffer(start, size), SEGMENT).copy()
            for write, part in ((True, data[:writes]), (False, data[writes:])):
                if len(part):
                    self.parts.append(coalesce(part, file=file, rank=rank, write=write))
                    moved = int(part["length"].sum())
                    self.segment_ops[record, rank, write] = (len(part), moved)

    def _counters(self, module: int, name: str, struct: str, prefix: str) -> None:
        integers = {n: k for k, n in enumerate(self.backend.counter_names(name))}
        floats = {n: k for k, n in enumerate(self.backend.fcounter_names(name))}
        for buffer in self._buffers(module):
            head = self.ffi.cast(struct, buffer)
            record, rank = int(head[0].base_rec.id), int(head[0].base_rec.rank)
            file = self._file(record)
            if file is None:
                continue
            row, times = head[0].counters, head[0].fcounters
            count = _Counters(row, integers, times, floats, prefix)
            counted = [w for w in (True, False) if count.volume(w, stdio=False)[1] > 0]
            if name == "POSIX":
                self.posix.update((record, write) for write in counted)
            elif name == "MPI-IO":
                # the same bytes seen one layer above, unless the layer below saw none
                counted = [write for write in counted if (record, write) not in self.posix]
                if not counted:
                    continue
            self.facts.opens.append(count.open_row(file, rank))
            for write in counted:
                self._ranges(count, record, file, rank, write, stdio=name == "STDIO")

    def _ranges(
        self, count: _Counters, record: int, file: int, rank: int, write: bool, *, stdio: bool
    ) -> None:
        ops, total, max_byte, consecutive = count.volume(write, stdio=stdio)
        seen_ops, seen_bytes = (
            (0, 0) if stdio else self.segment_ops.get((record, rank, write), (0, 0))
        )
        if seen_ops and total > seen_bytes:
            # segments were cut off: what is missing lies somewhere below max_byte
            missing = f"{ops - seen_ops} of {ops} segments of a file are missing"
            self.facts.losses.append(("log_limits", max(1, ops - seen_ops), missing))
            consecutive = -1
        if total <= seen_bytes:
            return
        first, last = count.times(write)
        self.parts.append(
            from_counters(
                file=file, rank=rank, write=write, ops=max(1, ops - seen_ops),
                total=total - seen_bytes, max_byte=max_byte, consecutive=consecutive,
                first=first, last=last,
            )
        )  # fmt: skip

    def _lustre(self, module: int) -> None:
        """Stripe layouts as attributes: lustre_comp_stripe_size and its like."""
        keys = [key.lower() for key in self.backend.counter_names("LUSTRE_COMP")]
        for buffer in self._buffers(module):
            head = self.ffi.cast("struct darshan_lustre_record *", buffer[0])
            name = self.names.get(int(head.base_rec.id))
            if name is None:
                continue
            for k in range(min(int(head.num_comps), 16)):
                values = self.ffi.unpack(head.comps[k].counters, len(keys))
                for key, value in zip(keys, values, strict=True):
                    self.facts.attributes.append((name, key, str(int(value))))

    def _attribute(self, module: int, attribute: str) -> None:
        for buffer in self._buffers(module):
            head = self.ffi.cast("struct darshan_base_record *", buffer[0])
            name = self.names.get(int(head.id))
            if name:
                path, _, inside = name.partition(b":")
                text = inside.decode("utf-8", "replace")
                self.facts.attributes.append((path, attribute, text))


class _Counters:
    """Named access to one record's counters."""

    def __init__(
        self, row: Any, integers: dict[str, int], times: Any, floats: dict[str, int], prefix: str
    ) -> None:
        self.row, self.integers, self.values, self.floats = row, integers, times, floats
        self.prefix = prefix

    def get(self, name: str) -> int:
        k = self.integers.get(f"{self.prefix}_{name}")
        return 0 if k is None else int(self.row[k])

    def time(self, name: str) -> float:
        k = self.floats.get(f"{self.prefix}_F_{name}")
        return 0.0 if k is None else float(self.values[k])

    def volume(self, write: bool, *, stdio: bool) -> tuple[int, int, int, int]:
        """Operations, bytes, last byte, operations that began where the one before ended."""
        if self.prefix == "MPIIO":
            kinds = ("INDEP", "COLL", "SPLIT", "NB")
            word = "WRITES" if write else "READS"
            ops = sum(max(0, self.get(f"{kind}_{word}")) for kind in kinds)
            total = self.get("BYTES_WRITTEN" if write else "BYTES_READ")
            return ops, total, -1, -1
        ops = self.get("WRITES" if write else "READS")
        total = self.get("BYTES_WRITTEN" if write else "BYTES_READ")
        max_byte = self.get("MAX_BYTE_WRITTEN" if write else "MAX_BYTE_READ")
        if stdio:
            # with one seek at most, as many bytes as the last offset mean one pass from 0
            once = self.get("OPENS") <= 1 and self.get("SEEKS") <= 1 and total == max_byte + 1
            return ops, total, max_byte, ops if once else -1
        return ops, total, max_byte, self.get("CONSEC_WRITES" if write else "CONSEC_READS")

    def times(self, write: bool) -> tuple[float, float]:
        word = "WRITE" if write else "READ"
        return self.time(f"{word}_START_TIMESTAMP"), self.time(f"{word}_END_TIMESTAMP")

    def open_row(self, file: int, rank: int) -> dict[str, Any]:
        """Columns of an `opens` row; times in seconds from the log's start."""
        read, write = self.volume(False, stdio=False), self.volume(True, stdio=False)
        begun = [t for t in (self.times(False)[0], self.times(True)[0]) if t > 0]
        ended = max(self.times(False)[1], self.times(True)[1])
        consecutive = max(0, self.get("CONSEC_READS")) + max(0, self.get("CONSEC_WRITES"))
        small = sum(
            max(0, self.get(f"SIZE_{way}_{size}"))
            for way in ("READ", "WRITE")
            for size in ("0_100", "100_1K")
        )
        return {
            "file": file, "rank": rank, "open": self.time("OPEN_START_TIMESTAMP"),
            "close": self.time("CLOSE_END_TIMESTAMP"), "first": min(begun, default=0.0),
            "last": ended, "read_ops": max(0, read[0]), "read_bytes": max(0, read[1]),
            "write_ops": max(0, write[0]), "write_bytes": max(0, write[1]),
            "seq_ops": consecutive, "small_ops": small,
        }  # fmt: skip
