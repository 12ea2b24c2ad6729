"""The placement of a column, made once and stored, so that replay and prediction use the same."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from scripts.bench.gain.columns import COLUMNS, Case

from tracehint.analyzer.predict.model import Placement
from tracehint.hintgen.plan.planner import SEARCH

_ARRAYS = {
    "law": np.int32, "copies": np.int32, "target": np.int32, "plan": np.int32, "chunk": np.int64,
}  # fmt: skip  # a table

_WORDS = ("name", "scheduler", "steal")
PLANNED = "planned"  # the column that is made by a search


def placement_of(case: Case, column: str, path: Path) -> Placement:
    """Read the placement from `path`, or make it and store it there."""
    if not path.exists():
        made = _plain(COLUMNS[column].place(case))
        path.write_text(json.dumps(made | ({"search": SEARCH} if column == PLANNED else {})))
    data = json.loads(path.read_text())
    arrays = {
        name: None if data[name] is None else np.array(data[name], kind)
        for name, kind in _ARRAYS.items()
    }
    words = {name: data[name] for name in _WORDS}
    return Placement(groups=data["groups"], **words, **arrays)


def search_of(path: Path) -> str:
    """Return the name of the search that made a stored plan (planner.SEARCH)."""
    return str(json.loads(path.read_text()).get("search", "not known"))


def _plain(placement: Placement) -> dict[str, object]:
    arrays = {name: getattr(placement, name) for name in _ARRAYS}
    return {
        "groups": placement.groups,
        **{name: getattr(placement, name) for name in _WORDS},
        **{name: None if found is None else found.tolist() for name, found in arrays.items()},
    }
