"""Two collectors at once: eBPF and the preload library record one run, differences are listed.

A check of the recorders, not a way to record: it costs both.
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

_SHOWN = 20
_KEYS = ("pid", "dev", "ino", "op")  # a file may be named by links that are gone


class BothCollectors:
    """eBPF writes the bundle, the preload library one beside it: NAME.preload.trace."""

    name = "all"

    def check(self) -> Availability:
        """Both must be usable."""
        for name, found in (
            ("ebpf", EbpfCollector().check()), ("preload", PreloadCollector().check()),
        ):  # fmt: skip  # a table
            if not found.usable or found.incomplete:
                why = found.incomplete or found.reason
                return Availability(False, f"{name}: {why}", found.remedy)
        return Availability(True, "ebpf and preload can record one run")

    def record(self, request: RecordRequest) -> RecordResult:
        """Record with both and list on stderr what differs."""
        from tracehint.collectors.preload.record import prepare

        beside = request.output.with_name(request.output.stem + ".preload.trace")
        prepared = prepare(replace(request, output=beside), launched=False)
        ours = prepared.environment({**request.inherited, **request.environment})
        result = EbpfCollector().record(replace(request, environment=ours))
        with report_failures(f"The recordings are {request.output} and {beside}."):
            prepared.finish({"exit_status": result.exit_status, "outlived": 0})
            found = differences(read_bundle(request.output), read_bundle(beside))
            _tell(found, beside)
        return result


def _tell(found: pa.Table, beside: Path) -> None:
    print(f"tracehint: {len(found)} differences (preload: {beside})", file=sys.stderr)
    for row in found.slice(0, _SHOWN).to_pylist():
        path = row["path"].decode("utf-8", "backslashreplace")
        seen = f"ebpf {row['ebpf']}, preload {row['preload']} bytes"
        print(f"  {row['pid']} {row['op']} {path!r}: {seen}", file=sys.stderr)


def differences(ebpf: Bundle, preload: Bundle) -> pa.Table:
    """Bytes per process, file and direction that are not the same: columns pid, path, op, ebpf,
    preload. Without mapped files, of which both know different bounds, io_uring, and what the
    loader reads before the library runs."""
    import pyarrow as pa
    import pyarrow.compute as pc

    both = _bytes(ebpf).join(
        _bytes(preload), list(_KEYS), join_type="full outer", right_suffix="_preload"
    )
    path = pc.coalesce(both.column("path_min"), both.column("path_min_preload"))
    here, there = (
        pc.fill_null(both.column(name), 0) for name in ("bytes_sum", "bytes_sum_preload")
    )
    # eBPF also sees the library look at a program before it is executed
    looked = pc.is_in(path, value_set=_executed_paths(ebpf))
    looked = pc.and_(looked, pc.greater(here, there))
    found = pa.table(
        {"pid": both["pid"], "path": path, "op": both["op"], "ebpf": here, "preload": there}
    )
    return found.filter(pc.invert(pc.or_(pc.equal(here, there), looked)))


def _executed_paths(bundle: Bundle) -> pa.Array:
    """Programs, and the first arguments: of a script the first is its interpreter."""
    import pyarrow as pa

    rows = bundle.tables["processes"].select(["exe", "argv"]).to_pylist()
    paths = {row["exe"] for row in rows} | {arg for row in rows for arg in row["argv"][:4]}
    return pa.array(sorted(paths - {None}), pa.binary())


def _bytes(bundle: Bundle) -> pa.Table:
    """Bytes by pid, file and direction; one of the file's names."""
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
    rows = rows.filter(pc.invert(_of_loader(rows.column("path"))))
    return rows.group_by(list(_KEYS)).aggregate([("bytes", "sum"), ("path", "min")])


def _of_loader(path: pa.ChunkedArray) -> pa.ChunkedArray:
    """Libraries, and the recorder's own files."""
    import pyarrow.compute as pc

    return pc.match_substring_regex(path, r"\.so(\.|$)|/spool/(arena|sites)$|^/etc/ld\.so\.")
