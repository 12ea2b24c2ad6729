"""Whether what a manifest says has the types that its readers count on: it may be a stranger's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_BITS = 63
_MAX_ITEMS = 1_000_000


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _flag(value: Any) -> bool:
    return isinstance(value, bool)


def _integer(value: Any) -> bool:
    return isinstance(value, int) and not _flag(value) and abs(value) < 1 << _BITS


def _maybe(value: Any) -> bool:
    return value is None or _integer(value)


def _list_of(kind: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: (
        isinstance(value, list) and len(value) <= _MAX_ITEMS and all(map(kind, value))
    )


def _facts(value: Any) -> bool:
    """An object of texts, numbers and flags (a mount that the user called shared has one)."""
    return isinstance(value, dict) and all(
        _text(v) or _maybe(v) or _flag(v) for v in value.values()
    )


def _integers(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_integer, value.values()))


MANIFEST: dict[str, Callable[[Any], bool]] = {
    "format": _text, "program": _text, "collector": _text, "command": _list_of(_text),
    "cwd": _text, "started_ns": _integer, "ended_ns": _maybe, "exit_status": _maybe,
    "complete": _flag, "hosts": _list_of(lambda host: isinstance(host, dict)),
    "data_roots": _list_of(_text), "blind_to": _list_of(_text), "notes": _list_of(_text),
    "redacted_args": _integer, "recording": _text, "parts": _list_of(_text), "rows": _integers,
    "kept_args": _flag,
}  # fmt: skip  # a table
HOST: dict[str, Callable[[Any], bool]] = {
    "name": _text, "kernel": _text, "site": _text, "boot_id": _text, "cpus": _integer,
    "mounts": _list_of(_facts), "clock": _integers,
}  # fmt: skip  # a table


def fields_of(data: dict[str, Any], rules: dict[str, Callable[[Any], bool]]) -> dict[str, Any]:
    """The known fields of the object. Raises TypeError naming one that is wrong."""
    known = {key: value for key, value in data.items() if key in rules}
    for key, value in known.items():
        if not rules[key](value):
            raise TypeError(f"{key} is {str(value)[:80]!r}")
    return known
