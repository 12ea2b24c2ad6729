"""`tracehint.toml`: the store, cluster and places of a workflow, as defaults for all commands.

store = "moosefs"            # --store
map = "site.toml"            # --map, relative to this file
cluster = "cluster.toml"     # --cluster: a file, or the name of a built-in one
data_root = ["/mnt/mfs/run"] # --data-root
engine = "makeflow"          # --workflow-engine
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tracehint.errors import InputError, UntrustedError
from tracehint.hintgen.text.textfile import TextFile
from tracehint.schemas.plain import ConfiguredName, ConfiguredPath, distrust

NAME = "tracehint.toml"
_REMEDY = "Write it with `tracehint init`, or correct it."
_FILE = TextFile(kind="A project file", limit="small-bytes", check=NAME, remedy=_REMEDY)
_VALUE_KINDS = ("a text", "a list of texts")
# key of the file -> command parameters with this default, type of its value
KEYS: dict[str, tuple[tuple[str, ...], type]] = {
    "store": (("store",), ConfiguredName),
    "map": (("places",), ConfiguredPath),
    "cluster": (("cluster",), ConfiguredName),
    "data_root": (("data_roots",), tuple),
    "engine": (("engine",), str),
    "hosts": (("hosts",), ConfiguredPath),
}
LINT_TABLE = "lint"  # a table read by lint


@dataclass(frozen=True)
class ProjectConfig:
    """The values of a project file, with paths of existing files made absolute.

    `ignored`: files that are not used, each with the reason.
    """

    path: Path
    values: dict[str, Any]
    ignored: tuple[str, ...] = ()

    def parameters(self) -> dict[str, Any]:
        """Return defaults by command parameter."""
        return {name: value for key, value in self.values.items() for name in KEYS[key][0]}

    def texts(self) -> dict[str, Any]:
        """Return the values as texts, for output."""
        return {k: v if isinstance(v, tuple) else str(v) for k, v in self.values.items()}


def find_config(folder: Path) -> ProjectConfig | None:
    """Read the project file of a directory; None if it has none. Raises InputError.

    Files that another user could have written are ignored: this file, or one that it names.
    """
    path = folder / NAME
    if not os.path.lexists(path):
        return None
    try:
        data = _FILE.toml(ConfiguredPath(path))
    except UntrustedError as error:
        return ProjectConfig(path, {}, (f"{error.what}: it is ignored",))
    values: dict[str, Any] = {}
    ignored: list[str] = []
    for key, value in data.items():
        if key == LINT_TABLE:
            continue
        if key not in KEYS:
            raise InputError(
                f"{path}: {key[:80]!r} is not known", f"Known keys: {', '.join(KEYS)}."
            )
        kind = KEYS[key][1]
        texts = value if isinstance(value, list) and kind is tuple else [value]
        if not texts or not all(isinstance(text, str) and text for text in texts):
            raise InputError(f"{path}: {key} is not {_VALUE_KINDS[kind is tuple]}", _REMEDY)
        if kind in (ConfiguredName, ConfiguredPath):
            texts = [_path_beside_config(folder, text) for text in texts]
            if why := distrust(Path(texts[0])):
                ignored.append(f"{texts[0]} (the {key} of {path}) {why}: it is ignored")
                continue
        values[key] = kind(texts) if kind is tuple else kind(texts[0])
    return ProjectConfig(path, values, tuple(ignored))


def _path_beside_config(folder: Path, text: str) -> str:
    """Return a path next to the project file; a name without such a file stays unchanged."""
    return str(folder / text) if os.path.lexists(folder / text) else text


BY_HAND = ("map", "cluster")  # keys that only users write
_HEAD = re.compile(r"^[ \t]*\[", re.M)
_KEEP_REMEDY = (
    "Move it away, or correct it; `tracehint init --dry-run` prints what would be written."
)
_KEPT_FILE = TextFile(kind="A project file", limit="small-bytes", check="it", remedy=_KEEP_REMEDY)


def kept_from(path: Path) -> tuple[dict[str, str], str]:
    """Return (lines by key, text of the tables). Raise InputError if these cannot be separated."""
    path = ConfiguredPath(path)
    old = _KEPT_FILE.toml(path)
    tables = {key: value for key, value in old.items() if _is_table(value)}
    lines = {k: f"{k} = {json.dumps(old[k])}" for k in BY_HAND if isinstance(old.get(k), str)}
    if not tables:
        return lines, ""
    text = _KEPT_FILE.read(path).decode()
    for head in _HEAD.finditer(text):
        if _parse_toml(text[head.start() :]) == tables:
            return lines, text[head.start() :]
    raise InputError(f"{path}: its tables cannot be distinguished from the rest", _KEEP_REMEDY)


def _is_table(value: Any) -> bool:
    rows = value if isinstance(value, list) else [value]
    return any(isinstance(row, dict) for row in rows)


def _parse_toml(text: str) -> dict[str, Any] | None:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None
