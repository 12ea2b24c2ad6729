"""Small real runs with known truth: record a script and return its analysis."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import tracehint

ENGINES = ("ebpf", "strace")


@dataclass
class Answer:
    """`analyze --format json`, with task names instead of ids."""

    data: dict[str, Any]

    @property
    def names(self) -> dict[str, str]:
        return {t["id"]: t["name"] for t in self.data["tasks"]}

    @property
    def tasks(self) -> list[str]:
        """Names of the tasks that are not engines, in order."""
        return [t["name"] for t in self.data["tasks"] if not t["engine"]]

    def task(self, name: str) -> dict[str, Any]:
        (found,) = [t for t in self.data["tasks"] if t["name"] == name]
        return dict(found)

    @property
    def paths(self) -> list[str]:
        """Paths of all versions except software, sorted."""
        return sorted(f["path"] for f in self.data["files"] if f["role"] != "software")

    def file(self, path: str, version: int = 0) -> dict[str, Any]:
        (found,) = [f for f in self.data["files"] if (f["path"], f["version"]) == (path, version)]
        return dict(found)

    def labels(self, path: str, version: int = 0) -> list[str]:
        """Return the labels of a version, the primary one first."""
        rows = sorted(self.file(path, version)["patterns"], key=lambda p: not p["primary"])
        return [p["pattern"] for p in rows]

    def producers(self, path: str, version: int = 0) -> list[str]:
        return [self.names[p["task"]] for p in self.file(path, version)["producers"]]

    def consumers(self, path: str, version: int = 0) -> list[str]:
        return [self.names[c["task"]] for c in self.file(path, version)["consumers"]]

    @property
    def edges(self) -> list[tuple[str, str, str, int]]:
        """(producer, path of a version, consumer, bytes), sorted."""
        path = {f["id"]: f["path"] for f in self.data["files"]}
        return sorted(
            (self.names[e["producer"]], path[e["file"]], self.names[e["consumer"]], e["bytes"])
            for e in self.data["edges"]
        )


def answer(
    folder: Path,
    script: str,
    collector: str,
    *command: str,
    derive_roots: bool = False,
    roots: tuple[Path, ...] = (),
) -> Answer:
    """Record `script` (bash, or `command` with the script's file name at its end) in a separate
    folder below `folder`, the data root unless others are given or derived; return its analysis."""
    if collector == "ebpf":
        from tests.support.ebpf import require_ebpf

        require_ebpf()
    elif not shutil.which("strace"):
        pytest.skip("strace is not installed")
    work = folder / "work"
    work.mkdir(exist_ok=True)
    (folder / "script").write_text(script, encoding="utf-8", errors="surrogateescape")
    bundle = folder / "run.trace"
    words = ["record", "--quiet", "--collector", collector, "-o", bundle]
    given = () if derive_roots else roots or (work,)
    options = [word for root in given for word in ("--data-root", str(root))]
    command = command or ("bash",)
    done = tracehint(*words, *options, "--", *command, folder / "script", cwd=work)
    assert done.returncode == 0, done.stderr
    return analyzed(bundle)


def analyzed(bundle: Path, *options: str) -> Answer:
    """Return the analysis of a bundle."""
    done = tracehint("analyze", bundle, "--format", "json", *options)
    assert done.returncode == 0, done.stderr
    return Answer(json.loads(done.stdout))
