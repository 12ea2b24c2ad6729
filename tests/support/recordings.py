"""Recordings of real workflows that several test files use, each made once per session.

No test may change the working directory or the bundle.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.e2e.support import tracehint
from tests.support.once import once
from tracehint.collectors.ebpf import EbpfCollector


@dataclass(frozen=True)
class Recording:
    """The directory where the workflow ran, and its recording."""

    work: Path
    bundle: Path


def usual() -> str:
    """Return the collector that records if none is named."""
    return "ebpf" if EbpfCollector().check().usable else "strace"


def recorded(
    factory: pytest.TempPathFactory,
    name: str,
    prepare: Callable[[Path], None],
    command: Callable[[], Sequence[str]],
    *,
    collector: str = "ebpf",
    profiled: bool = False,
) -> Recording:
    """Return the recording of the workflow of that name, run by `command` in a directory that
    `prepare` filled; `profiled`: with its `.tracehint` folder."""

    def make(folder: Path) -> None:
        program, *rest = command()
        # Snakemake is next to the tests' Python, which may not be on the PATH.
        beside = shutil.which(program, path=os.fspath(Path(sys.executable).parent))
        words = (program if shutil.which(program) else beside or program, *rest)
        work = folder / "work"
        work.mkdir()
        prepare(work)
        verb = "profile" if profiled else "record"
        tracehint(
            verb, "--collector", collector, "-o", folder / "run.trace", "--", *words, cwd=work
        )

    folder = once(factory, f"recorded {name} {collector}", make)
    return Recording(folder / "work", folder / "run.trace")
