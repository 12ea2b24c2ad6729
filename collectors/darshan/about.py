"""What the logs say about the run as a whole: its hosts, its manifest, what is missing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tracehint.collectors.clocks import apart
from tracehint.collectors.darshan.facts import LogFacts
from tracehint.schemas.manifest import Manifest, RecordingHost
from tracehint.version import __version__

BLIND_TO = (
    "copy_file_range", "mmap", "io_uring", "static_binaries", "go_binaries", "killed_processes",
    "rename", "unlink", "append_offsets", "stdio_ranges", "metadata_ops",
)  # fmt: skip  # a table


def hosts_of_logs(facts: list[LogFacts]) -> list[str]:
    """Host of each log. Only DXT records name it: other logs take that of their job or run."""
    known = {f.hostname for f in facts if f.hostname}
    of_job = {f.jobid: f.hostname for f in facts if f.hostname}
    default = next(iter(known)) if len(known) == 1 else "unknown"
    return [f.hostname or of_job.get(f.jobid, default) for f in facts]


def fstypes(facts: list[LogFacts], keys: list[tuple[str, bytes]]) -> list[str | None]:
    """Kind of the file system of each file (host, name), by the mounts that the logs list."""
    mounts = {m for f in facts for m in f.mounts}
    table = sorted(((p.rstrip("/") + "/", kind) for p, kind in mounts), key=lambda m: -len(m[0]))

    def kind_of(name: bytes) -> str | None:
        text = name.decode("utf-8", "surrogateescape")
        return next((kind for prefix, kind in table if text.startswith(prefix)), None)

    return [kind_of(name) for _, name in keys]


def losses_of(
    facts: list[LogFacts], hosts: list[str], bad: list[tuple[str, str]]
) -> list[dict[str, Any]]:
    """Rows of `losses`: what logs lack, and the logs that cannot be read."""
    rows = [
        {"host": host, "proc": k + 1, "kind": kind, "count": count, "detail": detail}
        for k, (host, f) in enumerate(zip(hosts, facts, strict=True))
        for kind, count, detail in f.losses
    ]
    for path, why in bad:
        rows.append(
            {
                "host": hosts[0],
                "proc": None,
                "kind": "unreadable_log",
                "count": 1,
                "detail": f"{Path(path).name}: {why}",
            }
        )
    return rows


def manifest_of(facts: list[LogFacts], hosts_of: list[str], bad: list[tuple[str, str]]) -> Manifest:
    """The manifest: hosts with their mounts, what Darshan cannot see, which logs were bad."""
    hosts = []
    for name in sorted(set(hosts_of)):
        mounts = {m for h, f in zip(hosts_of, facts, strict=True) if h == name for m in f.mounts}
        rows = [{"path": p, "fstype": kind, "source": ""} for p, kind in sorted(mounts)]
        hosts.append(RecordingHost(name=name, mounts=rows))
    notes = [f"{len(facts)} Darshan logs of {len({f.jobid for f in facts})} jobs"]
    notes += [f"log not read: {path}: {why}" for path, why in bad]
    notes += filter(None, [apart([(f.start_ns, f.end_ns) for f in facts])])
    ends = [f.end_ns for f in facts if f.end_ns is not None]
    return Manifest(
        program=f"tracehint {__version__}",
        collector="import:darshan",
        cwd="",
        started_ns=min(f.start_ns for f in facts),
        ended_ns=max(ends, default=None),
        complete=True,  # a log that cannot be read is a loss, not an end
        hosts=hosts,
        blind_to=list(BLIND_TO),
        notes=notes,
    )
