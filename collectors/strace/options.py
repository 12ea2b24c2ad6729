"""strace's command line: which calls, and how they are to be printed.

Works with strace 5.3 (first with --seccomp-bpf) and later; tested with 6.1.
"""

from __future__ import annotations

from collections.abc import Sequence

# Printed undecoded: no file contents in the log, short lines, offsets and results in hexadecimal.
RAW_CALLS = (
    "read", "write", "pread64", "pwrite64", "readv", "writev", "preadv", "pwritev", "preadv2",
    "pwritev2",
)  # fmt: skip  # a table
# Printed whole: inode and size from stat, the environment of exec (only ENV_MARKERS are kept).
_WHOLE = ("execve", "execveat", "stat", "lstat", "fstat", "newfstatat")

NAME_CALLS = (
    "open", "openat", "openat2", "creat", "open_by_handle_at", "close", "close_range", "dup",
    "dup2", "dup3", "fcntl", "pipe", "pipe2", "memfd_create", "sendmsg", "sendmmsg", "recvmsg",
    "recvmmsg", "recvmmsg_time64", "pidfd_getfd", "truncate", "ftruncate", "rename", "renameat",
    "renameat2", "link", "linkat", "unlink", "unlinkat", "symlink", "symlinkat", "mkdir",
    "mkdirat", "mknod", "mknodat", "rmdir", "ioctl", "mount", "move_mount", "pivot_root", "setns",
    "unshare", "io_uring_setup", "clone", "clone3", "fork", "vfork", "execve", "execveat",
    "chdir", "fchdir", "chroot", "exit_group",
)  # fmt: skip  # a table
BYTE_CALLS = (
    *RAW_CALLS, "copy_file_range", "sendfile", "splice", "tee", "vmsplice", "mmap", "mremap",
    "mprotect", "pkey_mprotect", "fallocate", "lseek", "io_submit", "io_uring_enter", "stat",
    "lstat", "fstat", "newfstatat", "statx", "access", "faccessat", "faccessat2", "getdents",
    "getdents64", "chmod", "fchmod", "fchmodat", "fchmodat2",
    "getxattr", "lgetxattr", "fgetxattr", "setxattr", "lsetxattr", "fsetxattr", "listxattr",
    "llistxattr", "flistxattr", "removexattr", "lremovexattr", "fremovexattr",
)  # fmt: skip  # a table
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
    calls = NAME_CALLS if light else (*NAME_CALLS, *BYTE_CALLS)
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
        "raw=" + ",".join("?" + c for c in RAW_CALLS),
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
