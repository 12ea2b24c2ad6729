"""Names of a JX expression, and what a function may ask of who evaluates it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple, Protocol

from tracehint.adapters.engines.jx.tree import Node


class Scope(NamedTuple):
    """Names and their values; those around are in `outer`."""

    names: dict[str, Node]
    outer: Scope | None = None

    def find(self, name: str) -> tuple[bool, Node]:
        """Whether the name is known, and its value, which may not be evaluated yet."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names:
                return True, scope.names[name]
            scope = scope.outer
        return False, None


class Evaluation(Protocol):
    """The evaluation that a function is called in."""

    folder: Path | None

    def spend(self, steps: int = 1) -> None:
        """Count work; raises JxError where the bound is reached."""
        ...

    def spend_text(self, length: int) -> None:
        """Count the work of a new text of this length."""
        ...

    def value(self, node: Node, scope: Scope) -> Any:
        """The value of a part of the tree."""
        ...
