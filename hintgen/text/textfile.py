"""Reading of files of users or other programs, with a size limit: as bytes, TOML or JSON."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from tracehint.errors import InputError, UntrustedError
from tracehint.limits import check, limit, values_of
from tracehint.schemas.plain import ConfiguredPath, read_named

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class TextFile:
    """A kind of file, and the error when it cannot be read."""

    kind: str  # for messages: "a host file"
    limit: str  # name of its limit of bytes in tracehint.limits
    check: str  # remedy if the file cannot be read: "Check --hosts."
    remedy: str = ""  # remedy if its text is invalid

    def read(self, path: Path) -> bytes:
        """Return all bytes, also of files without a size. Raises InputError."""
        try:
            raw = read_named(path, limit(self.limit) + 1)
        except OSError as error:
            kind = UntrustedError if isinstance(path, ConfiguredPath) else InputError
            raise kind(f"cannot read {path}: {error.strerror}", self.check) from error
        check(self.limit, f"{path}, {self.kind}", len(raw))
        return raw

    def toml(self, path: Path) -> dict[str, Any]:
        """Return the tables of a TOML file. Raises InputError."""
        import tomllib

        def parse(text: str) -> dict[str, Any]:
            marks = values_of(text) + sum(map(text.count, ".\n"))
            check("toml-values", f"{path}, {self.kind}", marks)
            return tomllib.loads(text, parse_float=_number)

        found: dict[str, Any] = self._parse_file(path, "TOML", parse)
        return found

    def record(self, path: Path, kind: type[T]) -> T:
        """Return the record in a TOML file, validated by its types. Raises InputError."""
        from msgspec import convert

        data = self.toml(path)
        try:
            return convert(data, kind, str_keys=True)
        except ValueError as error:
            raise InputError(f"{path}: {str(error)[:300]}", self.remedy) from None

    def json(self, path: Path) -> Any:
        """Return the value of a JSON file; numbers are finite, of 64 bits. Raises InputError."""
        import json

        def parse(text: str) -> Any:
            check("json-values", f"{path}, {self.kind}", values_of(text))
            return json.loads(
                text, parse_float=_number, parse_int=_whole_number, parse_constant=_number
            )

        return self._parse_file(path, "JSON", parse)

    def decode(self, raw: bytes, origin: Path | str, kind: type[T]) -> T:
        """Return the record in JSON text, validated by its types. Raises InputError (`origin`)."""
        from msgspec import json

        check("json-values", f"{origin}, {self.kind}", values_of(raw))
        try:
            return json.decode(raw, type=kind)
        except (ValueError, RecursionError) as error:
            raise InputError(f"{origin}: {str(error)[:300]}", self.remedy) from None

    def _parse_file(self, path: Path, form: str, parse: Callable[[str], Any]) -> Any:
        raw = self.read(path)
        try:
            return parse(raw.decode())
        except (ValueError, RecursionError) as error:
            raise InputError(f"{path} is not {form}: {str(error)[:200]}", self.remedy) from error


def _number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"the number {text[:40]} is too large or not finite")
    return value


def _whole_number(text: str) -> int:
    value = int(text) if len(text) < 21 else 1 << 64
    if not -(1 << 63) <= value < 1 << 63:
        raise ValueError(f"the number {text[:40]} is too large")
    return value


def unused_name(name: str, *endings: str) -> str:
    """Return the name, numbered if needed, so that no file has it, also with one of the endings."""
    stem, dot, suffix = name.rpartition(".")
    names = (name, *(f"{stem}-{number}{dot}{suffix}" for number in range(2, 100)))
    free = (n for n in names if not any(os.path.lexists(n + end) for end in ("", *endings)))
    return next(free, name)
