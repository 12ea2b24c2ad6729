"""Montage under Makeflow: a small mosaic."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from tests.e2e.real.model import Job, Workflow
from tests.e2e.real.workflows.inputs import DATASETS, make
from tests.e2e.support import makeflow_rules

COLUMNS, ROWS = 4, 2
SIZE = ("--columns", str(COLUMNS), "--rows", str(ROWS))


def rules() -> list[tuple[list[str], list[str], str]]:
    path = DATASETS / "montage" / "make_workflow.py"
    spec = importlib.util.spec_from_file_location("montage_make_workflow", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return makeflow_rules(module.workflow(COLUMNS * ROWS, module.neighbours(COLUMNS, ROWS)))


def jobs() -> list[Job]:
    return [Job(cmd, cmd, tuple(src), tuple(dst)) for dst, src, cmd in rules()]


def not_used() -> set[tuple[str, str]]:
    """mImgtbl and mFitplane open no area file; mOverlaps' table only orders mDiff."""
    return {
        (job.name, path)
        for job in jobs()
        for path in job.reads
        if (path.endswith("_area.fits") and job.name.startswith(("mImgtbl", "mFitplane")))
        or (path == "diffs.tbl" and job.name.startswith("mDiff"))
    }


def prepare(folder: Path) -> None:
    make("montage/make_tiles.py", folder / "archive", *SIZE)
    make("montage/make_workflow.py", folder, *SIZE)


WORKFLOW = Workflow(
    name="montage",
    title=f"Montage, {COLUMNS} × {ROWS} tiles (Makeflow)",
    needs=("makeflow", "mProject"),
    prepare=prepare,
    command=("makeflow", "-j", "2", "montage.makeflow"),
    jobs=jobs,
    not_used=not_used,
    shows=(("fit/f_00_01.txt", "reduce"), ("diff/d_00_01.fits", "pipeline")),
)
