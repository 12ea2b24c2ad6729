"""The records of a log's modules: segments, counters, layouts, names inside containers.

Segments are read as one array per record: the wheel's own reader makes a Python object of each.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracehint.collectors.darshan.counters import Counters
from tracehint.collectors.darshan.facts import LogFacts
from tracehint.collectors.darshan.runs import SEGMENT, Runs, coalesce, from_counters, possible

_DXT_HEADER = 16 + 8 + 64 + 16  # struct dxt_file_record
_NO_KINDS = {"seq_ops": 0, "small_ops": 0}
_STREAMS = (b"<STDIN>", b"<STDOUT>", b"<STDERR>")

# Module -> (struct, prefix of its counters): those whose bytes are counted, in this order.
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
        # (record id, rank, write) -> operations that DXT has segments for
        self.segment_ops: dict[tuple[int, int, bool], tuple[int, int]] = {}
        self.segment_ranks: dict[int, set[int]] = {}
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
            count = Counters(row, integers, times, floats, prefix)
            counted = [w for w in (True, False) if count.volume(w, stdio=False)[1] > 0]
            if name == "POSIX":
                self.posix.update((record, write) for write in counted)
            elif name == "MPI-IO":
                # the same bytes seen one layer above, unless the layer below saw none
                counted = [write for write in counted if (record, write) not in self.posix]
                if not counted:
                    continue
            self.facts.opens += self._open_rows(count, record, file, rank)
            for write in counted:
                self._ranges(count, record, file, rank, write, stdio=name == "STDIO")

    def _ranges(
        self, count: Counters, record: int, file: int, rank: int, write: bool, *, stdio: bool
    ) -> None:
        ops, total, max_byte, consecutive = count.volume(write, stdio=stdio)
        seen_ops, seen_bytes = (0, 0) if stdio else self._segments_of(record, rank, write)
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
        """Operations and bytes of a rank's segments; of all ranks for the counters that they share
        (rank -1)."""
        ranks = self._ranks_of(record) if rank < 0 else [rank]
        found = [self.segment_ops.get((record, r, write), (0, 0)) for r in ranks]
        return sum(ops for ops, _ in found), sum(size for _, size in found)

    def _ranks_of(self, record: int) -> list[int]:
        """The ranks that have segments of a record."""
        if not self.segment_ranks:
            for file, rank, _ in self.segment_ops:
                self.segment_ranks.setdefault(file, set()).add(rank)
        return sorted(self.segment_ranks.get(record, ()))

    def _open_rows(
        self, count: Counters, record: int, file: int, rank: int
    ) -> list[dict[str, Any]]:
        """The `opens` row of a record; where all ranks share it (rank -1) and segments say who did
        what, one of each rank. Which operations were small or in sequence is not known by rank:
        the first one's row has them."""
        row = count.open_row(file, rank)
        seen = [self._segments_of(record, rank, write)[1] for write in (False, True)]
        if rank >= 0 or seen != [row["read_bytes"], row["write_bytes"]] or not any(seen):
            return [row]
        rows: list[dict[str, Any]] = []
        ranks = self._ranks_of(record)
        row["io"] /= max(1, len(ranks))
        for one in ranks:
            own: dict[str, int] = dict(_NO_KINDS) if rows else {}
            for way, write in (("read", False), ("write", True)):
                own[f"{way}_ops"], own[f"{way}_bytes"] = self._segments_of(record, one, write)
            rows.append({**row, "rank": one, **own})
        return rows

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
