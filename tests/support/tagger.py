"""Build tracehint-tag, and the targets of its tables."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.built import built
from tracehint.adapters.engines.tag_table import TagTarget

SOURCES = Path(__file__).parents[2] / "adapters" / "tag"
FLAGS = ["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror"]
SANITIZERS = ["-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]


def build(folder: Path, *flags: str) -> Path:
    """Build the program with warnings as errors."""
    compiler = shutil.which("cc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no C compiler")
    return built(folder / "tracehint-tag", compiler, *FLAGS, *flags, *sorted(SOURCES.glob("*.c")))


def target(path: str | bytes, kind: str = "C", **hints: str) -> TagTarget:
    """Return a target with hints as keywords."""
    raw = path.encode() if isinstance(path, str) else path
    return TagTarget(path=raw, kind=kind, hints=hints or {"DP": "local"})
