"""What a new tracehint.toml takes over from the one that it replaces: tables, and what init never
finds (map, cluster). Text stays as it was written, comments too.
"""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

from tracehint.errors import InputError
from tracehint.hintgen.text.textfile import TextFile

BY_HAND = ("map", "cluster")  # keys that only people write
_HEAD = re.compile(r"^[ \t]*\[", re.M)
_REMEDY = "Move it away, or correct it; `tracehint init --dry-run` prints what would be written."
_FILE = TextFile(kind="A project file", limit="small-bytes", check="it", remedy=_REMEDY)


def kept_from(path: Path) -> tuple[dict[str, str], str]:
    """(lines by key, text of the tables). Raises InputError where they cannot be told apart."""
    old = _FILE.toml(path)
    tables = {key: value for key, value in old.items() if _is_table(value)}
    lines = {k: f"{k} = {json.dumps(old[k])}" for k in BY_HAND if isinstance(old.get(k), str)}
    if not tables:
        return lines, ""
    text = path.read_text(encoding="utf-8")
    for head in _HEAD.finditer(text):
        if _parsed(text[head.start() :]) == tables:
            return lines, text[head.start() :]
    raise InputError(f"{path}: its tables cannot be told from the rest", _REMEDY)


def _is_table(value: Any) -> bool:
    rows = value if isinstance(value, list) else [value]
    return any(isinstance(row, dict) for row in rows)


def _parsed(text: str) -> dict[str, Any] | None:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None
