"""Run a command under strace: the log is written to the bundle, transparently to the command."""

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

# Printed unabbreviated: inode and size of stat, environment of exec (only ENV_MARKERS are kept).
_UNABBREVIATED = ("execve", "execveat", "stat", "lstat", "fstat", "newfstatat")

# Not fatal, or noise. All others are traced: strace prints `+++ killed by` only for traced ones.
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

    `pid_names`: further options, as `pid_translation` returns them.
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
        "abbrev=!" + ",".join("?" + c for c in _UNABBREVIATED),
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
    """Return the option (if in strace's --help) to print fork results in its own pid namespace.

    Without it, fork in another pid namespace returns other pids than those of the child's lines.
    """
    for option in ("--decode-pids=pidns", "--pidns-translation"):
        if option in usage:
            return [option]
    return []


LINGER_S = 2.0  # maximum wait for processes that outlive the command
CHECK_S = 1.0  # interval of checks whether strace has finished on a busy machine
LAG_S = 60.0  # maximum wait for a strace that still writes but traces no process any more


@dataclass(frozen=True)
class LiveLog:
    """Result of a run under strace."""

    ended: Ended
    started_ns: int
    ended_ns: int
    lost_lines: int
    left_running: bool  # processes outlived the command; their later calls are not logged
    drain_killed: bool = False  # the process that writes the log ended early


def inherited_descriptors() -> dict[int, tuple[bytes, int, int]]:
    """Return the descriptors that the command will inherit: number -> (path, offset, flags)."""
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
    """Return the command's initial descriptors and files; equal ones (`2>&1`) share one Ofd."""
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

    given: environment variables of the command, but not of strace.

    strace runs as a grandchild (-D), so the command is a direct child: its exit status and the
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
    """Create a directory for the FIFO with other temporary files, or, if that fails, in `other`."""
    try:
        return tempfile.TemporaryDirectory(prefix="tracehint-")
    except OSError:
        return tempfile.TemporaryDirectory(prefix=".fifo-", dir=other)


def _wait_for(drainer: subprocess.Popen[bytes], fifo: str, linger_s: float) -> tuple[int, bool]:
    """Wait until strace has written everything; return (lines lost, whether processes remain)."""
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
        writer = _find_tracer(fifo)
        if not writer or _is_tracing(writer) or time.monotonic() > began + LAG_S:
            break
        deadline = time.monotonic() + CHECK_S  # every process has ended, but strace still writes
    if not writer:
        drainer.kill()  # strace never opened the FIFO
        drainer.communicate()
        return 0, False
    drainer.send_signal(drain.STOP)  # keeps reading, so that daemons do not block
    if drainer.stdout is not None:
        drainer.stdout.close()
    drainer.returncode = 0  # detached: not waited for
    return 0, True


def _is_tracing(tracer: int) -> bool:
    """Whether this strace still traces a process that is not a zombie."""
    line = f"\nTracerPid:\t{tracer}\n"
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                text = (entry / "status").read_text(encoding="utf-8", errors="replace")
                if line in text and "\nState:\tZ" not in text:
                    return True
    return False


def _find_tracer(fifo: str) -> int:
    """Return the pid of the strace that was started with this FIFO; 0 if there is none."""
    wanted = fifo.encode()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                words = (entry / "cmdline").read_bytes().split(b"\0")
                if wanted in words and b"strace" in (entry / "comm").read_bytes():
                    return int(entry.name)
    return 0
