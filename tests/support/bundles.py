"""Build small bundles from a few lines, for tests that need no recorder.

    run = RunBuilder()
    driver = run.process(["sh", "wf.sh"])
    a = run.process(["gen"], parent=driver)
    f = run.file("/data/x", existed=False)
    run.write(a, f, 0, 100, at=1.0)
    bundle = run.bundle(tmp_path)          # or run.save(path)

Times are seconds from the start of the run.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tracehint.schemas.manifest import Manifest, RecordingHost
from tracehint.schemas.store import Bundle, read_bundle, table_from_rows
from tracehint.schemas.tables import TABLES
from tracehint.schemas.writer import BundleWriter

START_NS = 1_700_000_000_000_000_000
_OPENED = {
    "fd": 3, "flags": 0, "via": "open", "created": False, "size_at_open": None, "seq_ops": 0,
    "small_ops": 0,
}  # fmt: skip  # a table


def ns(seconds: float) -> int:
    """Convert seconds of the run to nanoseconds since the epoch."""
    return START_NS + round(seconds * 1e9)


class RunBuilder:
    """Collects rows; `process`, `file` and `access` return the new row's identifier."""

    def __init__(self, *, host: str = "node1", cwd: str = "/data", **manifest: Any) -> None:
        self.host = host
        self.rows: dict[str, list[dict[str, Any]]] = {name: [] for name in TABLES}
        self.manifest = Manifest(
            program="tracehint test",
            collector="test",
            cwd=cwd,
            started_ns=START_NS,
            ended_ns=ns(1000),
            exit_status=0,
            complete=True,
            hosts=[
                RecordingHost(
                    name=host, mounts=[{"path": "/", "fstype": "ext4", "source": "/dev/vda"}]
                )
            ],
        )
        for key, value in manifest.items():
            setattr(self.manifest, key, value)
        self._next = 1

    def _id(self) -> int:
        self._next += 1
        return self._next - 1

    def _add(self, table: str, **row: Any) -> None:
        self.rows[table].append({"host": self.host, **row})

    def process(
        self,
        argv: list[str],
        *,
        parent: int | None = None,
        prev: int | None = None,
        start: float = 0.0,
        end: float | None = 999.0,
        exit_code: int | None = 0,
        signal: int | None = None,
        pid: int | None = None,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        cpu: float | None = None,
        io: float | None = None,
    ) -> int:
        """Add a process epoch; the first one of a run is its command. cpu, io: seconds."""
        proc = self._id()
        if not self.rows["processes"]:
            self.manifest.command = list(argv)
        self._add(
            "processes",
            proc=proc,
            parent=parent,
            prev=prev,
            pid=pid or 1000 + proc,
            uid=1000,
            start_ns=ns(start),
            end_ns=None if end is None else ns(end),
            exit_code=exit_code,
            exit_signal=signal,
            exe=argv[0].encode("utf-8", "surrogateescape") if argv else None,
            argv=[a.encode("utf-8", "surrogateescape") for a in argv],
            cwd=(cwd or self.manifest.cwd).encode(),
            env=[{"name": k, "value": v.encode()} for k, v in (env or {}).items()],
            cpu_ns=None if cpu is None else round(cpu * 1e9),
            io_ns=None if io is None else round(io * 1e9),
        )
        return proc

    def file(
        self,
        path: str | bytes,
        *,
        existed: bool | None = None,
        size: int | None = None,
        deleted: bool = False,
        kind: str = "file",
        ino: int | None = None,
        dev: int = 1,
    ) -> int:
        """Add a file with its first name."""
        file = self._id()
        raw = path.encode("utf-8", "surrogateescape") if isinstance(path, str) else path
        self._add(
            "files",
            file=file,
            dev=dev,
            ino=ino or 10_000 + file,
            generation=0,
            fstype="ext4",
            kind=kind,
            size_bytes=size,
            deleted=deleted,
            existed=existed,
        )
        self.name(file, "open" if existed else "create", raw, at=0.0)
        return file

    def name(
        self,
        file: int,
        op: str,
        path: str | bytes,
        new_path: str | bytes | None = None,
        *,
        at: float,
        proc: int | None = None,
    ) -> None:
        """Add a row of `names`: rename, link, unlink ..."""

        def raw(p: str | bytes) -> bytes:
            return p.encode("utf-8", "surrogateescape") if isinstance(p, str) else p

        self._add(
            "names",
            seq=self._id(),
            t_ns=ns(at),
            proc=proc,
            file=file,
            op=op,
            path=raw(path),
            new_path=None if new_path is None else raw(new_path),
        )

    def declared(self, task: str, **more: Any) -> None:
        """Add a task that an engine declares; columns without a default or `more` are unknown."""
        usual = {"name": task, "type": task, "command": b"", "attempt": 1, "parents": []}
        self._add("declared_tasks", **{"task": task, "engine": "make", **usual, **more})

    def declared_file(self, task: str, direction: str, path: bytes, size: int | None) -> None:
        """Add a file that a declared task reads (`in`) or writes (`out`)."""
        more = {"direction": direction, "size_bytes": size}
        self._add("declared_io", task=task, path=path, **more)

    def path_of(self, file: int) -> bytes:
        """Return the first name of the file."""
        return next(r["path"] for r in self.rows["names"] if r["file"] == file)

    def access(
        self,
        op: str,
        proc: int,
        file: int,
        start: int,
        end: int,
        *,
        at: float,
        until: float | None = None,
        how: str | None = None,
        exact: bool = True,
        close: float | None = None,
        opened: float | None = None,
        truncated: bool = False,
        ops: int = 1,
        path: str | None = None,
        stride: int = 0,
        count: int = 1,
    ) -> int:
        """Add one open-file session with one run of accesses to [start, end) (per piece)."""
        until = at if until is None else until
        opened = at if opened is None else opened
        length = end - start
        total = length * count
        raw = path.encode() if path else self.path_of(file)
        who = {"open": self._id(), "proc": proc, "file": file}
        used = {"first_ns": ns(at), "last_ns": ns(until)}
        span = {"open_ns": ns(opened), "close_ns": ns(until if close is None else close)}
        moved = {"read_ops": 0, "read_bytes": 0, "write_ops": 0, "write_bytes": 0}
        moved |= {f"{op}_ops": ops, f"{op}_bytes": total}
        opens = who | {"path": raw, "truncated": truncated} | span | used | moved
        self._add("opens", **opens, **_OPENED)
        if truncated:
            self.truncate(proc, file, 0, at=opened, how="open")
        where = {"start": start, "length": length, "stride": stride or length, "count": count}
        what = {"op": op, "how": how or op, "ops": ops, "bytes": total, "exact": exact}
        self._add("extents", **who, **what, **where, **used, rank=None)
        return who["open"]

    def read(self, proc: int, file: int, start: int, end: int, *, at: float, **more: Any) -> int:
        """Add a read of [start, end)."""
        return self.access("read", proc, file, start, end, at=at, **more)

    def write(self, proc: int, file: int, start: int, end: int, *, at: float, **more: Any) -> int:
        """Add a write of [start, end)."""
        return self.access("write", proc, file, start, end, at=at, **more)

    def truncate(
        self, proc: int, file: int, size: int, *, at: float, how: str = "truncate"
    ) -> None:
        """Add a truncation to `size` bytes."""
        self._add(
            "extents",
            open=None,
            proc=proc,
            file=file,
            op="truncate",
            how=how,
            start=size,
            length=0,
            stride=0,
            count=1,
            ops=1,
            bytes=0,
            first_ns=ns(at),
            last_ns=ns(at),
            exact=True,
            rank=None,
        )

    def loss(self, kind: str, count: int, proc: int | None = None) -> None:
        """Add lost events."""
        self._add("losses", proc=proc, kind=kind, count=count, detail=None)

    def save(self, path: Path) -> Path:
        """Write the bundle directory."""
        writer = BundleWriter(path)
        for name, rows in self.rows.items():
            if rows:
                writer.write_table(name, table_from_rows(name, rows))
        writer.write_manifest(self.manifest)
        return path

    def bundle(self, folder: Path) -> Bundle:
        """Write the bundle below `folder` and read it back."""
        return read_bundle(self.save(folder / "run.trace"))
