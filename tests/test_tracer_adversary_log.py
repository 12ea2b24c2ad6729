"""strace logs of the worst cases: interleaved forks, reused numbers, calls that never end."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from random import Random

import pytest

from tests.support.straced import moved, parse, rows
from tracehint.collectors.strace.live import pid_translation

RUN = '1 execve("/bin/p", ["p"], 0x7ff /* 3 vars */) = 0\n'
OPEN = '1 open("f", O_RDWR) = 3\n'


@dataclass
class Task:
    """A process of the generated run, with the expected recording."""

    pid: int
    parent: int | None
    read: int = 0
    ended: bool = False
    forking: Task | None = None  # its fork has not returned yet
    returned: bool = True  # its parent's fork has
    lines: list[str] = field(default_factory=list)


class MadeUp:
    """A random process tree on one processor that can be preempted at any moment."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.root = Task(1, None)
        self.alive = [self.root]
        self.all = [self.root]
        self.free = list(range(2, 9))  # few numbers, so that they are reused
        self.log = [RUN + OPEN.rstrip()]

    def run(self, steps: int) -> str:
        """Return the log of a run with this many steps."""
        for _ in range(steps):
            self._step(self.random.choice(self.alive))
        while len(self.alive) > 1:
            self._end(self.alive[-1])
        self._end(self.root)
        return "\n".join(self.log) + "\n"

    def _step(self, task: Task) -> None:
        if task.forking:
            self._return(task)
        elif (what := self.random.random()) < 0.45 and self.free:
            pid = self.free.pop(self.random.randrange(len(self.free)))
            child = Task(pid, task.pid, returned=False)
            task.forking = child
            self.alive.append(child)
            self.all.append(child)
            self.log.append(f"{task.pid} vfork( <unfinished ...>")
        elif what < 0.8:
            n = self.random.randrange(1, 1000)
            task.read += n
            self.log.append(f"{task.pid} read(0x3, 0x7f, 0x400) = {n:#x}")
        elif task is not self.root:
            self._end(task)

    def _return(self, task: Task) -> None:
        child, task.forking = task.forking, None
        assert child is not None
        child.returned = True
        self.log.append(f"{task.pid} <... vfork resumed>) = {child.pid}")
        if child.ended:
            self.free.append(child.pid)

    def _end(self, task: Task) -> None:
        if task.forking:
            self._return(task)
        task.ended = True
        self.alive.remove(task)
        if task.returned:
            self.free.append(task.pid)
        self.log.append(f"{task.pid} +++ exited with 0 +++")


@pytest.mark.parametrize("seed", range(60))
def test_every_process_once_with_its_parent_and_its_bytes(seed: int) -> None:
    made = MadeUp(seed)
    tables, stats = parse(made.run(120), complete=True)
    assert stats.bad == 0
    pids = {r["proc"]: r["pid"] for r in rows(tables, "processes")}
    read: Counter[int] = Counter()
    for row in rows(tables, "opens"):
        read[row["proc"]] += row["read_bytes"]
    found = Counter(
        (r["pid"], pids.get(r["parent"]), read[r["proc"]], r["end_ns"] is not None)
        for r in rows(tables, "processes")
    )
    assert found == Counter((t.pid, t.parent, t.read, t.ended) for t in made.all)
    assert not rows(tables, "losses")


def test_a_child_that_makes_no_call_before_its_fork_returns() -> None:
    tables, _ = parse(
        RUN + "1 vfork( <unfinished ...>\n2 +++ killed by SIGKILL +++\n1 <... vfork resumed>) = 2\n"
        "1 vfork() = 2\n2 +++ exited with 4 +++\n1 +++ exited with 0 +++\n"
    )
    found = [(r["pid"], r["exit_code"], r["exit_signal"]) for r in rows(tables, "processes")]
    assert sorted(found, key=str) == [(1, 0, None), (2, 4, None), (2, None, 9)]


def test_a_thread_that_an_exec_ends_is_no_process() -> None:
    tables, _ = parse(
        RUN + "1 clone(flags=CLONE_VM|CLONE_FILES|CLONE_THREAD) = 2\n"
        "1 clone(flags=SIGCHLD) = 5\n5 vfork( <unfinished ...>\n"
        '1 execve("/bin/q", ["q"], 0x7 /* 1 var */) = 0\n2 +++ exited with 0 +++\n'
        "6 +++ exited with 0 +++\n5 <... vfork resumed>) = 6\n"
    )
    parents = {(r["pid"], r["parent"]) for r in rows(tables, "processes", prev=None)}
    assert parents == {(1, None), (5, 1), (6, 2)}


def test_a_process_of_which_no_fork_was_seen_is_counted() -> None:
    tables, _ = parse(RUN + '7 open("g", O_RDONLY) = 3\n', complete=True)
    assert [r["detail"] for r in rows(tables, "losses")] == ["the fork of a process was not seen"]


def test_the_numbers_of_a_name_space_are_asked_for() -> None:
    assert pid_translation("  --decode-pids=pidns\n") == ["--decode-pids=pidns"]
    assert pid_translation("  --pidns-translation\n") == ["--pidns-translation"]
    assert pid_translation("") == []
    tables, _ = parse(
        RUN + OPEN + "1 fork() = 2 /* 4711 in strace's PID NS */\n4711 read(0x3, 0x7f, 0x5) = 0x5\n"
    )
    assert {(r["pid"], r["parent"]) for r in rows(tables, "processes")} == {(1, None), (4711, 1)}
    assert moved(tables, b"/w/f") == ["read 0+5"]


@pytest.mark.parametrize(
    ("line", "counted"),
    [
        ("1 write(0x3, 0x7f, 0x100) = ?\n", 1),
        ("1 write(0x3, 0x7f, 0x100 <unfinished ...>\n", 1),
        ("1 write(0x3, 0x7f, 0x100 <unfinished ...>) = ?\n", 1),
        ("1 sendfile(1, 3</w/f>, NULL, 100) = ?\n", 1),
        ("1 read(0x0, 0x7f, 0x100) = ?\n", 0),  # not a file
        ("1 write(0x3, 0x7f, 0x100) = ? ERESTARTSYS (To be restarted)\n", 0),
        ("1 write(0x3, 0x7f, 0x100) = 0x100\n", 0),
    ],
)
def test_killed_within_a_call_that_moves_bytes(line: str, counted: int) -> None:
    tables, _ = parse(RUN + OPEN + line + "1 +++ killed by SIGKILL +++\n", complete=True)
    assert sum(r["count"] for r in rows(tables, "losses")) == counted


def test_a_thread_that_was_killed_before_its_call_began() -> None:
    _, stats = parse(
        RUN + "1 clone(flags=CLONE_VM|CLONE_FILES|CLONE_THREAD) = 2\n2 ???( <unfinished ...>\n"
        '1 execve("/bin/q", ["q"], 0x7 /* 1 var */ <unfinished ...>\n2 <... ??? resumed>) = ?\n'
        "2 +++ exited with 0 +++\n1 <... execve resumed>) = 0\n"
    )
    assert stats.bad == 0


def test_nothing_read_tells_no_size() -> None:
    tables, _ = parse(
        RUN + OPEN + "1 read(0x3, 0x7f, 0) = 0\n1 pread64(0x3, 0x7f, 0x10, 0x9000) = 0\n"
        '1 open("f", O_WRONLY|O_APPEND) = 4\n1 write(0x4, 0x7f, 0x5) = 0x5\n'
    )
    (run,) = rows(tables, "extents")
    assert not run["exact"]  # the start of the append is unknown


def test_close_on_exec_by_ioctl() -> None:
    tables, _ = parse(
        RUN + '1 open("f", O_RDONLY|O_CLOEXEC) = 3\n1 open("g", O_RDONLY) = 4\n'
        "1 ioctl(3</w/f>, FIONCLEX) = 0\n1 ioctl(4</w/g>, FIOCLEX) = 0\n"
        '1 execve("/bin/q", ["q"], 0x7 /* 1 var */) = 0\n'
        "1 read(0x3, 0x7f, 0x5) = 0x5\n1 read(0x4, 0x7f, 0x5) = 0x5\n"
    )
    assert moved(tables, b"/w/f") == ["read 0+5"]
    assert moved(tables, b"/w/g") == []


def test_a_descriptor_that_arrives_before_it_was_sent() -> None:
    right = "cmsg_type=SCM_RIGHTS, cmsg_data=[{}</w/f>]}}"
    tables, _ = parse(
        RUN + OPEN + "1 read(0x3, 0x7f, 0x64) = 0x64\n1 clone(flags=SIGCHLD) = 2\n2 close(3) = 0\n"
        f"1 sendmsg(5, {{msg_control=[{{{right.format(3)}]}}, 0 <unfinished ...>\n"
        f"2 recvmsg(6, {{msg_control=[{{{right.format(7)}]}}, 0) = 1\n"
        "1 <... sendmsg resumed>) = 1\n2 read(0x7, 0x7f, 0x5) = 0x5\n"
    )
    assert moved(tables, b"/w/f") == ["read 0+100", "read 100+5"]


def test_ranges_that_move_within_the_file() -> None:
    tables, _ = parse(
        RUN + '1 open("f", O_RDWR|O_CREAT|O_TRUNC|O_APPEND|O_EXCL) = 3\n'
        "1 write(0x3, 0x7f, 0x10000) = 0x10000\n"
        "1 fallocate(3, FALLOC_FL_COLLAPSE_RANGE, 4096, 8192) = 0\n"
        "1 write(0x3, 0x7f, 0x5) = 0x5\n"
    )
    assert moved(tables, b"/w/f")[1:] == [
        "read by fallocate 12288+53248",
        "write by fallocate 4096+53248",
        "write 57344+5",
    ]


def test_a_mapping_that_becomes_writable() -> None:
    tables, _ = parse(
        RUN + '1 open("f", O_RDWR) = 3\n1 fstat(3, {st_mode=S_IFREG|0644, st_size=65536}) = 0\n'
        "1 lseek(3, 0, SEEK_END) = 65536\n"
        "1 mmap(NULL, 65536, PROT_READ, MAP_SHARED, 3, 0) = 0x7f0000000000\n"
        "1 mprotect(0x7f0000001000, 8192, PROT_READ|PROT_WRITE) = 0\n"
        "1 mmap(0x7f0000000000, 65536, PROT_NONE, MAP_PRIVATE|MAP_FIXED|MAP_ANONYMOUS, -1, 0)"
        " = 0x7f0000000000\n1 mprotect(0x7f0000000000, 65536, PROT_READ|PROT_WRITE) = 0\n"
    )
    assert moved(tables, b"/w/f") == ["read by mmap 0+65536", "write by mmap 4096+8192"]


def test_a_table_that_is_no_longer_shared() -> None:
    tables, _ = parse(
        RUN + OPEN + "1 clone(flags=CLONE_FILES|SIGCHLD) = 2\n2 unshare(CLONE_FILES) = 0\n"
        "2 close(3) = 0\n1 read(0x3, 0x7f, 0x5) = 0x5\n"
    )
    assert moved(tables, b"/w/f") == ["read 0+5"]


@pytest.mark.parametrize(
    ("line", "detail"),
    [
        ('1 mount("none", "/t", "tmpfs", 0, NULL) = 0\n', "mounts"),
        ('1 mount("/a", "/b", NULL, MS_BIND, NULL) = 0\n', "mounts"),
        ('1 mount("proc", "/proc", "proc", 0, NULL) = 0\n', None),
        ('1 mount(NULL, "/", NULL, MS_REC|MS_PRIVATE, NULL) = 0\n', None),
        ('1 mount("none", "/t", "tmpfs", 0, NULL) = -1 EPERM (no)\n', None),
        ("1 setns(4, CLONE_NEWNET) = 0\n", None),
        ("1 setns(4, 0) = 0\n", "mounts"),
        ("1 io_uring_setup(16, {flags=IORING_SETUP_SQPOLL}) = 4\n", "io_uring"),
        ("1 open_by_handle_at(4, {handle_bytes=8}, O_RDONLY) = 5\n", "open_by_handle_at"),
        ("1 ioctl(4, LOOP_SET_FD, 3) = 0\n", "ioctl"),
    ],
)
def test_what_the_log_cannot_tell_is_counted(line: str, detail: str | None) -> None:
    tables, _ = parse(RUN + OPEN + line, complete=True)
    found = [str(r["detail"]).partition(":")[0].split()[0] for r in rows(tables, "losses")]
    assert found == ([detail] if detail else [])


def test_calls_that_only_look_are_counted_as_with_ebpf() -> None:
    tables, _ = parse(
        RUN + OPEN + "1 fstat(3, {st_size=5}) = 0\n1 fchmod(3, 0600) = 0\n"
        '1 chmod("f", 0600) = 0\n1 fgetxattr(3, "user.x", "", 9) = 1\n1 stat("f", {}) = 0\n'
        '1 flistxattr(3, NULL, 0) = 7\n1 newfstatat(3, "", {st_size=5}, AT_EMPTY_PATH) = 0\n'
    )
    counts: Counter[str] = Counter()
    for row in rows(tables, "metadata_ops"):
        counts[row["op"]] += row["count"]
    assert counts == {"chmod": 2, "xattr": 2, "stat": 1}
