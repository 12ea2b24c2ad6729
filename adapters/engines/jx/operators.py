"""What JX's operators do with two plain values."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from tracehint.adapters.engines.jx.tree import JxError

_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le,
    ">": operator.gt, ">=": operator.ge,
}  # fmt: skip  # a table
_EQUAL = ("==", "!=")


def kind(value: Any) -> str:
    """JX's name of the value's type."""
    return _KINDS[type(value)]


_KINDS = {
    type(None): "null", bool: "boolean", int: "integer", float: "double", str: "string",
    list: "array", dict: "object",
}  # fmt: skip  # a table


def text_of(value: Any) -> str:
    """A number or truth value as JX prints it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:.16g}" if isinstance(value, float) else str(value)


def binary(mark: str, left: Any, right: Any) -> Any:
    """left mark right. Raises JxError for types that do not fit."""
    kinds = kind(left), kind(right)
    if kinds[0] != kinds[1]:
        if set(kinds) == {"integer", "double"}:
            left, right = float(left), float(right)
        elif mark in _EQUAL:
            return mark == "!="
        elif mark == "+" and "string" in kinds and set(kinds) <= _ATOMS:
            left, right = (v if isinstance(v, str) else text_of(v) for v in (left, right))
        else:
            raise JxError(f"{kinds[0]} {mark} {kinds[1]}")
    return _BY_KIND.get(kind(right), _nothing)(mark, left, right)


_ATOMS = {"boolean", "integer", "double", "string"}


def _nothing(mark: str, left: Any, right: Any) -> Any:
    raise JxError(f"{kind(left)} {mark} {kind(right)}")


def _null(mark: str, left: Any, right: Any) -> Any:
    return mark == "==" if mark in _EQUAL else _nothing(mark, left, right)


def _boolean(mark: str, left: bool, right: bool) -> Any:
    if mark in ("and", "or"):
        return (left and right) if mark == "and" else (left or right)
    return _COMPARE[mark](left, right) if mark in _EQUAL else _nothing(mark, left, right)


def _number(mark: str, left: Any, right: Any) -> Any:
    if mark in _COMPARE:
        return _COMPARE[mark](left, right)
    if mark not in _ARITHMETIC:
        return _nothing(mark, left, right)
    if mark in "/%" and right == 0:
        raise JxError(f"{text_of(left)} {mark} 0: division by zero")
    value = _ARITHMETIC[mark](left, right)
    return _wrapped(value) if isinstance(left, int) else float(value)


def _divided(left: Any, right: Any) -> Any:
    """Integers are cut off towards zero."""
    if isinstance(left, float):
        return left / right
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def _modulo(left: Any, right: Any) -> Any:
    """The sign is the left one's; of doubles only the whole part counts."""
    try:
        a, b = int(left), int(right)
    except (ValueError, OverflowError):
        raise JxError(f"{left} % {right}") from None
    if b == 0:
        raise JxError(f"{left} % {right}: division by zero")
    return a - b * _divided(a, b)


_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": _divided, "%": _modulo,
}  # fmt: skip  # a table


def _wrapped(value: int) -> int:
    """Integers have 64 bits."""
    return (value + 2**63) % 2**64 - 2**63


def _string(mark: str, left: str, right: str) -> Any:
    if mark == "+":
        return left + right
    if mark not in _COMPARE:
        return _nothing(mark, left, right)
    a, b = (v.encode("utf-8", "surrogatepass") for v in (left, right))
    return _COMPARE[mark](a, b)


def _array(mark: str, left: list[Any], right: list[Any]) -> Any:
    if mark == "+":
        return left + right
    if mark not in _EQUAL:
        return _nothing(mark, left, right)
    return _same(left, right) == (mark == "==")


def _same(left: Any, right: Any) -> bool:
    """Equal in value and type, all the way down."""
    if type(left) is not type(right):
        return False
    if isinstance(left, list):
        return len(left) == len(right) and all(map(_same, left, right))
    if isinstance(left, dict):
        return list(left) == list(right) and all(map(_same, left.values(), right.values()))
    return bool(left == right)


_BY_KIND: dict[str, Callable[[str, Any, Any], Any]] = {
    "null": _null, "boolean": _boolean, "integer": _number, "double": _number, "string": _string,
    "array": _array,
}  # fmt: skip  # a table


def unary(mark: str, value: Any) -> Any:
    """not, - or + of a value; `+` of a string is the string. Raises JxError."""
    found = kind(value)
    if mark == "not" and found == "boolean":
        return not value
    if mark in "+-" and found in ("integer", "double"):
        return value if mark == "+" else _number("-", type(value)(0), value)
    if mark == "+" and found == "string":
        return value
    raise JxError(f"{mark} {found}")
