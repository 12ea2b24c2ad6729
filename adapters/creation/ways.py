"""The ways to set a hint while a file is made, best first: a way more is a line in WAYS."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

from tracehint.adapters.creation import by_fanotify, by_preload
from tracehint.adapters.creation.running import Running
from tracehint.collectors.preload.named import can_be_named
from tracehint.errors import MissingDependencyError, UsageError


@dataclass(frozen=True)
class Way:
    """`check`: why it can be taken here or not, and in the second case what mends it.

    `on`: the way is on within the context, for this table and the files below these roots.
    """

    reaches: str
    cost: str  # measured (docs/how-to/run-with-hints.md)
    check: Callable[[], tuple[str, str]]
    on: Callable[[Path, Sequence[bytes]], AbstractContextManager[Running]]


WAYS: dict[str, Way] = {
    "preload": Way(by_preload.REACHES, by_preload.COST, can_be_named, by_preload.on),
    "fanotify": Way(by_fanotify.REACHES, by_fanotify.COST, by_fanotify.check, by_fanotify.on),
}


@dataclass(frozen=True)
class WayCheck:
    """Whether a way can be taken on this machine."""

    name: str
    usable: bool
    reason: str
    remedy: str
    reaches: str = field(default="")
    cost: str = field(default="")


def answers() -> list[WayCheck]:
    """Of each way; it tests and changes nothing."""
    found = []
    for name, way in WAYS.items():
        reason, remedy = way.check()
        found.append(WayCheck(name, not remedy, reason, remedy, way.reaches, way.cost))
    return found


def chosen(name: str | None) -> Way:
    """The named way, or the first that can be taken. Raises UsageError, MissingDependencyError."""
    if name is not None and name not in WAYS:
        raise UsageError(f"--via {name}: no such way", f"Give one of: {', '.join(WAYS)}.")
    found = [answer for answer in answers() if name in (None, answer.name)]
    usable = next((answer.name for answer in found if answer.usable), None)
    if usable is not None:
        return WAYS[usable]
    why = "; ".join(f"{answer.name}: {answer.reason}" for answer in found)
    raise MissingDependencyError(f"no hints can be set at creation: {why}", found[0].remedy)
