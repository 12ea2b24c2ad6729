"""What else may stand on a file, and be right: the same hints, resolved with more knowledge.

The script of `profile` and `tracehint run` know the run that hints were learned from, so a group
is that of one task and a number of copies that of one file. Who verifies with the hint file alone
resolves by names only; both say what the hints mean.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracehint.schemas.arrow import skip_pandas

if TYPE_CHECKING:
    from tracehint.adapters.stores.base import Store
    from tracehint.adapters.stores.readback import Reading
    from tracehint.hintgen.hints.model import HintFile

Values = dict[tuple[bytes, str], set[bytes]]  # path below the directory, key -> values
BESIDE = "analysis.json"  # of the run that the hints were learned from, as `profile` writes it


def with_others(readings: list[Reading], others: Values) -> list[Reading]:
    """Readings whose value another resolution gives are as they should be."""
    return [
        replace(reading, state="ok")
        if reading.state == "differs"
        and reading.got in others.get((reading.path, reading.setting.key), ())
        else reading
        for reading in readings
    ]


def other_values(
    path: Path,
    hints: HintFile,
    directory: Path,
    store: Store,
    run: Path | None,
    which: Mapping[str, Any],
) -> Values:
    """From the analysis beside the hint file, where no run was named, and from what `run` set."""
    skip_pandas()
    values: Values = defaultdict(set)
    beside = path.parent / BESIDE
    if beside.is_file() and not any(which[name] for name in ("like", "names", "workflow")):
        _resolved(hints, beside, store, which["nodes"], values)
    if run is not None:
        _set_by(run, directory, values)
    return values


def _resolved(hints: HintFile, like: Path, store: Store, nodes: int | None, values: Values) -> None:
    from tracehint.adapters.learned import run_paths
    from tracehint.adapters.paths import Paths
    from tracehint.adapters.plan import build_plan

    run = run_paths(like)
    paths = Paths(files=(), declared=run.files, known=run.known)
    for target in build_plan(hints, paths, nodes=nodes).targets:
        for setting in store.translate(target.hints, target.kind)[0]:
            values[target.path, setting.key].add(setting.value)


def _set_by(run: Path, directory: Path, values: Values) -> None:
    """What `tracehint run` set, by the last name of each file."""
    from tracehint.schemas.store import read_bundle

    below = os.fsencode(directory.resolve()).rstrip(b"/") + b"/"
    for row in read_bundle(run, without=("extents",)).tables["settings"].to_pylist():
        if row["path"].startswith(below) and row["state"] in ("set", "lost"):
            values[row["path"][len(below) :], row["key"]].add(row["value"])
