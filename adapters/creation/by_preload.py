"""Hints by the preload library: in each program, without privileges."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tracehint.adapters.creation.running import Running
from tracehint.collectors.preload.blind import LIBRARY
from tracehint.collectors.preload.sites import write_sites

SWITCH = "TRACEHINT_HINTS"
REACHES = (
    "dynamic programs (glibc, x86-64), static ones and Go that these start, on all nodes that the "
    "command's environment reaches; not setuid ones"
)
COST = "an open that makes a file takes 1 to 2 us more besides the attribute, others nothing"


@contextmanager
def on(table: Path, roots: Sequence[bytes]) -> Iterator[Running]:  # noqa: ARG001
    """Who gets the environment has the library with the table."""
    before = os.environ.get("LD_PRELOAD", "")
    preload = f"{LIBRARY}:{before}" if before else str(LIBRARY)
    yield Running(
        {SWITCH: str(table), "LD_PRELOAD": preload, **write_sites(table.with_name("sites"))}
    )
