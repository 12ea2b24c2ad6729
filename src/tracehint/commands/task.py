"""`tracehint task`: run a command as a named task."""

from __future__ import annotations

import os
from typing import NoReturn

import click

from tracehint.collectors.run import become, runnable
from tracehint.commands._recording import RunCommand
from tracehint.errors import EXIT_RECORDER_FAILED, TracehintError

MAX_NAME = 1024


class TaskNameError(TracehintError):
    """The name cannot be an environment value; the command was not run."""

    exit_code = EXIT_RECORDER_FAILED


@click.command(cls=RunCommand, context_settings={"allow_interspersed_args": False})
@click.argument("name")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def command(name: str, command: tuple[str, ...]) -> NoReturn:
    """Run COMMAND as the task NAME.

    What COMMAND and its children do counts as one task, whatever the engine
    looks like. Works with and without a recorder around it: it sets
    TRACEHINT_TASK and becomes the command.

    Example: tracehint task align-7 -- ./align.sh 7
    """
    if not name or len(os.fsencode(name)) > MAX_NAME:
        raise TaskNameError(f"a task's name has 1 to {MAX_NAME} bytes", "Choose another name.")
    command = command[1:] if command[0] == "--" else command
    argv = runnable(command or ("",))
    os.environ["TRACEHINT_TASK"] = name
    become(argv)
