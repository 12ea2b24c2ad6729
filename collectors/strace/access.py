"""Reads and writes: offsets advance, sizes and writers change."""

from __future__ import annotations

from tracehint.collectors.strace.decode import MalformedError
from tracehint.collectors.strace.lexer import Call
from tracehint.collectors.strace.model import FileRec, Ofd, OpenRow, Thread
from tracehint.collectors.strace.runs import grow
from tracehint.collectors.strace.state import State

_SMALL = 4096
MAX_CALL = 0x7FFFF000  # MAX_RW_COUNT of the kernel
_MAX_PHASES = 4096  # of one file; beyond, order inside its runs becomes uncertain


def read(
    st: State,
    thread: Thread,
    ofd: Ofd,
    fd: int,
    at: int | None,
    n: int,
    how: str,
    t_ns: int,
    end_ns: int,
) -> None:
    """`n` bytes were read at `at`, or at the description's offset when that is None."""
    _check(n)
    rec = ofd.file
    exact = True
    if at is None:
        at = ofd.offset
        exact = ofd.exact
        ofd.offset = at + n
    if n == 0:
        row = thread.group.epoch.rows.get(ofd)
        if row and row.read_ops and row.next_read == at and rec.size is None and exact:
            rec.size = at  # the end of what was read is the end of the file
        return
    row = thread.group.epoch.rows.get(ofd) or st.row(thread, ofd, fd, t_ns)
    row.read_ops += 1
    row.read_bytes += n
    if row.read_ops > 1 and row.next_read == at:
        row.seq_ops += 1
    row.next_read = at + n
    proc = row.proc
    if rec.writer and rec.writer != proc and rec.phase < _MAX_PHASES:
        rec.phase += 1
        rec.writer = 0
        rec.reader = proc
    elif rec.reader != proc:
        rec.reader = proc if rec.reader == 0 else -1
    _touch(row, n, t_ns, end_ns)
    if rec.kind == "file":
        grow(st, row, row.reads, how, at, n, t_ns, end_ns, exact)


def write(
    st: State,
    thread: Thread,
    ofd: Ofd,
    fd: int,
    at: int | None,
    n: int,
    how: str,
    t_ns: int,
    end_ns: int,
) -> None:
    """`n` bytes were written at `at`, at the offset (None), or at the end (O_APPEND)."""
    if n == 0:
        return
    _check(n)
    rec = ofd.file
    exact = True
    if ofd.append:
        if rec.size is None:
            rec.size = 0  # counted from the old end; put right when the final size is known
            rec.appended_blind = True
        exact = not rec.appended_blind
        at = rec.size
        ofd.offset = at + n
    elif at is None:
        at = ofd.offset
        exact = ofd.exact
        ofd.offset = at + n
    row = thread.group.epoch.rows.get(ofd) or st.row(thread, ofd, fd, t_ns)
    row.write_ops += 1
    row.write_bytes += n
    if row.write_ops > 1 and row.next_write == at:
        row.seq_ops += 1
    row.next_write = at + n
    wrote(rec, row.proc)
    if rec.size is not None and at + n > rec.size:
        rec.size = at + n
    _touch(row, n, t_ns, end_ns)
    if rec.kind == "file":
        grow(st, row, row.writes, how, at, n, t_ns, end_ns, exact)


def _check(n: int) -> None:
    if n > MAX_CALL:
        raise MalformedError(b"%d bytes in one call" % n)


def wrote(rec: FileRec, proc: int) -> None:
    """The file passes to this writer: others' runs end here."""
    others = (rec.writer and rec.writer != proc) or (rec.reader and rec.reader != proc)
    if others and rec.phase < _MAX_PHASES:
        rec.phase += 1
        rec.reader = 0
    rec.writer = proc


def cut(rec: FileRec, proc: int) -> None:
    """Bytes went away: no run may span this moment, not even the process's own."""
    wrote(rec, proc)
    rec.phase += 1


def mapped(
    st: State, thread: Thread, ofd: Ofd, fd: int, op: str, start: int, length: int, t_ns: int
) -> None:
    """A mapped range: an upper bound of what is read or written, never exact."""
    rec = ofd.file
    if rec.kind != "file":
        return
    if rec.size is not None:
        length = min(length, rec.size - start)
    if length <= 0:
        return
    row = st.row(thread, ofd, fd, t_ns)
    if op == "write":
        wrote(rec, row.proc)
    _touch(row, _SMALL, t_ns, t_ns)
    st.out.extents.append(
        (
            row.number,
            row.proc,
            rec.id,
            op,
            "mmap",
            start,
            length,
            length,
            1,
            1,
            length,
            t_ns,
            t_ns,
            False,
            None,
        )
    )


def _touch(row: OpenRow, n: int, t_ns: int, end_ns: int) -> None:
    if row.first is None:
        row.first = t_ns
    row.last = end_ns
    if n < _SMALL:
        row.small_ops += 1


def write_at(
    st: State, thread: Thread, ofd: Ofd, fd: int, start: int, length: int, how: str, call: Call
) -> None:
    """A range that was written without data passing through the process (zeroed)."""
    row = st.row(thread, ofd, fd, call.t_ns)
    rec = ofd.file
    row.write_ops += 1
    row.write_bytes += length
    wrote(rec, row.proc)
    if rec.size is not None:
        rec.size = max(rec.size, start + length)
    _touch(row, length, call.t_ns, call.end_ns)
    if rec.kind == "file":
        runs = row.writes
        grow(st, row, runs, how, start, length, call.t_ns, call.end_ns, True)
