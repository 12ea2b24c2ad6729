"""`tracehint.toml`: the store, cluster and places of a workflow, as defaults for all commands.

store = "moosefs"            # --store
map = "site.toml"            # --map, relative to this file
cluster = "cluster.toml"     # --cluster: a file, or a ready-made one by name
data_root = ["/mnt/mfs/run"] # --data-root
engine = "makeflow"          # --workflow-engine
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tracehint.errors import InputError
from tracehint.hintgen.text.textfile import TextFile

NAME = "tracehint.toml"
_REMEDY = "Write it with `tracehint init`, or correct it."
_FILE = TextFile(kind="A project file", limit="small-bytes", check=NAME, remedy=_REMEDY)
# key of the file -> parameters of the commands that take it, whether it is a path
KEYS: dict[str, tuple[tuple[str, ...], bool]] = {
    "store": (("store",), False),
    "map": (("places",), True),
    "cluster": (("cluster",), True),
    "data_root": (("data_roots",), True),
    "engine": (("engine",), False),
    "hosts": (("hosts",), True),
}
OF_LINT = "lint"  # a table that lint reads itself


@dataclass(frozen=True)
class ProjectConfig:
    """The values of a project file, paths made absolute where they are there."""

    path: Path
    values: dict[str, Any]

    def parameters(self) -> dict[str, Any]:
        """Defaults by parameter of the commands."""
        return {name: value for key, value in self.values.items() for name in KEYS[key][0]}


def find_config(folder: Path) -> ProjectConfig | None:
    """The project file of a directory; None: it has none. Raises InputError."""
    path = folder / NAME
    if not path.is_file():
        return None
    data = _FILE.toml(path)
    values: dict[str, Any] = {}
    for key, value in data.items():
        if key == OF_LINT:
            continue
        if key not in KEYS:
            raise InputError(f"{path}: {key[:80]!r} is not known", f"Known are {', '.join(KEYS)}.")
        texts = value if isinstance(value, list) else [value]
        if not texts or not all(isinstance(text, str) and text for text in texts):
            raise InputError(f"{path}: {key} is no text", _REMEDY)
        if KEYS[key][1]:
            texts = [_near(folder, text) for text in texts]
        values[key] = tuple(texts) if key == "data_root" else texts[0]
    return ProjectConfig(path, values)


def _near(folder: Path, text: str) -> str:
    """A path beside the project file; a name that is no file there stays as it is."""
    return str(folder / text) if (folder / text).exists() else text
