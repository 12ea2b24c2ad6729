"""The facts of all logs as the tables of one bundle."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tracehint.collectors.clocks import note_distant_logs
from tracehint.collectors.darshan.records import HOW_COUNTERS, SUMMED, LogFacts
from tracehint.schemas.manifest import Manifest, RecordingHost
from tracehint.schemas.store import table_from_rows
from tracehint.schemas.tables import TABLES
from tracehint.version import __version__

BLIND_TO = (
    "copy_file_range",
    "mmap",
    "io_uring",
    "static_binaries",
    "go_binaries",
    "killed_processes",
    "rename",
    "unlink",
    "append_offsets",
    "stdio_ranges",
    "metadata_ops",
)


def hosts_of_logs(facts: list[LogFacts]) -> list[str]:
    """Return each log's host, from DXT records or metadata, else the host of its job or run."""
    known = {f.hostname for f in facts if f.hostname}
    of_job = {f.jobid: f.hostname for f in facts if f.hostname}
    default = next(iter(known)) if len(known) == 1 else "unknown"
    return [f.hostname or of_job.get(f.jobid, default) for f in facts]


def fstypes(facts: list[LogFacts], keys: list[tuple[str, bytes]]) -> list[str | None]:
    """Return the file system type of each file (host, name), from the mounts listed in the logs."""
    mounts = {m for f in facts for m in f.mounts}
    table = sorted(((p.rstrip("/") + "/", kind) for p, kind in mounts), key=lambda m: -len(m[0]))

    def kind_of(name: bytes) -> str | None:
        text = name.decode("utf-8", "surrogateescape")
        return next((kind for prefix, kind in table if text.startswith(prefix)), None)

    return [kind_of(name) for _, name in keys]


def losses_of(
    facts: list[LogFacts], hosts: list[str], bad: list[tuple[str, str]]
) -> list[dict[str, Any]]:
    """Return rows of `losses`: data that logs lack, and logs that cannot be read."""
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
    """Return the manifest: hosts with their mounts, Darshan's blind spots, unreadable logs."""
    hosts = []
    for name in sorted(set(hosts_of)):
        mounts = {m for h, f in zip(hosts_of, facts, strict=True) if h == name for m in f.mounts}
        rows = [{"path": p, "fstype": kind, "source": ""} for p, kind in sorted(mounts)]
        hosts.append(RecordingHost(name=name, mounts=rows))
    notes = [f"{len(facts)} Darshan logs of {len({f.jobid for f in facts})} jobs"]
    notes += [f"log not read: {path}: {why}" for path, why in bad]
    notes += filter(None, [note_distant_logs([(f.start_ns, f.end_ns) for f in facts])])
    ends = [f.end_ns for f in facts if f.end_ns is not None]
    return Manifest(
        program=f"tracehint {__version__}",
        collector="import:darshan",
        cwd="",
        started_ns=min(f.start_ns for f in facts),
        ended_ns=max(ends, default=None),
        complete=True,  # an unreadable log is a loss; the recording has ended
        hosts=hosts,
        blind_to=list(BLIND_TO),
        notes=notes,
    )


SHARED = -1  # rank of records that all ranks share


def rank_processes(facts: list[LogFacts]) -> list[dict[int, int]]:
    """Return per log the process of each rank with accesses, if there are several ranks.

    A log's own process, of rank SHARED, is the job: it has the counters that all ranks share. Its
    number is the log's, from 1 on; the numbers of ranks follow those of all logs.
    """
    number, found = len(facts), []
    for k, f in enumerate(facts):
        procs = {SHARED: k + 1}
        ranks = {int(r) for r in np.unique(f.runs["rank"])} | {part["rank"] for part in f.opens}
        for rank in sorted(r for r in ranks if r >= 0 and f.nprocs > 1):
            number += 1
            procs[rank] = number
        found.append(procs)
    return found


def rank_rows(
    facts: list[LogFacts], procs: list[dict[int, int]], rows: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return rows of `processes` for the ranks; `rows` are those of the logs."""
    return [
        {
            **rows[k],
            "proc": proc,
            "parent": k + 1,
            "host": f.rank_hosts.get(rank) or rows[k]["host"],
            "pid": 0,
            "exe": None,
            "argv": [],
            "env": [{"name": "PMI_RANK", "value": str(rank).encode()}],
        }
        for k, f in enumerate(facts)
        for rank, proc in procs[k].items()
        if rank != SHARED
    ]


def processes_of(procs: dict[int, int], ranks: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the process of each of these ranks of one log."""
    distinct, back = np.unique(ranks, return_inverse=True)
    found = [procs.get(int(rank), procs[SHARED]) for rank in distinct]
    return np.array(found, np.int64)[back.reshape(-1)]


# column, time in the log, how to merge two values
_TIMES = (
    ("open_ns", "open", min),
    ("close_ns", "close", max),
    ("first_ns", "first", min),
    ("last_ns", "last", max),
)


def _open_row(
    host: str, proc: int, file: int, facts: LogFacts, part: dict[str, Any], count: int
) -> dict[str, Any]:
    """Return an `opens` row without operations and times."""
    return {
        "host": host,
        "open": count + 1,
        "proc": proc,
        "file": file,
        "path": facts.names[part["file"]],
        "fd": -1,
        "flags": 0,
        "via": "log",
        "created": False,
        "truncated": False,
        **dict.fromkeys(("size_at_open", *(column for column, _, _ in _TIMES))),
        **dict.fromkeys(SUMMED, 0),
    }


class Assembly:
    """Joins the facts of all logs: identifiers, files shared by all logs of a host, tasks."""

    def __init__(self, facts: list[LogFacts]) -> None:
        self.facts = facts
        self.hosts = hosts_of_logs(facts)
        jobs = {f.jobid for f in facts}
        # Several jobs: each is a task. One job: a workflow inside one allocation, so each
        # process that no other recorded process forked is a task.
        self.job_is_task = len(jobs) > 1
        self.file_ids: dict[tuple[str, bytes], int] = {}
        self.open_ids: dict[tuple[int, int], int] = {}  # (process, file) -> open
        self.io_seconds: dict[int, float] = {}  # process -> time in its calls on files
        self.rank_procs = rank_processes(facts)
        self.local_files = [
            np.array([self._file_id(host, name) for name in f.names], dtype=np.int64)
            for host, f in zip(self.hosts, facts, strict=True)
        ]

    def _file_id(self, host: str, name: bytes) -> int:
        return self.file_ids.setdefault((host, name), len(self.file_ids) + 1)

    def tables(self, bad: list[tuple[str, str]]) -> dict[str, pa.Table]:
        """Return all tables of the bundle."""
        opens = self._opens()
        extents = self._extents()
        return {
            "processes": table_from_rows("processes", self._processes()),
            "files": self._files(extents),
            "names": self._names(),
            "opens": opens,
            "extents": extents,
            "losses": table_from_rows("losses", losses_of(self.facts, self.hosts, bad)),
            "attributes": table_from_rows("attributes", self._attributes()),
        }

    def _processes(self) -> list[dict[str, Any]]:
        by_pid = {
            (h, f.jobid, f.pid): k + 1
            for k, (h, f) in enumerate(zip(self.hosts, self.facts, strict=True))
        }
        rows = []
        for k, (host, f) in enumerate(zip(self.hosts, self.facts, strict=True)):
            text = f.metadata.get("fork_parent", "")
            parent_pid = int(text) if text.isdecimal() and len(text) < 10 else -1
            env = []
            if self.job_is_task:
                env.append({"name": "SLURM_JOB_ID", "value": str(f.jobid).encode()})
            argv = [w for w in f.exe.split(b" ") if w]
            rows.append(
                {
                    "host": host,
                    "proc": k + 1,
                    "parent": by_pid.get((host, f.jobid, parent_pid)),
                    "prev": None,
                    "pid": f.pid if f.pid is not None else 0,
                    "uid": f.uid,
                    "start_ns": f.start_ns,
                    "end_ns": f.end_ns,
                    "exit_code": None,
                    "exit_signal": None,
                    "exe": argv[0] if argv else None,
                    "argv": argv,
                    "cwd": None,
                    "env": env,
                    "io_ns": self._io_ns(k + 1),
                }
            )
        ranks = rank_rows(self.facts, self.rank_procs, rows)
        return rows + [row | {"io_ns": self._io_ns(row["proc"])} for row in ranks]

    def _io_ns(self, proc: int) -> int | None:
        """Return a process's total time in file calls in ns; null if the log has none."""
        seconds = self.io_seconds.get(proc, 0.0)
        return round(seconds * 1e9) if 0 < seconds < 1e9 else None

    def _files(self, extents: pa.Table) -> pa.Table:
        """Return table `files`; a size is the last accessed byte, a lower bound if only read."""
        count = len(self.file_ids)
        size = np.zeros(count + 1, dtype=np.int64)
        file = extents.column("file").to_numpy()
        end = extents.column("start").to_numpy() + extents.column("length").to_numpy()
        np.maximum.at(size, file, end)
        touched = np.zeros(count + 1, dtype=bool)
        touched[file] = True
        ids = np.arange(1, count + 1)
        hosts = [host for host, _ in self.file_ids]
        kinds = fstypes(self.facts, list(self.file_ids))
        return pa.table(
            {
                "host": pa.array(hosts),
                "file": ids,
                "dev": np.zeros(count, np.int64),
                "ino": ids,
                "generation": np.zeros(count, np.int64),
                "fstype": pa.array(kinds, pa.string()),
                "kind": pa.array(["file"] * count),
                "size_bytes": pa.array(size[1:], mask=~touched[1:]),
                "deleted": np.zeros(count, bool),
                "existed": pa.nulls(count, pa.bool_()),
            },
            schema=TABLES["files"],
        )

    def _names(self) -> pa.Table:
        start = min(f.start_ns for f in self.facts)
        rows = [
            {
                "host": host,
                "seq": file,
                "t_ns": start,
                "proc": None,
                "file": file,
                "op": "open",
                "path": name,
                "new_path": None,
            }
            for (host, name), file in self.file_ids.items()
        ]
        return table_from_rows("names", rows)

    def _opens(self) -> pa.Table:
        """Return one row per process and file: the sums over modules (POSIX, STDIO)."""
        rows: dict[tuple[int, int], dict[str, Any]] = {}
        for k, (host, f) in enumerate(zip(self.hosts, self.facts, strict=True)):
            for part in f.opens:
                file = int(self.local_files[k][part["file"]])
                proc = self.rank_procs[k].get(part["rank"], k + 1)
                new = _open_row(host, proc, file, f, part, len(rows))
                row = rows.setdefault((proc, file), new)
                for column in SUMMED:
                    row[column] += part[column]
                ranks = f.nprocs if part["rank"] < 0 else 1  # the time is a sum over all ranks
                self.io_seconds[proc] = self.io_seconds.get(proc, 0.0) + part["io"] / max(1, ranks)
                for column, seconds, pick in _TIMES:
                    at = f.start_ns + round(part[seconds] * 1e9) if part[seconds] > 0 else None
                    if at is not None:
                        row[column] = at if row[column] is None else pick(row[column], at)
        log = {proc: k for k, procs in enumerate(self.rank_procs) for proc in procs.values()}
        for (proc, _), row in rows.items():
            row["open_ns"] = row["open_ns"] or self.facts[log[proc]].start_ns
        self.open_ids = {key: row["open"] for key, row in rows.items()}
        return table_from_rows("opens", list(rows.values()))

    def _extents(self) -> pa.Table:
        parts = []
        for k, (host, f) in enumerate(zip(self.hosts, self.facts, strict=True)):
            runs = f.runs
            count = len(runs)
            if not count:
                continue
            counters = runs["how"] == HOW_COUNTERS
            procs = processes_of(self.rank_procs[k], runs["rank"])
            op = np.where(runs["write"], "write", "read")
            parts.append(
                pa.table(
                    {
                        "host": pa.repeat(pa.scalar(host), count),
                        "open": self._open_of(k, procs, runs["file"]),
                        "proc": procs,
                        "file": self.local_files[k][runs["file"]],
                        "op": op,
                        "how": np.where(counters, "counters", op),
                        "start": runs["start"],
                        "length": runs["length"],
                        "stride": runs["length"],
                        "count": np.ones(count, np.int64),
                        "ops": runs["ops"],
                        "bytes": runs["bytes"],
                        "first_ns": f.start_ns + (runs["first"] * 1e9).astype(np.int64),
                        "last_ns": f.start_ns + (runs["last"] * 1e9).astype(np.int64),
                        "exact": runs["exact"],
                        "rank": runs["rank"],
                    },
                    schema=TABLES["extents"],
                )
            )
        return pa.concat_tables(parts) if parts else TABLES["extents"].empty_table()

    def _open_of(self, k: int, procs: npt.NDArray[Any], local: npt.NDArray[Any]) -> pa.Array:
        """Return the `opens` row of each run; null if counters of the file are missing. Accesses
        shared by all ranks are the job's."""
        pairs, back = np.unique(np.stack((procs, local)), axis=1, return_inverse=True)
        files = self.local_files[k]
        found = [
            self.open_ids.get((proc, int(files[f])), 0)
            or self.open_ids.get((k + 1, int(files[f])), 0)
            for proc, f in pairs.T.tolist()
        ]
        ids = np.array(found, np.int64)[back.reshape(-1)]
        return pa.array(ids, mask=ids == 0)

    def _attributes(self) -> list[dict[str, Any]]:
        rows = []
        for host, f in zip(self.hosts, self.facts, strict=True):
            for path, name, value in f.attributes:
                file = self.file_ids.get((host, path))
                if file is not None:
                    rows.append({"host": host, "file": file, "name": name, "value": value})
        return rows

    def manifest(self, bad: list[tuple[str, str]]) -> Manifest:
        """Return the manifest; `bad`: logs that cannot be read, and why."""
        return manifest_of(self.facts, self.hosts, bad)
