"""Files that people or other programs wrote: read whole, with a limit; as bytes, TOML or JSON."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tracehint.errors import InputError


@dataclass(frozen=True, kw_only=True)
class TextFile:
    """A kind of file, and what its reader is told when it cannot be read."""

    kind: str  # in a sentence: "a host file"
    limit: int  # bytes, whole MiB
    check: str  # what to do where there is no such file: "Check --hosts."
    remedy: str = ""  # what to do about the text

    def read(self, path: Path) -> bytes:
        """All bytes, also of a file that has no size. Raises InputError."""
        try:
            with path.open("rb") as stream:
                raw = stream.read(self.limit + 1)
        except OSError as error:
            raise InputError(f"cannot read {path}: {error.strerror}", self.check) from error
        if len(raw) > self.limit:
            size = f"{self.limit >> 20} MiB"
            raise InputError(f"{path} is larger than {size}", f"{self.kind} is never that large.")
        return raw

    def toml(self, path: Path) -> dict[str, Any]:
        """The tables of a TOML file. Raises InputError."""
        import tomllib

        found: dict[str, Any] = self._parsed(path, "TOML", tomllib.loads)
        return found

    def json(self, path: Path) -> Any:
        """The value of a JSON file. Raises InputError."""
        import json

        return self._parsed(path, "JSON", json.loads)

    def _parsed(self, path: Path, form: str, parse: Callable[[str], Any]) -> Any:
        raw = self.read(path)
        try:
            return parse(raw.decode())
        except (ValueError, RecursionError) as error:
            raise InputError(f"{path} is not {form}: {str(error)[:200]}", self.remedy) from error
