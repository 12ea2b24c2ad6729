"""Settings of lint from `tracehint.toml` (`[lint]`) or `pyproject.toml` (`[tool.tracehint.lint]`).

Keys: `select`, `ignore` (lists of codes or prefixes, `TP` is a prefix),
`baseline` (a file), and every field of `Settings` with dashes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tracehint.errors import InputError, UsageError
from tracehint.hintgen.lint.registry import REDIRECTS, RULES
from tracehint.hintgen.lint.settings import Settings
from tracehint.hintgen.text.textfile import TextFile

_FILE = TextFile(
    kind="A configuration",
    limit="small-bytes",
    check="Make it readable.",
    remedy="Mend the TOML file.",
)


@dataclass(frozen=True)
class Config:
    """Effective configuration; `source` is the file it came from, empty for defaults."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    baseline: str = ""
    settings: Settings = field(default_factory=Settings)
    source: str = ""


def find_config(start: Path) -> Config:
    """The configuration of the nearest directory upwards that has one, else the defaults."""
    for folder in (start, *start.parents):
        for name, keys in (
            ("tracehint.toml", ("lint",)),
            ("pyproject.toml", ("tool", "tracehint", "lint")),
        ):
            path = folder / name
            if path.is_file():
                table = _table(path, keys)
                if table is not None:
                    return _config(table, path)
    return Config()


def _table(path: Path, keys: tuple[str, ...]) -> dict[str, Any] | None:
    data: Any = _FILE.toml(path)
    for key in keys:
        if not isinstance(data, dict) or key not in data:
            return None
        data = data[key]
    if not isinstance(data, dict):
        raise InputError(f"{path}: [{'.'.join(keys)}] is not a table", "Mend the TOML file.")
    return data


def _config(table: dict[str, Any], path: Path) -> Config:
    names = {f.name: type(getattr(Settings, f.name)) for f in dataclasses.fields(Settings)}
    values: dict[str, Any] = {}
    for key, value in table.items():
        name = key.replace("-", "_")
        if name in ("select", "ignore"):
            if not isinstance(value, list) or not all(isinstance(v, str) for v in value):
                raise InputError(f"{path}: lint.{key} must be a list of codes", "Mend the file.")
        elif name != "baseline":
            if name not in names:
                raise InputError(f"{path}: unknown lint setting {key!r}", _known(names))
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise InputError(f"{path}: lint.{key} must be a number", "Mend the file.")
            values[name] = names[name](value)
    baseline = table.get("baseline", "")
    return Config(
        select=tuple(table.get("select", ())),
        ignore=tuple(table.get("ignore", ())),
        baseline=str(path.parent / baseline) if baseline else "",
        settings=dataclasses.replace(Settings(), **values),
        source=str(path),
    )


def _known(names: Iterable[str]) -> str:
    return "Known: select, ignore, baseline, " + ", ".join(n.replace("_", "-") for n in names)


def choose(select: Iterable[str], ignore: Iterable[str]) -> list[str]:
    """Codes of the rules to run; a code or a prefix may stand in both lists.

    Raises UsageError for one that matches no rule.
    """
    wanted = list(select) or [""]
    chosen = [c for c in RULES if any(c.startswith(w) for w in _checked(wanted))]
    dropped = _checked(ignore)
    return [c for c in chosen if not any(c.startswith(d) for d in dropped)]


def _checked(codes: Iterable[str]) -> list[str]:
    result = []
    for code in codes:
        code = REDIRECTS.get(code.strip().upper(), code.strip().upper())
        if code == "ALL":
            code = ""
        if not any(rule.startswith(code) for rule in RULES):
            raise UsageError(f"no lint rule {code!r}", "List them: tracehint explain --all")
        result.append(code)
    return result
