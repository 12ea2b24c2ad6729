"""`tracehint completion`: what a shell needs to complete tracehint's commands and options."""

from __future__ import annotations

import click

from tracehint.app.output import write_result

SHELLS = ("bash", "zsh", "fish")
PROGRAM = "tracehint"
VARIABLE = "_TRACEHINT_COMPLETE"  # the name that click derives from the program's


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
def command(shell: str) -> None:
    """Print the completion script of SHELL.

    The script asks tracehint itself for commands and options, so it stays
    current. Bash 4.4 or later.

    Example: source <(tracehint completion bash)
    """
    write_result(script(shell), None)


def script(shell: str) -> str:
    """Return click's completion script for this shell, without starting a shell."""
    from click.shell_completion import get_completion_class

    found = get_completion_class(shell)
    assert found is not None, shell
    completer = found(click.get_current_context().find_root().command, {}, PROGRAM, VARIABLE)
    return completer.source_template % completer.source_vars()
