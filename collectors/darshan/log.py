"""Read one Darshan log with the library in the `darshan` wheel.

The library may crash the process on a damaged log, so this module runs in
worker processes only (pool.py).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from tracehint.collectors.darshan.check import check
from tracehint.collectors.darshan.facts import LogFacts, UnreadableLogError
from tracehint.collectors.darshan.library import wrapper
from tracehint.collectors.darshan.records import Records
from tracehint.limits import limit

_PID_IN_NAME = re.compile(r"_id(\d+)-(\d{1,9})_")


def read_log(path: str) -> LogFacts:
    """All facts of a log. Raises UnreadableLogError."""
    backend = wrapper()
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
        Records(lib, ffi, handle, facts, names, backend).read(modules)
        check(facts)
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
    if number < 0 or number > limit("darshan-names"):
        raise UnreadableLogError(f"it claims {number:,} file names (limit darshan-names)")
    names = {}
    for k in range(number):
        name = records[0][k].name
        if name != ffi.NULL:
            names[int(records[0][k].id)] = ffi.string(name)
            lib.darshan_free(name)
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
