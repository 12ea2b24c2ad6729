"""Requirements of tests with real daemons on the machine."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable

import pytest

from tracehint.collectors.preload import PreloadCollector


def missing_for(tools: Iterable[str], *, fuse: bool = False) -> str:
    """Return which of the tools, root or /dev/fuse is missing; empty if none is."""
    lost = [tool for tool in tools if shutil.which(tool) is None]
    if lost:
        return f"not installed: {', '.join(lost)}"
    if os.geteuid() != 0 or (fuse and not os.access("/dev/fuse", os.R_OK | os.W_OK)):
        return "needs root and /dev/fuse" if fuse else "needs root"
    return ""


def needs_preload() -> pytest.MarkDecorator:
    """Skip, with the reason, where programs cannot load the library."""
    check = PreloadCollector().check()
    return pytest.mark.skipif(not check.usable, reason=check.reason)
