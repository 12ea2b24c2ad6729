"""Damage to valid inputs: bytes, words, and the structure of JSON."""

from __future__ import annotations

import json
import random
import re
from typing import Any

_BYTES = [
    b"\x00",
    b"\xff\xfe",
    b"\n",
    b"\t",
    b'"',
    b"'",
    b"\\",
    b"{",
    b"}",
    b"[",
    b"]",
    b":",
    b",",
    b"#",
    b"$(a)",
    b"../../x",
    b"\r",
    b"=",
    b"|",
    b"->",
    b"&a",
    b"*a",
    b"!!x ",
]
_WORDS = [b"9" * 40, b"-1", b"0", b"1e999", b"NaN", b"null", b"true", b"", b"9223372036854775807",
          b"9223372036854775808", b"-9223372036854775808", b"2024-99-99", b"\xed\xa0\x80",
          b"0x" + b"f" * 30, b"1e400", b"/../../etc/passwd", b"x" * 70_000,
          b"\xc3\xa9"]  # fmt: skip  # a table
_WORD = re.compile(rb"[\w.+/-]+")
_VALUES: list[Any] = [
    None, True, False, 0, -1, 2**63, -(2**63) - 1, 10**40, 1.5, 1e308, float("inf"), float("nan"),
    "", "x", "\ud800", "\x00", "a" * 70_000, [], {}, [[]], [None], {"": None},
    ["x", "x", 7], {"x": {}},
]  # fmt: skip  # a table


def damaged(data: bytes, dice: random.Random) -> bytes:
    """Return a mutation of the bytes; of JSON, as often one of its structure."""
    if dice.random() < 0.5:
        try:
            return json.dumps(_changed(json.loads(data), dice)).encode()
        except (ValueError, RecursionError):
            pass
    for _ in range(dice.randrange(1, 6)):
        data = _one(data, dice)
    return data


def _one(data: bytes, dice: random.Random) -> bytes:
    at = dice.randrange(len(data) + 1)
    words = list(_WORD.finditer(data)) if dice.random() < 0.7 else []
    match dice.randrange(8):
        case 0:
            return data[:at] + dice.choice(_BYTES) + data[at:]
        case 1:
            return data[:at] + data[at + dice.randrange(1, 40) :]
        case 2:
            return data[:at]
        case 3:
            end = min(len(data), at + dice.randrange(1, 200))
            return data[:end] + data[at:]
        case 4:
            flipped = bytearray(data)
            if flipped:
                flipped[at % len(flipped)] ^= 1 << dice.randrange(8)
            return bytes(flipped)
        case 5:
            lines = data.split(b"\n")
            dice.shuffle(lines)
            return b"\n".join(lines)
        case _ if words:
            hit = dice.choice(words)
            return data[: hit.start()] + dice.choice(_WORDS) + data[hit.end() :]
        case _:
            return data[:at] + dice.choice(_WORDS) + data[at:]


def _changed(value: Any, dice: random.Random) -> Any:
    """Return the JSON value with parts replaced, dropped, repeated or nested deeply."""
    places: list[tuple[Any, Any]] = []
    todo = [value] if isinstance(value, (dict, list)) else []
    while todo:
        inner = todo.pop()
        keys = inner.keys() if isinstance(inner, dict) else range(len(inner))
        for key in keys:
            places.append((inner, key))
            if isinstance(inner[key], (dict, list)):
                todo.append(inner[key])
    if not places:
        return dice.choice(_VALUES)
    for _ in range(dice.randrange(1, 4)):
        inner, key = dice.choice(places)
        try:
            _change(inner, key, dice)
        except (KeyError, IndexError):
            continue  # removed by an earlier change
    return value


def _change(inner: Any, key: Any, dice: random.Random) -> None:
    match dice.randrange(5):
        case 0:
            del inner[key]
        case 1 if isinstance(inner, list):
            inner.extend([inner[key]] * dice.randrange(1, 5))
        case 2:
            deep: Any = inner[key]
            for _ in range(dice.choice([1, 2, 100, 900])):
                deep = [deep] if dice.random() < 0.5 else {"a": deep}
            inner[key] = deep
        case 3 if isinstance(inner, dict):
            inner[dice.choice(["", "x", *map(str, inner)])] = inner[key]
        case _:
            inner[key] = dice.choice(_VALUES)
