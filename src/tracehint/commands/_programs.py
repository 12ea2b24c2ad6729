"""Which of some programs the preload collector would see, for `tracehint doctor --program`."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Seen:
    """One program and what becomes of it below the preload library."""

    program: str
    kind: str
    recorded: bool
    becomes: str


def seen(program: str) -> Seen:
    """What the library says of the program, looked up in PATH."""
    path = shutil.which(program)
    if path is None:
        return Seen(program, "not found", False, "cannot be looked at")
    try:
        from tracehint.collectors.preload.programs import CLASSES, class_of, enters

        number = class_of(path)
    except (OSError, AttributeError):
        return Seen(program, "unknown", False, "cannot be looked at: the library is not built")
    kind, becomes = CLASSES.get(number, ("unknown", "is not seen"))
    return Seen(program, kind, enters(number), becomes)


def program_lines(programs: Sequence[str]) -> list[str]:
    """A section of text, nothing where no program was asked for."""
    if not programs:
        return []
    lines = ["\nPrograms below the preload library\n"]
    for row in map(seen, programs):
        lines.append(f"  {'yes' if row.recorded else 'no ':<4}{row.program} ({row.kind})\n")
        lines.append(f"      {row.becomes}\n")
    return lines
