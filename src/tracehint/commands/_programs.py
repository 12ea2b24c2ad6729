"""Which of some programs the preload collector would see, for `tracehint doctor`."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tracehint.commands._named import programs_named

_VOLUMES = (
    '-v "$TRACEHINT_RECORD:$TRACEHINT_RECORD" -v "$LD_PRELOAD:$LD_PRELOAD:ro" '
    "-e LD_PRELOAD -e TRACEHINT_RECORD -e TRACEHINT_SITES"
)
_BINDS = '--bind "$TRACEHINT_RECORD,$LD_PRELOAD"'
# Programs that start others in a container -> what makes those see the library.
_CONTAINERS = {
    "bwrap": '--bind "$TRACEHINT_RECORD" "$TRACEHINT_RECORD" --ro-bind "$LD_PRELOAD" "$LD_PRELOAD"',
    "podman": _VOLUMES, "docker": _VOLUMES, "apptainer": _BINDS, "singularity": _BINDS,
}  # fmt: skip  # a table


@dataclass(frozen=True)
class SeenProgram:
    """One program and what becomes of it below the preload library."""

    program: str
    kind: str
    recorded: bool
    becomes: str
    named_in: str = ""


def seen(program: str) -> SeenProgram:
    """What the library says of the program, looked up in PATH."""
    path = shutil.which(program)
    if path is None:
        return SeenProgram(program, "not found", False, "cannot be looked at")
    try:
        from tracehint.collectors.preload.programs import CLASSES, class_of, enters

        number = class_of(path)
    except (OSError, AttributeError):
        return SeenProgram(
            program, "unknown", False, "cannot be looked at: the library is not built"
        )
    kind, becomes = CLASSES.get(number, ("unknown", "is not seen"))
    binds = _CONTAINERS.get(Path(path).name)
    if binds:
        becomes += f"; what runs in its containers is recorded with {binds}"
    return SeenProgram(program, kind, enters(number), becomes)


def seen_of(command: Sequence[str]) -> list[SeenProgram]:
    """Each program that the command and its scripts name, those that are not recorded first."""
    named = programs_named(command, Path.cwd()) if command else {}
    rows = [replace(seen(path), named_in=where) for path, where in named.items()]
    # a script is what its interpreter is, and that one is a row too
    return sorted((r for r in rows if r.kind != "unreadable"), key=lambda r: r.recorded)


def workflow_lines(command: Sequence[str]) -> list[str]:
    """A section of text, nothing where no command was given."""
    if not command:
        return []
    rows = seen_of(command)
    escape = [row for row in rows if not row.recorded]
    lines = [f"\nPrograms that `{shlex.join(command)}` and its scripts name, below the library\n"]
    lines.append(f"  {len(rows) - len(escape)} are recorded, {len(escape)} are not\n")
    for row in [*escape, *(row for row in rows if row.recorded and "containers" in row.becomes)]:
        answer = "yes" if row.recorded else "no "
        lines.append(f"  {answer} {row.program} ({row.kind}; named in {row.named_in})\n")
        lines.append(f"      {row.becomes}\n")
    return lines


def program_lines(programs: Sequence[str]) -> list[str]:
    """A section of text, nothing where no program was asked for."""
    if not programs:
        return []
    lines = ["\nPrograms below the preload library\n"]
    for row in map(seen, programs):
        lines.append(f"  {'yes' if row.recorded else 'no ':<4}{row.program} ({row.kind})\n")
        lines.append(f"      {row.becomes}\n")
    return lines
