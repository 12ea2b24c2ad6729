"""Fields of a hint file's JSON, taken out one by one; what does not fit is an InputError."""

from __future__ import annotations

from typing import Any

from tracehint.errors import InputError

MAX_TEXT = 16_384


def bad(what: str) -> InputError:
    """The error for a hint file that says something wrong."""
    return InputError(f"hint file: {what}", "Write it again with `tracehint hints`.")


def get(data: dict[str, Any], key: str, kind: type | tuple[type, ...]) -> Any:
    """The value of a field that must be there. Raises InputError."""
    value = data.get(key)
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise bad(f"{key!r} is missing or of the wrong type")
    if isinstance(value, str) and len(value) > MAX_TEXT:
        raise bad(f"{key!r} is too long")
    return value


def entries(data: dict[str, Any], key: str, kind: type, limit: int) -> list[Any]:
    """The entries of a list; a missing one is empty. Raises InputError."""
    values = data.get(key, [])
    if not isinstance(values, list) or len(values) > limit:
        raise bad(f"{key!r} is no list of at most {limit} entries")
    for value in values:
        if not isinstance(value, kind) or (isinstance(value, str) and len(value) > MAX_TEXT):
            raise bad(f"{key!r} has an entry of the wrong type or length")
    return values
