"""Query the preload library's rule table, and run commands under the tagger."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.support.built import built
from tracehint.adapters.creation.journal import make_journal
from tracehint.adapters.creation.resolution import Resolution, resolution_of
from tracehint.adapters.creation.rule_table import compile_rules
from tracehint.adapters.paths import Paths
from tracehint.adapters.stores.base import Store
from tracehint.adapters.stores.registry import open_store
from tracehint.hintgen.hints.model import HintFile

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "collectors" / "preload"
SANITIZERS = ["-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]


def build_ask(folder: Path, *flags: str) -> Path:
    """Build tests/preload/ask.c with the table's reader."""
    reader = [SOURCES / "tag" / f"{name}.c" for name in ("table", "fit", "value", "word")]
    flags = ("-std=gnu11", "-Wall", "-Wextra", "-Werror", *flags, "-I")
    asks = ROOT / "tests" / "preload" / "ask.c"
    return built(folder / "ask", "gcc", *flags, SOURCES, asks, *reader)


def ask(
    program: Path, table: Path, names: list[bytes], kind: int | None = None
) -> list[tuple[str, dict[str, bytes]]]:
    """Return each name's answer in a word, and the settings; `kind`: number of its task's type."""
    more = [] if kind is None else ["type", str(kind)]
    done = subprocess.run(
        [program, table, *more], input=b"".join(name + b"\0" for name in names), capture_output=True
    )
    assert not done.stderr, done.stderr.decode(errors="replace")
    answers = []
    for line in done.stdout.decode().splitlines():
        word, *settings = line.split(" ")
        pairs = (setting.split("=") for setting in settings)
        said = {_key(bytes.fromhex(key)): bytes.fromhex(value) for key, value in pairs}
        answers.append((word, said))
    return answers


def _key(key: bytes) -> str:
    """Return the key as the store has it; for a class the table names the tool."""
    return "mfs:sclass" if key.endswith(b"/mfssetsclass") else key.decode("latin-1")


def expected(
    resolution: Resolution, store: Store, names: list[bytes], makers: list[str | None] | None = None
) -> list[dict[str, bytes] | None]:
    """Return the settings that Python resolves for each name, None for no hint."""
    found = []
    for target in resolution.resolve(names, makers):
        settings = store.translate(target.hints, "file")[0] if target else []
        found.append({s.key: s.value for s in settings} or None)
    return found


class Tagged:
    """Commands in a folder, under the library with a table of these hints."""

    def __init__(
        self,
        library: Path,
        folder: Path,
        hints: HintFile,
        *,
        store: Store | None = None,
        paths: Paths | None = None,
        root: Path | None = None,
    ) -> None:
        self.library, self.folder = library, folder
        self.root = root or folder / "w"
        self.root.mkdir(exist_ok=True)
        self.table = folder / "table"
        self.resolution = resolution_of(hints, paths)
        self.store = store or open_store("xattr")
        roots = [os.fsencode(self.root.resolve())]
        self.table.write_bytes(compile_rules(self.resolution, self.store, roots).data)
        make_journal(self.table)

    def environment(self, **more: str) -> dict[str, str]:
        """Return the environment of a command under the tagger."""
        env = {"LD_PRELOAD": str(self.library), "TRACEHINT_HINTS": str(self.table)}
        return {**os.environ, **env, **more}

    def run(self, *command: str | Path, status: int = 0, **more: str) -> str:
        """Run the command in the root and return its output. It must end with `status`."""
        done = subprocess.run(
            command, env=self.environment(**more), cwd=self.root, capture_output=True
        )
        output = (done.stdout + done.stderr).decode(errors="replace")
        assert done.returncode == status, output
        return output

    def hints(self, path: str | bytes) -> dict[str, bytes]:
        """Return the attributes of a file below the root."""
        place = os.path.join(os.fsencode(self.root), os.fsencode(path))  # noqa: PTH118
        return {name: os.getxattr(place, name) for name in os.listxattr(place)}
