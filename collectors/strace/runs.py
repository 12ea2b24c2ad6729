"""Runs: accesses that continue each other, or follow at one stride, grow into one row."""

from __future__ import annotations

from tracehint.collectors.strace.model import AccessRun, OpenRow, Runs
from tracehint.collectors.strace.state import State

_MAX_ASIDE = 16
_FEW_ASIDE = 3


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
    """Let a run grow by [start, start + n), or begin another one.

    Besides the current run, up to _MAX_ASIDE others wait for what comes next to
    them: threads or streams that take turns on one descriptor.
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
            runs.aside[run.start + run.length] = run
            runs.before, runs.current = run, other
            _extend(other, n, end_ns)
            return
        elif run.count > 1 and n == run.length and start == run.start + run.stride * run.count:
            _repeat(run, n, end_ns)
            return
        elif _third_of_a_stride(runs, run, start, n):
            _begin_stride(runs, run, n, end_ns)
            return
        else:
            _set_aside(st, row, runs, run)
    runs.before, runs.current = runs.current, AccessRun(how, start, n, t_ns, end_ns, phase, exact)


def _begin_stride(runs: Runs, run: AccessRun, n: int, end_ns: int) -> None:
    """The last two runs and this access become one run of three pieces."""
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


def _third_of_a_stride(runs: Runs, run: AccessRun, start: int, n: int) -> bool:
    """Whether this access is as far from the last one as that was from the one before.

    Two pieces make no pattern: they may be two streams; and where many runs wait
    there are streams for certain. The run before leaves the waiting ones, it
    becomes the beginning of the stride.
    """
    before = runs.before
    if len(runs.aside) > _FEW_ASIDE:
        return False
    if before is None or run.count != 1 or before.count != 1 or run.ops != 1 or before.ops != 1:
        return False
    step = start - run.start
    if run.length != n or before.length != n or step <= n or run.start - before.start != step:
        return False
    return runs.aside.pop(before.start + before.length, None) is before


def _set_aside(st: State, row: OpenRow, runs: Runs, run: AccessRun) -> None:
    """The current run waits; where too many wait, the oldest one is written."""
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
