"""What apply and verify came to, and how both open a target."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field

from tracehint.adapters.plan import Target
from tracehint.adapters.stores.base import Gap, merge_gaps
from tracehint.adapters.stores.beneath import Root

_WORDS = {
    errno.ELOOP: "a symbolic link is on the way",
    errno.EXDEV: "it leads out of the directory",
}


@dataclass
class Outcome:
    """Counts of settings, and what went wrong, per path. `lines` is for a dry run."""

    changed: int = 0
    unchanged: int = 0
    created: int = 0
    absent: int = 0  # targets that are not there (yet)
    failed: list[tuple[bytes, str]] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)
    lines: list[tuple[bytes, str]] = field(default_factory=list)

    def fail(self, path: bytes, error: OSError, doing: str = "") -> None:
        """Note what went wrong at a path, in words."""
        why = _WORDS.get(error.errno or 0, error.strerror or "error")
        self.failed.append((path, f"{doing}: {why}" if doing else why))

    def gap_counts(self) -> Mapping[Gap, int]:
        """What the store cannot say, with the number of targets."""
        return merge_gaps(self.gaps)

    def open(self, root: Root, target: Target) -> int | None:
        """A descriptor of the target; None where it cannot be used, which is noted.

        Raises FileNotFoundError.
        """
        try:
            fd = root.open(target.path)
        except FileNotFoundError:
            raise
        except OSError as error:
            self.fail(target.path, error)
            return None
        problem = _wrong_object(fd, target)
        if problem:
            os.close(fd)
            self.failed.append((target.path, problem))
            return None
        return fd


def _wrong_object(fd: int, target: Target) -> str:
    info = os.fstat(fd)
    if stat.S_ISDIR(info.st_mode) != (target.kind == "directory"):
        return f"it is not a {target.kind}"
    foreign = stat.S_ISREG(info.st_mode) and info.st_nlink > 1 and os.geteuid() == 0
    return "refused as root: the file has several hard links" if foreign else ""
