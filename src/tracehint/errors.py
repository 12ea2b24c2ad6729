"""Errors that a user can act on, and their exit codes.

Library code raises these; `tracehint.cli.main` is the one place that turns
them into a message on stderr and an exit code.
"""

from __future__ import annotations

EXIT_OK = 0
EXIT_FINDINGS = 1
EXIT_FAILED = 2
EXIT_RECORDER_FAILED = 125
EXIT_NOT_EXECUTABLE = 126
EXIT_NOT_FOUND = 127


class TracehintError(Exception):
    """Something that tracehint could not do, and what the user can do about it.

    `what` names the thing (a path, an option, a host), `remedy` the next step.
    """

    exit_code = EXIT_FAILED

    def __init__(self, what: str, remedy: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.what}\n  {self.remedy}" if self.remedy else self.what


class UsageError(TracehintError):
    """The command line names something that does not exist, or options that do not fit."""


class BundleError(TracehintError):
    """A trace bundle cannot be read or written."""


class InputError(TracehintError):
    """A file given by the user (log, workflow, hint file) cannot be understood."""


class UntrustedError(InputError):
    """A configuration file that another user controls, or that cannot be opened safely."""


class CollectorError(TracehintError):
    """A collector cannot run on this machine, or failed while it ran."""

    exit_code = EXIT_RECORDER_FAILED


class NotBegunError(CollectorError):
    """A collector that passed its checks could not start; the command did not run yet."""


class MissingDependencyError(TracehintError):
    """A program or package that an optional feature needs is not installed."""
