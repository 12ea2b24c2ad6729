"""One row of the table: a workflow as a Makeflow file, and the hints a person would write for it.

The rows are small copies of the WOSS paper's synthetic benchmarks (Al-Kiswany et al., FGCS 2017)
and Montage; their hints by hand follow the paper's table of patterns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

MB = 1_000_000
NODES = 5  # of the test bed; the synthetic rows have as many chains, producers or readers


@dataclass(frozen=True, kw_only=True)
class Row:
    """A workflow of the benchmark.

    `make` writes the workflow's own files (without the Makeflow file) into a directory and returns
    the Makeflow text; `by_hand` maps path -> hint -> value. `pairs`: alternating pairs for time.
    `staged`: bytes of the files that the archive outside the store serves, by name. `programs`:
    what must be installed for it. `small`: a size for a trial.
    """

    name: str
    title: str
    size: int  # bytes of one large file
    make: Callable[[Path, int], str]
    by_hand: Callable[[], Mapping[str, Mapping[str, str]]]
    pairs: int = 3
    staged: Mapping[str, int] = field(default_factory=dict)
    programs: tuple[str, ...] = ()
    small: int = 1000


def rules(*parts: tuple[str, str, str]) -> str:
    """Makeflow text from (files made, files read, command)."""
    return "\n".join(f"{made}: {read}\n\t{command}\n" for made, read, command in parts)


def fill(name: str, size: int) -> str:
    """A command that writes a file of `size` bytes whose content tells its name."""
    return f"yes {name} | head -c {size} > {name}"
