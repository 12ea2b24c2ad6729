"""The list of system-call sites that spares programs the search for them at their start."""

from __future__ import annotations

import ctypes
from pathlib import Path

from tracehint.collectors.preload.blind import LIBRARY

NAMED_BY = "TRACEHINT_SITES"  # hook/site_cache.c


def write_sites(path: Path) -> dict[str, str]:
    """List the sites of the C library that this process has; the environment that names the list.

    Programs check each site again, and look for them themselves where theirs is another library.
    """
    with path.open("wb") as stream:
        ctypes.CDLL(str(LIBRARY)).tracehint_sites(stream.fileno())
    return {NAMED_BY: str(path)}
