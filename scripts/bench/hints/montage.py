"""Montage: the real programs on 12 tiles (datasets/montage), hinted by hand as in the paper."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from scripts.bench.hints.row import Row

DATASET = Path(__file__).parents[3] / "datasets" / "montage"
TILES, COLUMNS = 12, 4
LOCAL, REDUCE_FIT, REDUCE_MOSAIC = (
    {"DP": "local"},
    {"DP": "collocation|fit"},
    {"DP": "collocation|mosaic"},
)


def make(folder: Path, pixels: int) -> str:
    """Tiles, lists and the workflow; `pixels` is the side of a tile."""
    for script, target in (("make_tiles.py", folder / "archive"), ("make_workflow.py", folder)):
        command = [sys.executable, DATASET / script, target, "--pixels", str(pixels)]
        subprocess.run(command, check=True)
    return (folder / "montage.makeflow").read_text()


def by_hand() -> Mapping[str, Mapping[str, str]]:
    """Projected and difference images go to the next program, corrected ones to one sum."""
    hints: dict[str, Mapping[str, str]] = {"mosaic.fits": LOCAL, "small.fits": LOCAL}
    for k in range(TILES):
        hints[f"raw/tile_{k:02d}.fits"] = LOCAL
        for area in ("", "_area"):
            hints[f"proj/p_{k:02d}{area}.fits"] = LOCAL
            hints[f"corr/c_{k:02d}{area}.fits"] = REDUCE_MOSAIC
    from datasets.montage.make_workflow import neighbours

    for a, b in neighbours(COLUMNS, TILES // COLUMNS):
        hints[f"fit/f_{a:02d}_{b:02d}.txt"] = REDUCE_FIT
        for area in ("", "_area"):
            hints[f"diff/d_{a:02d}_{b:02d}{area}.fits"] = LOCAL
    return hints


ROWS = [
    Row(name="montage", title="Montage, 12 tiles", size=240, make=make, by_hand=by_hand, pairs=10),
    Row(
        name="montage-large",
        title="Montage, 12 tiles of 2,000 pixels",
        size=2000,
        make=make,
        by_hand=by_hand,
        programs=("mProject", "mAdd"),
        small=240,
    ),
]
