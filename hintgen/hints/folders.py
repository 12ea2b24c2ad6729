"""What a hint file says of directories themselves, as records and as JSON, checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tracehint.errors import InputError
from tracehint.hintgen.hints.fields import bad, entries, get
from tracehint.hintgen.hints.pathtext import to_bytes
from tracehint.hintgen.hints.vocabulary import HINT_NAMES, valid

MAX_FOLDERS = 100_000


@dataclass(frozen=True)
class FolderHints:
    """A directory, its path below the data root as text (hintgen/hints/pathtext.py), and hints."""

    path: str
    hints: dict[str, str]


def folders_to_json(folders: tuple[FolderHints, ...]) -> list[dict[str, Any]]:
    """The list `directories` of a hint file."""
    return [{"path": one.path, "hints": dict(one.hints)} for one in folders]


def folders_from_json(data: dict[str, Any]) -> tuple[FolderHints, ...]:
    """Checked records. Raises InputError: names the first thing that is wrong."""
    found = [_folder(raw) for raw in entries(data, "directories", dict, MAX_FOLDERS)]
    if len({one.path for one in found}) != len(found):
        raise bad("a directory is there twice")
    return tuple(found)


def sayable(path: bytes) -> bool:
    """Whether it can be the path of something below the data root."""
    return {b"", b".", b".."}.isdisjoint(path.split(b"/")) and b"\0" not in path


def _folder(data: dict[str, Any]) -> FolderHints:
    path, hints = get(data, "path", str), get(data, "hints", dict)
    try:
        known = sayable(to_bytes(path))
    except InputError:
        known = False
    if not known:
        raise bad(f"{path[:80]!r} is no directory below the data root")
    if not hints or len(hints) > len(HINT_NAMES):
        raise bad(f"directory {path[:80]!r} has no hint, or too many")
    for name, value in hints.items():
        if not isinstance(value, str) or not valid(name, value):
            raise bad(f"directory {path[:80]!r} has an unknown hint {name[:80]!r}")
    return FolderHints(path, dict(hints))
