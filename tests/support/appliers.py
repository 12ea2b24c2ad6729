"""The two ways to set hints below a directory: `apply`, and the script that `emit` writes."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

from tests.support.cli import inside
from tests.support.hints import rule, save
from tests.support.patience import PATIENCE_S
from tests.support.users import OTHER
from tracehint.cli import main
from tracehint.hintgen.hints.model import Rule

AS_ROOT = ["--as-root"] if os.geteuid() == 0 else []


def attributes(path: Path | bytes) -> dict[str, bytes]:
    """Return all attributes of a file, without following links."""
    names = os.listxattr(path, follow_symlinks=False)
    return {n: os.getxattr(path, n, follow_symlinks=False) for n in names}


def tagged(folder: Path) -> int:
    """Count the files of a directory that have an attribute."""
    return sum(bool(os.listxattr(path)) for path in folder.iterdir())


def give(path: Path) -> None:
    """Give the directory and everything in it to the other user."""
    for part in (path, *path.rglob("*")):
        os.chown(part, OTHER, OTHER, follow_symlinks=False)


def emit(folder: Path, *rules: Rule, more: tuple[str, ...] = ()) -> Path:
    """Write hints and the script that sets them; return the script's path."""
    script = folder / "set.sh"
    hints = save(folder, *(rules or [rule("d/f{n}", DP="local")]))
    command = ["emit", str(hints), "--store", "xattr", "-o", str(script), "--force", *more]
    assert main(command) == 0
    return script


def sh(script: Path, *arguments: str | Path, **more: Any) -> subprocess.CompletedProcess[bytes]:
    """Run the script."""
    words = ["sh", script, *arguments]
    return subprocess.run(words, capture_output=True, timeout=PATIENCE_S, **more)


def make_data(folder: Path) -> Path:
    """Create a data directory with three images and a table."""
    root = folder / "data"
    (root / "proj").mkdir(parents=True)
    for i in range(3):
        (root / "proj" / f"p_{i}.fits").write_text("x")
    (root / "table.txt").write_text("t")
    return root


class Applier:
    """One of the two ways with its own hints; calls return the exit code and all output."""

    def __init__(self, how: str, folder: Path) -> None:
        self.how, self.folder = how, folder

    def hints(self, *rules: Rule, data: Path, create: bool = False) -> None:
        """Use these rules for the directory from now on."""
        self.create = ["--create"] if create else []
        if self.how == "script":
            emit(self.folder, *rules, more=("--dir", str(data), *self.create))
        else:
            save(self.folder, *rules)

    def __call__(self, data: Path, *more: str) -> tuple[int, str]:
        if self.how == "script":
            done: Any = sh(self.folder / "set.sh", *more, data)
            return done.returncode, (done.stdout + done.stderr).decode()
        words = ["--store", "xattr", data, *AS_ROOT, *self.create, *more]
        done = inside("apply", "hints.json", *words, cwd=self.folder)
        return done.returncode, done.stdout + done.stderr
