"""Running a command under strace: the log grows in the bundle, the command notices nothing."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tracehint.collectors.run import Ended, run_child
from tracehint.collectors.strace import drain
from tracehint.collectors.strace.calls import ALWAYS, BYTES, RAW
from tracehint.collectors.strace.finish import kind_of
from tracehint.collectors.strace.model import FileRec, Ofd
from tracehint.errors import CollectorError

# Printed whole: inode and size from stat, the environment of exec (only ENV_MARKERS are kept).
_WHOLE = ("execve", "execveat", "stat", "lstat", "fstat", "newfstatat")

# Never deadly, or noise. The others are kept: strace prints `+++ killed by` only for these.
_QUIET_SIGNALS = "SIGCHLD,SIGURG,SIGWINCH,SIGCONT"
MAX_STRING = 131072  # the kernel's longest single argument (MAX_ARG_STRLEN)


def strace_argv(
    program: str,
    log: str,
    command: Sequence[str],
    *,
    light: bool,
    detach: bool = True,
    pid_names: Sequence[str] = (),
) -> list[str]:
    """The command line that runs `command` under strace, as a child of the caller (-D).

    `pid_names`: what `pid_translation` found.
    """
    calls = ALWAYS if light else (*ALWAYS, *BYTES)
    return [
        program,
        *(["-D"] if detach else []),
        "-f",
        "--seccomp-bpf",
        "-q",
        "-y",
        "-a",
        "1",
        "--absolute-timestamps=unix,ns",
        "-s",
        str(MAX_STRING),
        *pid_names,
        "-e",
        "signal=!" + _QUIET_SIGNALS,
        "-e",
        "abbrev=!" + ",".join("?" + c for c in _WHOLE),
        "-e",
        "raw=" + ",".join("?" + c for c in sorted(RAW)),
        "-e",
        "trace=" + ",".join("?" + c for c in calls),
        "-o",
        log,
        "--",
        *command,
    ]


def pid_translation(usage: str) -> list[str]:
    """The option of this strace (of its --help) that gives results of fork in its own name space.

    Without it the children of a process in a pid name space have other numbers than their calls.
    """
    for option in ("--decode-pids=pidns", "--pidns-translation"):
        if option in usage:
            return [option]
    return []


LINGER_S = 2.0  # how long processes that outlive the command are waited for
LOOK_S = 1.0  # between looks whether a busy machine's strace is done
LAG_S = 60.0  # how long strace is waited for that follows nobody any more, and still writes


@dataclass(frozen=True)
class LiveLog:
    """What came of the run."""

    ended: Ended
    started_ns: int
    ended_ns: int
    lost_lines: int
    left_running: bool  # processes outlived the command; what they do later is not in the log
    drain_killed: bool = False  # who writes the log did not reach its end


def inherited_descriptors() -> dict[int, tuple[bytes, int, int]]:
    """Descriptors that the command will inherit: number -> (path, offset, flags)."""
    found: dict[int, tuple[bytes, int, int]] = {}
    for entry in Path("/proc/self/fd").iterdir():
        fd = int(entry.name)
        try:
            if not os.get_inheritable(fd):
                continue
            path = os.fsencode(entry.readlink())
            text = Path(f"/proc/self/fdinfo/{fd}").read_text(encoding="ascii")
        except OSError:
            continue  # the descriptor of the listing itself
        fields = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
        found[fd] = (path, int(fields.get("pos", "0")), int(fields.get("flags", "0"), 8))
    return found


def initial_table(
    facts: Mapping[int, tuple[bytes, int, int]],
) -> tuple[dict[int, Ofd], list[FileRec]]:
    """The command's first descriptor table; equal descriptors (`2>&1`) share one description."""
    table: dict[int, Ofd] = {}
    shared: dict[tuple[bytes, int, int], Ofd] = {}
    files: dict[bytes, FileRec] = {}
    for fd, (path, offset, flags) in sorted(facts.items()):
        ofd = shared.get((path, offset, flags))
        if ofd is None:
            rec = files.get(path)
            if rec is None:
                rec = files[path] = FileRec(len(files) + 1, kind_of(path))
                rec.existed = True
            ofd = shared[path, offset, flags] = Ofd(
                rec, path, flags, append=bool(flags & os.O_APPEND)
            )
            ofd.offset = offset
        table[fd] = ofd
    return table, list(files.values())


def run_traced(
    command: Sequence[str],
    env: Mapping[str, str],
    log: Path,
    *,
    light: bool,
    linger_s: float = LINGER_S,
    given: Mapping[str, str] | None = None,
) -> LiveLog:
    """Run the command under strace; the log is complete when this returns.

    given: environment of the command alone, not of strace.

    strace runs as a grandchild (-D), so the command is our own child: its exit status and the
    signals sent to it are its own. Raises CollectorError, CommandError.
    """
    program = _strace()
    usage = subprocess.run([program, "--help"], capture_output=True, text=True, check=False).stdout
    pid_names = pid_translation(usage)
    with _folder(log.parent) as folder:
        fifo = str(Path(folder) / "log")
        os.mkfifo(fifo, 0o600)
        with subprocess.Popen(
            [sys.executable, "-I", "-S", drain.__file__, fifo, str(log)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        ) as drainer:
            started = time.time_ns()
            options = [*pid_names, *(f"-E{name}={value}" for name, value in (given or {}).items())]
            argv = strace_argv(program, fifo, command, light=light, pid_names=options)
            try:
                ended = run_child(argv, env)
            except BaseException:
                drainer.kill()
                raise
            ended_ns = time.time_ns()
            lost, left = _wait_for(drainer, fifo, linger_s)
    return LiveLog(ended, started, ended_ns, lost, left, bool(drainer.returncode))


def _strace() -> str:
    program = shutil.which("strace")
    if program is None:
        raise CollectorError("strace: not installed", "Install the package strace.")
    return program


def _folder(other: Path) -> tempfile.TemporaryDirectory[str]:
    """A directory for the FIFO: where temporary files go, and where none can, in `other`."""
    try:
        return tempfile.TemporaryDirectory(prefix="tracehint-")
    except OSError:
        return tempfile.TemporaryDirectory(prefix=".fifo-", dir=other)


def _wait_for(drainer: subprocess.Popen[bytes], fifo: str, linger_s: float) -> tuple[int, bool]:
    """Wait until strace has written everything; (lines lost, whether processes are left)."""
    began = time.monotonic()
    deadline = began + linger_s
    while True:
        try:
            out, _ = drainer.communicate(timeout=max(0.05, deadline - time.monotonic()))
            return int(out or b"0"), False
        except subprocess.TimeoutExpired:
            pass
        except ValueError:
            return 0, False
        if time.monotonic() < deadline:
            continue
        writer = _writer(fifo)
        if not writer or _follows(writer) or time.monotonic() > began + LAG_S:
            break
        deadline = time.monotonic() + LOOK_S  # every process has ended, but not its log
    if not writer:
        drainer.kill()  # strace never opened the FIFO
        drainer.communicate()
        return 0, False
    drainer.send_signal(drain.STOP)  # goes on reading, so that the daemons are not stopped
    if drainer.stdout is not None:
        drainer.stdout.close()
    drainer.returncode = 0  # left to itself: not waited for
    return 0, True


def _follows(tracer: int) -> bool:
    """Whether that strace still has somebody to follow."""
    line = f"\nTracerPid:\t{tracer}\n"
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                text = (entry / "status").read_text(encoding="utf-8", errors="replace")
                if line in text and "\nState:\tZ" not in text:
                    return True
    return False


def _writer(fifo: str) -> int:
    """The strace that was started with this FIFO; 0: there is none any more."""
    wanted = fifo.encode()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                words = (entry / "cmdline").read_bytes().split(b"\0")
                if wanted in words and b"strace" in (entry / "comm").read_bytes():
                    return int(entry.name)
    return 0
