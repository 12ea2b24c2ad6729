"""strace's command line: which calls, and how they are to be printed.

Works with strace 5.3 (first with --seccomp-bpf) and later; tested with 6.1.
"""

from __future__ import annotations

from collections.abc import Sequence

from tracehint.collectors.strace.calls import ALWAYS, BYTES, RAW

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
