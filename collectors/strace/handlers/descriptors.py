"""dup, fcntl, pipes, memfd, descriptors passed over sockets or taken from a process."""

from __future__ import annotations

import os
import re

from tracehint.collectors.strace.decode import descriptor, number, split_args, string
from tracehint.collectors.strace.files import lookup, new_file
from tracehint.collectors.strace.handlers.common import head_fd, returned
from tracehint.collectors.strace.handlers.opens import install, release
from tracehint.collectors.strace.lexer import Call
from tracehint.collectors.strace.model import Ofd, Thread
from tracehint.collectors.strace.state import State

SENDS = frozenset((b"sendmsg", b"sendmmsg"))
_RIGHTS = re.compile(rb"cmsg_type=SCM_RIGHTS, cmsg_data=\[(.*?)\](?=[,}])", re.DOTALL)


def dup(st: State, thread: Thread, call: Call) -> None:
    """dup(fd), dup2(fd, new), dup3(fd, new, flags)."""
    if returned(call.result) is None:
        return
    old, ofd = head_fd(st, thread, call.args, call.t_ns)
    new = descriptor(call.result)[0]
    if ofd is not None and new != old:
        if thread.table.fds.get(new) is not ofd:
            release(st, thread, new, call.t_ns)
        install(thread, new, ofd, cloexec=b"O_CLOEXEC" in call.args)
    elif ofd is None:
        release(st, thread, new, call.t_ns)


def fcntl(st: State, thread: Thread, call: Call) -> None:
    """fcntl: F_DUPFD, F_DUPFD_CLOEXEC, F_SETFD, F_SETFL."""
    if b"F_DUPFD" in call.args:
        if returned(call.result) is not None:
            _, ofd = head_fd(st, thread, call.args, call.t_ns)
            new = descriptor(call.result)[0]
            if ofd is not None:
                install(thread, new, ofd, cloexec=b"F_DUPFD_CLOEXEC" in call.args)
    elif b"F_SETFD" in call.args and returned(call.result) is not None:
        fd, _ = head_fd(st, thread, call.args, call.t_ns)
        if b"FD_CLOEXEC" in call.args:
            thread.table.cloexec.add(fd)
        else:
            thread.table.cloexec.discard(fd)
    elif b"F_SETFL" in call.args and returned(call.result) is not None:
        _, ofd = head_fd(st, thread, call.args, call.t_ns)
        if ofd is not None:
            ofd.append = b"O_APPEND" in call.args


def pipe(st: State, thread: Thread, call: Call) -> None:
    """pipe([r, w]), pipe2([r, w], flags)."""
    if returned(call.result) is None:
        return
    rec = new_file(st, "pipe")
    ends = split_args(split_args(call.args)[0].strip(b"[]"))
    for arg, bits in zip(ends, (os.O_RDONLY, os.O_WRONLY), strict=True):
        fd, note, _ = descriptor(arg)
        if note is not None:
            st.pipes[note] = rec
        ofd = Ofd(rec, note or b"pipe:[%d]" % rec.id, bits)
        ofd.note = note
        release(st, thread, fd, call.t_ns)
        install(thread, fd, ofd, cloexec=b"O_CLOEXEC" in call.args)


def memfd_create(st: State, thread: Thread, call: Call) -> None:
    """memfd_create(name, flags): memory, kept apart from files."""
    if returned(call.result) is None:
        return
    fd, _, _ = descriptor(call.result)
    rec = new_file(st, "memfd")
    rec.existed, rec.created, rec.deleted = False, True, True
    ofd = Ofd(rec, b"/memfd:" + string(split_args(call.args)[0]), os.O_RDWR)
    install(thread, fd, ofd, cloexec=b"MFD_CLOEXEC" in call.args)
    st.new_row(thread.group.epoch, ofd, fd, "memfd", call.t_ns)


def sending(st: State, thread: Thread, call: Call) -> None:
    """A sendmsg or sendmmsg begins: what it sends may arrive before it returns."""
    sent = [
        [lookup(st, thread, fd, note, call.t_ns) for fd, note in rights] for rights in _rights(call)
    ]
    if sent:
        st.sending[thread.tid] = sent
        st.in_flight += sent
        del st.in_flight[:-1024]


def sendmsg(st: State, thread: Thread, call: Call) -> None:
    """Remember the open descriptions that SCM_RIGHTS sends, sendmmsg in several messages."""
    if thread.tid not in st.sending:
        sending(st, thread, call)
    sent = st.sending.pop(thread.tid, [])
    taken = returned(call.result)
    if call.name == b"sendmsg" and taken is not None:
        taken = len(sent)
    for lost in sent[taken or 0 :]:
        for i, other in enumerate(st.in_flight):
            if other is lost:
                del st.in_flight[i]
                break


def recvmsg(st: State, thread: Thread, call: Call) -> None:
    """Descriptors that arrive by SCM_RIGHTS share offset and flags with the sender's."""
    if returned(call.result) is not None:
        for rights in _rights(call):
            _received(st, thread, call, rights)


def _received(
    st: State, thread: Thread, call: Call, rights: list[tuple[int, bytes | None]]
) -> None:
    match = next((m for m in st.in_flight if _same(m, rights)), None)
    if match is not None:
        st.in_flight.remove(match)
    for i, (fd, note) in enumerate(rights):
        ofd = match[i] if match is not None else None
        if ofd is None and note is not None:
            ofd = lookup(st, thread, fd, note, call.t_ns)
        if ofd is None:
            st.losses["unknown_calls", "descriptor received over a socket"] += 1
            continue
        release(st, thread, fd, call.t_ns)
        install(thread, fd, ofd, cloexec=b"MSG_CMSG_CLOEXEC" in call.args)
        if ofd not in thread.group.epoch.rows and ofd.file.kind == "file":
            st.new_row(thread.group.epoch, ofd, fd, "passed", call.t_ns)


def _rights(call: Call) -> list[list[tuple[int, bytes | None]]]:
    """The descriptors of each message that carries some."""
    if b"SCM_RIGHTS" not in call.args:
        return []
    return [
        [descriptor(arg)[:2] for arg in split_args(found[1])]
        for found in _RIGHTS.finditer(call.args)
    ]


def _same(sent: list[Ofd | None], rights: list[tuple[int, bytes | None]]) -> bool:
    return len(sent) == len(rights) and all(
        note is None or ofd is None or ofd.note is None or ofd.note == note
        for ofd, (_, note) in zip(sent, rights, strict=True)
    )


def pidfd_getfd(st: State, thread: Thread, call: Call) -> None:
    """pidfd_getfd(pidfd, fd, flags): shares the other process's open description."""
    if returned(call.result) is None:
        return
    pidfd, theirs = split_args(call.args)[:2]
    new, note, _ = descriptor(call.result)
    _, owner, _ = descriptor(pidfd)
    ofd = None
    if owner is not None and owner.startswith(b"pid:"):
        other = st.threads.get(number(owner[4:]))
        ofd = other.table.fds.get(number(theirs)) if other else None
    if ofd is None and note is not None:
        ofd = lookup(st, thread, new, note, call.t_ns)
    if ofd is None:
        st.losses["unknown_calls", "descriptor taken by pidfd_getfd"] += 1
        return
    install(thread, new, ofd, cloexec=True)
    if ofd not in thread.group.epoch.rows:
        st.new_row(thread.group.epoch, ofd, new, "passed", call.t_ns)
