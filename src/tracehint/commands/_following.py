"""`record --pid` and `--cgroup`: recording what runs already."""

from __future__ import annotations

import math
import os
from pathlib import Path

import click

from tracehint.collectors.base import Follow
from tracehint.commands._options import with_options
from tracehint.errors import CollectorError, UsageError

following_options = with_options(
    click.option(
        "--pid",
        type=int,
        metavar="PID",
        help="Follow a running process and its descendants instead (eBPF).",
    ),
    click.option(
        "--cgroup",
        metavar="DIR",
        help="Follow the processes of a cgroup v2 directory instead (eBPF).",
    ),
    click.option(
        "--duration",
        type=float,
        metavar="SECONDS",
        help="End following then. Default: when the processes have ended, or at Ctrl-C.",
    ),
)


def chosen_follow(
    pid: int | None, cgroup: str | None, duration: float | None, command: tuple[str, ...]
) -> Follow | None:
    """What to follow, or None when a command is to be run. Raises UsageError."""
    given = [name for name, value in (("--pid", pid), ("--cgroup", cgroup)) if value is not None]
    if len(given) == 2 or (given and command):
        both = "--pid and --cgroup" if len(given) == 2 else f"{given[0]} and a command"
        raise UsageError(f"{both}: only one of them can be recorded", "Leave one of them out.")
    if not given and not command:
        raise UsageError("nothing to record", "Give a command, --pid PID or --cgroup DIR.")
    if not given and duration is not None:
        raise UsageError(
            "--duration: a command is recorded until it ends",
            "To end it earlier: tracehint record -- timeout SECONDS COMMAND",
        )
    if duration is not None and not (0.001 <= duration <= 4e6 and math.isfinite(duration)):
        raise UsageError(f"--duration {duration:g}: not a time in seconds", "For example: 60")
    if not given:
        return None
    path = os.path.abspath(cgroup) if cgroup else ""  # noqa: PTH100 (links stay as given)
    if cgroup == "":
        raise UsageError("--cgroup: the name is empty", "Give a cgroup v2 directory.")
    return Follow(pid or 0, path, duration or 0.0)


def follow_collector(name: str) -> str:
    """The collector that can follow. Raises CollectorError for the others."""
    if name not in ("auto", "ebpf"):
        raise CollectorError(
            f"--collector {name}: records a command from its start only",
            "Use --collector ebpf with --pid or --cgroup.",
        )
    return "ebpf"


def default_name(follow: Follow) -> tuple[str, ...]:
    """What the bundle is named after."""
    name = Path(follow.cgroup).name or "cgroup" if follow.cgroup else f"pid-{follow.pid}"
    return (name,)
