"""What tracehint makes of a row's workflow: run once on this machine, recorded, and emitted."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from scripts.bench.gain_stores.flow import Flow
from scripts.bench.gain_stores.rows import NODES, tool

PLANNED = "planned.makeflow"


@dataclass(frozen=True)
class Learned:
    """The folder with the planned workflow, its hint file, and what `emit` told to do."""

    folder: Path
    hints: Path
    remarks: str


def learned(flow: Flow, engine: str) -> Learned:
    """Record the workflow where that was not done yet, and write it anew for the engine."""
    folder = flow.folder.with_name(flow.folder.name + ".recorded")
    if not (folder / "h.json").exists():
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(flow.folder, folder)
        run = ["makeflow", "-j", str(4 * os.cpu_count() or 4), "w.makeflow"]
        tool("record", "--collector", "strace", "-o", "r.trace", "--", *run, cwd=folder)
        tool("hints", "r.trace", "--nodes", str(NODES), "-o", "h.json", cwd=folder)
        for name in flow.results:
            (folder / name).unlink()
    words = ["emit", "h.json", "--workflow-engine", engine, "w.makeflow", "--like", "r.trace"]
    more = ["--nodes", str(NODES), "-o", PLANNED, "--force"]
    return Learned(folder, folder / "h.json", tool(*words, *more, cwd=folder))


def copy_inputs(flow: Flow, target: Path) -> None:
    """The inputs of a flow in another folder."""
    for name in flow.inputs:
        shutil.copyfile(flow.folder / name, target / name)
