"""Settings of lint from `tracehint.toml` (`[lint]`) or `pyproject.toml` (`[tool.tracehint.lint]`).

Keys: `select`, `ignore` (lists of codes or prefixes, `TP` is a prefix),
`baseline` (a file), and every field of `Settings` with dashes.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tracehint.errors import InputError, UntrustedError, UsageError
from tracehint.hintgen.lint.registry import REDIRECTS, RULES
from tracehint.hintgen.text.textfile import TextFile
from tracehint.schemas.plain import ConfiguredName, ConfiguredPath, distrust

MIB = 1 << 20


@dataclass(frozen=True)
class Settings:
    """Thresholds of the rules; the defaults suppress findings too small to act on."""

    block_size: int = 4 * MIB  # of the store, unless the trace has a BlockSize hint
    min_bytes: int = 64 << 10  # smaller savings do not repay the call that sets a hint
    min_storage_bytes: int = 1 * MIB  # kept or unread data below this is not reported
    min_gb_hours: float = 0.1
    tiny_file_bytes: int = 64 << 10
    tiny_file_count: int = 100
    tiny_file_share: float = 0.5  # of all workflow files
    used_share: float = 0.5  # a file of which less was read counts as partly used
    reread_factor: float = 1.5  # bytes read / distinct bytes
    small_op_bytes: int = 4096
    small_op_count: int = 1000
    small_op_share: float = 0.5  # of the operations on the file
    random_ops: int = 100
    random_share: float = 0.5  # of the operations: not where the previous one ended
    result_share: float = 0.05  # written/read bytes below which a last task only inspects its input
    stat_ops_per_file: float = 20.0
    storm_ops: int = 1000
    hot_dir_share: float = 0.5  # of all metadata operations of the run
    pull_threshold: int = 0  # of Confuga's URI, bytes; 0: no Confuga
    unbalanced_factor: float = 2.0  # busiest consumer / mean
    straggler_factor: float = 2.0  # of the median of its task type, in time and in bytes
    straggler_tasks: int = 4  # fewer tasks of one type have no meaningful median
    straggler_seconds: float = 1.0
    away_share: float = 0.5  # of a task's input that was written on another host
    central_ops_per_node: int = 500
    central_nodes: int = 32
    pipeline_share: float = 0.5  # of the intermediate bytes that stay in one-to-one chains


_FILE = TextFile(
    kind="A configuration",
    limit="small-bytes",
    check="Make the file readable.",
    remedy="Correct the TOML file.",
)


@dataclass(frozen=True)
class Config:
    """Effective configuration; `source` is its file, empty for the defaults.

    `ignored`: files that are not used because another user controls them, each with the reason.
    """

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    baseline: str = ""
    settings: Settings = field(default_factory=Settings)
    source: str = ""
    ignored: tuple[str, ...] = ()


def find_config(start: Path) -> Config:
    """Return the configuration of `start` or its nearest parent with one, else the defaults."""
    ignored: list[str] = []
    for folder in (start, *start.parents):
        for name, keys in (
            ("tracehint.toml", ("lint",)),
            ("pyproject.toml", ("tool", "tracehint", "lint")),
        ):
            path = ConfiguredPath(folder / name)
            if not os.path.lexists(path):
                continue
            try:
                table = _read_table(path, keys)
            except UntrustedError as error:
                ignored.append(f"{error.what}: it is ignored")
                continue
            if table is not None:
                return _parse_config(table, path, ignored)
    return Config(ignored=tuple(ignored))


def _read_table(path: Path, keys: tuple[str, ...]) -> dict[str, Any] | None:
    data: Any = _FILE.toml(path)
    for key in keys:
        if not isinstance(data, dict) or key not in data:
            return None
        data = data[key]
    if not isinstance(data, dict):
        raise InputError(f"{path}: [{'.'.join(keys)}] is not a table", "Correct the TOML file.")
    return data


def _parse_config(table: dict[str, Any], path: Path, ignored: list[str]) -> Config:
    names = {f.name: type(getattr(Settings, f.name)) for f in dataclasses.fields(Settings)}
    values: dict[str, Any] = {}
    for key, value in table.items():
        name = key.replace("-", "_")
        if name in ("select", "ignore"):
            if not isinstance(value, list) or not all(isinstance(v, str) for v in value):
                raise InputError(f"{path}: lint.{key} must be a list of codes", "Correct the file.")
        elif name != "baseline":
            if name not in names:
                raise InputError(f"{path}: unknown lint setting {key!r}", _format_known(names))
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise InputError(f"{path}: lint.{key} must be a number", "Correct the file.")
            values[name] = names[name](value)
    given = table.get("baseline", "")
    baseline = ConfiguredName(path.parent / given if given else "")
    if why := distrust(Path(baseline)) if given else "":
        ignored = [*ignored, f"{baseline} (the baseline of {path}) {why}: it is ignored"]
        baseline = ConfiguredName()
    return Config(
        select=tuple(table.get("select", ())),
        ignore=tuple(table.get("ignore", ())),
        baseline=baseline,
        settings=dataclasses.replace(Settings(), **values),
        source=str(path),
        ignored=tuple(ignored),
    )


def _format_known(names: Iterable[str]) -> str:
    return "Known: select, ignore, baseline, " + ", ".join(n.replace("_", "-") for n in names)


def choose(select: Iterable[str], ignore: Iterable[str]) -> list[str]:
    """Return the codes of the rules to run; both lists may hold codes and prefixes.

    Raises UsageError for an entry that matches no rule.
    """
    wanted = list(select) or [""]
    chosen = [c for c in RULES if any(c.startswith(w) for w in _check_codes(wanted))]
    dropped = _check_codes(ignore)
    return [c for c in chosen if not any(c.startswith(d) for d in dropped)]


def _check_codes(codes: Iterable[str]) -> list[str]:
    result = []
    for code in codes:
        code = REDIRECTS.get(code.strip().upper(), code.strip().upper())
        if code == "ALL":
            code = ""
        if not any(rule.startswith(code) for rule in RULES):
            raise UsageError(f"no lint rule {code!r}", "List them: tracehint explain --all")
        result.append(code)
    return result
