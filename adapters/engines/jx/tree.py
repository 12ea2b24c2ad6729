"""The parts of a parsed JX document. Numbers, texts, true, false and null stand for themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Node = Any  # None, bool, int, float, str, or one of the classes below


class JxError(ValueError):
    """The text is not JX, its evaluation fails, or a bound was reached."""


@dataclass(frozen=True, slots=True)
class Symbol:
    """A name that is looked up where it is used."""

    name: str
    line: int


@dataclass(frozen=True, slots=True)
class Chain:
    """Operators of one precedence: `a - b - c`, which groups from the right, `a - (b - c)`."""

    operands: tuple[Node, ...]
    operators: tuple[str, ...]
    line: int


@dataclass(frozen=True, slots=True)
class Unary:
    """`not`, `-` or `+` before a value."""

    operator: str
    operand: Node
    line: int


@dataclass(frozen=True, slots=True)
class Application:
    """A function with its arguments, not yet evaluated."""

    name: str
    arguments: Array
    line: int


@dataclass(frozen=True, slots=True)
class Index:
    """`left[at]`."""

    left: Node
    at: Node
    line: int


@dataclass(frozen=True, slots=True)
class Slice:
    """`left[begin:end]`; ... where nothing was written."""

    left: Node
    begin: Node
    end: Node
    line: int


@dataclass(frozen=True, slots=True)
class For:
    """`for variable in elements if condition`; has_condition tells null from none."""

    variable: str
    elements: Node
    condition: Node
    has_condition: bool
    line: int


@dataclass(frozen=True, slots=True)
class Array:
    """Items, each with the loops that repeat it."""

    items: tuple[tuple[Node, tuple[For, ...]], ...]


@dataclass(frozen=True, slots=True)
class Object:
    """Pairs of key and value, each with the loops that repeat it."""

    pairs: tuple[tuple[Node, Node, tuple[For, ...]], ...]


@dataclass(frozen=True, slots=True)
class Failure:
    """`error(...)`: evaluating it fails."""

    line: int
