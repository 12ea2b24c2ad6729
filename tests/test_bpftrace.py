"""The bpftrace collector: the coverage cases, and its translator on hostile lines."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.cli import tracehint
from tests.support.ebpf import compile_workloads
from tests.support.patience import PATIENCE_S, until
from tests.test_ebpf_coverage import CASES, Run
from tests.test_strace_coverage import _check
from tracehint.collectors.bpftrace.record import LOG_NAME, translate
from tracehint.schemas.recovery import RAW_DIR
from tracehint.schemas.store import read_bundle

_URING = {f"uring_{kind}" for kind in ("plain", "async", "sqpoll", "linked", "fixed", "vectors")}
# case -> why bpftrace cannot record it; a case that starts to pass must leave this table
UNSEEN = {
    "aio_scattered": "requests are structures in memory",
    "fd_passed": "the message is a structure in memory",
    "fd_pidfd_getfd": "which process a pidfd means is not in the call",
    "map_fork": "which process touches a shared mapping is no system call",
    "map_grandchild": "the same, and who mapped it has ended",
    "map_write_few": "pages written are no system calls",
    "map_read_into": "pages written are no system calls",
    "map_sparse": "pages touched are no system calls",
    "name_hostile": "a name with a newline ends the line",
    "special_32bit": "other numbers of calls",
    "special_bind": "two paths of one bind mount: calls name paths, not inodes",
    "thread_exec": "the thread number changes at exec",
    **dict.fromkeys(_URING, "requests are in memory shared with the kernel"),
}
# a mount namespace of its own: tracefs does not stay mounted
MOUNT = 'mount -t tracefs tracefs /sys/kernel/tracing 2>/dev/null; exec "$@"'
WITH_TRACEFS = ["unshare", "-m", "sh", "-c", MOUNT, "sh"]


def recorder() -> list[str]:
    """Return the words of `record --collector bpftrace`; skip where tracefs does not suffice."""
    if os.geteuid():
        pytest.skip("needs root")
    wrap = [*WITH_TRACEFS, sys.executable]
    ask = (
        "from tracehint.collectors.registry import check as c;"
        "f = c('bpftrace'); print('' if f.usable else f.reason + ': ' + f.remedy)"
    )
    doctor = subprocess.run([*wrap, "-c", ask], capture_output=True, text=True, check=True)
    if doctor.stdout.strip():
        pytest.skip(doctor.stdout.strip())
    how = ["-m", "tracehint", "record", "--quiet", "--collector", "bpftrace", "-o", "run.trace"]
    return [*wrap, *how, "--"]


def bpftrace(*command: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a command, recorded with bpftrace."""
    words = [*recorder(), *map(str, command)]
    return subprocess.run(
        words, cwd=cwd, capture_output=True, text=True, check=False, timeout=PATIENCE_S
    )


def run_all(folder: Path) -> Run:
    """Record all cases at once with bpftrace."""
    program = compile_workloads(folder)
    base = folder / "base"
    base.mkdir()
    done = bpftrace(program, "all", base, cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    bundle = read_bundle(folder / "run.trace")
    status = {
        row["argv"][1].decode(): row["exit_code"]
        for row in bundle.tables["processes"].to_pylist()
        if len(row["argv"]) == 2 and row["exit_code"] is not None
    }
    return Run(bundle, base, status)


@pytest.mark.ebpf
@pytest.mark.slow
def test_all_cases(tmp_path: Path) -> None:
    run = run_all(tmp_path)
    failed = {}
    for case in CASES:
        if run.status.get(case) == 77:
            continue  # not supported by this kernel or file system
        try:
            _check(run, case)
        except (AssertionError, KeyError) as error:
            failed[case] = str(error)[:300]
    skipped = {case for case in CASES if run.status.get(case) == 77}
    assert set(failed) == set(UNSEEN) - skipped, failed


@pytest.mark.ebpf
@pytest.mark.slow
def test_status_streams_and_files(tmp_path: Path) -> None:
    done = bpftrace("sh", "-c", "echo data >a; cat a >b; echo said; exit 7", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (7, "said\n", "")
    bundle = read_bundle(tmp_path / "run.trace")
    assert bundle.manifest.collector == "bpftrace"
    assert "io_uring" in bundle.manifest.blind_to
    assert bundle.manifest.complete
    moved = {
        (o["path"][-2:], bool(o["write_bytes"])): o["write_bytes"] or o["read_bytes"]
        for o in bundle.tables["opens"].to_pylist()
        if o["path"] in (bytes(tmp_path / "a"), bytes(tmp_path / "b"))
        and (o["read_bytes"] or o["write_bytes"])
    }
    assert moved == {(b"/a", True): 5, (b"/a", False): 5, (b"/b", True): 5}


@pytest.mark.ebpf
@pytest.mark.slow
def test_a_killed_recorder_leaves_what_it_saw_and_no_probes(tmp_path: Path) -> None:
    script = (
        "seq 99 > f; cat f > g; : > made; while [ ! -e go ]; do sleep 0.1; done; cat g > h; : > end"
    )
    with subprocess.Popen([*recorder(), "sh", "-c", script], cwd=tmp_path) as process:
        until((tmp_path / "made").exists, "made")
        # a kill loses events that are not printed yet: wait for some more turns of the loop
        log = tmp_path / "run.trace" / RAW_DIR / LOG_NAME
        until(lambda: log.read_bytes().count(b"\nD ") > 6, "the files are seen")
        tracer = tracer_of(process.pid)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        until(lambda: not alive(tracer), "the tracer ends")
        (tmp_path / "go").touch()
        until((tmp_path / "end").exists, "end")
    bundle = read_bundle(tmp_path / "run.trace")
    assert not bundle.manifest.complete
    moved = {o["path"][-2:] for o in bundle.tables["opens"].to_pylist() if o["write_bytes"]}
    assert moved == {b"/f", b"/g"}
    done = tracehint("analyze", "run.trace", cwd=tmp_path)
    assert done.stdout.startswith("The recorder ")


@pytest.mark.ebpf
@pytest.mark.slow
def test_what_bpftrace_has_not_printed_at_the_end_is_waited_for(tmp_path: Path) -> None:
    """Interrupted while it prints, bpftrace drops the remaining events."""
    script = (
        ": > began; while [ ! -e go ]; do sleep 0.1; done;"
        "dd if=/dev/zero of=f bs=1 count=9000 status=none; cat f > g; : > made"
    )
    with subprocess.Popen([*recorder(), "sh", "-c", script], cwd=tmp_path) as process:
        until((tmp_path / "began").exists, "began")
        tracer = tracer_of(process.pid)
        os.kill(tracer, signal.SIGSTOP)
        (tmp_path / "go").touch()
        until((tmp_path / "made").exists, "made")
        for _ in range(3):  # stop it in the middle of its output
            os.kill(tracer, signal.SIGCONT)
            time.sleep(0.01)
            os.kill(tracer, signal.SIGSTOP)
            time.sleep(1)
        os.kill(tracer, signal.SIGCONT)
        assert process.wait() == 0
    bundle = read_bundle(tmp_path / "run.trace")
    opens = bundle.tables["opens"].to_pylist()
    written = {o["path"][-2:]: o["write_bytes"] for o in opens if o["write_bytes"]}
    assert (written, bundle.manifest.complete) == ({b"/f": 9000, b"/g": 9000}, True)


def tracer_of(recorder: int) -> int:
    """Return the pid of the bpftrace that the recorder started."""
    children = Path(f"/proc/{recorder}/task/{recorder}/children").read_text().split()
    names = {int(pid): Path(f"/proc/{pid}/comm").read_text().strip() for pid in children}
    (tracer,) = (pid for pid, name in names.items() if name == "bpftrace")
    return tracer


def alive(pid: int) -> bool:
    """Whether the process exists and is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_lines_are_put_in_order_and_losses_counted() -> None:
    lines = [
        b"ready first\n",
        b"S 7 7 300 310 1 4 3 0 4 0 0 0\n",
        b"Lost 12 events\n",
        b"S 7 7 100 120 257 3 ffffff9c 0 241 1b6 0 0\n",
        b'P 7 120 0 a "b" \\ $( )\n',
        b"S 7 7 400\n",
        b"second line of a name\n",
        b"P 7 120 1 " + b"x" * 199 + b"\n",
        b"F 7 320 8 1200011\n",
        b"D 8 500 9\n",
        b"S 7 7 350 360 209 1 0 0 0 0 0 0\n",
    ]
    log = translate(lines, 1000)
    assert [c.name for c in log.calls] == [b"openat", b"write", b"clone", b"killed by"]
    opened = log.calls[0]
    assert opened.args == b'AT_FDCWD, "a \\"b\\" \\\\ $( )", O_WRONLY|O_CREAT|O_TRUNC, 438'
    assert (opened.t_ns, opened.end_ns, opened.result) == (1100, 1120, b"3")
    assert (log.lost, log.bad, log.cut, log.unseen) == (12, 2, 1, {"io_submit": 1})
