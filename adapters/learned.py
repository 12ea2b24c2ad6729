"""Files of a recorded run as paths for the next one, with what the run knows about each."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tracehint.adapters.paths import inside
from tracehint.hintgen.match.match import Declared

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class RunPaths:
    """Paths below the data root, and their producing and consuming tasks (columns of `known`)."""

    files: list[bytes]
    known: Declared


def run_paths(run: str | Path) -> RunPaths:
    """Read a bundle, or the JSON of `analyze`; raises BundleError or InputError."""
    from tracehint.analyzer.model import Options
    from tracehint.hintgen.inputs import load_run
    from tracehint.hintgen.learn.facts import facts_of

    analysis = load_run(run, Options()).analysis
    facts, tasks = facts_of(analysis), analysis.tasks
    del analysis  # most of the memory of a large run
    return paths_in(tasks, facts)


def paths_in(tasks: pa.Table, facts: pa.Table) -> RunPaths:
    """Those of a run that is there already: the analysis's tasks, and its facts."""
    import pyarrow as pa

    from tracehint.hintgen.declared import declared_of

    type_of = dict(zip(*(tasks[name].to_pylist() for name in ("task", "type")), strict=True))
    files = facts["path"].to_pylist()
    below = [inside(path) for path in files]
    if not all(below):
        facts = facts.filter(pa.array(below, pa.bool_()))
        files = facts["path"].to_pylist()
    known = declared_of(facts, lambda task: f"{type_of[task]}:{task}")
    return RunPaths(files, replace(known, sizes=facts["size_bytes"].to_pylist()))
