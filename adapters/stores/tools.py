"""Run a store's own tool: an argument vector, never a shell, an answer of limited size."""

from __future__ import annotations

import errno
import shutil
import subprocess
from collections.abc import Sequence

from tracehint.errors import MissingDependencyError

TIMEOUT_S = 30


def run_tool(
    argv: Sequence[str], *, fd: int | None = None, fds: Sequence[int] = (), remedy: str = ""
) -> str:
    """The answer of a tool that may use the descriptors; raises OSError with the tool's words."""
    if shutil.which(argv[0]) is None:
        raise MissingDependencyError(
            f"{argv[0]} is not installed", remedy or "Run it where the store's tools are."
        )
    keep = [*fds, *([fd] if fd is not None else [])]
    try:
        done = subprocess.run(
            list(argv),
            pass_fds=keep,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=TIMEOUT_S,
        )
    except subprocess.TimeoutExpired:
        raise OSError(errno.ETIMEDOUT, f"{argv[0]} did not answer") from None
    text = done.stdout.decode("utf-8", "backslashreplace")
    if done.returncode != 0:
        said = (text + done.stderr.decode("utf-8", "backslashreplace")).strip()
        said = said.removeprefix(f"{fd_path(fd)}:").strip() if fd is not None else said
        raise OSError(errno.EINVAL, said.splitlines()[0][:200] if said else "the tool failed")
    return text


def fd_path(fd: int) -> str:
    """A path that names the open descriptor in a tool that inherits it."""
    return f"/proc/self/fd/{fd}"
