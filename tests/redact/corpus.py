"""The commands in the text files of this directory."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

KINDS = ("developed", "held_out")


class Case(NamedTuple):
    """A command as one string, and its secrets (none if it is harmless)."""

    text: str
    secrets: tuple[str, ...]

    def argv(self) -> list[bytes] | None:
        """Return its words; None if it does not split into words (an open quote)."""
        try:
            return [word.encode() for word in shlex.split(self.text)]
        except ValueError:
            return None


def cases(name: str) -> list[Case]:
    """Return the commands of a file, such as `secret_developed`."""
    return list(_read(Path(__file__).with_name(f"{name}.txt")))


def _read(path: Path) -> Iterator[Case]:
    for line in path.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            text = line.replace("⏎", "\n").replace("¦", "")
            secrets = tuple(part.partition("»")[0] for part in text.split("«")[1:])
            yield Case(text.replace("«", "").replace("»", ""), secrets)
