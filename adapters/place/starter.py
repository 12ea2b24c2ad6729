"""Replacement of a task that an engine starts: requests a node and starts the task there, or here.

    starter.py SOCKET PROGRAM ARGV...                     in the engine's child (place.c)
    starter.py --there FOLDER MARK BEFORE PROGRAM ARGV...  on the node
    starter.py --send PORT MARK                           on a node, as a trial (allocation.py)

If anything fails before the task started, the task runs here, as it would without placement.
On the node, the file MARK is created before the program starts. Imports are few and from the
standard library only, because this runs once per task.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import stat
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

PATIENCE_S = 3600  # for an answer: `run` sends one earlier
SEND_S = 0.4
_FORWARD = (
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
)
_SI_KERNEL = 0x80  # si_code of signals from the terminal: the program gets them too
_OURS = ("TRACEHINT_PLACE", "TRACEHINT_JOBS", "TRACEHINT_RECORD", "TRACEHINT_RECORDING")
# Parts of words of a task that uses descriptors other than the standard ones.
_DESCRIPTORS = ("/dev/fd/", "/proc/self/fd/", *(f"{c}&{n}" for c in "<>" for n in range(3, 10)))
# Prefixes of variables that a step sets: the task keeps only its own values of them.
_STEP_PREFIXES = ("SLURM_", "SLURMD_", "PMI_", "PMIX_")


def main() -> None:
    """Start the task; returns only if it cannot be started at all."""
    if sys.argv[1] == "--there":
        folder, mark, before, program = sys.argv[2:6]
        begin(folder, mark, before, program, sys.argv[6:])
    elif sys.argv[1] == "--send":
        send(int(sys.argv[2]), sys.argv[3].encode())
    else:
        start(sys.argv[1], sys.argv[2], sys.argv[3:])


def start(address: str, program: str, argv: list[str]) -> NoReturn:
    """Run the task on the node that `run` chooses, or become the task."""
    status = None
    try:
        if can_leave(argv):
            status = run_elsewhere(address, program, argv)
    except (OSError, ValueError):
        pass
    if status is None:
        become(program, argv, os.environ)
    end(status)


def can_leave(argv: list[str]) -> bool:
    """Whether everything that the task inherits is available on another node: no input shared with
    other processes, and only the standard descriptors."""
    if any(part in word for word in argv for part in _DESCRIPTORS) or has_jobserver():
        return False
    try:
        mode = os.fstat(0).st_mode
    except OSError:
        return True  # stdin is closed
    if stat.S_ISREG(mode):
        return not os.lseek(0, 0, os.SEEK_CUR)
    if not stat.S_ISFIFO(mode):
        return not stat.S_ISSOCK(mode)
    look = select.poll()
    look.register(0, select.POLLIN)
    return look.poll(0) == [(0, select.POLLHUP)]  # empty and without a writer


def has_jobserver() -> bool:
    """Whether the task is a make that shares the jobserver of its parent."""
    fd = os.environ.get("MAKEFLAGS", "").partition("--jobserver-auth=")[2].partition(",")[0]
    try:
        return fd.isdigit() and stat.S_ISFIFO(os.fstat(int(fd)).st_mode)
    except OSError:
        return False


def run_elsewhere(address: str, program: str, argv: list[str]) -> int | None:
    """Run the task on the node that `run` chooses; return its wait status, or None to run here."""
    with socket.socket(socket.AF_UNIX) as line:
        line.settimeout(PATIENCE_S)
        line.connect(address)
        cwd = os.getcwd()  # noqa: PTH109 (pathlib takes long to load)
        line.sendall(b"".join(os.fsencode(text) + b"\0" for text in (cwd, *argv)))
        line.shutdown(socket.SHUT_WR)
        answer = b""
        while part := line.recv(65536):
            answer += part
    mark, *words = [os.fsdecode(word) for word in answer.split(b"\0")[:-1]] or [""]
    if not words:
        return None
    there = [
        sys.executable,
        "-I",
        "-S",
        __file__,
        "--there",
        cwd,
        mark,
        list_own_variables(),
        program,
        *argv,
    ]
    at = words.index("{argv}")
    status = run([*words[:at], *there, *words[at + 1 :]])
    try:
        os.unlink(mark)  # noqa: PTH108
    except FileNotFoundError:  # the task did not start
        with socket.socket(socket.AF_UNIX) as line:
            line.connect(address)
            line.sendall(b"\0" + os.fsencode(mark) + b"\0")
        return None
    return status


def list_own_variables() -> str:
    """Return the variables of this environment that a step changes, as NAME=VALUE lines."""
    return "\n".join(f"{k}={v}" for k, v in os.environ.items() if k.startswith(_STEP_PREFIXES))


def run(words: list[str]) -> int:
    """Run a program without tracehint's variables in its environment; return the wait status."""
    env = {name: value for name, value in os.environ.items() if name not in _OURS}
    files = [] if has_input() else [(os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0)]
    return wait_for(words[0], words, env, files)


def wait_for(program: str, argv: Sequence[str], env: Mapping[str, str], files: list[Any]) -> int:
    """Run a program with these file actions, forwarding signals; return its wait status."""
    waiting = {*_FORWARD, signal.SIGCHLD}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, waiting)
    if signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN:  # inherited: no SIGCHLD would arrive
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    try:
        pid = os.posix_spawnp(
            program,
            list(argv),
            env,
            setsigmask=before,
            file_actions=files,
            setsigdef=(signal.SIGPIPE, signal.SIGXFSZ),
        )
        while True:
            received = signal.sigwaitinfo(waiting)
            if received.si_signo != signal.SIGCHLD:
                if received.si_code != _SI_KERNEL:
                    os.kill(pid, received.si_signo)
                continue
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                return status
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def has_input() -> bool:
    """Whether the task's input is a regular file; a terminal belongs to the engine."""
    try:
        return stat.S_ISREG(os.fstat(0).st_mode)
    except OSError:
        return False


def send(port: int, mark: bytes) -> None:
    """Send data for a moment to the node that started this step, as `srun` or `ssh` reports it."""
    source = os.environ.get("SSH_CONNECTION", "").split(" ")[0]
    address = os.environ.get("SLURM_LAUNCH_NODE_IPADDR") or source or "127.0.0.1"
    end = time.monotonic() + SEND_S
    with socket.create_connection((address, port), timeout=10) as line:
        line.sendall(mark)
        while time.monotonic() < end:
            line.sendall(bytes(1 << 16))


def begin(folder: str, mark: str, before: str, program: str, argv: list[str]) -> None:
    """Become the task, on its node, in its directory and with its environment."""
    kept = dict(line.partition("=")[::2] for line in before.split("\n"))
    env = {k: v for k, v in os.environ.items() if not k.startswith(_STEP_PREFIXES)} | kept
    env.pop("", None)
    os.chdir(folder)
    if "/" in program and not os.access(program, os.X_OK):
        sys.exit(125)
    os.close(os.open(mark, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    become(program, argv, env)


def become(program: str, argv: list[str], env: Mapping[str, str]) -> NoReturn:
    """Call execve, after resetting the signals that Python ignores."""
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(ignored, signal.SIG_DFL)
    try:
        os.execve(program, argv, env)
    except OSError as error:
        print(f"{program}: {error.strerror}", file=sys.stderr)
        sys.exit(127)


def end(status: int) -> NoReturn:
    """End in the same way as the task."""
    if os.WIFSIGNALED(status):
        os.kill(os.getpid(), os.WTERMSIG(status))
    os._exit(os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    main()
