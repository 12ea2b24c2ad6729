"""Running the command: finding it, forwarding signals, returning its exit status unmodified."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from tracehint.errors import EXIT_NOT_EXECUTABLE, EXIT_NOT_FOUND, CollectorError, TracehintError

_SI_KERNEL = 0x80  # si_code of signals that the terminal sends to the whole foreground group
_FORWARD = (
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
)
_SIGNAL_POLL_S = 0.2  # interval of checks for signals that another thread received
_KEY_SIGNALS = (signal.SIGINT, signal.SIGQUIT)  # sent by the terminal's keys
_IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)  # a command expects their default action


class CommandError(TracehintError):
    """The command cannot be run: 126 not executable, 127 not found, as `env` reports it."""

    def __init__(self, what: str, remedy: str, exit_code: int) -> None:
        super().__init__(what, remedy)
        self.exit_code = exit_code


@dataclass(frozen=True)
class Ended:
    """Result of the command; `status` is its exit code or 128 + signal."""

    status: int
    signal: int | None = None


def working_directory() -> Path:
    """Return the command's working directory. Raises CollectorError if it no longer exists."""
    try:
        return Path.cwd()
    except OSError:
        raise CollectorError(
            "the working directory no longer exists", "Change to an existing directory."
        ) from None


@contextlib.contextmanager
def report_failures(kept: str) -> Iterator[None]:
    """Print exceptions instead of raising them: after the run nothing may change the command's exit
    code. `kept` states where the recording is."""
    try:
        yield
    except KeyboardInterrupt:
        print(f"tracehint: interrupted\n  {kept}", file=sys.stderr)
    except TracehintError as error:
        print(f"tracehint: {error}\n  {kept}", file=sys.stderr)
    except Exception as error:
        print(f"tracehint: {type(error).__name__}: {error}\n  {kept}", file=sys.stderr)


def find_command(name: str) -> str:
    """Return the path of the program that exec would run. Raises CommandError."""
    if not name:
        raise CommandError("the command is empty", "Give a program to run.", EXIT_NOT_FOUND)
    if "/" in name:
        candidates = [name]
    else:
        path = os.environ.get("PATH", os.defpath)
        candidates = [str(Path(folder or ".") / name) for folder in path.split(":")]
    refused = ""
    for candidate in candidates:
        if not os.path.lexists(candidate):
            continue
        if Path(candidate).is_file() and os.access(candidate, os.X_OK):
            _check_interpreter(candidate)
            return candidate
        refused = refused or candidate
    if refused:
        what = "is a directory" if Path(refused).is_dir() else "is not executable"
        raise CommandError(
            f"{refused}: {what}",
            "Make it executable (chmod +x) or name its interpreter.",
            EXIT_NOT_EXECUTABLE,
        )
    raise CommandError(f"{name}: command not found", "Check the name and PATH.", EXIT_NOT_FOUND)


def _check_interpreter(path: str) -> None:
    """Raise CommandError if the `#!` program of a script is missing: "not found", as in exec."""
    try:
        with Path(path).open("rb") as stream:
            line = stream.readline(4096)
    except OSError:
        return  # may be executed without being readable
    words = line[2:].split() if line[:2] == b"#!" else []
    if words and not Path(os.fsdecode(words[0])).exists():
        raise CommandError(
            f"{path}: its interpreter {os.fsdecode(words[0])} does not exist",
            "Correct its first line.",
            EXIT_NOT_FOUND,
        )


def without_shebang(path: str, command: Sequence[str]) -> tuple[str, ...]:
    """Return the command, run by /bin/sh if it is a script without `#!`, which exec rejects."""
    try:
        with Path(path).open("rb") as stream:
            head = stream.read(4)
    except OSError:
        return tuple(command)
    if head[:2] == b"#!" or head == b"\x7fELF" or not head:
        return tuple(command)
    if Path("/proc/sys/fs/binfmt_misc/status").exists() and b"\0" in head:
        return tuple(command)  # another binary format: the kernel may support it
    return ("/bin/sh", path, *command[1:])


def runnable(command: Sequence[str]) -> tuple[str, ...]:
    """Return the command for exec. Raises CommandError if there is no such program."""
    return without_shebang(find_command(command[0]), command)


def run_child(
    argv: Sequence[str], env: Mapping[str, str], *, started: Callable[[int], None] | None = None
) -> Ended:
    """Run a program with this process's descriptors and wait for it.

    Signals sent to this process are forwarded; those of the terminal reach the child directly.
    `started` is called with the child's pid. Raises CommandError.

    Signals are blocked in this thread only: while it does not wait, one may be delivered to a
    thread of a library (Arrow, DuckDB), which drops SIGCHLD and would end the process for others.
    So a handler notes signals that other threads receive, and every wait has a time limit. A
    handler cannot identify the sender: a key's signal counts as the terminal's if this process is
    in its foreground, since a second interrupt is more than the user requested.
    """
    waiting = {*_FORWARD, signal.SIGCHLD}
    taken: list[int] = []
    before = signal.pthread_sigmask(signal.SIG_BLOCK, waiting)
    if signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # else the child's status is discarded
    handlers = _note_signals(taken)
    try:
        try:
            pid = os.posix_spawnp(
                argv[0], list(argv), dict(env), setsigmask=before, setsigdef=_IGNORED_BY_PYTHON
            )
        except OSError as error:
            raise _failed_exec_error(argv[0], error) from None
        if started is not None:
            started(pid)
        return _wait(pid, waiting, taken)
    finally:
        while signal.sigtimedwait(waiting, 0) is not None:
            pass  # meant for the command, which is gone
        for number, handler in handlers.items():
            signal.signal(number, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _note_signals(taken: list[int]) -> dict[int, Any]:
    """Note signals that another thread receives in `taken`; return the previous handlers. The
    command starts without the new handlers; ignored signals stay ignored."""
    before = {number: signal.getsignal(number) for number in _FORWARD}
    ours: dict[int, Any] = {
        n: handler for n, handler in before.items() if handler not in (None, signal.SIG_IGN)
    }
    for number in ours:
        signal.signal(number, lambda received, _: taken.append(received))
    return ours


def _wait(pid: int, waiting: set[signal.Signals], taken: list[int]) -> Ended:
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            return Ended(code) if code >= 0 else Ended(128 - code, -code)
        while taken:
            number = taken.pop(0)
            if number not in _KEY_SIGNALS or not _in_foreground():
                os.kill(pid, number)
        info = signal.sigtimedwait(waiting, _SIGNAL_POLL_S)
        if info and info.si_signo != signal.SIGCHLD and info.si_code != _SI_KERNEL:
            os.kill(pid, info.si_signo)


def _in_foreground() -> bool:
    """Whether the terminal's keys reach this process and its command, which shares its group."""
    try:
        with open("/dev/tty", "rb", buffering=0) as terminal:  # noqa: PTH123
            return os.tcgetpgrp(terminal.fileno()) == os.getpgrp()
    except OSError:
        return False  # there is no terminal


def become(argv: Sequence[str], program: str = "") -> NoReturn:
    """Replace this process by the program, with default signal actions. Raises CommandError.

    program: its file, if the first word does not name it.
    """
    for ignored_by_python in _IGNORED_BY_PYTHON:
        signal.signal(ignored_by_python, signal.SIG_DFL)
    try:
        os.execvp(program or argv[0], list(argv))
    except OSError as error:
        raise _failed_exec_error(argv[0], error) from None


def _failed_exec_error(program: str, error: OSError) -> CommandError:
    code = EXIT_NOT_FOUND if error.errno == errno.ENOENT else EXIT_NOT_EXECUTABLE
    return CommandError(f"{program}: {error.strerror}", "Check the program.", code)


def die_like(ended: Ended) -> int:
    """End this process as the command ended: by the same signal, else return its code."""
    if ended.signal is not None:
        import resource

        try:
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # one core is the command's own
            if ended.signal not in (signal.SIGKILL, signal.SIGSTOP):
                signal.signal(ended.signal, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [ended.signal])
            os.kill(os.getpid(), ended.signal)
        except (OSError, ValueError):
            pass
    return ended.status
