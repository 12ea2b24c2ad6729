"""Files of a recorded run as paths for the next one, with what the run knows about each."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tracehint.adapters.paths import inside
from tracehint.hintgen.match.match import Declared


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
    tasks = analysis.tasks.select(["task", "type"]).to_pylist()
    names = {row["task"]: f"{row['type']}:{row['task']}" for row in tasks}
    facts = facts_of(analysis).select(
        ["path", "producers", "consumers", "producer_types", "consumer_types", "size_bytes"]
    )
    rows = [row for row in facts.to_pylist() if inside(row["path"])]
    return RunPaths(
        files=[row["path"] for row in rows],
        known=Declared(
            producer_types=[(row["producer_types"] or [None])[0] for row in rows],
            consumer_types=[row["consumer_types"] or [] for row in rows],
            producers=[[names[t] for t in row["producers"] or []] for row in rows],
            consumers=[[names[t] for t in row["consumers"] or []] for row in rows],
            sizes=[row["size_bytes"] for row in rows],
        ),
    )
