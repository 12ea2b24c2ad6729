"""Processes: fork in all forms, exec, exit, the working directory."""

from __future__ import annotations

import re
import signal as signals

from tracehint.collectors.strace.finish import absolute, lookup, real
from tracehint.collectors.strace.handlers.common import directory, parse_result, path_at
from tracehint.collectors.strace.lexer import (
    Call,
    descriptor,
    pid_result,
    split_args,
    string_cut,
    strings,
)
from tracehint.collectors.strace.model import Epoch, Fs, Group, Thread
from tracehint.collectors.strace.state import State

_FLAGS = re.compile(rb"flags=([A-Z0-9_|x]+)")
CLONES = frozenset((b"clone", b"clone2", b"clone3", b"fork", b"vfork", b"__clone2"))


def clone(st: State, thread: Thread, call: Call) -> None:
    """clone, clone3, fork, vfork: add the child when the call returns in the parent."""
    st.cloning.pop(thread.tid, None)
    early = st.early.pop(thread.tid, None)
    if parse_result(call.result) is None:
        return
    child = pid_result(call.result)
    if child == early:
        return  # it may have ended by now
    known = st.threads.get(child)
    if known is None or (known.group.epoch.parent is None and not known.group.epoch.argv):
        start_thread(st, thread, child, call.args, call.t_ns)


def start_thread(st: State, parent: Thread, tid: int, args: bytes, t_ns: int) -> Thread:
    """Add a child thread or process; its clone flags decide what it shares and what it copies."""
    found = _FLAGS.search(args)
    how = found[1] if found else b""
    table = parent.table if b"CLONE_FILES" in how else parent.table.copy()
    fs = parent.fs if b"CLONE_FS" in how else Fs(parent.fs.cwd, parent.fs.root)
    if b"CLONE_THREAD" in how:
        group = parent.group
        group.threads.add(tid)
    else:
        epoch = st.new_epoch(tid, parent.group.epoch.proc, None, t_ns, fs.cwd)
        epoch.task = parent.group.epoch.task
        group = Group(tid, epoch, {tid}, maps=dict(parent.group.maps))
        group.bounded = dict(parent.group.bounded)
    st.replaced.discard(tid)
    st.threads[tid] = thread = Thread(tid, group, table, fs)
    return thread


def execve(st: State, thread: Thread, call: Call) -> None:
    """execve(path, argv, envp): begin a new epoch of the process."""
    if parse_result(call.result) is None:
        return
    path, argv, env = [*split_args(call.args), b"", b""][:3]
    _exec(st, thread, call, None, path, argv, env)


def execveat(st: State, thread: Thread, call: Call) -> None:
    """execveat(dirfd, path, argv, envp, flags)."""
    if parse_result(call.result) is None:
        return
    dirfd, path, argv, env = [*split_args(call.args), b"", b""][:4]
    _exec(st, thread, call, dirfd, path, argv, env)


def _exec(
    st: State, thread: Thread, call: Call, dirfd: bytes | None, path: bytes, argv: bytes, env: bytes
) -> None:
    group = thread.group
    old = group.epoch
    name, cut_path = string_cut(path)
    folder = directory(thread, dirfd) if dirfd is not None else None
    by_fd = dirfd is not None and not name  # execveat with AT_EMPTY_PATH
    exe = (folder or b"") if by_fd else absolute(thread, name, folder)
    first = old.parent is None and old.prev is None and not old.argv and not old.rows
    if first:
        epoch = old
    else:
        epoch = st.new_epoch(group.pid, old.parent, old.proc, call.end_ns, thread.fs.cwd)
        epoch.task = old.task
        st.end_epoch(old, call.end_ns)
    epoch.exe = exe
    _arguments(st, epoch, argv, cut_path)
    _environment(st, epoch, env, call.end_ns)
    group.epoch = epoch
    for tid in group.threads - {thread.tid}:
        st.threads.pop(tid, None)
        st.cloning.pop(tid, None)
        st.early.pop(tid, None)
        st.replaced.add(tid)
    group.threads = {thread.tid}
    group.maps, group.bounded = {}, {}
    if not first:
        thread.table = thread.table.copy()
    for fd in thread.table.cloexec:
        thread.table.fds.pop(fd, None)
    thread.table.cloexec.clear()


def _arguments(st: State, epoch: Epoch, argv: bytes, cut_path: bool) -> None:
    values, cut = strings(argv)
    if cut or cut_path:
        st.losses["argv_cut", ""] += 1
    epoch.argv = values


def _environment(st: State, epoch: Epoch, env: bytes, t_ns: int) -> None:
    """Keep only the variables that name a task."""
    if env[:1] != b"[":
        return
    found = {}
    for item in strings(env)[0]:
        name, _, value = item.partition(b"=")
        text = name.decode("ascii", "replace")
        if text in st.env_names:
            found[text] = value
    epoch.env = sorted(found.items())
    task = found.get("TRACEHINT_TASK", b"")
    if task and task != epoch.task:
        label = task.decode("utf-8", "replace")
        st.out.add("marks", (t_ns, epoch.proc, epoch.pid, "task_begin", label, "TRACEHINT_TASK"))
    epoch.task = task


def exit_(st: State, thread: Thread, call: Call) -> None:
    """`+++ exited with 0 +++`, `+++ killed by SIGTERM +++`, `+++ superseded by execve +++`."""
    group = thread.group
    if call.name.startswith(b"superseded"):
        # The thread that called exec continues with the leader's tid.
        other = st.threads.pop(int(call.result), None)
        if other is not None:
            group.threads = {thread.tid}
            st.threads[thread.tid] = Thread(thread.tid, group, other.table, other.fs)
        return
    st.threads.pop(thread.tid, None)
    st.cloning.pop(thread.tid, None)
    st.early.pop(thread.tid, None)
    group.threads.discard(thread.tid)
    code, signal = None, None
    if call.name == b"exited with":
        code = int(call.result) & 0xFF
        if thread.tid == group.pid:
            group.exit_code = code
    else:
        signal = _signal(call.result)
    if not group.threads:
        final = None if signal else (group.exit_code if group.exit_code is not None else code)
        st.end_epoch(group.epoch, call.t_ns, final, signal)


def _signal(name: bytes) -> int:
    try:
        return int(signals.Signals[name.decode("ascii", "replace")])
    except KeyError:
        digits = name.rpartition(b"_")[2]
        return 34 + int(digits) if digits.isdigit() else 0  # SIGRT_n


def exit_group(_: State, thread: Thread, call: Call) -> None:
    """exit_group(code): the exit status for logs without `+++ exited` lines."""
    value = call.args.strip()
    if value.lstrip(b"-").isdigit():
        thread.group.exit_code = int(value) & 0xFF
        thread.group.exit_ns = call.t_ns


def unshare(_: State, thread: Thread, call: Call) -> None:
    """unshare(flags): copy the shared descriptor table, directory and root for the thread."""
    if parse_result(call.result) is None:
        return
    if b"CLONE_FILES" in call.args:
        thread.table = thread.table.copy()
    if b"CLONE_FS" in call.args or b"CLONE_NEWNS" in call.args:
        thread.fs = Fs(thread.fs.cwd, thread.fs.root)


def chdir(st: State, thread: Thread, call: Call) -> None:
    """chdir(path)."""
    if parse_result(call.result) is not None:
        thread.fs.cwd = path_at(st, thread, None, split_args(call.args)[0], follow=True)


def chroot(st: State, thread: Thread, call: Call) -> None:
    """chroot(path): absolute paths are below this directory from now on."""
    if parse_result(call.result) is not None:
        thread.fs.root = path_at(st, thread, None, split_args(call.args)[0], follow=True)


def fchdir(st: State, thread: Thread, call: Call) -> None:
    """fchdir(fd)."""
    if parse_result(call.result) is None:
        return
    fd, note, _ = descriptor(call.args.strip())
    ofd = lookup(st, thread, fd, note, call.t_ns)
    if ofd is not None:
        thread.fs.cwd = real(st, ofd.path, follow=True)
