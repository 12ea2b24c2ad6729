"""A way to set hints that is on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field


def _nothing() -> list[str]:
    return []


@dataclass(frozen=True)
class Running:
    """`environment`: what the command gets besides. `unseen`: who may make files unnoticed.

    `end`: ends it, once the command has ended; in words what went wrong meanwhile.
    """

    environment: Mapping[str, str] = field(default_factory=dict)
    unseen: str = "a program that the library cannot enter, or one outside of the run"
    end: Callable[[], list[str]] = _nothing
