"""Collector `all`: eBPF and the preload library record one run, and differences are listed.

A test of the recorders, not a way to record: it has the overhead of both.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tracehint.collectors.base import Availability, RecordRequest, RecordResult
from tracehint.collectors.ebpf import EbpfCollector
from tracehint.collectors.preload import PreloadCollector
from tracehint.collectors.run import report_failures
from tracehint.schemas.store import read_bundle

if TYPE_CHECKING:
    import pyarrow as pa

    from tracehint.schemas.store import Bundle

_MAX_PRINTED = 20
_KEYS = ("pid", "dev", "ino", "op")  # no paths: the name that was used may be gone


class BothCollectors:
    """eBPF writes the bundle; the preload library writes NAME.preload.trace next to it."""

    name = "all"

    def check(self) -> Availability:
        """Whether both collectors can record here."""
        for name, found in (
            ("ebpf", EbpfCollector().check()),
            ("preload", PreloadCollector().check()),
        ):
            if not found.usable or found.incomplete:
                why = found.incomplete or found.reason
                return Availability(False, f"{name}: {why}", found.remedy)
        return Availability(True, "ebpf and preload can record the same run")

    def record(self, request: RecordRequest) -> RecordResult:
        """Record with both collectors and list the differences on stderr."""
        from tracehint.collectors.preload.record import prepare

        beside = request.output.with_name(request.output.stem + ".preload.trace")
        prepared = prepare(replace(request, output=beside), launched=False)
        ours = prepared.environment({**request.inherited, **request.environment})
        result = EbpfCollector().record(replace(request, environment=ours))
        with report_failures(f"The recordings are {request.output} and {beside}."):
            prepared.finish({"exit_status": result.exit_status, "outlived": 0})
            found = differences(read_bundle(request.output), read_bundle(beside))
            _print_differences(found, beside)
        return result


def _print_differences(found: pa.Table, beside: Path) -> None:
    print(f"tracehint: {len(found)} differences (preload: {beside})", file=sys.stderr)
    for row in found.slice(0, _MAX_PRINTED).to_pylist():
        path = row["path"].decode("utf-8", "backslashreplace")
        seen = f"ebpf {row['ebpf']}, preload {row['preload']} bytes"
        print(f"  {row['pid']} {row['op']} {path!r}: {seen}", file=sys.stderr)


def differences(ebpf: Bundle, preload: Bundle) -> pa.Table:
    """Return bytes per process, file and direction that differ: columns pid, path, op, ebpf,
    preload. Excluded: mapped files, for which both have different bounds, io_uring, and files that
    the loader reads before the library runs."""
    import pyarrow as pa
    import pyarrow.compute as pc

    both = _sum_bytes(ebpf).join(
        _sum_bytes(preload), list(_KEYS), join_type="full outer", right_suffix="_preload"
    )
    path = pc.coalesce(both.column("path_min"), both.column("path_min_preload"))
    by_ebpf, by_preload = (
        pc.fill_null(both.column(name), 0) for name in ("bytes_sum", "bytes_sum_preload")
    )
    # eBPF also records that the library reads a program before its exec
    library_reads = pc.is_in(path, value_set=_executed_paths(ebpf))
    library_reads = pc.and_(library_reads, pc.greater(by_ebpf, by_preload))
    found = pa.table(
        {"pid": both["pid"], "path": path, "op": both["op"], "ebpf": by_ebpf, "preload": by_preload}
    )
    return found.filter(pc.invert(pc.or_(pc.equal(by_ebpf, by_preload), library_reads)))


def _executed_paths(bundle: Bundle) -> pa.Array:
    """Return the executed programs and their first four arguments, which include scripts."""
    import pyarrow as pa

    rows = bundle.tables["processes"].select(["exe", "argv"]).to_pylist()
    paths = {row["exe"] for row in rows} | {arg for row in rows for arg in row["argv"][:4]}
    return pa.array(sorted(paths - {None}), pa.binary())


def _sum_bytes(bundle: Bundle) -> pa.Table:
    """Return bytes per pid, file and direction, with one name of the file."""
    import pyarrow as pa
    import pyarrow.compute as pc

    extents = bundle.tables["extents"]
    moved = pc.and_(
        pc.invert(pc.is_in(extents.column("how"), value_set=pa.array(["mmap", "io_uring"]))),
        pc.is_in(extents.column("op"), value_set=pa.array(["read", "write"])),
    )
    opens = bundle.tables["opens"].select(["open", "file", "path"])
    files = bundle.tables["files"].select(["file", "dev", "ino"])
    pids = bundle.tables["processes"].select(["proc", "pid"])
    rows = extents.filter(moved).select(["open", "proc", "op", "bytes"])
    rows = rows.join(opens, "open").join(files, "file").join(pids, "proc")
    rows = rows.filter(pc.invert(_match_library_files(rows.column("path"))))
    return rows.group_by(list(_KEYS)).aggregate([("bytes", "sum"), ("path", "min")])


def _match_library_files(path: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return which paths are shared libraries, the loader's cache or the recorder's own files."""
    import pyarrow.compute as pc

    return pc.match_substring_regex(path, r"\.so(\.|$)|/spool/(arena|sites)$|^/etc/ld\.so\.")
