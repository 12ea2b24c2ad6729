"""Calls that create, duplicate, pass and close descriptors."""

from __future__ import annotations

import os
import re

from tracehint.collectors.strace.access import record_removal
from tracehint.collectors.strace.finish import absolute, file_at, kind_of, lookup, new_file, real
from tracehint.collectors.strace.handlers.common import directory, head_fd, parse_result
from tracehint.collectors.strace.lexer import Call, descriptor, flags, number, split_args, string
from tracehint.collectors.strace.model import MaybeCreation, Ofd, Thread
from tracehint.collectors.strace.state import State

_FLAG_BITS = {
    name.encode(): value
    for name, value in vars(os).items()
    if name.startswith("O_") and isinstance(value, int)
} | {b"O_LARGEFILE": 0o100000}
_FD_PATH = re.compile(rb"/(?:proc/(?:self|thread-self|(\d+))/fd|dev/fd)/(\d+)$")
_STD_PATH = {b"/dev/stdin": 0, b"/dev/stdout": 1, b"/dev/stderr": 2}
_OPENAT2_FLAGS = re.compile(rb"flags=([^,}]*)")


def flag_bits(names: frozenset[bytes]) -> int:
    """Convert O_* names to the number passed to open."""
    bits = 0
    for name in names:
        bits |= _FLAG_BITS.get(name, 0)
    return bits


def open_(st: State, thread: Thread, call: Call) -> None:
    """open(path, flags[, mode])."""
    path, how, *_ = split_args(call.args)
    _add_open(st, thread, call, None, path, flags(how))


def creat(st: State, thread: Thread, call: Call) -> None:
    """creat(path, mode)."""
    how = frozenset((b"O_WRONLY", b"O_CREAT", b"O_TRUNC"))
    _add_open(st, thread, call, None, split_args(call.args)[0], how)


def openat(st: State, thread: Thread, call: Call) -> None:
    """openat(dirfd, path, flags[, mode]) and openat2(dirfd, path, {flags=...}, size)."""
    dirfd, path, how, *_ = split_args(call.args)
    if how[:1] == b"{":
        found = _OPENAT2_FLAGS.search(how)
        how = found[1] if found else b""
    _add_open(st, thread, call, dirfd, path, flags(how))


def open_by_handle_at(st: State, thread: Thread, call: Call) -> None:
    """open_by_handle_at(mount_fd, handle, flags): only the annotation names the file."""
    if parse_result(call.result) is None:
        return
    fd, note, gone = descriptor(call.result)
    if note is None:
        st.losses["unknown_calls", "open_by_handle_at"] += 1
        st.unseen_fds = True
        release(st, thread, fd, call.t_ns)
        return
    how = flags(split_args(call.args)[2])
    if gone:
        rec, first = new_file(st, kind_of(note)), True
        rec.deleted = True
    else:
        rec, first = file_at(st, note, kind_of(note), thread.group.epoch.proc, call.t_ns)
    release(st, thread, fd, call.t_ns)
    ofd = Ofd(rec, note, flag_bits(how), append=b"O_APPEND" in how)
    ofd.note = note
    install(thread, fd, ofd, cloexec=b"O_CLOEXEC" in how)
    _session(st, thread, call, ofd, fd, how, first)


def _add_open(
    st: State, thread: Thread, call: Call, dirfd: bytes | None, arg: bytes, how: frozenset[bytes]
) -> None:
    folder = directory(thread, dirfd) if dirfd is not None else None
    asked = absolute(thread, string(arg), folder)
    if parse_result(call.result) is None:
        st.count(thread.group.epoch.proc, asked, "failed_open", True)
        if b"ENOENT" in call.result and b"O_CREAT" not in how:
            node = st.names.node(st.names.resolve(asked, follow=False))
            node.absent = node.file is None
        return
    fd, note, gone = descriptor(call.result)
    reopened = find_reopened(thread, asked)
    if reopened is not None:
        rec, first, path = reopened.file, False, reopened.path
    elif b"O_TMPFILE" in how or (gone and note is not None):
        path = note or asked
        rec, first = new_file(st, kind_of(path)), True
        rec.existed, rec.deleted = False, True
    else:
        path = note if note is not None and note[:1] == b"/" else real(st, asked, follow=True)
        kind = "dir" if b"O_DIRECTORY" in how else kind_of(path)
        rec, first = file_at(st, path, kind, thread.group.epoch.proc, call.t_ns)
    release(st, thread, fd, call.t_ns)
    ofd = Ofd(rec, path, flag_bits(how), append=b"O_APPEND" in how)
    ofd.note = note
    install(thread, fd, ofd, cloexec=b"O_CLOEXEC" in how)
    _session(st, thread, call, ofd, fd, how, first)


def _session(
    st: State, thread: Thread, call: Call, ofd: Ofd, fd: int, how: frozenset[bytes], first: bool
) -> None:
    """Add the row of this open: whether the file was created or truncated, and its size."""
    rec, epoch = ofd.file, thread.group.epoch
    row = st.new_row(epoch, ofd, fd, "open", call.t_ns)
    unsure = False
    if first:
        if b"O_TMPFILE" in how:
            row.created = rec.created = True
            rec.size = 0
        elif b"O_CREAT" not in how:
            rec.existed = True
        elif b"O_EXCL" in how or rec.existed is False:
            row.created = rec.created = True
            rec.existed = False
            rec.size = 0
        elif rec.existed is None:
            unsure = True
        seq = st.next_name
        st.name_row(epoch.proc, rec, "create" if row.created else "open", ofd.path, None, call.t_ns)
    row.size_at_open = rec.size
    if b"O_TRUNC" in how:
        if (rec.size is None and not unsure) or rec.size:
            row.truncated = True
            record_removal(rec, epoch.proc)
            st.extent(epoch.proc, rec, "truncate", "open", 0, 0, call.t_ns, row.number)
        rec.size = 0
    if unsure:
        trunc = b"O_TRUNC" in how
        st.undecided_opens.append(MaybeCreation(rec, row.number, epoch.proc, call.t_ns, seq, trunc))


def find_reopened(thread: Thread, path: bytes) -> Ofd | None:
    """Return the open description behind /proc/self/fd/N, /dev/fd/N, /dev/stdin; else None."""
    fd = _STD_PATH.get(path)
    if fd is None:
        found = _FD_PATH.match(path)
        if found is None or (found[1] and int(found[1]) != thread.group.pid):
            return None
        fd = int(found[2])
    ofd = thread.table.fds.get(fd)
    return ofd if ofd is not None and ofd.file.kind in ("file", "pipe", "memfd") else None


def install(thread: Thread, fd: int, ofd: Ofd, *, cloexec: bool) -> None:
    """Add an open description to the descriptor table."""
    thread.table.fds[fd] = ofd
    if cloexec:
        thread.table.cloexec.add(fd)
    else:
        thread.table.cloexec.discard(fd)


def release(st: State, thread: Thread, fd: int, t_ns: int) -> None:
    """Close a descriptor; the session ends with the process's last descriptor of the file."""
    table = thread.table
    ofd = table.fds.pop(fd, None)
    table.cloexec.discard(fd)
    if ofd is None or ofd in table.fds.values():
        return
    row = thread.group.epoch.rows.pop(ofd, None)
    if row is not None:
        st.write_row(row, t_ns)


def close(st: State, thread: Thread, call: Call) -> None:
    """close(fd): the descriptor is free from the start of the call, whatever its result."""
    fd, _ = head_fd(st, thread, call.args, call.t_ns)
    release(st, thread, fd, call.t_ns)


def close_range(st: State, thread: Thread, call: Call) -> None:
    """close_range(first, last, flags)."""
    if parse_result(call.result) is None:
        return
    first, last, how = split_args(call.args)[:3]
    low, high = number(first), number(last)
    if b"CLOSE_RANGE_UNSHARE" in how:
        thread.table = thread.table.copy()
    hit = [fd for fd in thread.table.fds if low <= fd <= high]
    if b"CLOSE_RANGE_CLOEXEC" in how:
        thread.table.cloexec.update(hit)
        return
    for fd in hit:
        release(st, thread, fd, call.t_ns)


SENDS = frozenset((b"sendmsg", b"sendmmsg"))
_RIGHTS = re.compile(rb"cmsg_type=SCM_RIGHTS, cmsg_data=\[(.*?)\](?=[,}])", re.DOTALL)


def dup(st: State, thread: Thread, call: Call) -> None:
    """dup(fd), dup2(fd, new), dup3(fd, new, flags)."""
    if parse_result(call.result) is None:
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
        if parse_result(call.result) is not None:
            _, ofd = head_fd(st, thread, call.args, call.t_ns)
            new = descriptor(call.result)[0]
            if ofd is not None:
                install(thread, new, ofd, cloexec=b"F_DUPFD_CLOEXEC" in call.args)
    elif b"F_SETFD" in call.args and parse_result(call.result) is not None:
        fd, _ = head_fd(st, thread, call.args, call.t_ns)
        if b"FD_CLOEXEC" in call.args:
            thread.table.cloexec.add(fd)
        else:
            thread.table.cloexec.discard(fd)
    elif b"F_SETFL" in call.args and parse_result(call.result) is not None:
        _, ofd = head_fd(st, thread, call.args, call.t_ns)
        if ofd is not None:
            ofd.append = b"O_APPEND" in call.args


def pipe(st: State, thread: Thread, call: Call) -> None:
    """pipe([r, w]), pipe2([r, w], flags)."""
    if parse_result(call.result) is None:
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
    """memfd_create(name, flags): memory, recorded with a kind of its own, not as a file."""
    if parse_result(call.result) is None:
        return
    fd, _, _ = descriptor(call.result)
    rec = new_file(st, "memfd")
    rec.existed, rec.created, rec.deleted = False, True, True
    ofd = Ofd(rec, b"/memfd:" + string(split_args(call.args)[0]), os.O_RDWR)
    install(thread, fd, ofd, cloexec=b"MFD_CLOEXEC" in call.args)
    st.new_row(thread.group.epoch, ofd, fd, "memfd", call.t_ns)


def note_sending(st: State, thread: Thread, call: Call) -> None:
    """Record what a starting sendmsg or sendmmsg sends: it may arrive before the call returns."""
    sent = [
        [lookup(st, thread, fd, note, call.t_ns) for fd, note in rights] for rights in _rights(call)
    ]
    if sent:
        st.sending[thread.tid] = sent
        st.in_flight += sent
        del st.in_flight[:-1024]


def sendmsg(st: State, thread: Thread, call: Call) -> None:
    """Record the open descriptions sent by SCM_RIGHTS, without messages that were not sent."""
    if thread.tid not in st.sending:
        note_sending(st, thread, call)
    sent = st.sending.pop(thread.tid, [])
    taken = parse_result(call.result)
    if call.name == b"sendmsg" and taken is not None:
        taken = len(sent)
    for lost in sent[taken or 0 :]:
        for i, other in enumerate(st.in_flight):
            if other is lost:
                del st.in_flight[i]
                break


def recvmsg(st: State, thread: Thread, call: Call) -> None:
    """Install descriptors received by SCM_RIGHTS: they share the sender's offset and flags."""
    if parse_result(call.result) is not None:
        for rights in _rights(call):
            _receive(st, thread, call, rights)


def _receive(st: State, thread: Thread, call: Call, rights: list[tuple[int, bytes | None]]) -> None:
    match = next((m for m in st.in_flight if _notes_match(m, rights)), None)
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
    """Return (descriptor, annotation) pairs for each message that passes descriptors."""
    if b"SCM_RIGHTS" not in call.args:
        return []
    return [
        [descriptor(arg)[:2] for arg in split_args(found[1])]
        for found in _RIGHTS.finditer(call.args)
    ]


def _notes_match(sent: list[Ofd | None], rights: list[tuple[int, bytes | None]]) -> bool:
    return len(sent) == len(rights) and all(
        note is None or ofd is None or ofd.note is None or ofd.note == note
        for ofd, (_, note) in zip(sent, rights, strict=True)
    )


def pidfd_getfd(st: State, thread: Thread, call: Call) -> None:
    """pidfd_getfd(pidfd, fd, flags): share the open description of another process."""
    if parse_result(call.result) is None:
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
