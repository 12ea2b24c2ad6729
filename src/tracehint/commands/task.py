"""`tracehint task`: run a command as a named task."""

from __future__ import annotations

import os
import signal

import click

from tracehint.collectors.run import CommandError, find_command, without_shebang
from tracehint.commands._recording import RunCommand
from tracehint.errors import EXIT_NOT_EXECUTABLE, EXIT_RECORDER_FAILED, TracehintError

MAX_NAME = 1024


class TaskNameError(TracehintError):
    """The name cannot be an environment value; the command was not run."""

    exit_code = EXIT_RECORDER_FAILED


@click.command(cls=RunCommand, context_settings={"allow_interspersed_args": False})
@click.argument("name")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def command(name: str, command: tuple[str, ...]) -> int:
    """Run COMMAND as the task NAME.

    What COMMAND and its children do counts as one task, whatever the engine
    looks like. Works with and without a recorder around it: it sets
    TRACEHINT_TASK and becomes the command.

    Example: tracehint task align-7 -- ./align.sh 7
    """
    if not name or len(os.fsencode(name)) > MAX_NAME:
        raise TaskNameError(f"a task's name has 1 to {MAX_NAME} bytes", "Choose another name.")
    command = command[1:] if command[0] == "--" else command
    path = find_command(command[0] if command else "")
    argv = without_shebang(path, command)
    for ignored_by_python in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(ignored_by_python, signal.SIG_DFL)
    os.environ["TRACEHINT_TASK"] = name
    try:
        os.execvp(argv[0], argv)
    except OSError as error:
        raise CommandError(
            f"{path}: {error.strerror}", "Check the program.", EXIT_NOT_EXECUTABLE
        ) from None
