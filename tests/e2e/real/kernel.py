"""Replay of a log's calls on files: descriptors, offsets, sizes and names.

Each descriptor path that strace printed is compared with the replayed state: a log that this reader
misinterprets is an error, not a wrong truth.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from tests.e2e.real.lines import Call, Gone, calls, words
from tests.e2e.real.names import FD, Names
from tests.e2e.real.state import Access, Inode, Opened, Process

_READ = {"read", "pread64", "readv", "preadv", "preadv2"}
_WRITE = {"write", "pwrite64", "writev", "pwritev", "pwritev2"}
_PLACED = {"pread64", "pwrite64", "preadv", "pwritev", "preadv2", "pwritev2"}


class Kernel(Names):
    """Replays a log below `root`; `sizes` are the files that existed before."""

    def __init__(self, root: Path, sizes: dict[str, int]) -> None:
        super().__init__(root, sizes)
        self.processes: list[Process] = []
        self.accesses: list[Access] = []
        self._by_pid: dict[int, Process] = {}
        self._mother: dict[int, tuple[int, bool]] = {}  # child -> (parent, is a thread)

    def play(self, log: Path) -> Kernel:
        known = list(calls(log))
        for call in known:
            if isinstance(call, Call) and _GROUPS.get(call.name) == "clone" and call.result > 0:
                thread = "CLONE_THREAD" in " ".join(call.args)
                self._mother[call.result] = (call.pid, thread)
        for call in known:
            process = self._process(call.pid, call.at)
            process.end = max(process.end, call.at)
            if isinstance(call, Gone):
                self._by_pid.pop(call.pid, None)
            elif call.result >= 0:
                getattr(self, f"_{_GROUPS.get(call.name, call.name)}")(process, call)
        return self

    # -- processes ---------------------------------------------------------------------------

    def _process(self, pid: int, at: float) -> Process:
        """Return the process of a thread; a new process inherits its parent's descriptors."""
        if pid not in self._by_pid:
            parent_pid, thread = self._mother.get(pid, (0, False))
            parent = self._process(parent_pid, at) if parent_pid else None
            if thread and parent:
                self._by_pid[pid] = parent
                return parent
            fds = dict(parent.fds) if parent else {}
            self._by_pid[pid] = Process(parent, fds, start=at, end=at)
            self.processes.append(self._by_pid[pid])
        return self._by_pid[pid]

    def _clone(self, process: Process, call: Call) -> None:
        assert "CLONE_FILES" not in " ".join(call.args) or "CLONE_THREAD" in " ".join(call.args)
        if call.result:
            self._process(call.result, call.at)

    def _execve(self, process: Process, call: Call) -> None:
        process.commands.append(words(call.args[1]))
        process.fds = {n: f for n, f in process.fds.items() if not f[1]}

    def _nothing(self, process: Process, call: Call) -> None:
        """Ignore calls that change no replayed state."""

    # -- descriptors -------------------------------------------------------------------------

    def _open(self, process: Process, call: Call) -> None:
        flags = call.args[2 if call.name == "openat" else 1] if call.name != "creat" else "O_TRUNC"
        path = self._inside(call.path)
        file = None
        if path and "O_DIRECTORY" not in flags and not Path(self.root, path).is_dir():
            file = self.names.get(path)
            if file is None:
                file = self.names[path] = Inode(path, 0, existed=False)
                file.named(path)
                self.inodes.append(file)
                older = [f for f in self.inodes if f.path == path and f is not file]
                for f in older:
                    f.replaced = True
            if "O_TRUNC" in flags:
                self._resize(process, file, 0)
        opened = Opened(file, append="O_APPEND" in flags)
        process.fds[call.result] = (opened, "O_CLOEXEC" in flags)

    def _close(self, process: Process, call: Call) -> None:
        if call.name == "close_range":
            first, last = int(call.args[0]), call.args[1]
            top = 1 << 31 if not last.isdigit() else int(last)
            for number in [n for n in process.fds if first <= n <= top]:
                del process.fds[number]
            return
        match = FD.match(call.args[0])
        assert match, f"no descriptor: {call}"
        process.fds.pop(int(match[1]), None)

    def _dup(self, process: Process, call: Call) -> None:
        if call.name == "fcntl" and not call.args[1].startswith("F_DUPFD"):
            if call.args[1] == "F_SETFD":
                self._set_cloexec(process, call)
            return
        found = self._fd(process, call.args[0])
        cloexec = "CLOEXEC" in " ".join(call.args[1:])
        if found:
            process.fds[call.result] = (found, cloexec)
        else:
            process.fds.pop(call.result, None)

    def _set_cloexec(self, process: Process, call: Call) -> None:
        match = FD.match(call.args[0])
        assert match
        number = int(match[1])
        if number in process.fds:
            process.fds[number] = (process.fds[number][0], "FD_CLOEXEC" in call.args[2])

    def _fd(self, process: Process, printed: str) -> Opened | None:
        """Return the description of a printed descriptor, checked against the printed path."""
        match = FD.match(printed)
        assert match, f"no descriptor: {printed!r}"
        found = process.fds.get(int(match[1]))
        path = self._inside((match[2] or "").removesuffix(" (deleted)"))
        file = found[0].file if found else None
        if path is not None and not Path(self.root, path).is_dir():
            assert file is not None and path in file.former, f"descriptor of {path} is {file}"
        return found[0] if found else None

    # -- bytes -------------------------------------------------------------------------------

    def _add(
        self, process: Process, opened: Opened | None, op: str, size: int, at: int | None = None
    ) -> None:
        """Record `size` bytes at `at`, or at the description's offset, which advances."""
        if opened is None or opened.file is None or size <= 0:
            return
        file = opened.file
        start = at if at is not None else opened.at
        if op == "write" and opened.append:
            start = file.size
        if at is None:
            opened.at = start + size
        self.accesses.append(Access(process, file, op, start, start + size))
        if op == "write":
            file.size = max(file.size, start + size)

    def _move(self, process: Process, call: Call) -> None:
        op = "read" if call.name in _READ else "write"
        placed = int(call.args[3]) if call.name in _PLACED else None
        self._add(process, self._fd(process, call.args[0]), op, call.result, placed)

    def _copy(self, process: Process, call: Call) -> None:
        one, two = call.args[0], call.args[2]  # copy_file_range, splice
        offsets = [_offset(call.args[1]), _offset(call.args[3])]
        if call.name == "sendfile":
            one, two, offsets = call.args[1], call.args[0], [_offset(call.args[2]), None]
        self._add(process, self._fd(process, one), "read", call.result, offsets[0])
        self._add(process, self._fd(process, two), "write", call.result, offsets[1])

    def _lseek(self, process: Process, call: Call) -> None:
        opened = self._fd(process, call.args[0])
        if opened:
            opened.at = call.result

    def _mmap(self, process: Process, call: Call) -> None:
        _, length, protection, flags, fd, offset = call.args
        if "MAP_ANONYMOUS" in flags or fd.startswith("-1"):
            return
        opened = self._fd(process, fd)
        if opened and opened.file:
            start = int(offset, 0)
            end = min(start + int(length), opened.file.size)
            self.accesses.append(Access(process, opened.file, "read", start, end, mapped=True))
            if "MAP_SHARED" in flags and "PROT_WRITE" in protection:
                self.accesses.append(Access(process, opened.file, "write", start, end, mapped=True))

    def _resize(self, process: Process, file: Inode, size: int) -> None:
        self.accesses.append(Access(process, file, "truncate", size, size))
        file.size = size

    def _ftruncate(self, process: Process, call: Call) -> None:
        opened = self._fd(process, call.args[0])
        if opened and opened.file:
            self._resize(process, opened.file, int(call.args[1]))

    def _truncate(self, process: Process, call: Call) -> None:
        path = self._inside(self._named(None, call.args[0], process))
        if path:
            self._resize(process, self.names[path], int(call.args[1]))

    def _fallocate(self, process: Process, call: Call) -> None:
        opened = self._fd(process, call.args[0])
        assert not opened or not opened.file or call.args[1] == "0", f"punched a hole: {call}"
        if opened and opened.file:
            opened.file.size = max(opened.file.size, int(call.args[2]) + int(call.args[3]))

    def _ioctl(self, process: Process, call: Call) -> None:
        assert "FICLONE" not in call.args[1], f"a clone of a file: {call}"


def _offset(printed: str) -> int | None:
    """Return the offset argument of a call: `[4096]` or `[4096 => 8192]`; None for NULL."""
    match = re.match(r"\[(\d+)", printed)
    return int(match[1]) if match else None


def _grouped(groups: Iterable[tuple[str, str]]) -> dict[str, str]:
    return {name: group for group, names in groups for name in names.split()}


# Call -> method; other calls have a method of their own name.
_GROUPS = _grouped(
    [
        ("clone", "clone clone3 fork vfork"),
        ("execve", "execve execveat"),
        ("open", "open openat creat"),
        ("close", "close close_range"),
        ("dup", "dup dup2 dup3 fcntl"),
        ("move", " ".join(sorted(_READ | _WRITE))),
        ("copy", "copy_file_range sendfile splice"),
        ("rename", "rename renameat renameat2"),
        ("unlink", "unlink unlinkat"),
        ("link", "link linkat"),
        ("symlink", "symlink symlinkat"),
        ("nothing", "exit_group"),
    ]
)
