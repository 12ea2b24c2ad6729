"""Reads and writes: update offsets, file sizes, writers and runs of accesses."""

from __future__ import annotations

from tracehint.collectors.strace.lexer import Call, MalformedError
from tracehint.collectors.strace.model import AccessRun, FileRec, Ofd, OpenRow, Runs, Thread
from tracehint.collectors.strace.state import State

_MAX_ASIDE = 16
_MAX_ASIDE_FOR_STRIDE = 3


def grow(
    st: State,
    row: OpenRow,
    runs: Runs,
    how: str,
    start: int,
    n: int,
    t_ns: int,
    end_ns: int,
    exact: bool,
) -> None:
    """Extend a run of accesses by [start, start + n), or begin a new run.

    Besides the current run, up to _MAX_ASIDE runs are kept open for their next
    adjacent access: threads or streams may alternate on one descriptor.
    """
    run = runs.current
    phase = row.file.phase
    if run is not None:
        if run.phase != phase or run.how != how or run.exact != exact:
            st.write_runs(row, runs)
        elif start == run.start + run.length and run.count == 1:
            _extend(run, n, end_ns)
            return
        elif runs.aside and start in runs.aside:
            other = runs.aside.pop(start)
            _set_aside(st, row, runs, run)
            runs.before, runs.current = run, other
            _extend(other, n, end_ns)
            return
        elif run.count > 1 and n == run.length and start == run.start + run.stride * run.count:
            _repeat(run, n, end_ns)
            return
        elif _completes_stride(runs, run, start, n):
            _begin_stride(runs, run, n, end_ns)
            return
        else:
            _set_aside(st, row, runs, run)
    runs.before, runs.current = runs.current, AccessRun(how, start, n, t_ns, end_ns, phase, exact)


def _begin_stride(runs: Runs, run: AccessRun, n: int, end_ns: int) -> None:
    """Merge the last two runs and this access into one strided run of three pieces."""
    assert runs.before is not None
    first = runs.current = runs.before
    first.stride = run.start - first.start
    _repeat(first, n, run.last)
    _repeat(first, n, end_ns)
    runs.before = None


def _extend(run: AccessRun, n: int, end_ns: int) -> None:
    run.length += n
    run.stride = run.length
    run.ops += 1
    run.bytes += n
    run.last = end_ns


def _repeat(run: AccessRun, n: int, end_ns: int) -> None:
    run.count += 1
    run.ops += 1
    run.bytes += n
    run.last = end_ns


def _completes_stride(runs: Runs, run: AccessRun, start: int, n: int) -> bool:
    """Whether this access is as far from the last one as that was from the previous one.

    Two pieces are not a pattern: they may belong to two streams. With more than
    _MAX_ASIDE_FOR_STRIDE runs set aside, there certainly are several streams. If the result is
    true, the previous run is no longer set aside: it is the first piece of the stride.
    """
    before = runs.before
    if len(runs.aside) > _MAX_ASIDE_FOR_STRIDE:
        return False
    if before is None or run.count != 1 or before.count != 1 or run.ops != 1 or before.ops != 1:
        return False
    step = start - run.start
    if run.length != n or before.length != n or step <= n or run.start - before.start != step:
        return False
    waits = runs.aside.get(before.start + before.length) is before
    if waits:
        del runs.aside[before.start + before.length]
    return waits


def _set_aside(st: State, row: OpenRow, runs: Runs, run: AccessRun) -> None:
    """Set the current run aside, or write it if strided; above _MAX_ASIDE, write the oldest."""
    key = run.start + (run.length if run.count == 1 else run.stride * run.count)
    old = runs.aside.pop(key, None)
    if old is not None:
        st.write_run(row, runs.op, old)
    if run.count > 1:
        st.write_run(row, runs.op, run)
        return
    runs.aside[key] = run
    if len(runs.aside) > _MAX_ASIDE:
        st.write_run(row, runs.op, runs.aside.pop(next(iter(runs.aside))))


_SMALL = 4096
MAX_CALL = 0x7FFFF000  # MAX_RW_COUNT of the kernel
_MAX_PHASES = 4096  # per file; beyond, the order of accesses within its runs is uncertain


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
    """Record a read of `n` bytes at `at`; None: at the offset of the open description."""
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
            rec.size = at  # sequential reads reached the end of the file
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
    """Record a write of `n` bytes at `at`, at the offset (None), or at the end (O_APPEND)."""
    if n == 0:
        return
    _check(n)
    rec = ofd.file
    exact = True
    if ofd.append:
        if rec.size is None:
            rec.size = 0  # counted from the old end; corrected when the final size is known
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
    set_writer(rec, row.proc)
    if rec.size is not None and at + n > rec.size:
        rec.size = at + n
    _touch(row, n, t_ns, end_ns)
    if rec.kind == "file":
        grow(st, row, row.writes, how, at, n, t_ns, end_ns, exact)


def _check(n: int) -> None:
    if n > MAX_CALL:
        raise MalformedError(b"%d bytes in one call" % n)


def set_writer(rec: FileRec, proc: int) -> None:
    """Make `proc` the writer of the file; runs of other processes end here."""
    others = (rec.writer and rec.writer != proc) or (rec.reader and rec.reader != proc)
    if others and rec.phase < _MAX_PHASES:
        rec.phase += 1
        rec.reader = 0
    rec.writer = proc


def record_removal(rec: FileRec, proc: int) -> None:
    """Record that bytes were removed: no run may span this time, not even one of `proc`."""
    set_writer(rec, proc)
    rec.phase += 1


def record_mapping(
    st: State, thread: Thread, ofd: Ofd, fd: int, op: str, start: int, length: int, t_ns: int
) -> None:
    """Record a mapped range: an upper bound of the bytes read or written, never exact."""
    rec = ofd.file
    if rec.kind != "file":
        return
    if rec.size is not None:
        length = min(length, rec.size - start)
    if length <= 0:
        return
    row = st.row(thread, ofd, fd, t_ns)
    if op == "write":
        set_writer(rec, row.proc)
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
    """Record a range that the kernel wrote without data from the process (zeroed, moved)."""
    row = st.row(thread, ofd, fd, call.t_ns)
    rec = ofd.file
    row.write_ops += 1
    row.write_bytes += length
    set_writer(rec, row.proc)
    if rec.size is not None:
        rec.size = max(rec.size, start + length)
    _touch(row, length, call.t_ns, call.end_ns)
    if rec.kind == "file":
        runs = row.writes
        grow(st, row, runs, how, start, length, call.t_ns, call.end_ns, True)
