"""Which objects a file of CephFS consists of, and asking Ceph's monitors about them.

The rule is Ceph's documented striping: units of `unit` bytes go round over `count` objects until
each holds `size` bytes; then come the next `count` objects.
"""

from __future__ import annotations

import errno
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

from tracehint.errors import MissingDependencyError

TIMEOUT_S = 60


@dataclass(frozen=True)
class Striping:
    """A layout, in bytes and objects."""

    unit: int
    count: int
    size: int


def objects(striping: Striping, length: int) -> Sequence[int]:
    """Numbers of the objects that hold the first `length` bytes of a file; holes are counted."""
    if length <= 0 or striping.unit <= 0 or striping.count <= 0:
        return range(0)
    units = -(-length // striping.unit)
    per_object = max(1, striping.size // striping.unit)
    full, rest = divmod(units, per_object * striping.count)
    last = min(rest, striping.count)  # objects of the last round that got a unit
    return range(full * striping.count + last)


def ask_ceph(commands: Sequence[str]) -> list[str]:
    """One line of JSON per command, from one process. Raises OSError with Ceph's words."""
    if shutil.which("ceph") is None:
        raise MissingDependencyError("ceph is not installed", "Debian: apt-get install ceph-common")
    try:
        done = subprocess.run(
            ["ceph", "-f", "json"], input="".join(f"{c}\n" for c in commands).encode(),
            capture_output=True, timeout=TIMEOUT_S,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise OSError(errno.ETIMEDOUT, "ceph did not answer") from None
    lines = [line for line in done.stdout.decode("utf-8", "backslashreplace").splitlines() if line]
    if done.returncode != 0 or len(lines) != len(commands):
        said = done.stderr.decode("utf-8", "backslashreplace").strip().splitlines()
        raise OSError(errno.EIO, said[-1][:200] if said else "ceph gave no answer")
    return lines
