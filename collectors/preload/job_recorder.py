"""The recorder of a batch job, which job/join.c executes in place of the job's first program."""

from __future__ import annotations

import os
import resource
from collections.abc import Sequence
from pathlib import Path

from tracehint.collectors.begin import recorded_already
from tracehint.collectors.preload.collector import PreloadCollector
from tracehint.collectors.preload.jobs import file_of_job
from tracehint.collectors.preload.record import record_job
from tracehint.collectors.run import Ended, become, die_like, find_command
from tracehint.errors import TracehintError


def record_program(folder: str, program: str, argv: Sequence[str]) -> int:
    """Record the program into a file in `folder` and end as it does. If that is impossible,
    execute the program unrecorded: a job never fails because of its recording."""
    command = _typed_command(program, argv)
    if command is None or recorded_already() or not PreloadCollector().check().usable:
        _execute_program(program, argv)
    assert command is not None
    before = _children()
    try:
        ended = _record(Path(folder), command)
    except Exception:
        if _children() != before:
            raise  # the program has run, and must not run twice
        _execute_program(program, argv)
    return die_like(ended)


def _record(folder: Path, command: tuple[str, ...]) -> Ended:
    place = file_of_job(folder, os.environ)
    try:
        return record_job(command, place)
    except TracehintError:
        place.unlink(missing_ok=True)
        raise


def _typed_command(program: str, argv: Sequence[str]) -> tuple[str, ...] | None:
    """Return the command that executes this program under its argv[0]; None: there is none."""
    try:
        same = argv and Path(find_command(argv[0])).samefile(program)
    except (TracehintError, OSError):
        return None
    return tuple(argv) if same else None


def _children() -> tuple[int, float]:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_minflt, used.ru_utime


def _execute_program(program: str, argv: Sequence[str]) -> None:
    """Execute the program in place of the recorder."""
    become(argv, program)
