"""The command line: one visible table of commands, one place for exit codes.

Each command lives in `tracehint.commands.<module>` and exposes a click command
named `command`. Modules are imported only when their command is asked for, so
`tracehint --help` stays fast.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from tracehint.errors import (
    EXIT_FAILED,
    EXIT_RECORDER_FAILED,
    CollectorError,
    InputError,
    TracehintError,
)
from tracehint.interrupts import EXIT_INTERRUPTED, Interrupts
from tracehint.schemas.arrow import no_blas_threads
from tracehint.version import __version__

# name -> (module in tracehint.commands, one line for --help)
COMMANDS: dict[str, tuple[str, str]] = {
    "profile": ("profile", "Run a workflow and show its patterns, hints and findings."),
    "run": ("run", "Run a workflow with its hints: set on each file as it is made."),
    "init": ("init", "Find engine, store and nodes of a workflow; write tracehint.toml."),
    "status": ("status", "Show the recorded runs of the workflow here."),
    "record": ("record", "Run a command and write a trace bundle."),
    "import": ("import_", "Make a bundle from logs that others recorded."),
    "merge": ("merge", "Join the bundles of several hosts or tasks into one run."),
    "analyze": ("analyze", "Print the graph and the patterns of a bundle."),
    "graph": ("graph", "Draw or export the file/task graph."),
    "hints": ("hints", "Derive hint rules for the next run."),
    "emit": ("emit", "Write hints as a script or annotation for a store or an engine."),
    "apply": ("apply", "Set hints below a directory."),
    "verify": ("verify", "Read hints back from the store."),
    "locate": ("locate", "Query the store for file locations."),
    "place": ("place", "Start a task on the node that holds its inputs."),
    "calibrate": ("calibrate", "Measure a store, its nodes and links."),
    "predict": ("predict", "Predict a run on another cluster, store and placement."),
    "plan": ("plan", "Find the placement strategy with the shortest predicted makespan."),
    "lint": ("lint", "Report missed optimisations of a run."),
    "explain": ("explain", "Explain a lint rule."),
    "report": ("report", "Write a self-contained HTML report."),
    "compare": ("compare", "Compare two runs, without and with hints."),
    "diff": ("diff", "Compare two runs."),
    "export": ("export", "Write a run in the format of another tool."),
    "anonymize": ("anonymize", "Write a copy of a bundle that can be shared."),
    "task": ("task", "Run a command as a named task."),
    "doctor": ("doctor", "Show which collectors can run here, and what each would miss."),
    "completion": ("completion", "Print the completion script of a shell."),
}


# Commands whose child processes must not inherit what tracehint sets for itself.
RUN_A_COMMAND = ("profile", "run", "record", "task", "place")


class LazyGroup(click.Group):
    """A click group that imports a command's module only when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        if cmd_name not in RUN_A_COMMAND:
            no_blas_threads()
        module = importlib.import_module(f"tracehint.commands.{entry[0]}")
        command: click.Command = module.command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Resolve the command as click does; for an unknown name, suggest a similar one."""
        wrong = args[0] not in COMMANDS and not args[0].startswith("-")
        if wrong and not ctx.resilient_parsing:  # resilient: completion
            from difflib import get_close_matches

            near = get_close_matches(args[0], COMMANDS, 1)
            meant = f" Did you mean {near[0]!r}?" if near else ""
            ctx.fail(f"No such command {args[0]!r}.{meant}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = [(name, text) for name, (_, text) in COMMANDS.items()]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="tracehint")
def cli() -> None:
    """Find the storage hints of a workflow by watching one run of it.

    Example: tracehint profile -- make -j4
    """


def _defaults() -> dict[str, dict[str, object]]:
    """Return each command's defaults from this directory's tracehint.toml. Raises InputError."""
    if not os.path.lexists("tracehint.toml"):
        return {}
    from tracehint.adapters.project.config import find_config

    config = find_config(Path())
    for line in config.ignored if config and "_TRACEHINT_COMPLETE" not in os.environ else ():
        click.echo(f"tracehint: {line}", err=True)
    return dict.fromkeys(COMMANDS, config.parameters() if config else {})


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    with Interrupts() as interrupts:
        try:
            return _exit_code(argv, interrupts)
        except (Exception, KeyboardInterrupt) as error:
            if not (interrupts.seen or isinstance(error, KeyboardInterrupt)):
                raise
            click.echo("tracehint: interrupted", err=True)
            return EXIT_INTERRUPTED


def _call_command(argv: Sequence[str] | None, interrupts: Interrupts) -> object:
    try:
        defaults = _defaults()
    except InputError as error:
        if not _runs_a_command(argv):
            raise
        raise CollectorError(error.what, error.remedy) from None
    try:
        return cli.main(
            args=argv, prog_name="tracehint", standalone_mode=False, default_map=defaults
        )
    except (TracehintError, OSError) as error:
        if interrupts.seen:
            raise KeyboardInterrupt from error
        raise


def _runs_a_command(argv: Sequence[str] | None) -> bool:
    """Whether a failure before the command has the exit code of `record`."""
    words = sys.argv[1:] if argv is None else argv
    return bool(set(words[:1]) & set(RUN_A_COMMAND))


def _exit_code(argv: Sequence[str] | None, interrupts: Interrupts) -> int:
    """Run the command, print its error and return its exit code; interrupts are raised."""
    try:
        result = _call_command(argv, interrupts)
    except click.ClickException as error:
        error.show()
        return EXIT_FAILED
    except click.exceptions.Abort:
        raise KeyboardInterrupt from None
    except TracehintError as error:
        click.echo(f"tracehint: {error}", err=True)
        return error.exit_code
    except BrokenPipeError:
        return EXIT_FAILED
    except OSError as error:  # an error that no command handles
        where = f"{error.filename}: " if error.filename else ""
        what = f"{where}{error.strerror or type(error).__name__}"
        return _print_unhandled(argv, what, "Check the path, its permissions and the free space.")
    except Exception as error:
        if not _is_overflow(error):
            raise
        what = f"numbers of the input cannot be added: {str(error).splitlines()[0]}"
        return _print_unhandled(argv, what, "It is damaged: record, or analyze, the run again.")
    return result if isinstance(result, int) else 0


def _print_unhandled(argv: Sequence[str] | None, what: str, remedy: str) -> int:
    """Print an error that no command handles; return its exit code."""
    click.echo(f"tracehint: {TracehintError(what, remedy)}", err=True)
    return EXIT_RECORDER_FAILED if _runs_a_command(argv) else EXIT_FAILED


def _is_overflow(error: Exception) -> bool:
    """Whether a sum in DuckDB exceeded its column type, which no real file size can cause."""
    duckdb = sys.modules.get("duckdb")
    return duckdb is not None and isinstance(error, duckdb.DataError)
