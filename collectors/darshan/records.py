"""Records of a log's modules: segments, counters, layouts, names inside containers.

Segments are read as one array per record: the wheel's own reader makes a Python object of each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from tracehint.schemas.wording import plural


class Counters:
    """Access by name to one record's counters."""

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
        """Return operations, bytes, last byte, and operations that continue the previous one."""
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
            # at most one seek, as many bytes as the last offset: one pass from 0
            once = self.get("OPENS") <= 1 and self.get("SEEKS") <= 1 and total == max_byte + 1
            return ops, total, max_byte, ops if once else -1
        return ops, total, max_byte, self.get("CONSEC_WRITES" if write else "CONSEC_READS")

    def times(self, write: bool) -> tuple[float, float]:
        word = "WRITE" if write else "READ"
        return self.time(f"{word}_START_TIMESTAMP"), self.time(f"{word}_END_TIMESTAMP")

    def open_row(self, file: int, rank: int) -> dict[str, Any]:
        """Return the columns of an `opens` row; times in seconds from the log's start."""
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
            "file": file,
            "rank": rank,
            "open": self.time("OPEN_START_TIMESTAMP"),
            "close": self.time("CLOSE_END_TIMESTAMP"),
            "first": min(begun, default=0.0),
            "last": ended,
            "io": sum(self.time(f"{kind}_TIME") for kind in ("READ", "WRITE", "META")),
            "read_ops": max(0, read[0]),
            "read_bytes": max(0, read[1]),
            "write_ops": max(0, write[0]),
            "write_bytes": max(0, write[1]),
            "seq_ops": consecutive,
            "small_ops": small,
        }


# A run of accesses of one log; `file` is an index into the log's list of names.
RUN = np.dtype(
    [
        ("file", "<i8"),
        ("rank", "<i4"),
        ("write", "?"),
        ("how", "<i4"),
        ("start", "<i8"),
        ("length", "<i8"),
        ("ops", "<i8"),
        ("bytes", "<i8"),
        ("first", "<f8"),
        ("last", "<f8"),
        ("exact", "?"),
    ]
)
MAX_COUNT = 1 << 60  # bytes, operations, offsets
MAX_SECONDS = 1e9  # of one job
MIN_SECONDS = -86_400.0  # clocks of ranks may disagree about the start
HOW_CALL, HOW_COUNTERS = 0, 1
SEGMENT = np.dtype([("offset", "<i8"), ("length", "<i8"), ("first", "<f8"), ("last", "<f8")])

Runs = npt.NDArray[Any]


def possible(rows: Runs, counts: Sequence[str]) -> npt.NDArray[np.bool_]:
    """Return which rows of a damaged log are plausible: these columns and the times in bounds."""
    good = np.ones(len(rows), bool)
    for name in counts:
        good &= (rows[name] >= 0) & (rows[name] <= MAX_COUNT)
    for name in ("first", "last"):  # also false for NaN
        good &= (rows[name] >= MIN_SECONDS) & (rows[name] <= MAX_SECONDS)
    return good


def coalesce(segments: Runs, *, file: int, rank: int, write: bool) -> Runs:
    """Merge consecutive contiguous segments into runs; times are seconds from the log's start."""
    segments = segments[segments["length"] > 0]
    if not len(segments):
        return np.zeros(0, RUN)
    if np.any(np.diff(segments["first"]) < 0):
        segments = segments[np.argsort(segments["first"], kind="stable")]
    ends = segments["offset"] + segments["length"]
    begins = np.flatnonzero(np.concatenate([[True], segments["offset"][1:] != ends[:-1]]))
    lasts = np.concatenate([begins[1:] - 1, [len(segments) - 1]])
    runs = np.zeros(len(begins), RUN)
    runs["file"], runs["rank"], runs["write"] = file, rank, write
    runs["start"] = segments["offset"][begins]
    runs["length"] = runs["bytes"] = ends[lasts] - runs["start"]
    runs["ops"] = lasts - begins + 1
    runs["first"] = segments["first"][begins]
    runs["last"] = np.maximum.reduceat(segments["last"], begins)
    runs["exact"] = True
    return runs


def from_counters(
    *,
    file: int,
    rank: int,
    write: bool,
    ops: int,
    total: int,
    max_byte: int,
    consecutive: int,
    first: float,
    last: float,
) -> Runs:
    """Return one run from counters alone.

    If every operation begins where the previous one ended, the range is exact: `total` bytes that
    end at `max_byte`. Otherwise the run is an upper bound, [0, max_byte + 1).
    """
    if ops <= 0 or total <= 0:
        return np.zeros(0, RUN)
    contiguous = consecutive >= ops - 1 and total <= max_byte + 1
    start = max_byte + 1 - total if contiguous else 0
    end = max(max_byte + 1, total if max_byte < 0 else 0)
    run = np.zeros(1, RUN)
    run["file"], run["rank"], run["write"], run["how"] = file, rank, write, HOW_COUNTERS
    run["start"], run["length"] = start, end - start
    run["ops"], run["bytes"] = ops, total
    run["first"], run["last"], run["exact"] = first, max(first, last), contiguous
    return run


# columns of `opens` that are summed if several records are for one file
SUMMED = ("read_ops", "read_bytes", "write_ops", "write_bytes", "seq_ops", "small_ops")


@dataclass
class LogFacts:
    """Content of one log. Times in `opens` and `runs` are seconds from `start_ns`."""

    path: str
    jobid: int = 0
    pid: int | None = None
    uid: int = 0
    nprocs: int = 1
    start_ns: int = 0
    end_ns: int | None = None
    hostname: str = ""
    rank_hosts: dict[int, str] = field(default_factory=dict)  # rank -> host, from segments
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


_DXT_HEADER = 16 + 8 + 64 + 16  # struct dxt_file_record
_NO_OP_KINDS = {"seq_ops": 0, "small_ops": 0}
_STREAMS = (b"<STDIN>", b"<STDOUT>", b"<STDERR>")

# Modules with byte counters, in the order of reading -> (struct, prefix of the counters).
_COUNTED = {
    "POSIX": ("struct darshan_posix_file **", "POSIX"),
    "STDIO": ("struct darshan_stdio_file **", "STDIO"),
    "MPI-IO": ("struct darshan_mpiio_file **", "MPIIO"),
}
_ATTRIBUTES = {
    "H5F": "hdf5.file",
    "H5D": "hdf5.dataset",
    "PNETCDF_FILE": "pnetcdf.file",
    "PNETCDF_VAR": "pnetcdf.variable",
}


class Records:
    """Reads the records of one log's modules into its facts."""

    def __init__(
        self,
        lib: Any,
        ffi: Any,
        handle: Any,
        facts: LogFacts,
        names: dict[int, bytes],
        backend: Any,
    ) -> None:
        self.lib, self.ffi, self.handle, self.facts = lib, ffi, handle, facts
        self.names, self.backend = names, backend
        self.index: dict[int, int] = {}
        self.parts: list[Runs] = []
        # (record id, rank, write) -> operations and bytes of DXT segments
        self.segment_ops: dict[tuple[int, int, bool], tuple[int, int]] = {}
        self.segment_ranks: dict[int, set[int]] = {}
        self.posix: set[tuple[int, bool]] = set()  # records and directions with POSIX bytes

    def read(self, modules: dict[str, int]) -> None:
        """Read all modules, segments first, so that counters only add what segments lack."""
        if "DXT_POSIX" in modules:
            self._read_segments(modules["DXT_POSIX"])
        for name, (struct, prefix) in _COUNTED.items():
            if name in modules:
                self._read_counters(modules[name], name, struct, prefix)
        if "LUSTRE" in modules:
            self._read_stripes(modules["LUSTRE"])
        for name, attribute in _ATTRIBUTES.items():
            if name in modules:
                self._read_attributes(modules[name], attribute)
        if self.parts:
            self.facts.runs = np.concatenate(self.parts)

    def _raw_records(self, module: int) -> Any:
        """Yield the raw records of a module, each freed after use."""
        while True:
            buffer = self.ffi.new("void **")
            if self.lib.darshan_log_get_record(self.handle, module, buffer) < 1:
                return
            yield buffer
            self.lib.darshan_free(buffer[0])

    def _file(self, record: int) -> int | None:
        """Return the record's index in facts.names; None for streams and unnamed records."""
        name = self.names.get(record)
        if name is None or name in _STREAMS:
            return None
        if record not in self.index:
            self.index[record] = len(self.facts.names)
            self.facts.names.append(name)
        return self.index[record]

    def _read_segments(self, module: int) -> None:
        for buffer in self._raw_records(module):
            head = self.ffi.cast("struct dxt_file_record *", buffer[0])
            host = self.ffi.string(head.hostname, 64).decode("utf-8", "replace")
            self.facts.hostname = self.facts.hostname or host
            record, rank = int(head.base_rec.id), int(head.base_rec.rank)
            self.facts.rank_hosts.setdefault(rank, host)
            file = self._file(record)
            writes, reads = int(head.write_count), int(head.read_count)
            if file is None or writes < 0 or reads < 0:
                continue
            size = (writes + reads) * SEGMENT.itemsize
            start = self.ffi.cast("char *", buffer[0]) + _DXT_HEADER
            data = np.frombuffer(self.ffi.buffer(start, size), SEGMENT).copy()
            good = possible(data, ("offset", "length"))
            wrong = int((~good).sum())
            if wrong:
                text = f"{wrong} of {len(data)} segments of a file have impossible figures"
                self.facts.losses.append(("log_limits", wrong, text))
            for write, which in ((True, slice(0, writes)), (False, slice(writes, None))):
                part = data[which][good[which]]
                self.parts.append(coalesce(part, file=file, rank=rank, write=write))
                ops = writes if write else reads
                self.segment_ops[record, rank, write] = (ops, int(part["length"].sum()))

    def _read_counters(self, module: int, name: str, struct: str, prefix: str) -> None:
        integers = {n: k for k, n in enumerate(self.backend.counter_names(name))}
        floats = {n: k for k, n in enumerate(self.backend.fcounter_names(name))}
        for buffer in self._raw_records(module):
            head = self.ffi.cast(struct, buffer)
            record, rank = int(head[0].base_rec.id), int(head[0].base_rec.rank)
            file = self._file(record)
            if file is None:
                continue
            row, times = head[0].counters, head[0].fcounters
            count = Counters(row, integers, times, floats, prefix)
            counted = [w for w in (True, False) if count.volume(w, stdio=False)[1] > 0]
            if name == "POSIX":
                self.posix.update((record, write) for write in counted)
            elif name == "MPI-IO":
                # the same bytes one layer above, unless POSIX has none
                counted = [write for write in counted if (record, write) not in self.posix]
                if not counted:
                    continue
            self.facts.opens += self._open_rows(count, record, file, rank)
            for write in counted:
                self._add_runs(count, record, file, rank, write, stdio=name == "STDIO")

    def _add_runs(
        self, count: Counters, record: int, file: int, rank: int, write: bool, *, stdio: bool
    ) -> None:
        ops, total, max_byte, consecutive = count.volume(write, stdio=stdio)
        seen_ops, seen_bytes = (0, 0) if stdio else self._segments_of(record, rank, write)
        if seen_ops and total > seen_bytes:
            # segments were cut off: the missing ones are somewhere below max_byte
            missing = f"{ops - seen_ops} of {ops} segments of a file are missing"
            self.facts.losses.append(("log_limits", max(1, ops - seen_ops), missing))
            consecutive = -1
        if total <= seen_bytes:
            return
        first, last = count.times(write)
        self.parts.append(
            from_counters(
                file=file,
                rank=rank,
                write=write,
                ops=max(1, ops - seen_ops),
                total=total - seen_bytes,
                max_byte=max_byte,
                consecutive=consecutive,
                first=first,
                last=last,
            )
        )

    def _segments_of(self, record: int, rank: int, write: bool) -> tuple[int, int]:
        """Return operations and bytes of a rank's segments; of all ranks for the counters that they
        share (rank -1)."""
        ranks = self._ranks_of(record) if rank < 0 else [rank]
        found = [self.segment_ops.get((record, r, write), (0, 0)) for r in ranks]
        return sum(ops for ops, _ in found), sum(size for _, size in found)

    def _ranks_of(self, record: int) -> list[int]:
        """Return the ranks that have segments of a record."""
        if not self.segment_ranks:
            for file, rank, _ in self.segment_ops:
                self.segment_ranks.setdefault(file, set()).add(rank)
        return sorted(self.segment_ranks.get(record, ()))

    def _open_rows(
        self, count: Counters, record: int, file: int, rank: int
    ) -> list[dict[str, Any]]:
        """Return the `opens` row of a record, or one per rank if all ranks share it (rank -1) and
        segments account for all bytes. Small and sequential operations are not known by rank: the
        first row has the totals."""
        row = count.open_row(file, rank)
        seen = [self._segments_of(record, rank, write)[1] for write in (False, True)]
        if rank >= 0 or seen != [row["read_bytes"], row["write_bytes"]] or not any(seen):
            return [row]
        rows: list[dict[str, Any]] = []
        ranks = self._ranks_of(record)
        row["io"] /= max(1, len(ranks))
        for one in ranks:
            own: dict[str, int] = dict(_NO_OP_KINDS) if rows else {}
            for way, write in (("read", False), ("write", True)):
                own[f"{way}_ops"], own[f"{way}_bytes"] = self._segments_of(record, one, write)
            rows.append({**row, "rank": one, **own})
        return rows

    def _read_stripes(self, module: int) -> None:
        """Add stripe layouts as attributes, such as lustre_comp_stripe_size."""
        keys = [key.lower() for key in self.backend.counter_names("LUSTRE_COMP")]
        for buffer in self._raw_records(module):
            head = self.ffi.cast("struct darshan_lustre_record *", buffer[0])
            name = self.names.get(int(head.base_rec.id))
            if name is None:
                continue
            for k in range(min(int(head.num_comps), 16)):
                values = self.ffi.unpack(head.comps[k].counters, len(keys))
                for key, value in zip(keys, values, strict=True):
                    self.facts.attributes.append((name, key, str(int(value))))

    def _read_attributes(self, module: int, attribute: str) -> None:
        for buffer in self._raw_records(module):
            head = self.ffi.cast("struct darshan_base_record *", buffer[0])
            name = self.names.get(int(head.id))
            if name:
                path, _, inside = name.partition(b":")
                text = inside.decode("utf-8", "replace")
                self.facts.attributes.append((path, attribute, text))


_MAX_EPOCH = 1 << 33  # seconds: the year 2242
_TIMES = ("open", "close", "first", "last")


def check(facts: LogFacts) -> None:
    """Drop impossible values, counted as one loss. Raises UnreadableLogError for the job record."""
    if not 0 <= facts.start_ns < _MAX_EPOCH * 10**9:
        raise UnreadableLogError("its job record is damaged")
    if facts.end_ns is not None and facts.end_ns > facts.start_ns + MAX_SECONDS * 1e9:
        facts.end_ns = None
    facts.uid = facts.uid if 0 <= facts.uid < 1 << 31 else 0
    facts.nprocs = facts.nprocs if facts.nprocs < 1 << 31 else 1
    wrong = _check_runs(facts) + sum(_check_open(row) for row in facts.opens)
    if wrong:
        facts.losses.append(
            ("log_limits", wrong, f"{plural(wrong, 'record')} with impossible figures")
        )
    facts.losses = [(kind, min(n, MAX_COUNT), text) for kind, n, text in facts.losses]


def _check_runs(facts: LogFacts) -> int:
    runs = facts.runs
    good = possible(runs, ("start", "length", "ops", "bytes"))
    if not good.all():
        facts.runs = runs[good]
    return int((~good).sum())


def _check_open(row: dict[str, Any]) -> int:
    wrong = 0
    for name in SUMMED:
        if not 0 <= row[name] <= MAX_COUNT:
            row[name], wrong = 0, 1
    for name in _TIMES:
        if not MIN_SECONDS <= row[name] <= MAX_SECONDS:
            row[name], wrong = 0.0, 1
    if not 0 <= row["io"] <= MAX_SECONDS * MAX_COUNT:
        row["io"], wrong = 0.0, 1
    return wrong
