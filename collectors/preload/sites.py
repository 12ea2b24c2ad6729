"""The file that spares programs the search for system-call sites at their start."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

from tracehint.collectors.preload.blind import LIBRARY

NAMED_BY = "TRACEHINT_SITES"  # hook/sites.h


def write_sites(path: Path) -> dict[str, str]:
    """The sites of the C library that this process has, and its code with them changed; the
    environment that names the file.

    Programs map that code in place of their own where theirs is the same library (by build
    identifier), and look for sites themselves where it is another one.
    """
    path.unlink(missing_ok=True)  # programs of before may have it mapped
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    try:
        if not ctypes.CDLL(str(LIBRARY)).tracehint_sites(fd):
            os.ftruncate(fd, 0)  # no room, perhaps: what there is belongs to the recording
    finally:
        os.close(fd)
    return {NAMED_BY: str(path)}
