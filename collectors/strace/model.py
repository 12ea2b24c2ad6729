"""Reconstructed kernel state: processes, descriptor tables, open file descriptions, files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field


class FileRec:
    """One object that descriptors refer to. `size` is None while unknown.

    `phase` increases whenever the file passes between a writer and another process, or loses
    bytes: runs of accesses are split there, so that their order stays exact.
    """

    __slots__ = (
        "appended_blind", "created", "deleted", "dev", "existed", "generation", "id", "ino",
        "kind", "links", "phase", "reader", "size", "writer",
    )  # fmt: skip  # a table

    def __init__(self, number: int, kind: str) -> None:
        self.id = number
        self.kind = kind
        self.size: int | None = None
        self.existed: bool | None = None
        self.created = False
        self.deleted = False
        self.dev = -1  # unknown
        self.ino = number
        self.generation = 0
        self.links = 0  # number of known names
        self.phase = 0
        self.writer = 0  # process epoch that writes in this phase, 0: none
        self.reader = 0  # process epoch that reads in this phase, 0: none, -1: several
        self.appended_blind = False  # appended to before its size was known


class Ofd:
    """An open file description: shared by dup, fork and passing over sockets."""

    __slots__ = ("append", "exact", "file", "flags", "note", "offset", "path", "text")

    def __init__(self, file: FileRec, path: bytes, flags: int, *, append: bool = False) -> None:
        self.file = file
        self.path = path
        self.flags = flags
        self.append = append
        self.offset = 0
        self.exact = True  # the offset is known
        self.note: bytes | None = None  # last annotation, to detect missed calls
        self.text = b""  # last annotated argument, to avoid decoding it again


class AccessRun:
    """An unfinished run of accesses: `count` pieces of `length` bytes, `stride` apart."""

    __slots__ = (
        "bytes",
        "count",
        "exact",
        "first",
        "how",
        "last",
        "length",
        "ops",
        "phase",
        "start",
        "stride",
    )

    def __init__(
        self, how: str, start: int, length: int, first: int, last: int, phase: int, exact: bool
    ) -> None:
        self.how = how
        self.start = start
        self.length = length
        self.stride = length
        self.count = 1
        self.ops = 1
        self.bytes = length
        self.first = first
        self.last = last
        self.phase = phase
        self.exact = exact


class Runs:
    """Unfinished runs of one direction; `aside`: by the offset that would continue the run."""

    __slots__ = ("aside", "before", "current", "op")

    def __init__(self, op: str) -> None:
        self.op = op
        self.current: AccessRun | None = None
        self.before: AccessRun | None = None  # the previous current run
        self.aside: dict[int, AccessRun] = {}


class OpenRow:
    """One unfinished row of `opens`."""

    __slots__ = (
        "created",
        "fd",
        "file",
        "first",
        "flags",
        "last",
        "next_read",
        "next_write",
        "number",
        "open_ns",
        "path",
        "proc",
        "read_bytes",
        "read_ops",
        "reads",
        "seq_ops",
        "size_at_open",
        "small_ops",
        "truncated",
        "via",
        "write_bytes",
        "write_ops",
        "writes",
    )

    def __init__(self, number: int, proc: int, ofd: Ofd, fd: int, via: str, open_ns: int) -> None:
        self.number = number
        self.proc = proc
        self.file = ofd.file
        self.path = ofd.path
        self.fd = fd
        self.flags = ofd.flags
        self.via = via
        self.created = False
        self.truncated = False
        self.size_at_open: int | None = None
        self.open_ns = open_ns
        self.first: int | None = None
        self.last: int | None = None
        self.read_ops = self.read_bytes = self.write_ops = self.write_bytes = 0
        self.seq_ops = self.small_ops = 0
        self.next_read = self.next_write = 0
        self.reads = Runs("read")
        self.writes = Runs("write")


@dataclass(slots=True)
class FdTable:
    """Descriptors of a process; threads and CLONE_FILES children share one table."""

    fds: dict[int, Ofd] = field(default_factory=dict)
    cloexec: set[int] = field(default_factory=set)

    def copy(self) -> FdTable:
        """Return the table of a forked child."""
        return FdTable(dict(self.fds), set(self.cloexec))


@dataclass(slots=True)
class Fs:
    """Working directory and root, shared by CLONE_FS. Empty: unknown, or not changed."""

    cwd: bytes = b""
    root: bytes = b""  # after chroot; paths are recorded as seen from outside


@dataclass(slots=True)
class Epoch:
    """A process between two execs: one row of `processes`."""

    proc: int
    pid: int
    parent: int | None
    prev: int | None
    start_ns: int
    cwd: bytes
    argv: list[bytes] = field(default_factory=list)
    exe: bytes | None = None
    env: list[tuple[str, bytes]] = field(default_factory=list)
    task: bytes = b""  # TRACEHINT_TASK, inherited
    rows: dict[Ofd, OpenRow] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Mapping:
    """`length` mapped bytes of a file from `start`, with the accesses that were recorded."""

    ofd: Ofd
    fd: int
    start: int
    length: int
    shared: bool
    ops: frozenset[str]  # "read", "write" or both


@dataclass(slots=True)
class Group:
    """A thread group, i.e. a process."""

    pid: int
    epoch: Epoch
    threads: set[int] = field(default_factory=set)
    exit_code: int | None = None
    maps: dict[int, Mapping] = field(default_factory=dict)  # by address, for mremap
    # The subset to which mprotect may add reads, or writes if the mapping is shared.
    bounded: dict[int, Mapping] = field(default_factory=dict)
    exit_ns: int | None = None  # of exit_group, for logs without `+++ exited` lines


@dataclass(slots=True)
class Thread:
    """One thread."""

    tid: int
    group: Group
    table: FdTable
    fs: Fs


@dataclass(slots=True)
class MaybeCreation:
    """An open with O_CREAT that may have created the file: decided at the end of the run."""

    file: FileRec
    open_id: int
    proc: int
    t_ns: int
    name_seq: int  # its row in `names`
    truncated: bool  # O_TRUNC was given


@dataclass(slots=True)
class StraceSettings:
    """Settings to read a log. Times in ns; `uid` -1: unknown."""

    host: str = "localhost"
    uid: int = -1
    cwd: bytes = b""
    started_ns: int = 0
    initial: dict[int, Ofd] = field(default_factory=dict)  # the first process's descriptors
    initial_files: list[FileRec] = field(default_factory=list)  # their files, ids 1, 2, ...
    # real path of a directory on the recording machine; None if that is not accessible
    real_dir: Callable[[bytes], bytes] | None = None
    complete: bool = False  # the log has every call that creates a descriptor of a file
