"""What the kernel knew, rebuilt: processes, descriptor tables, open descriptions, files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field


class FileRec:
    """One object that descriptors name. `size` is None while unknown.

    `phase` grows whenever the file passes from a writer to somebody else, so
    that runs of accesses are cut there and their order stays exact.
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
        self.links = 0  # names known
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
        self.note: bytes | None = None  # last annotation seen, to notice missed calls
        self.text = b""  # last annotated argument seen, not to decode it again


class AccessRun:
    """A growing run of accesses: `count` pieces of `length` bytes, `stride` apart."""

    __slots__ = (
        "bytes", "count", "exact", "first", "how", "last", "length", "ops", "phase", "start",
        "stride",
    )  # fmt: skip  # a table

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
    """Runs of one direction that still grow; `aside` by the offset that would continue them."""

    __slots__ = ("aside", "before", "current", "op")

    def __init__(self, op: str) -> None:
        self.op = op
        self.current: AccessRun | None = None
        self.before: AccessRun | None = None  # the one that was current before
        self.aside: dict[int, AccessRun] = {}


class OpenRow:
    """One row of `opens` while it grows."""

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
    )  # fmt: skip  # a table

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
        """The table of a forked child."""
        return FdTable(dict(self.fds), set(self.cloexec))


@dataclass(slots=True)
class Fs:
    """Working directory and root, shared by CLONE_FS. Empty: not known, or not changed."""

    cwd: bytes = b""
    root: bytes = b""  # after chroot; paths are kept as they are seen from outside


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
    """A mapped file: from `start` of it `length` bytes, with the accesses that are stated."""

    ofd: Ofd
    fd: int
    start: int
    length: int
    shared: bool
    ops: frozenset[str]  # of "read", "write"


@dataclass(slots=True)
class Group:
    """A thread group: what users call a process."""

    pid: int
    epoch: Epoch
    threads: set[int] = field(default_factory=set)
    exit_code: int | None = None
    maps: dict[int, Mapping] = field(default_factory=dict)  # by address, for mremap
    # Of these the ones that mprotect may make readable, or writable for others to see.
    bounded: dict[int, Mapping] = field(default_factory=dict)
    exit_ns: int | None = None  # of exit_group, for logs without `+++ exited` lines


@dataclass(slots=True)
class Thread:
    """One kernel task."""

    tid: int
    group: Group
    table: FdTable
    fs: Fs


@dataclass(slots=True)
class Maybe:
    """An open with O_CREAT of a file of which it is not yet known whether it was there."""

    file: FileRec
    open_id: int
    proc: int
    t_ns: int
    name_seq: int  # its row in `names`
    truncated: bool  # O_TRUNC was given


@dataclass(slots=True)
class StraceSettings:
    """How to read a log. Times in ns; `uid` -1: unknown."""

    host: str = "localhost"
    uid: int = -1
    cwd: bytes = b""
    started_ns: int = 0
    initial: dict[int, Ofd] = field(default_factory=dict)  # the first process's descriptors
    initial_files: list[FileRec] = field(default_factory=list)  # their files, ids 1, 2, ...
    # real path of a directory on the recording machine; None where it is not at hand
    real_dir: Callable[[bytes], bytes] | None = None
    complete: bool = False  # every call that makes a descriptor of a file is in the log
