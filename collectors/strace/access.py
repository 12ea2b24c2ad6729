"""Reads and writes: offsets advance, contiguous accesses grow into runs."""

from __future__ import annotations

from tracehint.collectors.strace.decode import MalformedError
from tracehint.collectors.strace.model import FileRec, Ofd, OpenRow, Run, Thread
from tracehint.collectors.strace.state import State

_SMALL = 4096
MAX_CALL = 0x7FFFF000  # MAX_RW_COUNT of the kernel
_MAX_PHASES = 4096  # of one file; beyond, order inside its runs becomes uncertain


def read(
    st: State, thread: Thread, ofd: Ofd, fd: int, at: int | None, n: int, how: str,
    t_ns: int, end_ns: int,
) -> None:  # fmt: skip
    """`n` bytes were read at `at`, or at the description's offset when that is None."""
    if n > MAX_CALL:
        raise MalformedError(b"%d bytes in one call" % n)
    rec = ofd.file
    exact = True
    if at is None:
        at = ofd.offset
        exact = ofd.exact
        ofd.offset = at + n
    if n == 0:
        if rec.size is None and exact and rec.kind == "file":
            rec.size = at  # end of file: now the size is known
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
        row.read = _grow(st, row, "read", row.read, how, at, n, t_ns, end_ns, exact)


def write(
    st: State, thread: Thread, ofd: Ofd, fd: int, at: int | None, n: int, how: str,
    t_ns: int, end_ns: int,
) -> None:  # fmt: skip
    """`n` bytes were written at `at`, at the offset (None), or at the end (O_APPEND)."""
    if n == 0:
        return
    if n > MAX_CALL:
        raise MalformedError(b"%d bytes in one call" % n)
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
        row.write = _grow(st, row, "write", row.write, how, at, n, t_ns, end_ns, exact)


def wrote(rec: FileRec, proc: int) -> None:
    """The file passes to this writer: others' runs end here."""
    others = (rec.writer and rec.writer != proc) or (rec.reader and rec.reader != proc)
    if others and rec.phase < _MAX_PHASES:
        rec.phase += 1
        rec.reader = 0
    rec.writer = proc


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
        (row.number, row.proc, rec.id, op, "mmap", start, length, length, 1, 1, length, t_ns,
         t_ns, False, None),
    )  # fmt: skip


def _touch(row: OpenRow, n: int, t_ns: int, end_ns: int) -> None:
    if row.first is None:
        row.first = t_ns
    row.last = end_ns
    if n < _SMALL:
        row.small_ops += 1


def _grow(
    st: State, row: OpenRow, op: str, run: Run | None, how: str, start: int, n: int, t_ns: int,
    end_ns: int, exact: bool,
) -> Run:  # fmt: skip
    """Let the run grow by [start, start + n) or write it and begin another one."""
    if run is not None:
        if run.phase == row.file.phase and run.how == how and run.exact == exact:
            if run.count == 1:
                if start == run.start + run.length:
                    run.length += n
                    run.stride = run.length
                elif n == run.length and start > run.start + n:
                    run.stride = start - run.start
                    run.count = 2
                else:
                    st.write_run(row, op, run)
                    return Run(how, start, n, t_ns, end_ns, row.file.phase, exact)
            elif n == run.length and start == run.start + run.stride * run.count:
                run.count += 1
            else:
                st.write_run(row, op, run)
                return Run(how, start, n, t_ns, end_ns, row.file.phase, exact)
            run.ops += 1
            run.bytes += n
            run.last = end_ns
            return run
        st.write_run(row, op, run)
    return Run(how, start, n, t_ns, end_ns, row.file.phase, exact)
